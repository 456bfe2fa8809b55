/*
 * Containers and control groups as /metrics shows them: what each one is charged, by the kernel's own account, and what the run's
 * profiles have of it.
 *
 * Taken at each row of the memory series (--interval), so that a scrape reads nothing but this. Each row adds what the profiles
 * gained since the one before, so that sums only grow. Bounded: beyond METRICS_GROUPS that are there at one time the others are
 * counted, and left out.
 *
 * What profiles gain beyond the list is in the sums of `other`: one that comes into the list begins there with 0, and one that
 * leaves it takes nothing back.
 */
#ifndef MEMSCOPE_RUN_SERVE_METRICS_GROUPS_H
#define MEMSCOPE_RUN_SERVE_METRICS_GROUPS_H

#include "model/profile_checkpoint.h"
#include "proc/cgroup_use.h"
#include "run/members.h"
#include "run/run.h"
#include "run/serve/growth_hour.h"
#include "run/serve/wait_kinds.h"

enum { METRICS_GROUPS = 200, METRICS_NAME = 128 };

/* What is in no container, and the containers that have no series; one that is called so gets a `_`, as its folder does. */
#define METRICS_HOST  "host"
#define METRICS_OTHER "other"

/* What the profiles have. */
enum group_sum {
	GROUP_SAMPLES, /* on-CPU                                           */
	GROUP_SAMPLED_CPU_NS,
	GROUP_BLOCKED_NS,
	GROUP_RUNNABLE_NS,
	GROUP_TOUCHED_BYTES,  /* made resident                                    */
	GROUP_RETURNED_BYTES, /* … and released                                   */
	GROUP_ALLOC_BYTES,
	N_GROUP_SUMS
};

struct metrics_group {
	char name[METRICS_NAME]; /* as members.h and the label have it; METRICS_HOST: what is in none */
	char id[METRICS_NAME], image[METRICS_NAME], pod[METRICS_NAME], namespace[METRICS_NAME]; /* "": not known */
	bool here, was_here;     /* at the last row, and at the one before              */
	bool has_charge;
	uint32_t processes;
	struct cgroup_charge charge;
	int64_t sums[N_GROUP_SUMS];     /* of the profiles, since it is in the list          */
	int64_t waits_ns[N_WAIT_KINDS]; /* of GROUP_BLOCKED_NS, by what was waited for       */
	/* Sums only grow. What an estimate took back later (wait_sites.h) is first made up for by what comes: at most 0. */
	int64_t sums_owed[N_GROUP_SUMS], waits_owed_ns[N_WAIT_KINDS];
	struct growth_hour growth;      /* of its anonymous memory                           */
};

struct metrics_groups {
	struct metrics_group list[METRICS_GROUPS];
	uint32_t n, left_out, left_out_processes;
	bool full; /* second pass of a row: who is still there is known, and ended groups make room */
	struct metrics_group other; /* sums alone: of who is not in the list */
	/* Of -p and -n, which are no containers: there is this one alone, with processes, sums, waits and growth. */
	struct metrics_group target;
	bool has_target;
	int64_t target_cpu_ns;    /* since the run began                             */
	struct mem_sample memory; /* its last row; time_ns 0: there was none         */
	struct members *members;
	const char *rest; /* whose samples without a label are */
	struct profile_checkpoint had[N_PROFILE_KINDS]; /* at the last row */
	uint16_t *rows; /* by label set: its group and 1; 0: not known */
	uint32_t n_rows, swept; /* dict_labels_swept() */
	bool has[N_GROUP_SUMS]; /* is there a profile that says it? */
	bool has_waits;
	struct wait_kinds kinds;
};

/* A row, now. 0 or -ENOMEM: the sums lack what was gained since the last one, or a part of it. */
int metrics_groups_take(struct metrics_groups *g, struct run *r);
void metrics_groups_fini(struct metrics_groups *g);

#endif
