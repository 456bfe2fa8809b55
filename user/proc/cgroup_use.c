#include "proc/cgroup_use.h"
#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_NONE ((int64_t)1 << 60) /* v1 says the highest address that a page can have */

enum { STAT_BYTES = 16384 };

/* A small file of a group's directory. Its length, 0: none. */
static size_t read_file(const char *dir, const char *name, char *buf, size_t cap)
{
	char path[2 * PATH_MAX + 64];
	int len;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	len = small_file_read(AT_FDCWD, path, buf, cap);
	return len > 0 ? (size_t)len : 0;
}

static int64_t read_number(const char *dir, const char *name)
{
	char text[64];
	long long value;

	return read_file(dir, name, text, sizeof(text)) && sscanf(text, "%lld", &value) == 1 &&
			       value >= 0
		       ? (int64_t)value
		       : MEM_UNKNOWN;
}

int64_t cgroup_stat_value(const char *text, const char *name)
{
	size_t len = strlen(name);
	long long value;

	for (const char *line = text; *line; line += *line == '\n') {
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			return sscanf(line + len + 1, "%lld", &value) == 1 && value >= 0
				       ? (int64_t)value
				       : MEM_UNKNOWN;
		line += strcspn(line, "\n");
	}
	return MEM_UNKNOWN;
}

static int64_t kb(int64_t bytes)
{
	return bytes < 0 ? MEM_UNKNOWN : bytes / 1024;
}

/* Before Linux 5.18 only its parts are reported. */
static int64_t kernel_bytes(const char *text)
{
	static const char *const parts[] = { "kernel_stack", "pagetables", "percpu", "slab",
					     "sock" };
	int64_t sum = cgroup_stat_value(text, "kernel");
	bool any = sum >= 0;

	if (any)
		return sum;
	sum = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		int64_t part = cgroup_stat_value(text, parts[i]);

		any |= part >= 0;
		sum += part > 0 ? part : 0;
	}
	return any ? sum : MEM_UNKNOWN;
}

/*
 * What stays when memory runs out: all but the page cache, of which tmpfs and shared memory are no part that could
 * be dropped ("file" and "total_cache" have them), and but slabs that can be reclaimed (v1 does not say).
 */
static int64_t fixed_kb(const struct mem_group *use, const char *stat, const char *shmem)
{
	int64_t shared = cgroup_stat_value(stat, shmem);
	int64_t slabs = cgroup_stat_value(stat, "slab_reclaimable"), fixed;

	if (use->charged_kb < 0 || use->file_kb < 0)
		return MEM_UNKNOWN;
	fixed = use->charged_kb - use->file_kb + (shared > 0 ? shared / 1024 : 0) -
		(slabs > 0 ? slabs / 1024 : 0);
	return fixed > 0 ? fixed : 0;
}

static void use_unified(const char *dir, struct mem_group *use)
{
	char text[STAT_BYTES];
	int64_t usec;

	if (read_file(dir, "cpu.stat", text, sizeof(text))) {
		usec = cgroup_stat_value(text, "usage_usec");
		use->cpu_ns = usec < 0 ? MEM_UNKNOWN : usec * 1000;
	}
	use->charged_kb = kb(read_number(dir, "memory.current"));
	if (use->charged_kb < 0 || !read_file(dir, "memory.stat", text, sizeof(text)))
		return;
	use->anonymous_kb = kb(cgroup_stat_value(text, "anon"));
	use->file_kb = kb(cgroup_stat_value(text, "file"));
	use->kernel_kb = kb(kernel_bytes(text));
	use->fixed_kb = fixed_kb(use, text, "shmem");
	use->limit_kb = kb(read_number(dir, "memory.max")); /* "max" is no number */
}

static void use_memory(const char *dir, struct mem_group *use)
{
	char text[STAT_BYTES];
	int64_t limit;

	use->charged_kb = kb(read_number(dir, "memory.usage_in_bytes"));
	use->kernel_kb = kb(read_number(dir, "memory.kmem.usage_in_bytes"));
	if (!read_file(dir, "memory.stat", text, sizeof(text)))
		return;
	use->anonymous_kb = kb(cgroup_stat_value(text, "total_rss"));
	use->file_kb = kb(cgroup_stat_value(text, "total_cache"));
	use->fixed_kb = fixed_kb(use, text, "total_shmem");
	limit = cgroup_stat_value(text, "hierarchical_memory_limit");
	use->limit_kb = limit < LIMIT_NONE ? kb(limit) : MEM_UNKNOWN;
}

