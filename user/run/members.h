/*
 * Who is in which container or control group, now: of those that were asked for, or with -a of all that there
 * are, and then who is in none. A process is in one of them: in the innermost, where a group that was asked
 * for is within another.
 */
#ifndef MEMSCOPE_RUN_MEMBERS_H
#define MEMSCOPE_RUN_MEMBERS_H

#include "base/err.h"
#include "run/config.h"

enum { MEMBERS_MAX = 65536 }; /* processes of one of them that are told */

#define MEMBERS_QUICK_NS 5000000ULL /* of CPU time */

struct members;

/* `cfg` must outlive it. -ENOENT: no control groups are mounted; -ENOMEM. */
int members_new(const struct run_config *cfg, struct members **ret_members, struct err *e);
void members_free(struct members *m);
/* Where control groups are mounted. */
const struct cgroup_mounts *members_mounts(const struct members *m);

/*
 * `owner`: as folder_name() takes it, NULL: of the rest; `path`: its control group's, or NULL. `pids` are in
 * ascending order, n of them, of which there is one at least but for the rest.
 */
typedef void (*members_fn)(void *ctx, const char *owner, const char *path, const pid_t *pids,
			   uint32_t n);
void members_each(struct members *m, members_fn fn, void *ctx);

/* What an engine says of the one that `fn` is called for, until that returns. NULL: it does not say, or there is none. */
struct member_about {
	const char *id, *image;
	const char *pod, *namespace; /* of Kubernetes */
};
const struct member_about *members_about(const struct members *m);

#endif
