#include "proc/proc_seccomp.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>

int proc_seccomp(pid_t pid, pid_t tid, uint32_t *ret_filters)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256];
	uint32_t filters = 1;
	int mode = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Seccomp: %d", &mode);
		if (sscanf(line, "Seccomp_filters: %u", &filters) == 1)
			break;
	}
	*ret_filters = mode == SECCOMP_MODE_FILTER ? filters : 0;
	return mode;
}

uint32_t proc_seccomp_least(pid_t pid)
{
	uint32_t least = UINT32_MAX, filters;
	struct dirent *d;
	char path[64];
	DIR *dir;

	if (proc_seccomp(pid, pid, &filters) != SECCOMP_MODE_FILTER)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && least && (d = readdir(dir))) {
		if (*d->d_name < '0' || *d->d_name > '9')
			continue;
		proc_seccomp(pid, atoi(d->d_name), &filters);
		least = filters < least ? filters : least;
	}
	if (dir)
		closedir(dir);
	return least == UINT32_MAX ? 0 : least;
}
