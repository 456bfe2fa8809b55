/*
 * Where the memory of containers, control groups or the host is: the RSS breakdown of each of their processes
 * as a PSS (analyse/ledger.h), summed. Over time in rss_breakdown.csv, of all together and of each in its
 * folder; at the end in the summary.
 *
 * A look reads the processes in full, the largest first, until its time is used up: of this thread's CPU
 * time 4 s for groups, of which one process may take half; of a host, where more happens meanwhile, 0.5 s in
 * the run and 2 s at its end, and a quarter of that. Where one has used up its part, the rest of its heap is not
 * walked; its mappings are read in any case. The others are counted as not read, with their RSS. Between looks it rests
 * (budget.h).
 *
 * A thread of its own reads them, for meanwhile the main thread has the kernel's maps and rings to empty
 * and costs to limit; it takes the sums over when they are complete. In closing() it waits for that, and
 * goes on emptying.
 *
 * Which of a traced program's blocks were there before the run is rss.c's, whose sum is shown in place of
 * this one where it is known.
 */
#include "base/clock.h"
#include "base/grow.h"
#include "base/small_file.h"
#include "model/mem_sample.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/members.h"
#include "run/memory/rss_csv.h"
#include "run/memory/rss_known.h"
#include "run/memory/rss_look.h"
#include "run/output/files.h"
#include "run/own_share.h"
#include "run/pipeline.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GROUPS_NS    4000000000LL
#define HOST_NS      500000000LL
#define HOST_LAST_NS 2000000000LL

enum {
	PROCESSES_MAX = 65536,
	SUMS_MAX = 1024, /* more of them are in the sum of all only */
	TRIES = 2,       /* where no allocator is found */
	WAIT_MS = 20,    /* between two times that the kernel's maps are looked after */
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
	int64_t over,
		over_rss; /* of the next look: there were more processes than it has room for */
};

/* A look, of the thread while that is at work. */
struct look {
	const struct run_config *cfg;
	struct process_seen *seen;
	uint32_t n_seen, room;
	int64_t budget_ns;
	struct rss_known known;
	bool fresh;               /* each is read, whatever is known */
	struct ledger all, *sums; /* by container */
	uint32_t n_sums;
	uint64_t from_ns, end_ns;
	pthread_t thread;
	bool begun; /* of the main thread */
	bool done, stop;
};

