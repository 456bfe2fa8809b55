/*
 * The containers and control groups that a log is about: who is in them now, what they are charged, and
 * whether they are there. One that was asked for by name is followed to the container that gets its name,
 * any other to the group that is made at its path.
 */
#ifndef MEMSCOPE_CMD_TREND_GROUPS_H
#define MEMSCOPE_CMD_TREND_GROUPS_H

#include "base/cleanup.h"
#include "run/group.h"
#include "model/mem_sample.h"

enum { TREND_GROUP_PIDS = 4096 };

struct trend_groups;

/* One of `containers` (-c) and `cgroups` (-G) is NULL. -ENOENT, -ESRCH, -EEXIST as group.h says. */
int trend_groups_open(const char *containers, const char *cgroups, struct trend_groups **ret_groups,
		      struct err *e);
void trend_groups_free(struct trend_groups *g);
DEFINE_CLEANUP(struct trend_groups *, trend_groups_freep, trend_groups_free)

/* Those that were named. */
uint32_t trend_groups_count(const struct trend_groups *g);
const struct group *trend_groups_at(const struct trend_groups *g, uint32_t i);

/* Who is in any of them now, in ascending order; at most TREND_GROUP_PIDS, until the next call. */
const pid_t *trend_groups_pids(struct trend_groups *g, uint32_t *ret_n);

/* What one of them is charged. */
void trend_groups_use(const struct trend_groups *g, uint32_t i, struct mem_group *ret_use);
/*
 * All of them summed, one that is below another left out. *ret_cpu_ns: CPU time since the call before
 * (since the groups were made, for those that were made since), MEM_UNKNOWN where that is not told.
 */
void trend_groups_sum(struct trend_groups *g, struct mem_group *ret_sum, int64_t *ret_cpu_ns);

/* What became of one; `there`: it is back. */
typedef void (*trend_groups_fn)(void *ctx, const struct group *group, bool there);
/* Looks which of them are there. */
void trend_groups_check(struct trend_groups *g, trend_groups_fn fn, void *ctx);

#endif
