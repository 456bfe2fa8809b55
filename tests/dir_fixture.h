/*
 * A directory of a test's own: setup and teardown of a cmocka test.
 */
#ifndef MEMSCOPE_TESTS_DIR_FIXTURE_H
#define MEMSCOPE_TESTS_DIR_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[64];

static inline int dir_fixture_begin(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/memscope-unit-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static inline int dir_fixture_end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

#endif
