/*
 * Roots of mount namespaces, kept open so that a path in a container is still understood when
 * its processes have gone.
 *
 * A root is an O_PATH descriptor of /proc/PID/root; processes that share namespace and root share
 * one. Holding it keeps that mount from being unmounted for real until we close it, and nothing
 * else: a container's runtime detaches its mounts lazily.
 */
#ifndef MEMSCOPE_PROC_NAMESPACE_H
#define MEMSCOPE_PROC_NAMESPACE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	NS_ROOTS_MAX = 1024,
	NS_NO_ROOT = -2, /* there is nothing below it */
};

struct ns_roots {
	struct ns_root {
		uint64_t ns_ino, dev, ino;
		int fd;
		bool own;                /* it is ours                                 */
		pid_t pid;               /* the last that was seen to have it; 0: none */
		uint64_t looked_ns;      /* when its mounts were                       */
		bool served;             /* … and whether any is served (served.h)     */
		uint64_t hung_until_ns;  /* a path below it led to one that had hung   */
	} *roots;
	uint32_t n;
};

/* A zeroed struct is an empty one. */
void ns_roots_fini(struct ns_roots *r);

/* The index of the root of `pid`, added when it is new. -errno: gone, not permitted, table full. */
int ns_roots_add(struct ns_roots *r, pid_t pid);

/*
 * The same for a directory that is, or holds a copy of, somebody's root. -ENOTDIR, -ENOENT, …
 */
int ns_roots_add_dir(struct ns_roots *r, const char *dir);

/* Is it ours? A negative one is none. */
bool ns_root_is_own(const struct ns_roots *r, int ix);

/*
 * Opens the regular file `path` as seen below the root `ix` (a negative one: our own), read-only
 * and close-on-exec. No component, symlinks included, leads out of that root. What is not a
 * regular file is not opened at all, so a device or a FIFO notices nothing. -errno; -ETIMEDOUT: its file system is served by who
 * does not answer (served.h).
 */
int ns_roots_open(const struct ns_roots *r, int ix, const char *path);

/* A directory, as a descriptor that only names it (O_PATH). -ENOTSUP: of a file system that is served. */
int ns_roots_open_dir(const struct ns_roots *r, int ix, const char *path);

/*
 * The same below a directory of ours, of what it is: the way from there to a file or directory that a user may have made. O_PATH; and
 * from that to one that reads it. -EINVAL: it is neither a regular file nor a directory.
 */
int ns_find_below(int dir_fd, const char *path);
int ns_reopen(int path_fd);

/* ns_roots_open() below the root of a process, which lives. */
int ns_open_seen(pid_t pid, const char *path);

/*
 * The same by a magic link of a process, which leads to one file and nowhere else: "exe". Whoever opens what a target has
 * mapped, or by a path of its, comes through here: /proc/PID/root/PATH, opened as it is, would follow a link in it to where
 * the path leads here, and open whatever there is.
 */
int ns_open_link(pid_t pid, const char *name);
/* The file that it maps at [start, end). */
int ns_open_mapped(pid_t pid, uint64_t start, uint64_t end);

/* The number of process `pid` in the innermost of its pid namespaces; 0: it is gone. */
pid_t proc_ns_pid(pid_t pid);

#endif
