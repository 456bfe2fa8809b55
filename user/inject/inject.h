/*
 * libmemscope-alloc.so put into a process that runs, and its effect taken away again.
 *
 *   inject_check    may it be done at all? Reads /proc alone, unless it is under seccomp: then a thread
 *                   is stopped for a moment, for the kernel says what a filter allows only then (filter.h)
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

/* What the mapping of a library that came by a memfd is called, and what the library is. */
#define INJECT_MEMFD      "libmemscope-alloc.so"
#define INJECT_MEMFD_PATH "/memfd:" INJECT_MEMFD

struct injected;

/* 0, or -errno and a sentence that says what is in the way. `library`: its path, ours. */
int inject_check(pid_t pid, const char *library, bool exact, struct err *e);

struct inject_how {
	uint64_t rate; /* mean bytes between samples … */
	bool exact; /* … or every call (preload/exact_area.h), also where the library was preloaded */
	bool held; /* the process is stopped under our ptrace at its entry point, and stays so     */
};

/*
 * A process that does not see the library's file (a container), or may not map it, has it from a memfd.
 * -EALREADY: the library was preloaded, its sites are there. -errno with a sentence: the process is as it was.
 */
int inject_begin(pid_t pid, const char *library, const struct inject_how *how,
		 struct injected **ret_in, struct err *e);
/*
 * With `exact`: an empty memfd that both sides have; the caller's from now on. When it is filled, inject_map()
 * has it mapped, before the first inject_hook().
 */
int inject_area(struct injected *in);
int inject_map(struct injected *in, struct err *e);

/* CPython's own allocator of objects (preload/python.h). */
enum inject_python {
	INJECT_PYTHON_NONE,
	INJECT_PYTHON_WANTED, /* no thread of the program could exchange its hooks yet */
	INJECT_PYTHON_HOOKED,
	INJECT_PYTHON_REFUSED,
};

struct inject_counts {
	uint32_t places;     /* words exchanged, or put back                        */
	uint32_t left;       /* that could not be                                   */
	uint64_t rate;       /* in force: of an earlier run, when that was before   */
	enum inject_python python;
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
