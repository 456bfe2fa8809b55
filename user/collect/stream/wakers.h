/*
 * Who ended waits, as bpf/wakers.bpf.h adds them up. A service of the run: several components listen.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_WAKERS_H
#define MEMSCOPE_COLLECT_STREAM_WAKERS_H

#include "collect/stream/drain.h"

enum waker_kind {
	WAKER_TASK,      /* a thread: of its stack, the user part is known where its process is a target */
	WAKER_INTERRUPT, /* an interrupt: of a timer, a device, another CPU                              */
	WAKER_UNKNOWN,
};

/* Waits of one thread at one place that ended alike. */
struct waker_event {
	struct event_key at;    /* the wait: for ingest_place()                             */
	struct event_key waker; /* the stack of who ended it, the same; not of WAKER_UNKNOWN */
	enum waker_kind kind;
	pid_t pid;              /* of WAKER_TASK: its process …   */
	char comm[16];          /* … and the name of the thread   */
	bool of_kernel;         /* it has no user stack: of the kernel, or its process is no target */
	uint64_t lock;          /* that was waited for, its address; 0: none that is known */
	const char *lock_kind;  /* … as in struct lock_event                               */
	uint64_t count, ns;     /* how many, for how long they were blocked */
};

typedef void (*waker_event_fn)(void *ctx, const struct waker_event *event);

struct wakers;

/* Events come as totals are drained. Call it before ingest_listen(). `d` is borrowed. NULL: out of memory. */
struct wakers *wakers_new(struct drain *d);
/* WAKER_LISTENERS at most. */
enum { WAKER_LISTENERS = 4 };
void wakers_listen(struct wakers *w, waker_event_fn fn, void *ctx);
/* Hands on those whose records came after them; of too many the oldest half, too. */
void wakers_waiting(struct wakers *w);
/* All others too: these are of WAKER_UNKNOWN, and without the kernel's part of `at`. */
void wakers_finish(struct wakers *w);
/* Waits whose records there was no room for: of so many nothing was handed on. */
uint64_t wakers_left_out(const struct wakers *w);
void wakers_free(struct wakers *w);
DEFINE_CLEANUP(struct wakers *, wakers_freep, wakers_free)

#endif
