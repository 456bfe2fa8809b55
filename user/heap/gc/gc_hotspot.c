/* HotSpot: the file of its counters, which it has mapped: /tmp/hsperfdata_USER/PID, by the names that it sees. */
#include "base/cleanup.h"
#include "heap/gc/gc.h"
#include "heap/gc/hsperf.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_LEN = 512 };

struct state {
	int fd;
	size_t len;
	uint8_t *bytes;
};

static void close_state(void *state)
{
	struct state *s = state;

	if (s->fd >= 0)
		close(s->fd);
	free(s->bytes);
	free(s);
}

static void close_statep(struct state **s)
{
	if (*s)
		close_state(*s);
}

/* Where the process has it mapped; the path is as it sees that. */
struct place {
	uint64_t start, end;
	char path[PATH_LEN];
};

static int on_map(void *ctx, const struct proc_map *m)
{
	struct place *p = ctx;

	if (!(m->perms & PROC_MAP_SHARED) || !strstr(m->path, "/hsperfdata_") ||
	    strlen(m->path) >= sizeof(p->path))
		return 0;
	p->start = m->start;
	p->end = m->end;
	strcpy(p->path, m->path);
	return 1;
}

static int open_file(pid_t pid, size_t *ret_len)
{
	_cleanup_(closep) int fd = -1;
	struct place p = { 0 };
	struct stat st;

	if (proc_maps_each(pid, on_map, &p, NULL) != 1)
		return -ENOENT;
	fd = ns_open_mapped(pid, p.start, p.end);
	if (fd < 0)
		fd = ns_open_seen(pid, p.path);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > HSPERF_MAX)
		return -ENOENT;
	*ret_len = (size_t)st.st_size;
	return TAKE_FD(fd);
}

static int read_state(void *state, struct gc_counters *ret_counters)
{
	struct state *s = state;
	ssize_t n = pread(s->fd, s->bytes, s->len, 0);
	int r = n < 0 ? -errno : hsperf_read(s->bytes, (size_t)n, ret_counters);

	return r == -EBADMSG ? -EAGAIN : r;
}

static int open_state(pid_t pid, void **ret_state, bool *ret_untested)
{
	_cleanup_(close_statep) struct state *s = calloc(1, sizeof(*s));
	struct gc_counters c;

	if (!s)
		return -ENOMEM;
	s->fd = open_file(pid, &s->len);
	if (s->fd < 0)
		return s->fd;
	s->bytes = malloc(s->len);
	if (!s->bytes)
		return -ENOMEM;
	/* Or it is being made. */
	if (read_state(s, &c) < 0)
		return -ENOENT;
	*ret_untested = false;
	*ret_state = TAKE_PTR(s);
	return 0;
}

static const char *missing(const void *state)
{
	(void)state;
	return "";
}

const struct gc_source gc_hotspot = {
	.name = "HotSpot",
	.open = open_state,
	.close = close_state,
	.read = read_state,
	.missing = missing,
};
