#include "render/summary_text.h"

#include "base/strbuf.h"
#include "base/units.h"
#include "render/cells.h"
#include "render/summary_cost.h"
#include "render/summary_ledger.h"
#include "render/summary_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAME_WIDTH   50
#define MODULE_WIDTH 24

static void put_group_name(const struct summary_group *g, struct sink *out)
{
	const char *slash = strrchr(g->path, '/');

	if (g->id)
		sink_puts(out, "container ");
	else
		sink_puts(out, "control group ");
	cells_name(out, g->name ? g->name : slash && slash[1] ? slash + 1 : g->path, 40, false);
}

/* What became of one, in a line. */
static void put_group(const struct summary_group *g, bool named, struct sink *out)
{
	sink_puts(out, "  ");
	if (named) {
		put_group_name(g, out);
		sink_puts(out, ": ");
	}
	if (g->id) {
		sink_puts(out, g->engine && *g->engine ? g->engine : "no engine's");
		sink_puts(out, " ");
		cells_name(out, g->id, 12, false);
		if (g->image) {
			sink_puts(out, ", ");
			cells_name(out, g->image, 40, false);
		}
		sink_puts(out, ", ");
	}
	cells_name(out, g->path, CELLS_WIDTH, false);
	sink_puts(out, "\n");
	if (g->restarts)
		sink_printf(out, "  started again %u time%s during the run\n", g->restarts,
			    g->restarts == 1 ? "" : "s");
	if (g->gone_ns)
		sink_printf(out, "  gone for the last %s\n", unit_ns(g->gone_ns).s);
}

static void put_target(const struct run_summary *s, struct sink *out)
{
	char when[32] = "";
	time_t sec = s->start_ns / 1000000000;
	struct tm tm;

	if (s->target == RUN_HOST)
		sink_puts(out, "whole host");
	else if (s->n_groups) {
		put_group_name(&s->groups[0], out);
		if (s->n_groups > 1)
			sink_printf(out, " and %u more", s->n_groups - 1);
	} else if (s->n_processes > 1)
		sink_printf(out, "%u processes", s->n_processes);
	else if (s->n_processes == 1) {
		cells_name(out, s->processes[0].comm ? s->processes[0].comm : "?", 32, false);
		sink_printf(out, " (pid %d)", s->processes[0].pid);
	} else {
		sink_puts(out, "no process");
	}
	localtime_r(&sec, &tm);
	if (s->start_ns > 0 && strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm) > 0)
		sink_printf(out, ", from %s", when);
	sink_printf(out, " for %s", unit_ns(s->duration_ns).s);
	if (s->version)
		sink_printf(out, "  (memscope %s)", s->version);
	sink_puts(out, "\n");

	for (uint32_t i = 0; i < s->n_groups; i++)
		put_group(&s->groups[i], s->n_groups > 1, out);
	if (s->n_groups)
		sink_printf(out, "  %u process%s in it during the run\n", s->n_members,
			    s->n_members == 1 ? "" : "es");
	for (uint32_t i = 0; i < s->n_processes && i < 8; i++) {
		const struct summary_process *p = &s->processes[i];

		if (s->n_processes > 1 || s->n_groups) {
			sink_printf(out, "  %7d  ", p->pid);
			cells_name(out, p->comm ? p->comm : "?", 16, true);
		}
		if (p->ns_pid)
			sink_printf(out, "  pid %d there", p->ns_pid);
		sink_puts(out, "  ");
		cells_name(out, p->cmdline && p->cmdline[0] ? p->cmdline : p->exe, CELLS_WIDTH - 30,
			   false);
		sink_puts(out, "\n");
	}
	if (s->n_processes > 8)
		sink_printf(out, "  and %u more\n", s->n_processes - 8);
	if (s->seen_processes > 1)
		sink_printf(out, "  %s processes, %s threads\n", unit_count(s->seen_processes).s,
			    unit_count(s->seen_threads).s);
	else if (s->seen_threads > 1)
		sink_printf(out, "  %s threads\n", unit_count(s->seen_threads).s);
}

static void put_end(const struct run_summary *s, struct sink *out)
{
	static const char *const ends[] = {
		[RUN_END_DURATION] = "the time asked for is over",
		[RUN_END_SIGNAL] = "stopped by a signal",
		[RUN_END_TARGET] = "the target ended",
		[RUN_END_ERROR] = "ended early by an error",
	};

	if (s->end != RUN_END_UNKNOWN) {
		sink_printf(out, "  ended: %s", ends[s->end]);
		if (s->end_detail) {
			sink_puts(out, " (");
			cells_name(out, s->end_detail, 64, false);
			sink_puts(out, ")");
		}
		sink_puts(out, "\n");
	}
	if (s->child.known && s->child.exited)
		sink_printf(out, "  the command's exit status: %d\n", s->child.code);
	else if (s->child.known)
		sink_printf(out, "  the command was killed by signal %d (%s)\n", s->child.signal,
			    strsignal(s->child.signal));
}

