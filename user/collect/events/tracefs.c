#include "collect/events/tracefs.h"

#include "base/cleanup.h"
#include "collect/events/event_spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/mount.h */
#define CREATE_SUPERBLOCK 6 /* FSCONFIG_CMD_CREATE */

/* Where it is mounted, or below debugfs; -1. */
static int open_mounted(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mounts", "re");
	char line[4096], path[2048], type[64], events[2100];
	int fd = -1;

	while (f && fd < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %2047s %63s", path, type) != 2)
			continue;
		if (strcmp(type, "tracefs") == 0)
			snprintf(events, sizeof(events), "%s/events", path);
		else if (strcmp(type, "debugfs") == 0)
			snprintf(events, sizeof(events), "%s/tracing/events", path);
		else
			continue;
		fd = open(events, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return fd;
}

static int open_own(void)
{
	_cleanup_(closep) int fs = -1, mount = -1;
	int fd;

	fs = (int)syscall(SYS_fsopen, "tracefs", 1 /* FSOPEN_CLOEXEC */);
	if (fs < 0 || syscall(SYS_fsconfig, fs, CREATE_SUPERBLOCK, NULL, NULL, 0) < 0)
		return -errno;
	mount = (int)syscall(SYS_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, 0);
	if (mount < 0)
		return -errno;
	fd = openat(mount, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tracefs_open(struct err *e)
{
	int fd = open_mounted();

	if (fd < 0)
		fd = open_own();
	if (fd < 0)
		return err_set(
			e, fd,
			"the list of tracepoints cannot be read (%s): mount tracefs, \"mount -t tracefs "
			"nodev /sys/kernel/tracing\"",
			strerror(-fd));
	return fd;
}

static uint64_t id_of(int system_fd, const char *name)
{
	char path[300], text[32];
	_cleanup_(closep) int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/id", name);
	fd = openat(system_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

/* Names in a folder that match, in order; how many. */
static int names_in(int fd, const char *pattern, struct dirent ***ret_names)
{
	int n = scandirat(fd, ".", ret_names, NULL, alphasort), kept = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if ((*ret_names)[i]->d_name[0] != '.' &&
		    event_matches(pattern, (*ret_names)[i]->d_name))
			(*ret_names)[kept++] = (*ret_names)[i];
		else
			free((*ret_names)[i]);
	}
	return kept;
}

static int find_in(int events_fd, const char *system, const char *pattern, tracefs_fn each,
		   void *ctx)
{
	_cleanup_(closep) int fd = openat(events_fd, system, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names = NULL;
	int n = fd < 0 ? 0 : names_in(fd, pattern, &names), found = 0; /* a file is no system */

	for (int i = 0; i < n; i++) {
		uint64_t id = id_of(fd, names[i]->d_name);

		if (id)
			each(ctx, system, names[i]->d_name, id);
		found += id != 0;
		free(names[i]);
	}
	free(names);
	return n < 0 ? n : found;
}

int tracefs_find(int events_fd, const char *system, const char *name, tracefs_fn each, void *ctx)
{
	struct dirent **systems = NULL;
	int n = names_in(events_fd, system, &systems), found = 0;

	for (int i = 0; i < n; i++) {
		int r = find_in(events_fd, systems[i]->d_name, name, each, ctx);

		found += r > 0 ? r : 0;
		free(systems[i]);
	}
	free(systems);
	return n < 0 ? n : found;
}
