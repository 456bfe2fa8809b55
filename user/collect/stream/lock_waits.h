/*
 * Waits for locks, and what the owners of those did meanwhile, as bpf/locks.bpf.h adds them up.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_LOCK_WAITS_H
#define MEMSCOPE_COLLECT_STREAM_LOCK_WAITS_H

#include "collect/stream/drain.h"

struct lock_event {
	struct event_key at;  /* its user stack: where it waits, or what it does; of no thread, no kernel stack */
	struct proc_id proc;
	uint64_t lock;        /* address */
	const char *kind;     /* "mutex", "rwlock", "futex", "GIL"; static; "": not known */
	uint32_t tid;         /* of the thread whose time this is */
	uint32_t owner;       /* as the process itself numbers threads; 0: not known */
	bool hold;            /* time of the owner, else of one that waits */
	bool open;            /* the wait had not ended when the run did   */
	uint64_t count, ns;
};

typedef void (*lock_event_fn)(void *ctx, const struct lock_event *event);

struct lock_waits;

/*
 * Events come as totals are drained, and for waits that go on when the run has ended (*end_ns is then not 0): those
 * that began before the run are read from /proc and the process's memory. Call it before ingest_listen(). All are
 * borrowed. NULL: out of memory.
 */
struct lock_waits *lock_waits_new(struct drain *d, const uint64_t *end_ns, lock_event_fn fn, void *ctx);
void lock_waits_free(struct lock_waits *l);
DEFINE_CLEANUP(struct lock_waits *, lock_waits_freep, lock_waits_free)

/* Of a lock as the kernel's programs name it: its address, and the word above. */
uint64_t lock_waits_address(uint64_t lock);
const char *lock_waits_kind(uint64_t lock);

/* The futex that a thread waits for, by a line of /proc/PID/task/TID/syscall. false: it is in neither
 * futex(2) nor futex_wait(2). */
struct futex_args {
	uint64_t futex;
	uint32_t op, expected;
};
bool futex_args_parse(const char *line, struct futex_args *ret_args);

#endif
