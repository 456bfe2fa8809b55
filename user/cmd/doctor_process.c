#include "cmd/doctor_process.h"

#include "base/rights.h"
#include "base/small_file.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/doctor_files.h"
#include "inject/inject.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"
#include "render/summary/summary_json.h"
#include "run/run.h"
#include "run/sampler.h"
#include "run/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DOCTOR_SECONDS 1.5
#define DOCTOR_HZ      499 /* about as many samples as a look needs, and not in step with timers */
#define WHOLE_ENOUGH   0.995
#define LABEL          "  %-16s "

/* --- files of the process --- */

struct files {
	pid_t pid;
	struct strbuf allocators; /* lines */
	uint32_t n_allocators, n_unread;
	uint64_t last_ino, last_dev;
};

/* Where the process's allocators are: files that define what is probed, ld.so's own aside. */
static int look_for_allocator(void *ctx, const struct proc_map *map)
{
	_cleanup_(closep) int fd = -1;
	struct files *f = ctx;
	uint32_t n = 0;

	if (!(map->perms & PROC_MAP_EXEC) || map->path[0] != '/' ||
	    (map->ino == f->last_ino && map->dev == f->last_dev) || strstr(map->path, "/ld-"))
		return 0;
	f->last_ino = map->ino;
	f->last_dev = map->dev;
	fd = ns_open_mapped(f->pid, map->start, map->end);
	if (fd >= 0)
		f->n_unread += !doctor_allocation_functions(fd, map->path, &n);
	if (n < 2) /* a function of that name is not an allocator yet */
		return 0;
	if (f->n_allocators++)
		strbuf_puts(&f->allocators, ", ");
	strbuf_add_clean(&f->allocators, map->path, strlen(map->path));
	strbuf_printf(&f->allocators, " (%u functions)", n);
	return 0;
}

static bool count_frame_pointers(pid_t pid, struct fp_count *ret)
{
	_cleanup_(closep) int fd = ns_open_link(pid, "exe");

	return fd >= 0 && doctor_frame_pointers(fd, "exe", ret);
}

/* --- what is printed --- */

struct report {
	pid_t pid;
	bool json, good;
};

static void print_name(const char *name)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	strbuf_add_clean(&b, name ? name : "?", strlen(name ? name : "?"));
	fputs(b.s ? b.s : "?", stdout);
}

static uint64_t stacks_of(const struct summary_stacks *k)
{
	return k->complete + k->truncated + k->guessed + k->no_table + k->unreadable + k->lost;
}

static void print_stacks(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->n_stacks; i++) {
		const struct summary_stacks *k = &s->stacks[i];
		const struct {
			uint64_t n;
			const char *why;
		} rows[] = {
			{ k->guessed, "by frame pointers that nothing vouches for" },
			{ k->truncated, "deeper than 2,048 frames" },
			{ k->no_table, "through code without an unwind table" },
			{ k->unreadable, "stack memory could not be read" },
			{ k->lost, "lost" },
		};
		int64_t all = (int64_t)stacks_of(k);

		if (!all)
			continue;
		printf(LABEL "%s of %s are complete\n", k->source,
		       unit_percent((int64_t)k->complete, all).s, unit_count(all).s);
		for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++)
			if (rows[j].n)
				printf(LABEL "%s %s\n", "", unit_percent((int64_t)rows[j].n, all).s,
				       rows[j].why);
	}
}

/* The code to blame. */
static void print_incomplete(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->n_incomplete; i++) {
		printf(LABEL "%s %s in ", i ? "" : "incomplete",
		       unit_count((int64_t)s->incomplete[i].events).s, s->incomplete[i].verdict);
		print_name(s->incomplete[i].module);
		putchar('\n');
	}
}

static void print_unwind(const struct run_summary *s)
{
	if (!s->unwind.known) {
		printf(LABEL "none: user stacks are taken by frame pointers here\n", "tables");
		return;
	}
	printf(LABEL "%s files, %s rows, %s of %s\n", "tables",
	       unit_count((int64_t)s->unwind.files).s, unit_count((int64_t)s->unwind.rows).s,
	       unit_bytes((int64_t)s->unwind.bytes).s,
	       unit_bytes((int64_t)s->unwind.budget_bytes).s);
	if (s->unwind.trouble && s->unwind.trouble[0]) {
		printf(LABEL, "");
		print_name(s->unwind.trouble);
		putchar('\n');
	}
}

