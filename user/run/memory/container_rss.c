/*
 * Where the memory of containers, control groups or the host is: the RSS breakdown of each of their processes
 * as a PSS (analyse/ledger.h), summed. Over time in rss_breakdown.csv, of all together and of each in its
 * folder; at the end in the summary.
 *
 * A look reads the processes in full, the largest first, until its time is used up: of this thread's CPU
 * time 4 s for groups, of which one process may take half; of a host, where more happens meanwhile, 0.5 s in
 * the run and 2 s at its end, and a quarter of that. Where one has used up its part, the rest of its heap is not
 * walked; its mappings are read in any case. The others are counted as not read, with their RSS. Looks take one
 * part in SHARE of the time that goes by.
 *
 * Which of a traced program's blocks were there before the run is rss.c's, whose sum is shown in place of
 * this one where it is known.
 */
#include "base/clock.h"
#include "base/small_file.h"
#include "model/mem_sample.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/members.h"
#include "run/memory/rss_csv.h"
#include "run/memory/rss_look.h"
#include "run/output/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_NS    4000000000LL
#define HOST_NS      500000000LL
#define HOST_LAST_NS 2000000000LL

enum {
	SHARE = 100,
	PROCESSES_MAX = 65536,
	SUMS_MAX = 1024, /* more of them are in the sum of all only */
	TRIES = 2,       /* where no allocator is found */
};

struct process_seen {
	pid_t pid;
	uint32_t container; /* its index; SUMS_MAX: only in the sum of all */
	int64_t rss;
};

struct container_sum {
	char name[FOLDER_NAME];
	struct ledger now;
	struct rss_csv csv;
	bool written;
};

struct container_rss {
	struct run *run;
	struct members *members; /* NULL: there is nothing to see */
	struct process_seen *seen;
	uint32_t n_seen, room;
	struct container_sum *sums;
	uint32_t n_sums;
	struct summary_container_memory *rows; /* of the summary */
	struct ledger all;
	struct rss_csv csv;
	bool folders, written, full;
	uint64_t next_ns, at_ns;
};

/* --- who there is --- */

/* proc(5), statm: 0 for a kernel thread, and one that has ended. */
static int64_t rss_of(pid_t pid)
{
	char path[32], text[128];
	long long size, resident;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)) < 0 ||
	    sscanf(text, "%lld %lld", &size, &resident) != 2)
		return 0;
	return resident * sysconf(_SC_PAGESIZE);
}

static uint32_t container_of(struct container_rss *c, const char *owner)
{
	char name[FOLDER_NAME];
	struct container_sum *more;

	folder_name(c->run->cfg, owner, name);
	for (uint32_t i = 0; i < c->n_sums; i++)
		if (strcmp(c->sums[i].name, name) == 0)
			return i;
	more = c->n_sums < SUMS_MAX ? reallocarray(c->sums, c->n_sums + 1, sizeof(*more)) : NULL;
	if (!more) {
		c->full = true;
		return SUMS_MAX;
	}
	c->sums = more;
	more = &c->sums[c->n_sums];
	*more = (struct container_sum){ .now = { .by_pss = true }, .csv.fd = -1 };
	memcpy(more->name, name, sizeof(name));
	return c->n_sums++;
}

static bool add_seen(struct container_rss *c, const struct process_seen *one)
{
	if (c->n_seen == c->room) {
		uint32_t room = c->room ? 2 * c->room : 256;
		struct process_seen *more =
			room <= PROCESSES_MAX ? reallocarray(c->seen, room, sizeof(*more)) : NULL;

		if (!more)
			return false;
		c->seen = more;
		c->room = room;
	}
	c->seen[c->n_seen++] = *one;
	return true;
}

static void not_read(struct container_rss *c, const struct process_seen *one)
{
	struct ledger *sums[2] = { &c->all, one->container < SUMS_MAX ? &c->sums[one->container].now
								      : NULL };

	for (int i = 0; i < 2 && sums[i]; i++) {
		sums[i]->not_read++;
		sums[i]->not_read_rss += one->rss;
	}
}

static void add_members(void *ctx, const char *owner, const char *path, const pid_t *pids,
			uint32_t n)
{
	struct container_rss *c = ctx;
	uint32_t container = container_of(c, owner);

	(void)path;
	for (uint32_t i = 0; i < n; i++) {
		const struct process_seen one = { pids[i], container, rss_of(pids[i]) };

		if (one.rss && !add_seen(c, &one))
			not_read(c, &one);
	}
}

/* --- a look --- */

static int largest_first(const void *a, const void *b)
{
	const struct process_seen *x = a, *y = b;

	if (x->rss != y->rss)
		return x->rss < y->rss ? 1 : -1;
	return x->pid - y->pid;
}

static void read_one(struct container_rss *c, const struct process_seen *one, int64_t budget_ns)
{
	const struct rss_look at = { one->pid, budget_ns, c->run->cfg->python_objects, NULL,
				     TRIES };
	struct heap_census census;
	struct ledger l;
	struct err e = { 0 };
	int rc = rss_look(&at, &l, &census, &e);

	if (rc < 0) {
		if (rss_of(one->pid)) /* else it has ended since */
			not_read(c, one);
		return;
	}
	l.by_pss = true;
	ledger_add(&c->all, &l);
	if (one->container < SUMS_MAX)
		ledger_add(&c->sums[one->container].now, &l);
}

static void clear(struct container_rss *c)
{
	c->n_seen = 0;
	c->all = (struct ledger){ .by_pss = true };
	for (uint32_t i = 0; i < c->n_sums; i++)
		c->sums[i].now = (struct ledger){ .by_pss = true };
}

