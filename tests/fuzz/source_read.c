/*
 * A source file that a program names, which may be anything: its lines, joined, are the file, or there is a reason. First byte: not
 * read, the rest is the file.
 */
#include "symbolize/source_read.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int file = -1;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_source(void *ctx, module_id m, const char *path, bool host)
{
	int fd;

	(void)ctx;
	(void)m;
	if (strcmp(path, "/src/a.c") != 0 || host)
		return -ENOENT;
	fd = dup(file);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* What split it takes away: newlines, with a CR before them, and what says that none follows. */
static bool is_joined(const struct source_text *t, const uint8_t *data, size_t size)
{
	struct bytes all = bytes_of(data, size), line;
	uint32_t n = 0;

	while (bytes_line(&all, &line)) {
		if (n == t->n)
			return false;
		if (strncmp(t->lines[n], (const char *)line.data, line.len) != 0 ||
		    (t->lines[n][line.len] && strcmp(t->lines[n] + line.len, "\r") != 0))
			return false;
		n++;
	}
	return n == t->n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_text text;

	if (file < 0)
		file = memfd_create("source", MFD_CLOEXEC);
	if (ftruncate(file, 0) < 0 || pwrite(file, data, size, 0) != (ssize_t)size)
		abort();
	if (source_read(open_source, NULL, (module_id){ 1 }, "/src/a.c", geteuid(), 0, &text) < 0)
		abort();
	if ((size && memchr(data, 0, size)) != (text.problem != NULL) ||
	    (!text.problem && !is_joined(&text, data, size)))
		abort();
	source_text_fini(&text);
	return 0;
}
