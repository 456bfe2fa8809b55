/*
 * A Go program's file is others' bytes: what go_program_read() and go_place_read() take from it is read in a cell (base/cells.h). The one for
 * a program answers once. The one for places goes on as long as a look does: an address is only known once the frame before it is.
 *
 *   ▶ question  PROGRAM; the file                ◀ answer    code:4, and with 0 the program as it is in memory; else a sentence
 *   ▶ question  PLACES; the file                 ◀ answer    code:4
 *   ▶ PLACE     vaddr:8, again and again         ◀ PLACE     delta:4 kind:1 flags:1
 */
#ifndef MEMSCOPE_LANG_GO_CELL_H
#define MEMSCOPE_LANG_GO_CELL_H

#include "base/bytes.h"
#include "base/cells.h"
#include "lang/goroutines.h"

/* go_program_read() by a cell, of an open file. -ETIMEDOUT, -EBADMSG: as lang_image_ask(). */
int go_program_ask(int fd, struct go_program **ret_program, struct err *e);
/* Its answer. -EBADMSG without a sentence: it is none. */
int go_program_take(struct bytes answer, struct go_program **ret_program, struct err *e);

/* Places of one file, for go_tables: asked of a cell that is made with the first question and ends with go_places_end(). */
struct go_places {
	int (*open)(void *ctx); /* the file: a descriptor, or -errno */
	void *ctx;
	struct cell_link link;
	uint64_t left_ns; /* for which answers may yet be waited, all together */
	bool has_cell;
	bool gave_up; /* none is asked any more */
	bool is_bad;  /* because a cell did not answer as it should: no other will */
};

#define GO_PLACES_NS 10000000000ull
#define GO_PLACES(open_, ctx_) { .open = (open_), .ctx = (ctx_), .link = { -1, -1 }, .left_ns = GO_PLACES_NS }

/* go_tables' own two. */
bool go_places_find(void *places, uint64_t vaddr, struct go_place *ret);
void go_places_end(struct go_places *places);

/* The bytes of a PLACE. false: they are none. */
bool go_place_take(struct bytes b, uint64_t vaddr, struct go_place *ret);

#endif
