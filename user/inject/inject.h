/*
 * libmemscope-alloc.so put into a process that runs, and its effect taken away again.
 *
 *   inject_check    may it be done at all? Reads /proc alone
 *   inject_begin    a thread of the process is asked, once, to start a thread of ours (remote.h, safe.h);
 *                   that one loads the library and waits. Nothing is sampled yet
 *   inject_hook     calls of malloc and its kin go through the library (preload/agent.h)
 *   inject_end      they go where they went before, and the thread ends
 *
 * Only pthread_create() is called in a thread of the program, which takes some tenths of a
 * millisecond. Work that may take long, or wait for the program itself (the dynamic linker's lock),
 * is done by our own thread, which has no signals, its own table of descriptors, and none of the
 * program's locks.
 *
 * Whatever happens to memscope, the process goes on: the thread that was borrowed returns by
 * itself, and our thread undoes everything when it is alone. What stays is the library, mapped and
 * idle, since some thread may be in it; and that the process has once had a second thread, which
 * makes the C library take its locks for real from then on.
 */
#ifndef MEMSCOPE_INJECT_INJECT_H
#define MEMSCOPE_INJECT_INJECT_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct injected;

/* 0, or -errno and a sentence that says what is in the way. `library`: its path, ours. */
int inject_check(pid_t pid, const char *library, struct err *e);

/*
 * `rate`: mean bytes between samples. -EALREADY: the library was preloaded, its sites are there.
 * -errno with a sentence: the process is as it was.
 */
int inject_begin(pid_t pid, const char *library, uint64_t rate, struct injected **ret_in,
		 struct err *e);
/*
 * The same for every call (preload/exact_area.h), also where the library was preloaded. *ret_area_fd: an
 * empty memfd that both sides have; the caller's. When it is filled, inject_map() has it mapped, before
 * the first inject_hook().
 */
int inject_begin_exact(pid_t pid, const char *library, struct injected **ret_in, int *ret_area_fd,
		       struct err *e);
int inject_map(struct injected *in, struct err *e);

struct inject_counts {
	uint32_t places;   /* words exchanged, or put back                        */
	uint32_t left;     /* that could not be                                   */
	uint64_t rate;     /* in force: of an earlier run, when that was before   */
	uint64_t stopped_us; /* how long the borrowed thread was away              */
};

/* Also again, for libraries that were loaded since; then the counts are of those. */
int inject_hook(struct injected *in, struct inject_counts *ret_counts, struct err *e);
/* -ESRCH: the process has ended, or runs another program: that is fine. `in` is to be freed. */
int inject_end(struct injected *in, struct inject_counts *ret_counts, struct err *e);
/* Without inject_end(), all is undone a moment later. */
void inject_free(struct injected *in);
DEFINE_CLEANUP(struct injected *, inject_freep, inject_free)

#endif