static void put_time_row(struct sink *out, const char *what, int64_t ns, int64_t wall_ns)
{
	sink_puts(out, "  ");
	cells_left(out, what, CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_ns(ns).s, 10);
	cells_right(out, unit_percent(ns, wall_ns).s, 9);
	sink_puts(out, "\n");
}

static void put_time(const struct run_summary *s, struct sink *out)
{
	int64_t residual_ns =
		s->time.wall_ns - s->time.oncpu_ns - s->time.blocked_ns - s->time.runnable_ns;

	if (!s->time.known)
		return;
	cells_label(out, "Time");
	sink_printf(out, "%s of thread time\n", unit_ns(s->time.wall_ns).s);
	put_time_row(out, "on-CPU", s->time.oncpu_ns, s->time.wall_ns);
	put_time_row(out, "blocked", s->time.blocked_ns, s->time.wall_ns);
	put_time_row(out, "runnable", s->time.runnable_ns, s->time.wall_ns);
	if (residual_ns < 0) {
		sink_puts(out, "  ");
		cells_left(out, "counted twice", CELLS_LABEL_WIDTH - 2);
		cells_right(out, unit_ns(-residual_ns).s, 8);
		cells_right(out, unit_percent(-residual_ns, s->time.wall_ns).s, 9);
		sink_puts(out, "\n");
	} else {
		put_time_row(out, "not known", residual_ns, s->time.wall_ns);
	}
	if (s->time.held_ns > 0)
		sink_printf(
			out,
			"  held by memscope for %s while it put its probes in place: in no figure\n",
			unit_ns(s->time.held_ns).s);
}

/* Of one process the table would say what stands above it. */
static void put_processes(const struct run_summary *s, struct sink *out)
{
	bool inside = false, contained = false;

	if (s->n_by_process == 0 || s->seen_processes < 2)
		return;
	for (uint32_t i = 0; i < s->n_by_process; i++) {
		inside |= s->by_process[i].ns_pid != 0;
		contained |= s->by_process[i].container && *s->by_process[i].container;
	}
	cells_label(out, "Processes");
	sink_printf(out, "%s had time in the run; those with the most\n",
		    unit_count(s->seen_processes).s);
	cells_right(out, "cpu", 10);
	cells_right(out, "of a CPU", 9);
	cells_right(out, "runnable", 11);
	cells_right(out, "blocked", 11);
	cells_right(out, "pid", 9);
	if (inside)
		cells_right(out, "inside", 8);
	sink_puts(out, contained ? "  command          container\n" : "  command\n");
	for (uint32_t i = 0; i < s->n_by_process; i++) {
		const struct process_row *p = &s->by_process[i];
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)p->pid);
		cells_right(out, unit_ns(p->cpu_ns).s, 10);
		cells_right(out, unit_percent(p->cpu_ns, s->duration_ns).s, 9);
		cells_right(out, unit_ns(p->runnable_ns).s, 11);
		cells_right(out, unit_ns(p->blocked_ns).s, 11);
		cells_right(out, pid, 9);
		snprintf(pid, sizeof(pid), "%d", (int)p->ns_pid);
		if (inside)
			cells_right(out, p->ns_pid ? pid : "", 8);
		sink_puts(out, "  ");
		cells_name(out, p->comm, 16, p->container && *p->container);
		if (p->container && *p->container) {
			sink_puts(out, " ");
			cells_name(out, p->container, 24, false);
		}
		sink_puts(out, "\n");
	}
}

static void put_top(const struct run_summary *s, struct sink *out, const char *title,
		    const struct top_row *rows, uint32_t n, bool total)
{
	if (n == 0)
		return;
	cells_right(out, "self", 9);
	cells_right(out, "total", 9);
	sink_printf(out, "  %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		/* Code without image and name is no function whose callees could be summed. */
		if (total && rows[i].kind == FRAME_UNKNOWN)
			continue;
		cells_right(out, unit_percent(rows[i].self, (int64_t)s->oncpu.samples).s, 9);
		cells_right(out, unit_percent(rows[i].total, (int64_t)s->oncpu.samples).s, 9);
		sink_puts(out, "  ");
		cells_in_image(out, rows[i].name, NAME_WIDTH, rows[i].module, MODULE_WIDTH);
	}
}

