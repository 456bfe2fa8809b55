/*
 * One frame as people see it: a location may be several (inlined calls), and each has a name
 * even where nothing could name it.
 *
 * Names, in order: the function of the source line; `basename+0xvaddr` for an image without a
 * symbol there; `[anon]` for executable memory without a file (a JIT without a perf map: its
 * addresses say nothing to anyone and would fan out into a thousand frames of one sample);
 * `[unknown]` for an address that no mapping covers.
 */
#ifndef MEMSCOPE_ANALYSE_FRAME_H
#define MEMSCOPE_ANALYSE_FRAME_H

#include "model/profile.h"

#include <stdbool.h>

enum frame_kind {
	FRAME_USER,
	FRAME_KERNEL,
	FRAME_INLINED, /* compiled into its caller, in user space or the kernel */
	FRAME_PROCESS, /* not code: the process name, or the root of a tree     */
	FRAME_UNKNOWN, /* no image and no name                                 */
	FRAME_LANG,    /* of an interpreted language, inlined or not           */
};
enum { N_FRAME_KINDS = FRAME_LANG + 1 };

/* "user", "kernel", "inlined", "process", "unknown", "interpreted" */
const char *frame_kind_name(enum frame_kind kind);

struct frame {
	string_id name;
	string_id file;     /* of a language: the path of its source; else empty */
	const char *module; /* base name of the image, "" when unknown; borrowed from the dict */
	enum frame_kind kind;
	location_id location; /* frame_get() of `location` and `line`: where its source line is */
	uint32_t line;
};

/* Of the kernel, inlined or not. */
bool frame_in_kernel(const struct frame *f);
/* Code, and not of the kernel. */
bool frame_is_user(const struct frame *f);

/* How many frames location `loc` is: 1 + its inlined calls. */
uint32_t frame_count(const struct dict *d, location_id loc);
/*
 * The i-th of them, leaf first (0 is the innermost inlined call). Made-up names are interned, so
 * check dict_oom() when done.
 */
struct frame frame_get(struct dict *d, location_id loc, uint32_t i);

/* A whole stack as frames, root first; the buffer is kept and grown from call to call. */
struct frame_path {
	struct frame *frames;
	uint32_t n, cap;
};

/* 0 or -ENOMEM. */
int frame_path_set(struct frame_path *path, struct dict *d, stack_id stack);
void frame_path_fini(struct frame_path *path);

/* The sum of a value over the samples whose stack `is` so; no more than INT64_MAX. -ENOMEM. */
int frame_path_sum(const struct profile *p, uint32_t type,
		   bool (*is)(const struct dict *d, const struct frame_path *path), int64_t *ret_value);

#endif
