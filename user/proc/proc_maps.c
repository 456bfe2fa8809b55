#include "proc/proc_maps.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

/* A path is at most PATH_MAX bytes, four times that when each is escaped, and the numbers. */
enum { LINE_MAX_BYTES = 4 * 4096 + 256 };

/* The rest of a line: takes numbers and characters from its front. */
struct cursor {
	const char *at, *end;
};

static bool take_number(struct cursor *c, unsigned base, uint64_t *ret)
{
	const char *from = c->at;
	uint64_t n = 0;

	for (; c->at < c->end; c->at++) {
		char ch = *c->at;
		unsigned digit;

		if (ch >= '0' && ch <= '9')
			digit = (unsigned)(ch - '0');
		else if (base == 16 && ch >= 'a' && ch <= 'f')
			digit = (unsigned)(ch - 'a') + 10;
		else
			break;
		if (__builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, digit, &n))
			return false;
	}
	*ret = n;
	return c->at > from;
}

static bool take_char(struct cursor *c, char ch)
{
	if (c->at == c->end || *c->at != ch)
		return false;
	c->at++;
	return true;
}

static bool take_perms(struct cursor *c, uint32_t *ret_perms)
{
	uint32_t perms = 0;

	if (c->end - c->at < 4)
		return false;
	for (int i = 0; i < 3; i++) {
		if (c->at[i] == "rwx"[i])
			perms |= 1u << i;
		else if (c->at[i] != '-')
			return false;
	}
	if (c->at[3] == 's')
		perms |= PROC_MAP_SHARED;
	else if (c->at[3] != 'p')
		return false;
	c->at += 4;
	*ret_perms = perms;
	return true;
}

static void unescape_newlines(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (!strncmp(s, "\\012", 4)) {
			*to++ = '\n';
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

bool proc_path_undelete(char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path), rule_range_len = sizeof(mark) - 1;

	if (len <= rule_range_len || memcmp(path + len - rule_range_len, mark, rule_range_len) != 0)
		return false;
	path[len - rule_range_len] = '\0';
	return true;
}

int proc_maps_parse(char *line, size_t len, struct proc_map *ret_map)
{
	struct cursor c = { line, line + len };
	struct proc_map m = { 0 };
	uint64_t major, minor;
	char *path;

	if (memchr(line, '\0', len) || !take_number(&c, 16, &m.start) || !take_char(&c, '-') ||
	    !take_number(&c, 16, &m.end) || !take_char(&c, ' ') || !take_perms(&c, &m.perms) ||
	    !take_char(&c, ' ') || !take_number(&c, 16, &m.file_off) || !take_char(&c, ' ') ||
	    !take_number(&c, 16, &major) || !take_char(&c, ':') || !take_number(&c, 16, &minor) ||
	    !take_char(&c, ' ') || !take_number(&c, 10, &m.ino))
		return -EBADMSG;
	if (m.start >= m.end || major > UINT32_MAX || minor > UINT32_MAX ||
	    (c.at < c.end && *c.at != ' '))
		return -EBADMSG;
	while (take_char(&c, ' '))
		;
	m.dev = makedev((unsigned)major, (unsigned)minor);
	path = line + (c.at - line);
	line[len] = '\0';
	unescape_newlines(path);
	m.deleted = proc_path_undelete(path);
	m.path = path;
	*ret_map = m;
	return 0;
}

static int no_maps(pid_t pid, int code, struct err *e)
{
	if (code == -ENOENT || code == -ESRCH)
		return err_set(e, -ESRCH, "process %d is gone", (int)pid);
	return err_set(e, code, "/proc/%d/maps: %s", (int)pid, strerror(-code));
}

/* Hands on the complete lines of buf[0 … len) and returns where the incomplete one begins. */
static int each_line(char *buf, size_t len, proc_map_fn fn, void *ctx, size_t *ret_rest)
{
	size_t at = 0;
	char *end;

	while ((end = memchr(buf + at, '\n', len - at))) {
		struct proc_map map;
		size_t next = (size_t)(end - buf) + 1;
		int r;

		if (proc_maps_parse(buf + at, (size_t)(end - buf) - at, &map) == 0) {
			r = fn(ctx, &map);
			if (r)
				return r;
		}
		at = next;
	}
	*ret_rest = at;
	return 0;
}

int proc_maps_each(pid_t pid, proc_map_fn fn, void *ctx, struct err *e)
{
	_cleanup_(freep) char *buf = NULL;
	_cleanup_(closep) int fd = -1;
	const size_t cap = 2 * LINE_MAX_BYTES;
	char name[32];
	size_t len = 0, rest;
	int r;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return no_maps(pid, -errno, e);
	buf = malloc(cap);
	if (!buf)
		return err_set(e, -ENOMEM, "out of memory for the mappings of process %d",
			       (int)pid);
	for (;;) {
		ssize_t n = read(fd, buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return no_maps(pid, -errno, e);
		if (n == 0)
			return 0;
		len += (size_t)n;
		r = each_line(buf, len, fn, ctx, &rest);
		if (r)
			return r;
		/* No line is longer than half the buffer; if one were, it is dropped. */
		if (rest == 0 && len == cap)
			rest = len;
		memmove(buf, buf + rest, len - rest);
		len -= rest;
	}
}
