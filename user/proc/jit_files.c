#include "proc/jit_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * /proc/PID/status:
 *   Uid:	real	effective	saved	fs
 *   NSpid:	pid here	…	pid in its own namespace
 */
void jit_owner_read(pid_t pid, struct jit_owner *ret_owner)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[512];
	unsigned int uid;

	*ret_owner = (struct jit_owner){ .ns_pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %*u %u", &uid) == 1) {
			ret_owner->uid = uid;
			ret_owner->known = true;
		} else if (!strncmp(line, "NSpid:", 6)) {
			const char *last = strrchr(line, '\t');
			long value = last ? strtol(last + 1, NULL, 10) : 0;

			if (value > 0 && value <= INT32_MAX)
				ret_owner->ns_pid = (pid_t)value;
		}
	}
}

/* The descriptor, if its file is of one who may speak for the process. */
static int owned(int new_fd, const struct jit_owner *owner)
{
	_cleanup_(closep) int fd = new_fd;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid != 0 && (!owner->known || st.st_uid != owner->uid))
		return -EPERM;
	/* A link may lead to any file of root's: what the process may not read is not for its report. */
	if (st.st_uid == 0 && !(owner->known && owner->uid == 0) && !(st.st_mode & S_IROTH))
		return -EPERM;
	return TAKE_FD(fd);
}

int jit_open_perf_map(struct images *set, const struct image *img)
{
	char path[64];

	if (img->kind != MODULE_ANON || img->root < 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)img->jit.ns_pid);
	return owned(ns_roots_open(set->roots, img->root, path), &img->jit);
}

int jit_open_dump(struct images *set, const struct image *img)
{
	struct image *file, *next;
	char name[64];

	if (img->kind != MODULE_ANON)
		return -ENOENT;
	snprintf(name, sizeof(name), "/jit-%d.dump", (int)img->jit.ns_pid);
	HASH_ITER (hh, set->by_identity, file, next) {
		const char *slash = strrchr(file->path, '/');

		if (file->kind == MODULE_ELF && slash && !strcmp(slash, name) &&
		    file->pid == img->pid)
			return owned(image_open_any(set, file, NULL), &img->jit);
	}
	return -ENOENT;
}
