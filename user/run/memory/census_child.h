/*
 * A census of a process's heap by a child of memscope: the recording goes on meanwhile, what it takes of memory is free again
 * when the child ends, and a heap that no walker can read ends nobody but the child.
 */
#ifndef MEMSCOPE_RUN_MEMORY_CENSUS_CHILD_H
#define MEMSCOPE_RUN_MEMORY_CENSUS_CHILD_H

#include "analyse/census_series.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct census_result {
	int error;               /* 0, or -errno with its sentence     */
	char sentence[256];
	int64_t wall_ns;         /* when it was, ns since the Epoch    */
	uint64_t paused_ns;      /* how long the process was stopped   */
	uint32_t n_pauses;       /* more than one: a change was half made */
	struct census_count all; /* objects and bytes; no name         */
	struct census_count types[CENSUS_TYPES]; /* the largest, most bytes first */
	uint32_t n;
	bool is_linked;          /* references were looked at           */
};

struct census_child {
	pid_t kid;                    /* 0: none is at work */
	struct census_result *result; /* shared with it     */
};

/* Begins one. Of up to `link_max` bytes of blocks references are looked at as well, for types that are known by those. -errno
 * with a sentence. */
int census_begin(struct census_child *c, pid_t pid, uint64_t link_max, struct err *e);
/* What the child found, until the next one begins; `patience_ms`: so long it is waited for. NULL: it is still at work. */
const struct census_result *census_ended(struct census_child *c, uint32_t patience_ms);
/* Ends the child; the process it looked at is let go by the kernel. */
void census_child_fini(struct census_child *c);

#endif
