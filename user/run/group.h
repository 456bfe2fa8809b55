/*
 * Control groups whose members are profiled: -G names one, -c a container, which is one.
 */
#ifndef MEMSCOPE_RUN_GROUP_H
#define MEMSCOPE_RUN_GROUP_H

#include "base/strbuf.h"
#include "container/container.h"

enum { GROUPS_MAX = 16 };

struct group {
	struct cgroup at;
	/* Of a container, else NULL. */
	char *name, *id, *engine, *image;
	char *pod, *namespace; /* of Kubernetes, NULL: it is in none */
	bool by_name;          /* asked for by its name: another one that gets it is followed */
	uid_t uid;             /* … of the same user's (struct container)             */
	/* What became of it in the run. */
	uint64_t gone_ns;      /* since when it has not been there; 0: it is         */
	uint32_t restarts;
	bool was_gone;         /* since the run began, at any time                   */
};

/* Are these names, separated by commas? -EINVAL. Looks at nothing but the words. */
int groups_check(const char *option, const char *names, struct err *e);
/* Those whom -G or -c means, separated by commas. Returns how many; groups_free() after an error too. */
int groups_of_cgroups(const struct cgroup_mounts *m, const char *names, struct group *out,
		      struct err *e);
int groups_of_containers(const struct cgroup_mounts *m, const char *names, struct group *out,
			 struct err *e);
/*
 * Those of `names` that are there, of containers or of control groups, as the two above; the names of the others are
 * appended to `missing`, separated by commas (NULL: nobody asks), and *e says why the last of them is not. Returns how many are
 * there, 0 too; or an error that waiting does not mend.
 */
int groups_there(const struct cgroup_mounts *m, bool containers, const char *names, struct group *out,
		 struct strbuf *missing, struct err *e);
void groups_free(struct group *g, uint32_t n);

/* What to call it: the container's name, else the last part of its path. Borrowed. */
const char *group_title(const struct group *g);
/* That, where no other of the `n` has the same; else its path. Of a container in any case: another of its
 * name, of another engine, is one with it. */
const char *group_unique_title(const struct group *all, uint32_t n, uint32_t i);
/* Which of them a path is in: of several, the innermost. -1: none. */
int group_of_path(const struct group *all, uint32_t n, uint32_t hierarchy, const char *path);
/* The processes that are in any of them now, each once; at most `cap`. */
uint32_t groups_processes(const struct cgroup_mounts *m, const struct group *g, uint32_t n,
			  pid_t *out, uint32_t cap);

/* The first process of the one container that `name` means. -EINVAL: it means several; -ESRCH: there is
 * none, or it has no process. */
int group_first_process(const char *name, pid_t *ret_pid, struct err *e);

/*
 * It is gone: has its name another container by now? 0: `g` is that one, whose group may not be there
 * yet; *ret_at is where it will be, or is. -ENOENT: it has not.
 */
int group_renewed(const struct cgroup_mounts *m, struct group *g, struct cgroup *ret_at);

#endif
