/* Heaps for memscope top: a copy of one in a child of the screen, and answers about it. */
#ifndef MEMSCOPE_CMD_TOP_HEAP_H
#define MEMSCOPE_CMD_TOP_HEAP_H

#include "screen/heap.h"
#include "screen/worker.h"

#include <sys/types.h>

struct top_heap {
	pid_t pid;             /* 0: of … */
	const char *container; /* NULL: of … */
	const char *file;      /* a snapshot */
};

/* For heap_screen_new(): `ctx` is a struct top_heap. Answers "census type" without being asked, and then a line of `in` each. */
int top_heap(void *ctx, int in, int out);

#endif