void cgroup_use(const struct cgroup_mounts *m, const char *path, struct mem_group *ret_use)
{
	struct mem_group use = { 0,           MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN,
				 MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN, MEM_UNKNOWN };
	char dir[2 * PATH_MAX];
	int64_t ns;

	if (cgroup_directory(m, 0, path, dir, sizeof(dir)))
		use_unified(dir, &use);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct cgroup_hierarchy *h = &m->list[i];

		if (!h->id || !cgroup_directory(m, h->id, path, dir, sizeof(dir)))
			continue;
		if (cgroup_has_controller(h, "memory"))
			use_memory(dir, &use);
		ns = cgroup_has_controller(h, "cpuacct") ? read_number(dir, "cpuacct.usage")
							 : MEM_UNKNOWN;
		use.cpu_ns = ns < 0 ? use.cpu_ns : ns;
	}
	*ret_use = use;
}

uint32_t cgroup_memory_hierarchy(const struct cgroup_mounts *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (cgroup_has_controller(&m->list[i], "memory"))
			return m->list[i].id;
	return 0;
}

int64_t cgroup_limit_kb(const struct cgroup_mounts *m, const char *path)
{
	int64_t least = MEM_UNKNOWN;
	char above[PATH_MAX];

	snprintf(above, sizeof(above), "%s", path);
	for (char *slash = above; slash; *slash = '\0') {
		struct mem_group use;

		cgroup_use(m, above, &use);
		if (use.limit_kb >= 0 && (least < 0 || use.limit_kb < least))
			least = use.limit_kb;
		slash = strrchr(above, '/');
		if (!slash || slash == above) /* the root has no limit */
			break;
	}
	return least;
}

double cgroup_fixed_part(const struct cgroup_mounts *m, const char *path)
{
	char above[PATH_MAX];
	double most = NAN;

	snprintf(above, sizeof(above), "%s", path);
	for (char *slash = above; slash && above[1]; *slash = '\0') {
		struct mem_group use;

		cgroup_use(m, above, &use);
		if (use.limit_kb > 0 && use.fixed_kb >= 0)
			most = fmax(most, (double)use.fixed_kb / (double)use.limit_kb);
		slash = strrchr(above, '/');
		if (!slash || slash == above)
			break;
	}
	return most;
}

static void throttled_here(const struct cgroup_mounts *m, const char *path,
			   struct cgroup_throttled *most)
{
	char dir[2 * PATH_MAX], text[STAT_BYTES];

	for (uint32_t i = 0; i < m->n; i++) {
		const struct cgroup_hierarchy *h = &m->list[i];
		struct cgroup_throttled t;

		if ((h->id && !cgroup_has_controller(h, "cpu")) ||
		    !cgroup_directory(m, h->id, path, dir, sizeof(dir)) ||
		    !read_file(dir, "cpu.stat", text, sizeof(text)))
			continue;
		t.ns = cgroup_stat_value(text, h->id ? "throttled_time" : "throttled_usec");
		t.periods = cgroup_stat_value(text, "nr_periods");
		t.used_up = cgroup_stat_value(text, "nr_throttled");
		t.ns = t.ns > 0 && !h->id ? t.ns * 1000 : t.ns;
		if (t.ns >= 0 && t.used_up > most->used_up)
			*most = t;
	}
}

bool cgroup_throttled(const struct cgroup_mounts *m, const char *path,
		      struct cgroup_throttled *ret_throttled)
{
	struct cgroup_throttled most = { -1, -1, -1 };
	char above[PATH_MAX];

