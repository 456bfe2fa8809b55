/* For tests in which a cell ends while it waits for an answer: as one does that its file breaks. */
#ifndef MEMSCOPE_TESTS_CELL_FIXTURE_H
#define MEMSCOPE_TESTS_CELL_FIXTURE_H

#include "base/cleanup.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static inline pid_t first_child_of(pid_t pid)
{
	char path[64];
	_cleanup_(fclosep) FILE *f = NULL;
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	return f && fscanf(f, "%d", &child) == 1 ? child : 0;
}

/* The only one: the maker's child. */
static inline void kill_the_cell(void)
{
	pid_t cell = first_child_of(first_child_of(getpid()));

	assert_true(cell > 0);
	assert_int_equal(kill(cell, SIGKILL), 0);
}

#endif
