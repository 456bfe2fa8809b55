/*
 * Push: the profiles of a run's windows, sent to stores.
 *
 *   writer of a window ─► push_profile() ─► spool on disk, one a store ─► worker, one a store ─► the store
 *                        (a child process)   (base/spool.h)               (a child process)
 *
 * Of a run that has a folder for each container (folders.h) the profiles of the folders are pushed, which add up to that of all, and
 * that of all is not. Windows of triggers are not either, as they overlap the others.
 *
 * Each profile is sent until the store has taken or refused it: at least once, and again where its answer was lost, or the
 * process was killed before it could note it; always with the same id.
 *
 * A spool on the archive's disk, where that is full: the oldest of what waits makes room, and then the archive's oldest windows do, where
 * --keep lets them go.
 */
#ifndef MEMSCOPE_RUN_PUSH_H
#define MEMSCOPE_RUN_PUSH_H

#include "base/spool.h"
#include "collect/session/sources.h"
#include "model/profile.h"
#include "run/push_config.h"

#include <sys/types.h>

struct run;
struct push_protocol;

/* Why a profile never came to its store. */
enum push_drop {
	PUSH_DROP_REFUSED,    /* the store does not want it, by its answer         */
	PUSH_DROP_REJECTED,   /* … parts of what it took: OTLP's partial success   */
	PUSH_DROP_OVER_LIMIT, /* the oldest of the spool, when its limit was passed */
	PUSH_DROP_DISK_FULL,  /* there was no room on the disk                     */
	PUSH_DROP_DAMAGED,    /* what was read from the spool is not what was put  */
	PUSH_DROP_NOT_MADE,   /* out of memory, or too large                       */
	N_PUSH_DROPS
};
extern const char *const push_drop_names[N_PUSH_DROPS]; /* "refused", … */

/* Of one store since the run began; shared by the processes of the run. */
struct push_stats {
	_Atomic uint64_t spooled;  /* profiles put into the spool (a part counts as one)        */
	_Atomic uint64_t pushed, pushed_bytes;
	_Atomic uint64_t retries;  /* requests that have to be made again                       */
	_Atomic uint64_t dropped[N_PUSH_DROPS];
	_Atomic int64_t failing_since_ns; /* CLOCK_REALTIME; 0: the last request was answered as it should be */
	_Atomic uint64_t cpu_ns;   /* of its workers                                            */
	struct spool_use waiting;  /* what is in the spool now                                  */
	/* Between the processes. */
	_Atomic uint64_t stop_ns;  /* CLOCK_MONOTONIC: what is not sent by then stays; 0: go on */
	_Atomic uint64_t said_ns[N_PUSH_DROPS];   /* when that was last said */
	_Atomic uint64_t said[N_PUSH_DROPS];      /* … and how many there were */
};

struct push_store {
	const struct push_protocol *protocol;
	char *url;                 /* with the protocol's path */
	char shown[200];           /* without name and password, for sentences and labels */
	char dir[3072];
	struct spool spool;
	struct push_stats *stats;
	pid_t worker;              /* 0: none */
	int wake;                  /* a pipe's end: a byte, and the worker looks at stop_ns */
	uint64_t started_ns;
};

struct push {
	const struct push_config *cfg;
	struct push_store stores[PUSH_STORES];
	uint32_t n;
};

/* Opens the spools of cfg's stores below `dir`. */
int push_open(const struct push_config *cfg, const char *dir, struct push **ret_push, struct err *e);
void push_close(struct push *p);
uint64_t push_dropped(const struct push_stats *stats);
/* CPU time of the workers that are there now; of those that ended getrusage(RUSAGE_CHILDREN) has it. `p` NULL: 0. */
uint64_t push_cpu_ns(const struct push *p);

/*
 * Puts a profile of a window into all spools; what cannot be is counted, and said. `folder`: "web/" or "" for all of the run, as
 * windows name it. Does nothing where r->serving.push is NULL.
 */
void push_profile(const struct run *r, const struct profile *p, enum profile_kind kind, const char *folder);

/* Says at most every ten minutes that there are more of them. */
void push_say_dropped(struct push_store *s, enum push_drop why, const char *detail);

#endif
