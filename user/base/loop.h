/*
 * The event loop: descriptors, timers and signals, in one thread.
 *
 *   loop_fd()       calls when a descriptor is readable
 *   loop_every()    calls once a period; a period that was missed is not made up for
 *   loop_at()       calls when a moment has come that somebody else knows
 *   loop_each()     calls after each round of the above
 *   loop_signals()  calls when a signal has come
 *
 * Handlers run in the order in which they were added: first those of descriptors, then timers, then those
 * of each round. A handler returns 0, or -errno with a sentence: that ends the loop.
 */
#ifndef MEMSCOPE_BASE_LOOP_H
#define MEMSCOPE_BASE_LOOP_H

#include "base/cleanup.h"
#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

#define LOOP_NEVER UINT64_MAX

typedef int (*loop_fn)(void *ctx, struct err *e);
/* When to call, CLOCK_MONOTONIC ns; LOOP_NEVER: not now. Asked before each wait. */
typedef uint64_t (*loop_due_fn)(void *ctx);
typedef void (*loop_signal_fn)(void *ctx, int number);

int loop_new(struct loop **ret_loop, struct err *e);
void loop_free(struct loop *l);
DEFINE_CLEANUP(struct loop *, loop_freep, loop_free)

/* All return 0 or -errno. A descriptor stays its owner's; loop_fd_forget() before it is closed. */
int loop_fd(struct loop *l, int fd, loop_fn fn, void *ctx);
void loop_fd_forget(struct loop *l, int fd);
/* The first call is a period from now. */
int loop_every(struct loop *l, uint64_t period_ns, loop_fn fn, void *ctx);
int loop_at(struct loop *l, loop_due_fn due, loop_fn fn, void *ctx);
int loop_each(struct loop *l, loop_fn fn, void *ctx);

/* Blocks the signals of `set`, which are `fn`'s from now on. Once. */
int loop_signals(struct loop *l, const sigset_t *set, loop_signal_fn fn, void *ctx);
/* One more signal, which loop_signal_waits() and loop_signals_end() do not see. Up to four. */
int loop_signal(struct loop *l, int number, loop_signal_fn fn, void *ctx);
/* Has one of loop_signals() come that was not handed over yet? Waits for it for `timeout_ms` at most. */
bool loop_signal_waits(const struct loop *l, int timeout_ms);
/* They are let through again, or stay blocked: for who comes next. */
void loop_signals_end(struct loop *l, bool let_through);

/* Until loop_end(), or an error of a handler, which is returned. */
int loop_run(struct loop *l, struct err *e);
/* To be called by a handler: the round that is going on is the last one. */
void loop_end(struct loop *l);

#endif
