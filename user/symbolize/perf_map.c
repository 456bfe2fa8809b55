#include "symbolize/perf_map.h"

#include "base/fd_stat.h"
#include "symbolize/wanted.h"

#include <errno.h>
#include <string.h>

struct perf_map {
	char *own; /* the file, when it was read here        */
	const char *text;
	struct wanted wanted; /* owner: 1 + where the name begins   */
	size_t len;
};

static const char *hex(const char *at, const char *end, uint64_t *ret_value)
{
	const char *start = at;
	uint64_t value = 0;

	/* Java writes 0x before its addresses, others do not. */
	if (end - at > 2 && at[0] == '0' && at[1] == 'x')
		start = at += 2;
	for (; at < end && at - start < 17; at++) {
		if (*at >= '0' && *at <= '9')
			value = value << 4 | (uint64_t)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			value = value << 4 | (uint64_t)(*at - 'a' + 10);
		else if (*at >= 'A' && *at <= 'F')
			value = value << 4 | (uint64_t)(*at - 'A' + 10);
		else
			break;
	}
	*ret_value = value;
	return at > start && at - start <= 16 ? at : NULL;
}

/* "START SIZE NAME"; what is not such a line is passed over. */
static void take_line(struct perf_map *m, const char *line, const char *end)
{
	uint64_t start, size;
	const char *at;

	if (!(at = hex(line, end, &start)) || at == end || *at != ' ')
		return;
	if (!(at = hex(at + 1, end, &size)) || end - at < 2 || *at != ' ')
		return;
	wanted_give(&m->wanted, start, size, (uint32_t)(at + 1 - m->text) + 1);
}

/* From the last line to the first. A last line without its newline is still being written. */
static void take_lines(struct perf_map *m)
{
	const char *end = memrchr(m->text, '\n', m->len);

	while (end) {
		const char *before = memrchr(m->text, '\n', (size_t)(end - m->text));

		take_line(m, before ? before + 1 : m->text, end);
		end = before;
	}
}

static int parse(struct perf_map *m, const uint64_t *vaddrs, uint32_t n)
{
	if (m->len > PERF_MAP_BYTES_MAX)
		return -EFBIG;
	if (wanted_init(&m->wanted, vaddrs, n) < 0)
		return -ENOMEM;
	take_lines(m);
	for (uint32_t i = 0; i < n; i++)
		if (m->wanted.owner[i])
			return 0;
	return -ENOENT;
}

int perf_map_parse(const char *text, size_t len, const uint64_t *vaddrs, uint32_t n,
		   struct perf_map **ret_map)
{
	_cleanup_(perf_map_freep) struct perf_map *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->text = text;
	m->len = len;
	r = parse(m, vaddrs, n);
	if (r == 0)
		*ret_map = TAKE_PTR(m);
	return r;
}

int perf_map_read(int fd, const uint64_t *vaddrs, uint32_t n, struct perf_map **ret_map)
{
	_cleanup_(perf_map_freep) struct perf_map *m = calloc(1, sizeof(*m));
	struct stat st;
	size_t want;
	off_t off = 0;
	int r;

	if (fd_stat(fd, &st) < 0)
		return -errno;
	if (!m)
		return -ENOMEM;
	want = (size_t)st.st_size;
	if (st.st_size > PERF_MAP_BYTES_MAX) {
		want = PERF_MAP_BYTES_MAX;
		off = st.st_size - PERF_MAP_BYTES_MAX;
	}
	m->text = m->own = malloc(want + 1);
	if (!m->own)
		return -ENOMEM;
	while (m->len < want) {
		ssize_t got = pread(fd, m->own + m->len, want - m->len, off + (off_t)m->len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		m->len += (size_t)got;
	}
	r = parse(m, vaddrs, n);
	if (r == 0)
		*ret_map = TAKE_PTR(m);
	return r;
}

void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	wanted_fini(&m->wanted);
	free(m->own);
	free(m);
}

const char *perf_map_find(const struct perf_map *m, uint64_t vaddr, size_t *ret_len)
{
	uint32_t owner = wanted_owner(&m->wanted, vaddr);
	const char *name, *end;

	if (!owner)
		return NULL;
	name = m->text + owner - 1;
	end = memchr(name, '\n', m->len - (size_t)(name - m->text));
	*ret_len = (size_t)(end - name);
	if (*ret_len && name[*ret_len - 1] == '\r')
		--*ret_len;
	return *ret_len ? name : NULL;
}
