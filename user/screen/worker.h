/*
 * A child that does what takes long: it writes messages into a pipe, which the screen reads as they come. It has no
 * terminal; when the screen is gone, the kernel ends it.
 *
 *   message:  head, then `bytes` bytes
 */
#ifndef MEMSCOPE_SCREEN_WORKER_H
#define MEMSCOPE_SCREEN_WORKER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum worker_message {
	WORKER_NOTE,     /* what holds of all that was sent so far: what was lost, what could not be gathered; "": nothing */
	WORKER_SAYS,     /* a sentence: what it does now                               */
	WORKER_PROFILE,  /* a profile in pprof's form                                  */
	WORKER_WINDOW,   /* the profiles up to now are of one stretch of time: uint64_t ns, how long it was */
	WORKER_ANSWER,   /* JSON                                                       */
	WORKER_FAILED,   /* a sentence: why there is no answer, or nothing more         */
	WORKER_ENDED,    /* a sentence: why nothing more comes; "" as asked            */
	N_WORKER_MESSAGES,
};

struct worker_head {
	uint32_t magic, kind;
	uint64_t bytes;
};

struct worker {
	pid_t pid;        /* 0: none                          */
	int from, to;     /* its messages; what it is asked   */
	char *buf;
	size_t len, cap, taken;
};

/*
 * Starts `work` in a child. `in`: what worker_ask() sends; `out`: for worker_send(). Its result is the exit status. 0, or
 * -errno with a sentence.
 */
int worker_start(struct worker *w, int (*work)(void *ctx, int in, int out), void *ctx, struct err *e);
/* Asks it to end, and does not wait. */
void worker_stop(struct worker *w);
/* Waits for all that were stopped, for so long at most. */
void workers_wait(unsigned ms);

/*
 * Reads what is there; then calls of worker_next() take one message after the other. -EPIPE: it has ended. -EBADMSG, -ENOMEM.
 */
int worker_read(struct worker *w);
/* False: there is no whole one. `*ret_data` is good until the next call. */
bool worker_next(struct worker *w, enum worker_message *ret_kind, const char **ret_data, size_t *ret_bytes);
/* A line for its `in`. */
int worker_ask(const struct worker *w, const char *line);

/* In the child. -EPIPE: the screen is gone. */
int worker_send(int out, enum worker_message kind, const void *data, size_t bytes);
int worker_say(int out, enum worker_message kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
