/* What targets.c and groups.c know of each other. */
#ifndef MEMSCOPE_RUN_TARGETS_PARTS_H
#define MEMSCOPE_RUN_TARGETS_PARTS_H

#include "collect/stream/sideband.h"
#include "proc/launch.h"
#include "run/targets.h"

struct targets {
	struct target *all; /* by pid */
	struct sideband *sideband;
	struct launch *launch;
	uint64_t records_lost; /* of it, when it was last read */
	struct target_counts count;
	char **cmdlines; /* of the targets that were named by pid, as the run began */
	bool holding;    /* the command waits until probes are in place */
	/* Of control groups. */
	bool members_due;   /* some are to be named by the kernel       */
	uint32_t oom_kills; /* members that were killed because memory ran out */
	uint64_t next_look_ns, next_renew_ns;
	uint64_t next_records_ns; /* while tasks are listed */
};

void targets_tell(struct run *r, const struct process_event *event);
/* A member of a watched control group that is not known yet. */
void target_member(struct run *r, pid_t pid);
/* Those who left their control group are targets no more. */
void targets_left(struct run *r);

/* The members that there are, and all that come. */
int groups_begin(struct run *r, struct err *e);
/* A process is heard of: is it a member, and not known? Then groups_look() is due. */
bool groups_met(struct run *r, pid_t pid);
/* Takes up members, as the kernel names them now. Not while records are read. */
void groups_look(struct run *r);
/* A member was killed because memory ran out. */
void groups_oom(struct run *r, pid_t pid);
void groups_tick(struct run *r, uint64_t now_ns);

#endif
