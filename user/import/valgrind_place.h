/* Locations as valgrind's tools write them: "0x1095BC: grow(int) (t.cpp:9)", "0x48FC7B9: ??? (in /usr/lib/libc.so.6)". */
#ifndef MEMSCOPE_IMPORT_VALGRIND_PLACE_H
#define MEMSCOPE_IMPORT_VALGRIND_PLACE_H

#include "base/bytes.h"
#include "model/dict.h"

struct valgrind_place {
	uint64_t addr; /* 0: none */
	module_id module;
	struct line line; /* the function is never empty */
};

struct valgrind_place valgrind_place(struct dict *d, struct bytes text);

/*
 * The stack of n places, leaf first: those of one address that follow each other are one location, inlined calls. `lines` and
 * `frames` have room for n.
 */
stack_id valgrind_stack(struct dict *d, const struct valgrind_place *const *places, uint32_t n,
			struct line *lines, location_id *frames);

#endif
