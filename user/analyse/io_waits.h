/*
 * Waits for files and sockets, by what they were for.
 */
#ifndef MEMSCOPE_ANALYSE_IO_WAITS_H
#define MEMSCOPE_ANALYSE_IO_WAITS_H

#include "model/dict.h"

#include <stdint.h>

/* Waits at one place for one object. */
struct io_wait {
	uint32_t object; /* its number     */
	stack_id stack;  /* user frames    */
	int64_t ns, count;
};

struct io_wait_row {
	const char *kind; /* "file", "directory", "device", "peer", "client", "socket"              */
	const char *name; /* path, address; of clients the port that they asked: filled in by others, as is */
	const char *device; /* … that a file is on; "" for sockets                                 */
	uint32_t object;
	int64_t blocked_ns, count;
	const char *function, *module; /* where most of that was waited */
	int64_t function_ns;
};

/* By object, longest first, at most `cap`, and how many, or -ENOMEM. Reorders `waits`. Names borrow from the dict. */
int io_waits_rank(struct dict *d, struct io_wait *waits, uint32_t n, struct io_wait_row *out, uint32_t cap);

#endif
