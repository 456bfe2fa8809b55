/* For tests of cells: one that ends while it waits for an answer, as one does that its file breaks, and answers that are none. */
#ifndef MEMSCOPE_TESTS_CELL_FIXTURE_H
#define MEMSCOPE_TESTS_CELL_FIXTURE_H

#include "base/cleanup.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline FILE *children_of(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	return fopen(path, "re");
}

/* The maker's child, and those of earlier questions whose end it has not yet waited for. */
static inline void kill_the_cell(void)
{
	_cleanup_(fclosep) FILE *own = children_of(getpid()), *makers = NULL;
	int maker = 0, cell, n = 0;

	assert_non_null(own);
	assert_int_equal(fscanf(own, "%d", &maker), 1);
	makers = children_of(maker);
	assert_non_null(makers);
	for (; fscanf(makers, "%d", &cell) == 1; n++)
		kill(cell, SIGKILL);
	assert_true(n > 0);
}

static inline const char *path_of_the_c_library(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct link_map *map = NULL;

	assert_non_null(libc);
	assert_int_equal(dlinfo(libc, RTLD_DI_LINKMAP, &map), 0);
	dlclose(libc);
	return map->l_name;
}

/* A copy of this program without its symbols, for whose debug file a cell asks. */
static inline void stripped_copy(char path[64])
{
	char command[256];

	strcpy(path, "/tmp/memscope-cell-XXXXXX");
	close(mkstemp(path));
	snprintf(command, sizeof(command), "objcopy -S /proc/%d/exe %s 2>/dev/null", (int)getpid(), path);
	if (system(command) != 0) {
		unlink(path);
		print_message("objcopy is not installed\n");
		skip();
	}
}

/* An answer that ends early, at whatever byte, is none. `take` has it. */
static inline void assert_no_part_is_taken(const char *answer, size_t len, int (*take)(const void *data, size_t len))
{
	for (size_t n = 0; n < len; n++) {
		char *part = malloc(n + 1); /* its own, so that a sanitizer sees what is read behind it */

		memcpy(part, answer, n);
		assert_int_equal(take(part, n), -EBADMSG);
		free(part);
	}
}

#endif