/* The interpreter whose frames are in its stacks. */
static void print_langs(const struct run_summary *s)
{
	const struct summary_langs *l = &s->langs;

	if (l->processes)
		printf(LABEL "%s: %s places named by function and line%s\n", "language", l->name,
		       unit_count((int64_t)l->named).s,
		       l->untested ? "; untested: memscope was never tried with this version" : "");
	if (l->unreadable) {
		printf(LABEL "no frames of its interpreter: ", l->processes ? "" : "language");
		print_name(l->trouble);
		putchar('\n');
	}
	if (l->native || l->lost || l->misplaced)
		printf(LABEL "%s events have none, %s stacks not all, %s stacks are guessed\n", "",
		       unit_count((int64_t)l->native).s, unit_count((int64_t)l->lost).s,
		       unit_count((int64_t)l->misplaced).s);
}

static void print_names(const struct run_summary *s)
{
	const struct summary_symbols *y = &s->symbols;

	if (!y->locations)
		return;
	printf(LABEL "%s of %s locations symbolized\n", "symbols",
	       unit_percent((int64_t)y->named, (int64_t)y->locations).s,
	       unit_count((int64_t)y->locations).s);
	for (uint32_t i = 0; i < y->n_worst; i++) {
		printf(LABEL "%s without in ", "", unit_count((int64_t)y->worst[i].locations).s);
		print_name(y->worst[i].module);
		fputs(": ", stdout);
		print_name(y->worst[i].reason);
		if (y->worst[i].package && y->worst[i].package[0]) {
			printf("\n" LABEL "-> install ", "");
			print_name(y->worst[i].package);
		}
		putchar('\n');
	}
}

/* Who could tell of its allocations without a trap for each. */
static void print_sampler(pid_t pid, const struct sampler_facts *facts)
{
	char advice[512];
	char library[PATH_MAX];

	sampler_advise(facts, advice, sizeof(advice));
	if (facts->otel) {
		printf(LABEL, "sampler");
		print_name(facts->where);
		printf(": listened to with --alloc=sampled\n");
	} else if (facts->heard && facts->counts) {
		printf(LABEL "%s, one for each new buffer: listened to with --alloc=auto\n",
		       "sampler", facts->own);
	} else if (facts->heard) {
		printf(LABEL "that of %s, one in %s%s: listened to with %s\n", "sampler",
		       facts->own, unit_bytes((int64_t)facts->rate).s,
		       facts->rate_known ? "" : " if its program has not changed that",
		       facts->go ? "--alloc=auto" : "--alloc=sampled");
	} else if (*advice) {
		printf(LABEL "%s\n", "sampler", advice);
	} else {
		printf(LABEL "none: --alloc=sampled needs it started with LD_PRELOAD=%s\n",
		       "sampler",
		       sampler_library(library, sizeof(library)) ? library : SAMPLER_LIBRARY);
	}
	if (!facts->heard && (!facts->otel || strstr(facts->where, SAMPLER_LIBRARY)) &&
	    sampler_library(library, sizeof(library))) {
		struct err e = { 0 };

		if (inject_check(pid, library, false, &e) == 0) {
			printf(LABEL "--inject can put memscope's library into it\n", "");
		} else {
			printf(LABEL "--inject cannot be used: ", "");
			print_name(e.msg);
			putchar('\n');
		}
	}
	if (*facts->unread) {
		printf(LABEL, "");
		print_name(facts->unread);
		putchar('\n');
	}
	if (!facts->jemalloc_conf)
		return;
	if (facts->jemalloc_on)
		printf(LABEL "its own sampler is on (%s); jeprof reads what it writes\n",
		       "jemalloc", facts->jemalloc_conf);
	else
		printf(LABEL
		       "its own sampler %s; %s=prof:true,lg_prof_sample:19 turns it on when the "
		       "process is started, and jeprof reads what it writes\n",
		       "jemalloc",
		       facts->jemalloc_prof ? "is compiled in, and off by its environment"
					    : "is off, if it has one",
		       facts->jemalloc_conf);
}

