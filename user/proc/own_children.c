#include "proc/own_children.h"
#include "base/cleanup.h"

#include <stdio.h>

uint32_t own_children(pid_t *out, uint32_t cap)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/thread-self/children", "re");
	uint32_t n = 0;
	int pid;

	while (f && n < cap && fscanf(f, "%d", &pid) == 1)
		out[n++] = pid;
	return n;
}
