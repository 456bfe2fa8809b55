#include "proc/thread_gone.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

bool thread_is_gone(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}
