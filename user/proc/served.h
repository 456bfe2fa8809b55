/*
 * File systems that a program or another machine serves: FUSE, NFS, SMB. Who looks for a file there, opens or reads it waits for the
 * server, and where that has hung waits for ever, mostly not even to be killed. So a process made for it goes first. When it does not come
 * back within SERVED_WAIT_MS the file is left alone, and all of its file system for SERVED_AGAIN_S.
 *
 * Which these are is in the lists of mounts (proc(5), mountinfo), by the number of a device. One that is in no list, as its mount
 * has been let go of, is looked at in the same way, and known afterwards.
 *
 * Two ways are left to hold us: a server that answers that process and not us a moment later, and an overlay above such a file system,
 * which looks like any other.
 */
#ifndef MEMSCOPE_PROC_SERVED_H
#define MEMSCOPE_PROC_SERVED_H

#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SERVED_WAIT_MS = 2000, /* a busy server, or a process that is late on a busy machine */
	SERVED_AGAIN_S = 60,
	SERVED_MAX = 256,      /* devices that are remembered */
};

/* A line of mountinfo: the device, as in struct stat, and whether it is served. false: it is no such line. */
bool served_in_line(const char *line, uint64_t *ret_dev, bool *ret_served);

/* Does the process (0: this one) see such a file system: 1 or 0. -ESRCH: it is gone. */
int served_any(pid_t pid);
/* Is the device one, by what `pid` (0: this one) sees mounted? Also true when nobody knows. */
bool served_is(pid_t pid, uint64_t dev);
/* The same of the file that a descriptor has, by what is known already. */
bool served_file(int fd);

/* The file or directory of an O_PATH descriptor, of a device that is served: 0, or -ETIMEDOUT. */
int served_answers(int path_fd, uint64_t dev);
/* A path that leads into another mount: 0 when looking for it came back, whatever was found; -ETIMEDOUT. */
int served_answers_path(int root_fd, const char *path, const struct open_how *how);

#endif
