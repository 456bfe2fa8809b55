#include "screen/processes.h"

#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH_FROM_NS 5000000000ULL
#define KERNEL_THREAD  0x00200000u /* PF_KTHREAD, linux/sched.h */

void processes_init(struct processes *p, uint32_t ticks_per_s, uint32_t page_bytes)
{
	*p = (struct processes){ .ticks_per_s = ticks_per_s, .page_bytes = page_bytes };
}

static void process_fini(struct process *row)
{
	if (row->fd >= 0)
		close(row->fd);
	free(row->command);
}

void processes_fini(struct processes *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		process_fini(&p->rows[i]);
	for (uint32_t i = 0; i < p->n_containers; i++) {
		free(p->containers[i].id);
		free(p->containers[i].name);
		free(p->containers[i].engine);
	}
	free(p->containers);
	free(p->rows);
	*p = (struct processes){ 0 };
}

void processes_begin(struct processes *p, uint64_t now_ns)
{
	p->reading++;
	p->before_ns = p->now_ns;
	p->now_ns = now_ns;
}

/* Where it is, or belongs. */
static uint32_t place_of(const struct processes *p, pid_t pid)
{
	uint32_t low = 0, high = p->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (p->rows[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct process *processes_find(const struct processes *p, pid_t pid)
{
	uint32_t i = place_of(p, pid);

	return i < p->n && p->rows[i].pid == pid ? &p->rows[i] : NULL;
}

static struct process *insert(struct processes *p, uint32_t i)
{
	if (!GROW(p->rows, p->n, p->cap))
		return NULL;
	memmove(p->rows + i + 1, p->rows + i, (p->n - i) * sizeof(*p->rows));
	p->n++;
	return &p->rows[i];
}

struct stat_line {
	pid_t pid, ppid;
	char state, comm[64];
	unsigned flags;
	uint64_t cpu_ticks, start_ticks, rss_pages;
	uint32_t threads;
};

/* The name is in brackets and may have any character in it: the last ")" ends it. */
static bool parse(const char *line, struct stat_line *ret)
{
	const char *open = strchr(line, '('), *close_ = strrchr(line, ')');
	unsigned long long utime, stime, start;
	long long threads, rss;
	int pid, ppid, len;

	if (!open || !close_ || close_ < open || sscanf(line, "%d (", &pid) != 1)
		return false;
	if (sscanf(close_ + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %lld %*d %llu %*u %lld",
		   &ret->state, &ppid, &ret->flags, &utime, &stime, &threads, &start, &rss) != 8)
		return false;
	len = (int)(close_ - open - 1);
	snprintf(ret->comm, sizeof(ret->comm), "%.*s", len, open + 1);
	ret->pid = pid;
	ret->ppid = ppid;
	ret->cpu_ticks = utime + stime;
	ret->start_ticks = start;
	ret->threads = threads > 0 ? (uint32_t)threads : 0;
	ret->rss_pages = rss > 0 ? (uint64_t)rss : 0;
	return true;
}

static void set_cpu(const struct processes *p, struct process *row, uint64_t ticks, bool new_row)
{
	double seconds = (double)(p->now_ns - p->before_ns) / 1e9;

	row->cpu_ticks_before = new_row ? ticks : row->cpu_ticks;
	row->cpu_ticks = ticks;
	if (new_row || seconds <= 0)
		row->cpu_percent = -1;
	else
		row->cpu_percent =
			(double)(ticks - row->cpu_ticks_before) * 100 / p->ticks_per_s / seconds;
}

/* What was known of it is not true of another program. */
static void forget_program(struct process *row)
{
	free(row->command);
	row->command = NULL;
	row->runtime = row->heap = NULL;
	row->asked = false;
}

struct process *processes_stat(struct processes *p, const char *line, bool *ret_bad)
{
	struct stat_line s = { 0 };
	struct process *row;
	uint32_t i;
	bool is_new;

	*ret_bad = !parse(line, &s);
	if (*ret_bad || (s.flags & KERNEL_THREAD))
		return NULL;
	i = place_of(p, s.pid);
	row = i < p->n && p->rows[i].pid == s.pid ? &p->rows[i] : NULL;
	if (row && row->start_ticks != s.start_ticks) {
		int fd = row->fd;

		row->fd = -1;
		process_fini(row);
		*row = (struct process){ .fd = fd };
	}
	is_new = !row || !row->pid;
	if (!row) {
		row = insert(p, i);
		if (!row)
			return NULL;
		*row = (struct process){ .fd = -1 };
	}
	if (is_new) {
		row->pid = s.pid;
		row->start_ticks = s.start_ticks;
		row->first_rss_bytes = s.rss_pages * p->page_bytes;
		row->first_ns = p->now_ns;
		row->container = UINT32_MAX;
	} else if (strcmp(row->comm, s.comm) != 0) {
		forget_program(row);
	}
	memcpy(row->comm, s.comm, sizeof(row->comm));
	row->ppid = s.ppid;
	row->state = s.state;
	row->threads = s.threads;
	row->rss_bytes = s.rss_pages * p->page_bytes;
	row->reading = p->reading;
	set_cpu(p, row, s.cpu_ticks, is_new);
	return row;
}

bool process_growth(const struct processes *p, const struct process *row, double *ret_bytes)
{
	uint64_t ns = p->now_ns - row->first_ns;

	if (ns < GROWTH_FROM_NS)
		return false;
	*ret_bytes = ((double)row->rss_bytes - (double)row->first_rss_bytes) * 60e9 / (double)ns;
	return true;
}

static void sum_up(struct processes *p)
{
	p->cpu_percent = 0;
	for (uint32_t i = 0; i < p->n_containers; i++) {
		struct process_container *c = &p->containers[i];

		c->processes = c->threads = 0;
		c->cpu_percent = c->growth = 0;
		c->rss_bytes = 0;
		c->grows = false;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		const struct process *row = &p->rows[i];
		struct process_container *c;
		double growth;

		if (row->cpu_percent > 0)
			p->cpu_percent += row->cpu_percent;
		if (row->container >= p->n_containers)
			continue;
		c = &p->containers[row->container];
		c->processes++;
		c->threads += row->threads;
		c->cpu_percent += row->cpu_percent > 0 ? row->cpu_percent : 0;
		c->rss_bytes += row->rss_bytes;
		if (process_growth(p, row, &growth)) {
			c->growth += growth;
			c->grows = true;
		}
	}
}

void processes_end(struct processes *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		if (p->rows[i].reading != p->reading)
			process_fini(&p->rows[i]);
		else
			p->rows[kept++] = p->rows[i];
	}
	p->n = kept;
	sum_up(p);
}
