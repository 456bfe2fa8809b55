/* A folder for what is read by its name only: in memory where there is a file system for that, gone when the fuzzer ends. */
#ifndef TESTS_FUZZ_SCRATCH_FOLDER_H
#define TESTS_FUZZ_SCRATCH_FOLDER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[64];

static void scratch_remove(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
	if (system(command) != 0)
		_exit(EXIT_FAILURE);
}

/* Made at the first call. */
static const char *scratch_folder(void)
{
	if (!*scratch) {
		snprintf(scratch, sizeof(scratch), "%s/memscope-fuzz-XXXXXX",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		if (!mkdtemp(scratch))
			abort();
		atexit(scratch_remove);
	}
	return scratch;
}

/* The file NAME in it, mode 0600, has these bytes and no others. */
static void scratch_write(const char *name, const void *data, size_t len)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", scratch_folder(), name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len || close(fd) < 0)
		abort();
}

#endif
