/*
 * A directory of windows without samples: files that say when they were, and no more.
 */
#ifndef MEMSCOPE_TESTS_WINDOWS_FIXTURE_H
#define MEMSCOPE_TESTS_WINDOWS_FIXTURE_H

#include "base/window_name.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000LL

static char windows_dir[64];

static inline int windows_dir_make(void **state)
{
	(void)state;
	setenv("TZ", "XYZ-1", 1);
	tzset();
	strcpy(windows_dir, "/tmp/memscope-windows-XXXXXX");
	return mkdtemp(windows_dir) ? 0 : -1;
}

static inline int windows_dir_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", windows_dir);
	return system(command);
}

static inline void put_varint(FILE *f, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		fputc((int)(v & 127) | 128, f);
	fputc((int)v, f);
}

/* DIR/NAME, a profile of that time: its fields time_nanos (9) and duration_nanos (10). */
static inline void profile_file(const char *name, int64_t begin_ns, int64_t ns)
{
	char path[256], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", windows_dir, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	mkdir(path, 0700);
	*slash = '/';
	f = fopen(path, "w");
	fputc(9 << 3, f);
	put_varint(f, (uint64_t)begin_ns);
	fputc(10 << 3, f);
	put_varint(f, (uint64_t)ns);
	fclose(f);
}

/* A window of `length_s` that began `ms` after the second of its stamp. */
static inline void window_file(const char *source, const char *stamp, int ms, int length_s)
{
	char name[96];

	snprintf(name, sizeof(name), "%s-%s.pb.gz", source, stamp);
	profile_file(name, stamp_time(stamp) * NS + ms * 1000000LL, length_s * NS);
}

/* … of a trigger: the stamp says when it ended. */
static inline void trigger_file(const char *source, const char *word, const char *stamp, int length_s)
{
	char name[160];

	snprintf(name, sizeof(name), "%s_%s-%s.pb.gz", source, word, stamp);
	profile_file(name, (stamp_time(stamp) - length_s) * NS, length_s * NS);
}

#endif