static void put_few_samples(const struct run_summary *s, struct sink *out)
{
	double share = summary_cpu_share(s);
	char text[320] = "Few samples: ", used[64] = "";
	size_t len = strlen(text);

	if (!summary_few_samples(s))
		return;
	/* Two standard errors of a share of one half. */
	if (s->oncpu.samples > 0)
		len += snprintf(text + len, sizeof(text) - len,
				"a share may be off by %.0f points. ",
				ceil(100 / sqrt((double)s->oncpu.samples)));
	if (share >= 0)
		snprintf(used, sizeof(used), "The target used %.1f%% of one CPU. ", 100 * share);
	snprintf(text + len, sizeof(text) - len, "%s%s 60-120 s, or sample more often (-F 999).",
		 used, summary_is_busy(s) ? "Record longer," : "Put load on it and record");
	cells_wrapped(out, text, 2, false);
}

static void put_oncpu(const struct run_summary *s, struct sink *out)
{
	double share = summary_cpu_share(s);
	char text[256];

	if (s->oncpu.samples == 0 && !summary_few_samples(s))
		return;
	cells_label(out, "On-CPU");
	sink_printf(out, "%s samples", unit_count((int64_t)s->oncpu.samples).s);
	if (s->oncpu.hz > 0)
		sink_printf(out, " at %.0f Hz", s->oncpu.hz);
	if (s->oncpu.event)
		sink_printf(out, " (%s)", s->oncpu.event);
	if (share >= 0)
		sink_printf(out, ", %.1f%% of one CPU", 100 * share);
	sink_puts(out, "\n");
	put_few_samples(s, out);
	if (s->oncpu.probe_samples * 100 >= s->oncpu.samples && s->oncpu.probe_samples > 0) {
		snprintf(
			text, sizeof(text),
			"%s of the samples are in the traps of allocation probes: without tracing "
			"(--alloc=off) that time would not be there.",
			unit_percent((int64_t)s->oncpu.probe_samples, (int64_t)s->oncpu.samples).s);
		cells_wrapped(out, text, 2, false);
	}
	put_top(s, out, "most in itself", s->oncpu.by_self, s->oncpu.n_self, false);
	put_top(s, out, "most with what it calls", s->oncpu.by_total, s->oncpu.n_total, true);
}

static void put_wait_place(const struct site_row *w, struct sink *out)
{
	char name[80];

	snprintf(name, sizeof(name), "%.40s%s[no user stack]", w->comm ? w->comm : "",
		 w->comm && w->comm[0] ? " " : "");
	cells_in_image(out, w->function[0] ? w->function : name, 32, w->module, 14);
}

/* At most so many of each sort. */
enum { WAITS_SHOWN = 10, IDLE_SHOWN = 5 };

static void put_wait_rows(const struct run_summary *s, struct sink *out, bool idle)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];

		if (w->value < s->offcpu.waits[0].value / 10000)
			break; /* sorted: from here on hardly any */
		if (summary_wait_is_idle(s, w) != idle ||
		    shown == (idle ? IDLE_SHOWN : WAITS_SHOWN))
			continue;
		if (idle && !shown)
			sink_puts(out, "  without work, by all appearances\n");
		shown++;
		cells_right(out, unit_ns(w->value).s, 10);
		cells_right(out, unit_count(w->count).s, 12);
		sink_puts(out, "  ");
		/* A reason nobody has a word for is told by the kernel's. */
		cells_name(out,
			   w->wait == WAIT_OTHER && w->leaf[0] ? w->leaf : wait_kind_text(w->wait),
			   24, true);
		sink_puts(out, "  ");
		put_wait_place(w, out);
		if (w->high > w->low) {
			sink_printf(out, "  %10s", "");
			sink_printf(out, "  95 %%: %s", unit_ns(w->low).s);
			sink_printf(out, " to %s\n", unit_ns(w->high).s);
		}
	}
}

static void put_looks(const struct run_summary *s, struct sink *out)
{
	char text[480];

	if (!s->offcpu.sampled || !s->offcpu.busy_switches)
		return;
	snprintf(
		text, sizeof(text),
		"Stacks of %s of %s waits were looked at: threads that switch often have some looked at "
		"by chance, and the others count for the stack last seen at their place. %s were not "
		"where expected; what is estimated by those has its 95 %% interval. Times of threads "
		"are exact; --offcpu=exact looks at all.",
		unit_count(
			(int64_t)(s->offcpu.switches - s->offcpu.busy_switches + s->offcpu.looks))
			.s,
		unit_count((int64_t)s->offcpu.switches).s, unit_count((int64_t)s->offcpu.moved).s);
	cells_wrapped(out, text, 2, false);
}