struct container_rss {
	struct run *run;
	struct members *members; /* NULL: there is nothing to see */
	struct look look;
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

static bool add_seen(struct look *l, const struct process_seen *one)
{
	if (l->n_seen == PROCESSES_MAX || !GROW(l->seen, l->n_seen, l->room))
		return false;
	l->seen[l->n_seen++] = *one;
	return true;
}

static void add_members(void *ctx, const char *owner, const char *path, const pid_t *pids,
			uint32_t n)
{
	struct container_rss *c = ctx;
	uint32_t container = container_of(c, owner);

	(void)path;
	for (uint32_t i = 0; i < n; i++) {
		const struct process_seen one = { pids[i], container, rss_of(pids[i]) };

		if (one.rss && !add_seen(&c->look, &one)) {
			c->look.all.not_read++;
			c->look.all.not_read_rss += one.rss;
			if (container < SUMS_MAX) {
				c->sums[container].over++;
				c->sums[container].over_rss += one.rss;
			}
		}
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

static void not_read(struct look *l, const struct process_seen *one)
{
	struct ledger *sums[2] = { &l->all,
				   one->container < SUMS_MAX ? &l->sums[one->container] : NULL };

	for (int i = 0; i < 2 && sums[i]; i++) {
		sums[i]->not_read++;
		sums[i]->not_read_rss += one->rss;
	}
}

static int look_at(struct look *l, struct rss_known_process *known, pid_t pid, int64_t budget_ns,
		   struct ledger *ret_of_one)
{
	const struct rss_look at = { .pid = pid,
				     .budget_ns = budget_ns,
				     .objects_traced = l->cfg->python_objects,
				     .found = known ? &known->found : NULL,
				     .tries = TRIES };
	int64_t until_ns = (int64_t)thread_cpu_ns() + budget_ns;
	struct heap_census census;
	struct err e = { 0 };
	int rc = rss_look(&at, ret_of_one, &census, &e);

	/* One whose time was up may not have been walked to its end. */
	if (rc == 0 && known && (int64_t)thread_cpu_ns() < until_ns)
		rss_known_keep(known, ret_of_one);
	return rc;
}

static void read_one(struct look *l, const struct process_seen *one, int64_t budget_ns)
{
	struct rss_known_process *known = rss_known_of(&l->known, one->pid);
	struct ledger of_one;
	int rc = 0;

	if (known && known->same && l->cfg->serve && !l->fresh)
		of_one = known->ledger;
	else
		rc = look_at(l, known, one->pid, budget_ns, &of_one);
	if (rc < 0) {
		if (rss_of(one->pid)) /* else it has ended since */
			not_read(l, one);
		return;
	}
	of_one.by_pss = true;
	ledger_add(&l->all, &of_one);
	if (one->container < SUMS_MAX)
		ledger_add(&l->sums[one->container], &of_one);
}

static void *read_all(void *ctx)
{
	struct look *l = ctx;
	int64_t until_ns = (int64_t)thread_cpu_ns() + l->budget_ns;
	int64_t most_ns = l->budget_ns / (l->cfg->all ? 4 : 2);

	rss_known_begin(&l->known);
	for (uint32_t i = 0; i < l->n_seen && !__atomic_load_n(&l->stop, __ATOMIC_RELAXED); i++) {
		int64_t left_ns = until_ns - (int64_t)thread_cpu_ns();

		if (left_ns > 0)
			read_one(l, &l->seen[i], left_ns < most_ns ? left_ns : most_ns);
		else
			not_read(l, &l->seen[i]);
	}
	rss_known_end(&l->known);
	l->end_ns = now_ns();
	__atomic_store_n(&l->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Signals are the main thread's. */
static bool begin_thread(struct look *l)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&l->thread, NULL, read_all, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r == 0;
}

/* What a look leaves out, or has not come to, stays what it was. */
static void look_begin(struct container_rss *c, int64_t budget_ns, bool fresh)
{
	struct look *l = &c->look;

	if (!c->members || l->begun)
		return;
	l->cfg = c->run->cfg;
	l->n_seen = 0;
	l->budget_ns = budget_ns;
	l->fresh = fresh;
	l->from_ns = now_ns();
	l->done = l->stop = false;
	l->all = (struct ledger){ .by_pss = true };
	for (uint32_t i = 0; i < c->n_sums; i++)
		c->sums[i].over = c->sums[i].over_rss = 0;
	members_each(c->members, add_members, c);
	if (!l->n_seen)
		return; /* nobody is there */
	qsort(l->seen, l->n_seen, sizeof(*l->seen), largest_first);
	free(l->sums);
	l->sums = calloc(c->n_sums, sizeof(*l->sums));
	l->n_sums = l->sums ? c->n_sums : 0;
	if (!l->sums)
		return;
	for (uint32_t i = 0; i < l->n_sums; i++)
		l->sums[i] = (struct ledger){ .by_pss = true,
					      .not_read = c->sums[i].over,
					      .not_read_rss = c->sums[i].over_rss };
	l->begun = begin_thread(l);
	if (!l->begun)
		run_note(c->run, false,
			 "no thread for the RSS breakdown: one look at it is missing");
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

static void write_rows(struct container_rss *c)
{
	const struct alloc_state *alloc = &c->run->alloc;

	rss_csv_row(&c->csv, &c->all,
		    alloc->live_bytes ? alloc->live_bytes(alloc->live_ctx) : MEM_UNKNOWN);
	for (uint32_t i = 0; c->folders && i < c->n_sums; i++)
		write_folder_row(c, &c->sums[i]);
}

/* The thread has ended, or is about to: what it has found, unless it was stopped. */
static void look_end(struct container_rss *c)
{
	struct look *l = &c->look;

	pthread_join(l->thread, NULL);
	l->begun = false;
	if (l->stop)
		return;
	c->all = l->all;
	for (uint32_t i = 0; i < l->n_sums; i++)
		c->sums[i].now = l->sums[i];
	c->at_ns = l->end_ns;
	c->next_ns = l->from_ns + budget_look_rest_ns(c->run->cfg, l->end_ns - l->from_ns) *
					  (own_saves(c->run, SAVE_HEAPS) ? 10 : 1);
	if (c->written)
		write_rows(c);
}

static void row(void *self, uint64_t now)
{
	struct container_rss *c = self;

	if (now >= c->next_ns)
		look_begin(c, c->run->cfg->all ? HOST_NS : GROUPS_NS, false);
}

static bool is_done(const struct container_rss *c)
{
	return __atomic_load_n(&c->look.done, __ATOMIC_ACQUIRE);
}

static void tick(void *self, uint64_t now)
{
	struct container_rss *c = self;

	(void)now;
	if (c->look.begun && is_done(c))
		look_end(c);
}

static const struct ledger *breakdown(void *ctx, const char *folder)
{
	const struct container_rss *c = ctx;

	for (uint32_t i = 0; i < c->n_sums; i++)
		if (strcmp(c->sums[i].name, folder) == 0)
			return ledger_known(&c->sums[i].now) ? &c->sums[i].now : NULL;
	return NULL;
}

static int ready(void *self, struct err *e)
{
	struct container_rss *c = self;
	const struct run_config *cfg = c->run->cfg;
	char path[4096];

	(void)e;
	c->csv.fd = -1;
	c->run->serving.breakdown = breakdown;
	c->run->serving.breakdown_ctx = c;
	c->folders = folders_wanted(cfg);
	if (members_new(cfg, &c->members, NULL) < 0 || !cfg->dir)
		return 0;
	snprintf(path, sizeof(path), "%s/rss_breakdown%s%s.csv", cfg->dir, cfg->stamp ? "-" : "",
		 cfg->stamp ? cfg->stamp : "");
	rss_csv_open(&c->csv, c->run, path, true);
	c->written = true;
	return 0;
}

/* The gate is open: events come as ever. */
static void wait_for_look(struct container_rss *c)
{
	const struct timespec pause = { .tv_nsec = WAIT_MS * 1000000L };
	struct err e = { 0 };
	int rc = 0;

	while (!is_done(c)) {
		nanosleep(&pause, NULL);
		if (rc == 0)
			rc = pipeline_keep_up(c->run, &e);
	}
	if (rc < 0)
		run_note(c->run, true, "%s", e.msg);
	look_end(c);
}

static void closing(void *self)
{
	struct container_rss *c = self;

	if (c->look.begun) {
		__atomic_store_n(&c->look.stop, !is_done(c), __ATOMIC_RELAXED);
		wait_for_look(c);
	}
	look_begin(c, c->run->cfg->all ? HOST_LAST_NS : GROUPS_NS, true);
	if (c->look.begun)
		wait_for_look(c);
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

	if (c->look.begun) {
		__atomic_store_n(&c->look.stop, true, __ATOMIC_RELAXED);
		pthread_join(c->look.thread, NULL);
	}
	for (uint32_t i = 0; i < c->n_sums; i++)
		rss_csv_close(&c->sums[i].csv);
	if (c->written)
		rss_csv_close(&c->csv);
	members_free(c->members);
	free(c->sums);
	rss_known_fini(&c->look.known);
	free(c->look.seen);
	free(c->look.sums);
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
	.tick = tick,
	.row = row,
	.closing = closing,
	.report = report,
	.write = write_files,
	.free = free_rss,
};
