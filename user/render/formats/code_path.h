/*
 * A stack as places in source code, root first: what formats need that know files and lines. A frame of
 * frame.h has neither, because a call tree joins the lines of a function.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_CODE_PATH_H
#define MEMSCOPE_RENDER_FORMATS_CODE_PATH_H

#include "analyse/frame.h"

#include <stdint.h>

/* A function in a file of an image. Equal names are one string of the dict, so these compare as bytes. */
struct code_function {
	string_id name;
	string_id file;     /* empty: not known */
	const char *module; /* base name of the image, "" when unknown */
};

struct code_place {
	struct code_function function;
	uint32_t line;      /* where execution was, or where the call is; 0: not known */
	enum frame_kind kind;
	uint64_t vaddr;     /* of the location; that of an inlined call is its caller's */
};

/* The buffers are kept and grown from call to call. */
struct code_path {
	struct code_place *places;
	uint32_t n, cap;
	struct frame_path frames;
};

/* 0 or -ENOMEM. Made-up names are interned: check dict_oom() when done. */
int code_path_set(struct code_path *path, struct dict *d, stack_id stack);
void code_path_fini(struct code_path *path);

#endif