static void put_thresholds(const struct run_summary *s, struct sink *out)
{
	char range[120] = "", text[300];

	if (s->offcpu.min_ns)
		snprintf(range, sizeof(range), "shorter than %s", unit_ns(s->offcpu.min_ns).s);
	if (s->offcpu.max_ns)
		snprintf(range + strlen(range), sizeof(range) - strlen(range), "%slonger than %s",
			 *range ? " or " : "", unit_ns(s->offcpu.max_ns).s);
	if (!*range)
		return;
	snprintf(text, sizeof(text),
		 "%s waits %s (%s in all) are left out of the stacks, not of the times above.",
		 unit_count((int64_t)s->offcpu.left_out).s, range,
		 unit_ns((int64_t)s->offcpu.left_out_ns).s);
	cells_wrapped(out, text, 2, false);
}

static void put_waits(const struct run_summary *s, struct sink *out)
{
	if (s->offcpu.n_waits == 0 && s->offcpu.left_out == 0)
		return;
	cells_label(out, "Blocked");
	sink_printf(out, "who waited, and for what%s\n",
		    s->offcpu.sampled ? " (sampled: estimates)" : "");
	cells_right(out, "time", 10);
	cells_right(out, "times", 12);
	sink_puts(out, "  ");
	cells_left(out, "for", 24);
	sink_puts(out, "  in\n");
	put_wait_rows(s, out, false);
	put_wait_rows(s, out, true);
	put_looks(s, out);
	put_thresholds(s, out);
}

static void put_sources(const struct run_summary *s, struct sink *out)
{
	for (uint32_t i = 0; i < s->n_sources; i++) {
		char text[512];

		if (s->sources[i].state != SOURCE_UNAVAILABLE)
			continue;
		snprintf(text, sizeof(text), "%s: %s", s->sources[i].name,
			 s->sources[i].why ? s->sources[i].why : "not available here");
		cells_labelled(out, "Missing", text);
	}
}

static void put_stacks(const struct run_summary *s, struct sink *out)
{
	bool labelled = false;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		const struct summary_stacks *k = &s->stacks[i];
		const struct {
			uint64_t n;
			const char *word;
		} verdicts[] = {
			{ k->complete, "complete" },        { k->guessed, "guessed" },
			{ k->truncated, "cut at the top" }, { k->no_table, "no table" },
			{ k->unreadable, "unreadable" },    { k->lost, "lost" },
		};
		uint64_t all = 0;
		const char *sep = "";

		for (size_t j = 0; j < sizeof(verdicts) / sizeof(verdicts[0]); j++)
			all += verdicts[j].n;
		if (all == 0)
			continue;
		if (labelled)
			cells_spaces(out, CELLS_LABEL_WIDTH);
		else
			cells_label(out, "Stacks");
		labelled = true;
		cells_left(out, k->source, 8);
		for (size_t j = 0; j < sizeof(verdicts) / sizeof(verdicts[0]); j++) {
			if (verdicts[j].n == 0)
				continue;
			sink_printf(out, "%s%s %s", sep,
				    unit_percent((int64_t)verdicts[j].n, (int64_t)all).s,
				    verdicts[j].word);
			sep = ", ";
		}
		sink_puts(out, "\n");
	}
}

/* Where they came to be so; single ones are noise. */
static void put_gaps(const struct run_summary *s, struct sink *out)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < s->n_stacks; i++) {
		const struct summary_stacks *k = &s->stacks[i];

		all += k->complete + k->truncated + k->guessed + k->no_table + k->unreadable +
		       k->lost;
	}
	for (uint32_t i = 0; i < s->n_gaps && s->gaps[i].events * 1000 >= all; i++) {
		const char *slash = strrchr(s->gaps[i].module, '/');

		cells_right(out, unit_percent((int64_t)s->gaps[i].events, (int64_t)all).s,
			    CELLS_LABEL_WIDTH + 8);
		sink_printf(out, " %s in ", s->gaps[i].verdict);
		cells_name(out, slash && slash[1] ? slash + 1 : s->gaps[i].module, 48, false);
		sink_puts(out, "\n");
	}
}

static void put_unnamed(struct sink *out, uint64_t places, const char *where)
{
	if (places == 0)
		return;
	cells_right(out, unit_count((int64_t)places).s, CELLS_LABEL_WIDTH + 8);
	sink_printf(out, " without %s\n", where);
}