/* false: nobody is there; what was seen last stays. */
static bool look(struct container_rss *c, int64_t budget_ns)
{
	int64_t until_ns = (int64_t)thread_cpu_ns() + budget_ns;
	int64_t most_ns = budget_ns / (c->run->cfg->all ? 4 : 2);
	struct ledger all = c->all;

	clear(c);
	members_each(c->members, add_members, c);
	if (!c->n_seen) {
		c->all = all;
		return false;
	}
	qsort(c->seen, c->n_seen, sizeof(*c->seen), largest_first);
	for (uint32_t i = 0; i < c->n_seen; i++) {
		int64_t left_ns = until_ns - (int64_t)thread_cpu_ns();

		if (left_ns > 0)
			read_one(c, &c->seen[i], left_ns < most_ns ? left_ns : most_ns);
		else
			not_read(c, &c->seen[i]);
	}
	c->at_ns = now_ns();
	return true;
}

/* --- in the run --- */

static void write_folder_row(struct container_rss *c, struct container_sum *sum)
{
	struct err e = { 0 };
	char path[4096];

	if (!ledger_known(&sum->now))
		return;
	if (!sum->written) {
		sum->written = true;
		if (output_in_folder_begin(c->run, sum->name, "rss_breakdown.csv", path,
					   sizeof(path), &e) < 0)
			run_note(c->run, true, "rss_breakdown.csv of %s: %s", sum->name, e.msg);
		else
			rss_csv_open(&sum->csv, c->run, path, true);
	}
	rss_csv_row(&sum->csv, &sum->now, MEM_UNKNOWN);
}

static void take_row(struct container_rss *c, int64_t budget_ns)
{
	const struct alloc_state *alloc = &c->run->alloc;
	uint64_t from = now_ns();

	if (!c->members || !look(c, budget_ns))
		return;
	c->next_ns = from + SHARE * (c->at_ns - from);
	if (!c->written)
		return;
	rss_csv_row(&c->csv, &c->all,
		    alloc->live_bytes ? alloc->live_bytes(alloc->live_ctx) : MEM_UNKNOWN);
	for (uint32_t i = 0; c->folders && i < c->n_sums; i++)
		write_folder_row(c, &c->sums[i]);
}

static void row(void *self, uint64_t now)
{
	struct container_rss *c = self;

	if (now >= c->next_ns)
		take_row(c, c->run->cfg->all ? HOST_NS : GROUPS_NS);
}

static int ready(void *self, struct err *e)
{
	struct container_rss *c = self;
	const struct run_config *cfg = c->run->cfg;
	char path[4096];

	(void)e;
	c->csv.fd = -1;
	c->folders = folders_wanted(cfg);
	if (members_new(cfg, &c->members, NULL) < 0 || !cfg->dir)
		return 0;
	snprintf(path, sizeof(path), "%s/rss_breakdown%s%s.csv", cfg->dir, cfg->stamp ? "-" : "",
		 cfg->stamp ? cfg->stamp : "");
	rss_csv_open(&c->csv, c->run, path, true);
	c->written = true;
	return 0;
}

static void closing(void *self)
{
	struct container_rss *c = self;

	take_row(c, c->run->cfg->all ? HOST_LAST_NS : GROUPS_NS);
}

/* --- at the end --- */

static int by_size(const void *a, const void *b)
{
	const struct summary_container_memory *x = a, *y = b;
	int64_t one = x->now.pss, other = y->now.pss;

	return one < other ? 1 : one > other ? -1 : strcmp(x->name, y->name);
}

static void report(void *self, struct run_summary *to)
{
	struct container_rss *c = self;
	uint64_t start = session_start_ns(c->run->session);
	uint32_t n = 0;

	to->ledger.now = c->all;
	to->ledger.at_ns = c->at_ns > start ? (int64_t)(c->at_ns - start) : 0;
	if (c->full)
		run_note(
			c->run, false,
			"there are over %d containers: the RSS breakdown has the others in its sum only",
			SUMS_MAX);
	if (!c->run->cfg->all && c->run->cfg->n_groups < 2)
		return;
	free(c->rows);
	c->rows = calloc(c->n_sums ? c->n_sums : 1, sizeof(*c->rows));
	for (uint32_t i = 0; c->rows && i < c->n_sums; i++)
		if (ledger_known(&c->sums[i].now))
			c->rows[n++] = (struct summary_container_memory){ c->sums[i].name,
									  c->sums[i].now };
	if (n)
		qsort(c->rows, n, sizeof(*c->rows), by_size);
	to->ledger.containers = c->rows;
	to->ledger.n_containers = n;
}

static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct container_rss *c = self;

	(void)e;
	if (c->written)
		output_written(to, "rss_breakdown", ".csv");
	for (uint32_t i = 0; i < c->n_sums; i++)
		if (c->sums[i].written)
			output_in_folder(to, c->sums[i].name, "rss_breakdown.csv");
	return 0;
}

static void free_rss(void *self)
{
	struct container_rss *c = self;

	for (uint32_t i = 0; i < c->n_sums; i++)
		rss_csv_close(&c->sums[i].csv);
	if (c->written)
		rss_csv_close(&c->csv);
	members_free(c->members);
	free(c->sums);
	free(c->seen);
	free(c->rows);
}

static bool wanted(const struct run_config *cfg)
{
	return cfg->all || cfg->n_groups;
}

const struct component container_rss_component = {
	.name = "RSS breakdown of containers",
	.size = sizeof(struct container_rss),
	.wanted = wanted,
	.ready = ready,
	.row = row,
	.closing = closing,
	.report = report,
	.write = write_files,
	.free = free_rss,
};
