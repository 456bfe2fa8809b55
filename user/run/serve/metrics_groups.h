/*
 * Containers and control groups as /metrics shows them: what each one is charged, by the kernel's own account, and what the run's
 * profiles have of it.
 *
 * Taken at each row of the memory series (--interval), so that a scrape reads nothing but this. Profiles only grow while a
 * run lasts, and so do these sums. Bounded: beyond METRICS_GROUPS that are there at one time the others are counted, and left out.
 *
 * What profiles have beyond the list is in the sums of `other`: one that comes into the list begins there with 0, and one that
 * leaves it takes nothing back, so that these grow only, too, and the sums of all are those of the profiles.
 */
#ifndef MEMSCOPE_RUN_SERVE_METRICS_GROUPS_H
#define MEMSCOPE_RUN_SERVE_METRICS_GROUPS_H

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
	bool here;               /* at the last row                                     */
	bool is_new;             /* came with the row that is taken, and not the first  */
	bool has_charge;
	uint32_t processes;
	struct cgroup_charge charge;
	int64_t sums[N_GROUP_SUMS];     /* of the profiles, less `before`                    */
	int64_t waits_ns[N_WAIT_KINDS]; /* of GROUP_BLOCKED_NS, by what was waited for       */
	int64_t before[N_GROUP_SUMS], waits_before_ns[N_WAIT_KINDS]; /* it was in the list   */
	struct growth_hour growth;      /* of its anonymous memory                           */
};

struct metrics_groups {
	struct metrics_group list[METRICS_GROUPS];
	uint32_t n, left_out, left_out_processes;
	struct metrics_group all, gone, other; /* sums alone: of the profiles; of who was in the list; of who is not */
	bool begun;                            /* there was a row */
	/* Of -p and -n, which are no containers: there is this one alone, with processes, sums, waits and growth. */
	struct metrics_group target;
	bool has_target;
	int64_t target_cpu_ns;    /* since the run began                             */
	struct mem_sample memory; /* its last row; time_ns 0: there was none         */
	struct members *members;
	const char *rest; /* whose samples without a label are */
	uint16_t *rows; /* by label set: its group and 1; 0: not known */
	uint32_t n_rows;
	bool has[N_GROUP_SUMS]; /* is there a profile that says it? */
	bool has_waits;
	struct wait_kinds kinds;
};

/* A row, now. 0 or -ENOMEM: the sums stay as they were. */
int metrics_groups_take(struct metrics_groups *g, struct run *r);
void metrics_groups_fini(struct metrics_groups *g);

#endif