static bool print_files(pid_t pid, const struct sampler_facts *facts)
{
	struct files f = { .pid = pid };
	struct fp_count c = { 0 };
	bool found;

	if (count_frame_pointers(pid, &c))
		printf(LABEL "set up by %s of the program's functions of %d bytes and more: %s\n",
		       "frame pointers", unit_percent(c.with, c.functions).s, FP_SIZE_MIN,
		       c.with > 0.9 * c.functions
			       ? "kept"
			       : "other profilers' stacks break there, not ours");
	if (proc_maps_each(pid, look_for_allocator, &f, NULL) < 0) {
		printf(LABEL "not known, it has ended\n", "allocator");
		return false;
	}
	found = f.n_allocators > 0;
	printf(LABEL "%s%s%s\n", "allocator", facts->go ? "that of Go's runtime" : "",
	       facts->go && found ? ", " : "",
	       found && f.allocators.s ? f.allocators.s
	       : facts->go             ? ""
	       : f.n_unread            ? "unknown"
				       : "none that is known: allocations cannot be traced");
	if (f.n_unread)
		printf(LABEL "%u files could not be looked into for one\n", "", f.n_unread);
	found |= facts->go && facts->heard;
	strbuf_free(&f.allocators);
	return found;
}

static void report(void *ctx, const struct run_summary *s)
{
	struct report *rep = ctx;
	uint64_t all = 0, complete = 0;
	struct sampler_facts facts;
	bool allocator;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		all += stacks_of(&s->stacks[i]);
		complete += s->stacks[i].complete;
	}
	rep->good = all && (double)complete >= WHOLE_ENOUGH * (double)all;
	if (rep->json) {
		_cleanup_(sink_closep) struct sink *out = NULL;

		if (sink_open_file("-", &out, NULL) == 0 && summary_json_write(s, out, NULL) == 0)
			sink_commit(out, NULL);
		return;
	}
	print_name(s->n_processes ? s->processes[0].comm : NULL);
	printf(" (pid %d), for %s\n\n", (int)rep->pid, unit_ns(s->duration_ns).s);
	print_stacks(s);
	print_incomplete(s);
	if (!all)
		printf(LABEL "none seen: it neither ran nor left a CPU; try again under load\n",
		       "stacks");
	print_unwind(s);
	print_langs(s);
	print_names(s);
	sampler_look(rep->pid, &facts);
	allocator = print_files(rep->pid, &facts);
	print_sampler(rep->pid, &facts);
	for (uint32_t i = 0; i < s->n_notes; i++) {
		printf(LABEL, "note");
		print_name(s->notes[i]);
		putchar('\n');
	}
	printf("\n%s\n", !all        ? "Nothing can be said about its stacks yet."
			 : rep->good ? "Its stacks are whole."
				     : "Not all of its stacks are whole.");
	rep->good = rep->good && allocator;
}

/* Ended, with all its threads: what is left is its entry in the list of processes. */
static bool is_zombie(pid_t pid)
{
	char path[64], line[1024], *paren, state;
	long threads;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (small_file_read(AT_FDCWD, path, line, sizeof(line)) <= 0 ||
	    !(paren = strrchr(line, ')')))
		return false;
	/* proc(5): state is the 3rd word, num_threads the 20th. */
	return sscanf(paren + 2,
		      "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		      "%*s %ld",
		      &state, &threads) == 2 &&
	       strchr("ZX", state) && threads <= 1;
}

int doctor_process(pid_t pid, bool json)
{
	static struct run r;
	struct run_config cfg = {
		.pids = &pid,
		.n_pids = 1,
		.duration_s = DOCTOR_SECONDS,
		.hz = DOCTOR_HZ,
		.sources = { [SOURCE_ONCPU] = true, [SOURCE_OFFCPU] = true },
		.alloc = ALLOC_OFF,
		.user_stacks = true,
		.kernel_stacks = true,
		.interval_s = 1,
		.mem_mb = 64,
		.quiet = true,
	};
	struct report rep = { .pid = pid, .json = json };
	struct err e = { 0 };
	int rc;

	if (!rights_enough())
		err_set(&e, -EPERM,
			"doctor -p needs root, to look at another process: run it with sudo");
	if (e.code || target_check(pid, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (is_zombie(pid)) {
		err_set(&e, -ESRCH,
			"process %d has ended and only waits for its parent to take note: there is "
			"nothing left of it to look at",
			(int)pid);
		return command_fail(EXIT_NOTHING, &e);
	}
	rc = run_begin(&r, &cfg, &e);
	if (rc == 0)
		rc = run_loop(&r, &e);
	run_end(&r, rc == 0 ? &e : NULL);
	if (rc == 0)
		rc = run_facts(&r, report, &rep, &e);
	run_free(&r);
	if (rc < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (err_flush_stdout() < 0)
		return EXIT_NOTHING;
	return rep.good ? EXIT_DONE : EXIT_PARTIAL;
}
