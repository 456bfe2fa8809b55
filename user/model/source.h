/*
 * What a run can gather, and how a stack can have ended: numbers that the whole line shares. The kernel's
 * programs have the same (asserted in collect/session/sources.c).
 */
#ifndef MEMSCOPE_MODEL_SOURCE_H
#define MEMSCOPE_MODEL_SOURCE_H

enum source { SOURCE_ONCPU, SOURCE_OFFCPU, SOURCE_ALLOC, SOURCE_GROWTH, SOURCE_SYSCALLS, SOURCE_EVENTS, N_SOURCES };

/* "oncpu", "offcpu", "alloc", "growth", "syscalls", "events". */
extern const char *const source_names[N_SOURCES];

enum stack_verdict {
	STACK_COMPLETE,   /* the outermost frame was proven                   */
	STACK_TRUNCATED,  /* deeper than the walker goes                      */
	STACK_NO_TABLE,   /* no unwind rows for a module yet                  */
	STACK_UNREADABLE, /* stack memory could not be read                   */
	STACK_GUESSED,    /* followed frame pointers that nothing vouches for */
	STACK_LOST,       /* no frame at all, or the record did not get out   */
	N_STACK_VERDICTS,
};

/* "no table". */
extern const char *const stack_verdict_names[N_STACK_VERDICTS];

/* What kind of pages. */
enum memory_kind {
	MEMORY_FILE,
	MEMORY_ANON,
	MEMORY_SHARED, /* shmem: tmpfs, memfd, shared anonymous mappings */
	N_MEMORY_KINDS,
};

#endif