static void put_symbols(const struct run_summary *s, struct sink *out)
{
	const struct summary_symbols *y = &s->symbols;
	uint64_t in_worst = 0;

	if (y->locations == 0)
		return;
	cells_label(out, "Names");
	sink_printf(out, "%s of %s places in code have one (%s)", unit_count((int64_t)y->named).s,
		    unit_count((int64_t)y->locations).s,
		    unit_percent((int64_t)y->named, (int64_t)y->locations).s);
	if (y->ranges)
		sink_printf(out, ", %s are told apart by function",
			    unit_count((int64_t)y->ranges).s);
	sink_puts(out, "\n");
	for (uint32_t i = 0; i < y->n_worst; i++) {
		const char *slash = strrchr(y->worst[i].module, '/');

		cells_right(out, unit_count((int64_t)y->worst[i].locations).s,
			    CELLS_LABEL_WIDTH + 8);
		sink_puts(out, " without in ");
		cells_name(out, slash && slash[1] ? slash + 1 : y->worst[i].module, 32, false);
		sink_printf(out, ": %s\n", y->worst[i].reason);
		in_worst += y->worst[i].locations;
		if (y->worst[i].package && y->worst[i].package[0]) {
			cells_right(out, "", CELLS_LABEL_WIDTH + 8);
			sink_puts(out, " its debug symbols: ");
			cells_name(out, y->worst[i].package, 64, false);
			sink_puts(out, "\n");
		}
	}
	if (y->ranges + y->offset_only > in_worst)
		put_unnamed(out, y->ranges + y->offset_only - in_worst, "in other images");
	put_unnamed(out, y->no_module, "in no mapping: [unknown]");
}

static void put_drops(const struct run_summary *s, struct sink *out)
{
	uint64_t lost = s->sideband_lost;

	for (uint32_t i = 0; i < s->n_drops; i++)
		lost += s->drops[i].count;
	cells_label(out, "Lost");
	if (lost == 0) {
		sink_puts(out, "nothing\n");
		return;
	}
	sink_puts(out, "by cause\n");
	for (uint32_t i = 0; i < s->n_drops; i++) {
		if (s->drops[i].count == 0)
			continue;
		cells_right(out, unit_count((int64_t)s->drops[i].count).s, 14);
		sink_puts(out, "  ");
		cells_wrapped(out, s->drops[i].help, 16, true);
	}
	if (s->sideband_lost > 0) {
		cells_right(out, unit_count((int64_t)s->sideband_lost).s, 14);
		sink_puts(out,
			  "  records of new mappings and processes (their names may be missing)\n");
	}
}

/* Only when the tables had too little room. */
static void put_unwind(const struct run_summary *s, struct sink *out)
{
	if (!s->unwind.evicted_in_use && !s->unwind.refused)
		return;
	cells_label(out, "Unwinding");
	sink_printf(out,
		    "%s for tables is too little, see --mem: %s left while in use, %s refused\n",
		    unit_bytes((int64_t)s->unwind.budget_bytes).s,
		    unit_count((int64_t)s->unwind.evicted_in_use).s,
		    unit_count((int64_t)s->unwind.refused).s);
}

static void put_files(const struct run_summary *s, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (!s->dir || !s->dir[0])
		return;
	cells_label(out, "Files");
	cells_name(out, s->dir, 4096, false);
	sink_puts(out, "/\n");
	for (uint32_t i = 0; i < s->n_files; i++)
		strbuf_printf(&b, "%s%s", i ? "  " : "", s->files[i]);
	if (b.s)
		cells_wrapped(out, b.s, CELLS_LABEL_WIDTH, false);
}

static void put_verdict(const struct run_summary *s, struct sink *out)
{
	struct verdict v;

	summary_verdict(s, &v);
	sink_puts(out, "\n");
	cells_wrapped(out, v.sentence, 0, false);
	if (v.next[0]) {
		sink_puts(out, "Next: ");
		cells_wrapped(out, v.next, 6, true);
	}
}

void summary_text_write(const struct run_summary *s, struct sink *out)
{
	put_target(s, out);
	put_end(s, out);
	put_time(s, out);
	put_processes(s, out);
	put_oncpu(s, out);
	put_waits(s, out);
	summary_put_alloc(s, out);
	summary_put_growth(s, out);
	summary_put_rss(s, out);
	summary_put_ledger(s, out);
	summary_put_diagnoses(s, out);
	put_sources(s, out);
	put_stacks(s, out);
	put_gaps(s, out);
	put_symbols(s, out);
	put_drops(s, out);
	put_unwind(s, out);
	summary_put_cost(s, out);
	for (uint32_t i = 0; i < s->n_notes; i++)
		cells_labelled(out, "Note", s->notes[i]);
	put_files(s, out);
	put_verdict(s, out);
}
