/*
 * Control groups by path and by id, in every hierarchy that is mounted here: the unified one (v2), those of
 * controllers (v1), or both side by side (hybrid).
 *
 *   /proc/self/mountinfo   where each hierarchy is mounted
 *   /proc/self/cgroup      ID:CONTROLLERS:PATH, one line each; the id of the unified one is 0
 *   a directory's inode    the id of the control group, different ones in each hierarchy (kernfs)
 *
 * Paths are those of /proc/PID/cgroup: from the root of the hierarchy, or of our cgroup namespace. In a container with
 * a cgroup namespace of its own where the host's hierarchy is mounted, too, that one is taken, and paths are the host's.
 */
#ifndef MEMSCOPE_PROC_CGROUP_H
#define MEMSCOPE_PROC_CGROUP_H

#include "base/cleanup.h"
#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CGROUP_HIERARCHIES_MAX = 32 };

struct cgroup_hierarchy {
	uint32_t id;
	char controllers[128];  /* as in /proc/self/cgroup: "cpu,cpuacct", "name=systemd"; "" unified */
	char mount[PATH_MAX];   /* where its root is seen                                            */
	char root[PATH_MAX];    /* what of it is seen there: "/", or less                            */
	bool whole;             /* all of it: not only what our cgroup namespace shows as "/"        */
};

/* Those that are mounted, the unified one first. */
struct cgroup_mounts {
	struct cgroup_hierarchy *list;
	uint32_t n;
};

/* One control group. */
struct cgroup {
	uint32_t hierarchy;
	uint64_t id;
	char path[PATH_MAX];
};

/* -ENOENT: none is mounted. */
int cgroup_mounts_read(struct cgroup_mounts *ret_mounts, struct err *e);
void cgroup_mounts_fini(struct cgroup_mounts *m);

/* Where the hierarchy is, NULL when it is not mounted. */
const struct cgroup_hierarchy *cgroup_hierarchy_find(const struct cgroup_mounts *m, uint32_t id);

/* Is this controller ("memory") one of a v1 hierarchy's? */
bool cgroup_has_controller(const struct cgroup_hierarchy *h, const char *controller);

/*
 * The group that a user names: a directory ("/sys/fs/cgroup/system.slice/x.service"), or a path as in
 * /proc/PID/cgroup, for which the unified hierarchy is asked first. -ENOENT; -EINVAL: a directory, and
 * no control group; -EOPNOTSUPP: one of threads, which has no processes.
 */
int cgroup_find(const struct cgroup_mounts *m, const char *name, struct cgroup *ret_group,
		struct err *e);
/* The id of the group that has this path now. -ENOENT. */
int cgroup_id_of(const struct cgroup_mounts *m, uint32_t hierarchy, const char *path,
		 uint64_t *ret_id);
/* Where the directory of this path is seen, whether it is there or not. False: the hierarchy is not mounted,
 * or not that part of it. */
bool cgroup_directory(const struct cgroup_mounts *m, uint32_t hierarchy, const char *path, char *out,
		      size_t cap);
/* The path of an id of the unified hierarchy. -errno: gone, or not permitted. */
int cgroup_path_of(const struct cgroup_mounts *m, uint64_t id, char *out, size_t cap);

/*
 * Process `pid`'s path in the unified hierarchy or, if that is the root, the longest that it has in
 * another one. -ESRCH.
 */
int cgroup_of_process(pid_t pid, uint32_t *ret_hierarchy, char *out, size_t cap);
/* Its path in one hierarchy. -ESRCH: it is gone; -ENOENT: there is no such hierarchy. */
int cgroup_path_in(pid_t pid, uint32_t hierarchy, char *out, size_t cap);
/*
 * The systemd service that a path is in, the innermost one: "redis-server.service". That of a user's own
 * service manager (user@1000.service) is none. False: in none, or its name is too long.
 */
bool cgroup_unit_in(const char *path, char *out, size_t cap);
/* One line of /proc/PID/cgroup, which is cut up. False: it is none. */
bool cgroup_parse_line(char *line, uint32_t *ret_hierarchy, const char **ret_controllers,
		       const char **ret_path);

/* The processes in it and below it; at most `cap` are written. Returns how many there are. */
uint32_t cgroup_processes(const struct cgroup_mounts *m, const struct cgroup *group, pid_t *out,
			  uint32_t cap);

/* Calls `each` for every group of a hierarchy, parents first, until it returns false for all below one. */
typedef bool (*cgroup_each_fn)(void *ctx, const char *path);
void cgroup_each(const struct cgroup_mounts *m, uint32_t hierarchy, cgroup_each_fn each, void *ctx);

#endif
