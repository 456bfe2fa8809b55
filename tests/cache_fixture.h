/*
 * A cache directory of a test's own: setup and teardown of a group of cmocka tests, which run with it in the environment.
 */
#ifndef MEMSCOPE_TESTS_CACHE_FIXTURE_H
#define MEMSCOPE_TESTS_CACHE_FIXTURE_H

#include "base/cache_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char cache_fixture_dir[64];

static inline int cache_fixture_begin(void **state)
{
	(void)state;
	strcpy(cache_fixture_dir, "/tmp/memscope-cache-XXXXXX");
	return mkdtemp(cache_fixture_dir) ? setenv(CACHE_DIR_ENV, cache_fixture_dir, 1) : -1;
}

static inline int cache_fixture_end(void **state)
{
	char command[128];

	(void)state;
	unsetenv(CACHE_DIR_ENV);
	snprintf(command, sizeof(command), "rm -rf %s", cache_fixture_dir);
	return system(command);
}

#endif
