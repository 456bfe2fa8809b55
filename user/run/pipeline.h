/*
 * From the kernel's maps to the profiles, in the one order that is right:
 *
 *   exchange the totals ─► records about processes ─► read the totals ─► stacks
 *
 * What totals and stacks speak of must be known when they are read, so records about processes are
 * read in between.
 */
#ifndef MEMSCOPE_RUN_PIPELINE_H
#define MEMSCOPE_RUN_PIPELINE_H

#include "analyse/bursts.h"
#include "base/err.h"
#include "collect/overhead/costs.h"
#include "collect/session/sources.h"
#include "model/estimate.h"
#include "model/profile_checkpoint.h"

#include <stdbool.h>

struct run;

/* What there was when a stretch of time began. */
struct profile_begin {
	uint64_t ns; /* CLOCK_MONOTONIC; 0: when the gate opened */
	int64_t wall_ns;
	/* What estimates were made of, and what had been spent. */
	struct estimate sampled;
	struct burst_estimate bursts;
	struct burst_facts burst_facts;
	double burst_cost_ns;
	struct program_cost costs[N_COSTS];
	uint64_t cost_window_ns;
};

/* What one consumer has taken of the profiles so far; zeroed: nothing. */
struct profile_since {
	struct profile_begin begin;
	struct profile_checkpoint had[N_PROFILE_KINDS];
	struct profile *open; /* waits that were going on then                */
	bool no_live;         /* the next profiles are to be without what is live */
	bool goroutines;      /* the next profiles are to have those of the last look at Go programs */
	bool times;           /* they are to have times (model/sample_times.h) …  */
	bool forget_times;    /* … which nobody else needs: they are forgotten    */
};

/* Profiles of a stretch of time; NULL for kinds that cannot be split by time. */
struct profile_now {
	struct profile *profiles[N_PROFILE_KINDS];
	/* What the figures of a kind are worth in this stretch: a sentence, or ""; the mean between samples,
	 * 0: the kind's own; what gathering them cost, percent of a CPU, below 0: not known. */
	char comment[N_PROFILE_KINDS][320];
	int64_t period[N_PROFILE_KINDS];
	double cost_percent[N_PROFILE_KINDS];
	uint64_t end_ns;
	int64_t time_ns, duration_ns; /* when it began, since the Epoch; how long it was */
	bool last;                    /* up to the end of the run                        */
};

int pipeline_open(struct run *r, struct err *e);
void pipeline_free(struct run *r);

/* Records about processes. */
void pipeline_processes(struct run *r);
/* Totals and sites into the profiles. */
int pipeline_totals(struct run *r, struct err *e);
/* Stack records, and those stacks that are walked here. */
int pipeline_stacks(struct run *r, struct err *e);
/* To be called in drained(): a table fills up, the next drain should be sooner. */
void pipeline_sooner(struct run *r);
/* All of it, and everything that is due with it; sets when it is next due. */
int pipeline_drain(struct run *r, struct err *e);
/* That, where it is due. `anyway`: in any case. */
int pipeline_tick(struct run *r, uint64_t now_ns, bool anyway, struct err *e);
/* What a turn of the loop does for the kernel's maps and rings: for a component that waits for something in
 * closing(), every 50 ms or more often. */
int pipeline_keep_up(struct run *r, struct err *e);
/* When the totals were last read, CLOCK_MONOTONIC ns; 0: not yet. */
uint64_t pipeline_read_ns(const struct run *r);
/* The gate is shut: the last totals, threads and stacks. */
int pipeline_end(struct run *r, struct err *e);

/*
 * A profile, now, of what was gathered since `since` was last used: for a window, a signal, a request.
 * The profiles that one consumer takes add up to the run, whatever others take meanwhile. After
 * pipeline_end() it is the last. 0, -ENOMEM, or an error of the drain; *ret_now is untouched then.
 */
int pipeline_now(struct run *r, struct profile_since *since, struct profile_now *ret_now,
		 struct err *e);
/*
 * Gives the profiles times (model/sample_times.h), as the run's have them, from the bin on in which their stretch begins. Not where
 * something of it was forgotten (struct profile_since). 0 or -ENOMEM.
 */
int pipeline_times(const struct run *r, struct profile_now *now);
void profile_now_fini(struct profile_now *now);
void profile_since_fini(struct profile_since *since);

/* Does the run have figures for a profile of this kind? Bursts have them of what lives at the end alone. */
bool pipeline_has(const struct run *r, enum profile_kind kind);

#endif
