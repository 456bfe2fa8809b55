/*
 * Counters of garbage collections, from outside: from what a runtime counts for itself, by a few reads of memory (or, of HotSpot, of a
 * file) each time. Nothing is stopped and nothing is asked of the program.
 *
 *   GHC      RTSStats (`stats`) where the program has its symbols: counts, live and held bytes; times where it was started with
 *            +RTS -T, -s or -S, for else the run-time system takes none. Without symbols: the structs of its generations
 *   CPython  generation_stats of each interpreter, 3.8 to 3.13; it counts no time
 *   HotSpot  hsperfdata, which JVMs write unless -XX:-UsePerfData or +PerfDisableSharedMem: counts, times, spaces
 *
 * Where no time is counted, a flag says whether a collection is under way: how often it is found set is an estimate.
 */
#ifndef MEMSCOPE_HEAP_GC_GC_H
#define MEMSCOPE_HEAP_GC_GC_H

#include "base/cleanup.h"
#include "model/gc_counters.h"

#include <sys/types.h>

struct gc_reader;

/*
 * -ENOENT: the process has no such runtime, or not yet; -EOPNOTSUPP: it has one of a version that is not known here; -ENOMEM; else why it
 * cannot be read.
 */
int gc_reader_open(pid_t pid, struct gc_reader **ret_reader);
void gc_reader_close(struct gc_reader *r);
DEFINE_CLEANUP(struct gc_reader *, gc_reader_closep, gc_reader_close)

/* "GHC" */
const char *gc_reader_runtime(const struct gc_reader *r);
/* What it has not, and why: a sentence; "" where nothing is missing. */
const char *gc_reader_missing(const struct gc_reader *r);
/* A version whose layout was never tried with a program. */
bool gc_reader_untested(const struct gc_reader *r);
/* -ESRCH: the process, or what was read there, is gone. -EAGAIN: it was being changed. */
int gc_reader_read(struct gc_reader *r, struct gc_counters *ret_counters);

/* A runtime; a row of gc.c each. */
struct gc_source {
	const char *name;
	int (*open)(pid_t pid, void **ret_state, bool *ret_untested);
	void (*close)(void *state);
	int (*read)(void *state, struct gc_counters *ret_counters);
	const char *(*missing)(const void *state);
};

extern const struct gc_source gc_ghc, gc_python, gc_hotspot;

enum { GC_PYTHON_INTERPRETERS = 16, GC_PYTHON_COLLECTING = 200 };

/* The interpreters of a CPython, and the state of each one's collector: a word of 4 bytes at GC_PYTHON_COLLECTING of it is 1 while it collects. */
struct gc_python {
	uint64_t interp[GC_PYTHON_INTERPRETERS], state[GC_PYTHON_INTERPRETERS];
	uint32_t n;
	bool free_threaded; /* built without the global lock, from 3.13 on; it has none of those */
};

/* false: the process has no CPython, or none of a version that is known. */
bool gc_python_find(pid_t pid, struct gc_python *ret);

/* For those: `len` bytes of a process's memory. */
bool gc_memory(pid_t pid, uint64_t addr, void *buf, size_t len);

#endif