	snprintf(above, sizeof(above), "%s", path);
	for (char *slash = above; slash && above[1]; *slash = '\0') {
		throttled_here(m, above, &most);
		slash = strrchr(above, '/');
		if (!slash || slash == above)
			break;
	}
	*ret_throttled = most;
	return most.used_up >= 0;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
static int64_t stalled_us(const char *dir, const char *name)
{
	char text[512];
	const char *total;
	long long us;

	if (!read_file(dir, name, text, sizeof(text)) || strncmp(text, "some ", 5) != 0)
		return MEM_UNKNOWN;
	total = strstr(text, "total=");
	return total && sscanf(total, "total=%lld", &us) == 1 ? (int64_t)us : MEM_UNKNOWN;
}

/* Page cache alone: "file" and "total_cache" have shared memory, too. */
static int64_t without(int64_t file, int64_t shmem)
{
	return file < 0 || shmem < 0 ? file : file > shmem ? file - shmem : 0;
}

static void charge_unified(const char *dir, struct cgroup_charge *c)
{
	char text[STAT_BYTES];

	if (read_file(dir, "cpu.stat", text, sizeof(text))) {
		int64_t usage = cgroup_stat_value(text, "usage_usec");
		int64_t throttled = cgroup_stat_value(text, "throttled_usec");

		c->cpu_ns = usage < 0 ? MEM_UNKNOWN : usage * 1000;
		c->throttled_ns = throttled < 0 ? MEM_UNKNOWN : throttled * 1000;
		c->periods = cgroup_stat_value(text, "nr_periods");
		c->periods_throttled = cgroup_stat_value(text, "nr_throttled");
	}
	c->stalled_memory_us = stalled_us(dir, "memory.pressure");
	c->stalled_cpu_us = stalled_us(dir, "cpu.pressure");
	c->stalled_io_us = stalled_us(dir, "io.pressure");
	c->all = read_number(dir, "memory.current");
	c->limit = read_number(dir, "memory.max");
	if (read_file(dir, "memory.events", text, sizeof(text)))
		c->oom_kills = cgroup_stat_value(text, "oom_kill");
	if (!read_file(dir, "memory.stat", text, sizeof(text)))
		return;
	c->anon = cgroup_stat_value(text, "anon");
	c->shmem = cgroup_stat_value(text, "shmem");
	c->file = without(cgroup_stat_value(text, "file"), c->shmem);
	c->slab = cgroup_stat_value(text, "slab");
	c->sock = cgroup_stat_value(text, "sock");
	c->kernel = kernel_bytes(text);
}

static void charge_memory(const char *dir, struct cgroup_charge *c)
{
	char text[STAT_BYTES];
	int64_t limit;

	c->all = read_number(dir, "memory.usage_in_bytes");
	c->kernel = read_number(dir, "memory.kmem.usage_in_bytes");
	limit = read_number(dir, "memory.limit_in_bytes");
	c->limit = limit < LIMIT_NONE ? limit : MEM_UNKNOWN;
	if (read_file(dir, "memory.oom_control", text, sizeof(text)))
		c->oom_kills = cgroup_stat_value(text, "oom_kill");
	if (!read_file(dir, "memory.stat", text, sizeof(text)))
		return;
	c->anon = cgroup_stat_value(text, "total_rss");
	c->shmem = cgroup_stat_value(text, "total_shmem");
	c->file = without(cgroup_stat_value(text, "total_cache"), c->shmem);
}

static void charge_cpu(const char *dir, struct cgroup_charge *c)
{
	char text[STAT_BYTES];

	if (!read_file(dir, "cpu.stat", text, sizeof(text)))
		return;
	c->throttled_ns = cgroup_stat_value(text, "throttled_time");
	c->periods = cgroup_stat_value(text, "nr_periods");
	c->periods_throttled = cgroup_stat_value(text, "nr_throttled");
}

void cgroup_charge_read(const struct cgroup_mounts *m, const char *path,
			struct cgroup_charge *ret_charge)
{
	struct cgroup_charge c;
	char dir[2 * PATH_MAX];

	memset(&c, 0xff, sizeof(c)); /* MEM_UNKNOWN throughout */
	if (cgroup_directory(m, 0, path, dir, sizeof(dir)))
		charge_unified(dir, &c);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct cgroup_hierarchy *h = &m->list[i];

		if (!h->id || !cgroup_directory(m, h->id, path, dir, sizeof(dir)))
			continue;
		if (cgroup_has_controller(h, "memory"))
			charge_memory(dir, &c);
		if (cgroup_has_controller(h, "cpu"))
			charge_cpu(dir, &c);
		if (cgroup_has_controller(h, "cpuacct"))
			c.cpu_ns = read_number(dir, "cpuacct.usage");
	}
	*ret_charge = c;
}
