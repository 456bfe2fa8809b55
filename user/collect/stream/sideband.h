/*
 * The kernel's own account of address spaces: perf mmap2, comm and task records from every CPU,
 * handed on in time order.
 *
 * Opened before /proc is read, so that nothing falls between the two. Each CPU has its ring; a read
 * takes what all rings hold and delivers records up to the moment it began, oldest first. Younger
 * ones wait for the next read: a record that belongs before them may still be on its way in another
 * ring.
 *
 * Times are CLOCK_MONOTONIC ns (use_clockid), the clock of bpf_ktime_get_ns().
 */
#ifndef MEMSCOPE_COLLECT_STREAM_SIDEBAND_H
#define MEMSCOPE_COLLECT_STREAM_SIDEBAND_H

#include "base/cleanup.h"
#include "base/err.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sideband;

enum sideband_kind { SIDEBAND_MMAP, SIDEBAND_COMM, SIDEBAND_FORK, SIDEBAND_EXIT };

struct sideband_record {
	enum sideband_kind kind;
	uint64_t ns;
	pid_t pid, tid;
	pid_t ppid;              /* fork: the parent process; equals pid for a new thread */
	bool exec;               /* comm: by exec, not by prctl                           */
	const char *name;        /* mmap: path; comm: the name. Until the callback returns */
	uint64_t addr, len, off; /* mmap */
	uint64_t dev, ino;       /* mmap: makedev(major, minor)                           */
};

typedef void (*sideband_fn)(void *ctx, const struct sideband_record *r);

int sideband_open(struct sideband **ret_sideband, struct err *e);
void sideband_close(struct sideband *s);
DEFINE_CLEANUP(struct sideband *, sideband_closep, sideband_close)

/*
 * Calls `fn`, which reads, from the loop as soon as there is a record; while threads come and go by the hundred
 * a second, and little else happens, 50 times a second, or when many records are there. 0 or -errno.
 */
int sideband_watch(struct sideband *s, struct loop *loop, loop_fn fn, void *ctx);

/* From now on it is read each `rest_ns`, or when many records are there, whatever happens: who wakes for each
 * process of a host on which they come by the hundred spends a fifth of its time on that. */
void sideband_rest(struct sideband *s, uint64_t rest_ns);

/* Delivers; returns how many records are waiting for the next call. */
uint32_t sideband_read(struct sideband *s, sideband_fn fn, void *ctx);

/* Records that the kernel dropped because a ring was full. */
uint64_t sideband_lost(const struct sideband *s);

#endif
/* Pages of the two rings of each CPU, of so many: powers of two. */
struct sideband_pages {
	uint32_t prompt, calm;
};
struct sideband_pages sideband_pages(uint32_t n_cpus, uint32_t page);

