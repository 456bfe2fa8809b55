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

enum { NS_ROOTS_MAX = 256 };

struct ns_roots {
	struct ns_root {
		uint64_t ns_ino, dev, ino;
		int fd;
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

/* Is it ours? */
bool ns_root_is_own(const struct ns_roots *r, int ix);

/*
 * Opens the regular file `path` as seen below the root `ix` (a negative one: our own), read-only
 * and close-on-exec. No component, symlinks included, leads out of that root. What is not a
 * regular file is not opened at all, so a device or a FIFO notices nothing. -errno.
 */
int ns_roots_open(const struct ns_roots *r, int ix, const char *path);

/* The same for a magic link below /proc, which leads to one file and nowhere else. */
int ns_open_link(const char *link);

/* The number of process `pid` in the innermost of its pid namespaces; 0: it is gone. */
pid_t proc_ns_pid(pid_t pid);

#endif
