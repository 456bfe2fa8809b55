/*
 * The private, writable memory of a process, all of one moment: copied while every thread of it is stopped, and read
 * afterwards as often as one likes, by the readers of allocators' structures too (heap/memory.h).
 *
 * What is made beforehand does not count into the pause: room for the copy, its pages touched (copying into pages that are
 * not there yet takes ten times as long). It lies in a file without a name, in a folder of the caller's: the kernel may write it
 * out, so a large heap needs no anonymous memory. Only pages that were ever touched are copied; others read as zeros.
 *
 * Stopping and copying is a child process's work: however it ends, its threads are let go by the kernel at that moment.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_COPY_H
#define MEMSCOPE_HEAP_SNAPSHOT_COPY_H

#include "base/cleanup.h"
#include "base/err.h"
#include "heap/memory.h"
#include "heap/snapshot/stop.h"

struct copy;

/* How much there is to copy now: resident pages, and of images all their variables. -ESRCH; as heap_process_open(). */
int copy_predict(pid_t pid, uint64_t *ret_bytes, struct err *e);
/*
 * `folder`: where there is room for it. -ENOSPC: there is not, with both figures in the sentence; -ESRCH, -EPERM, -EACCES,
 * -ENOMEM; -EIO: the child died. `twin`: the process goes on while a copy-on-write twin of it is copied (twin.h).
 */
int copy_take(pid_t pid, const char *folder, bool twin, struct copy **ret_copy, struct err *e);
void copy_close(struct copy *c);
DEFINE_CLEANUP(struct copy *, copy_closep, copy_close)

/* These live as long as `c`. What is resident in it is what was copied. */
const struct heap_memory *copy_memory(const struct copy *c);
/*
 * What was copied from `addr` on, in one piece: *ret_len bytes of it. NULL: nothing of the next *ret_len bytes was, they are
 * zeros, or nothing is there; as far as addresses go: 0.
 */
const uint8_t *copy_bytes(struct copy *c, uint64_t addr, uint64_t *ret_len);
const struct stopped_thread *copy_threads(const struct copy *c, uint32_t *ret_n);

struct copy_facts {
	uint64_t bytes;         /* copied                                              */
	uint64_t unreadable;    /* bytes that were there and could not be read         */
	uint64_t pause_ns;      /* from the first thread's stop to the last one's release */
	uint64_t copy_ns;       /* copying: of that, unless there was a twin             */
	uint64_t stop_ns;       /* of the pause: until all threads had stopped           */
	uint64_t release_ns;    /* … letting them go                                     */
	uint64_t twin_ns;       /* … making a twin; 0: there was none                    */
	bool twin_stays;        /* as a zombie of the process, which could not reap it    */
	uint64_t at_ns;         /* CLOCK_MONOTONIC, when all had stopped; of a file: 0       */
	uint32_t n_missed;      /* threads that could not be stopped                    */
};

struct copy_facts copy_facts(const struct copy *c);

/* Pages that lie behind each other; their bytes are `at` in what was copied. */
struct copy_run {
	uint64_t addr, len, at;
};

/* By address. */
const struct copy_run *copy_runs(const struct copy *c, uint32_t *ret_n);
/* Of what was copied, as copy_run.at counts: `len` bytes, valid until copy_close(). */
const uint8_t *copy_stored(const struct copy *c, uint64_t at, uint64_t len);

/* A copy that is made of what a file has; runs' `at` follow each other from 0 on. */
struct copy_parts {
	const struct heap_map *maps;
	const struct stopped_thread *threads;
	const struct copy_run *runs;
	uint32_t n_maps, n_threads, n_runs;
	struct copy_facts facts;
	bool has_bytes;               /* false: no memory can be read of it                       */
	uint8_t *bytes;               /* where the runs' bytes are once `load` was asked for them  */
	bool (*load)(void *ctx, uint64_t at, uint64_t len);
	void *ctx;
};

/* -E2BIG: more parts than a copy has; -ENOMEM. */
int copy_of_parts(const struct copy_parts *parts, struct copy **ret_copy);

#endif
