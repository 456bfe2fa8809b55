#include "render/summary_text.h"

#include "base/strbuf.h"
#include "base/units.h"
#include "render/code_name.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WIDTH        98
#define NAME_WIDTH   50
#define MODULE_WIDTH 24
#define LABEL_WIDTH  13 /* of the words at the left edge */

/* --- cells: text in columns, counted in characters, not in bytes
 * --------------------------------- */

static size_t count_chars(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* The byte position of character `n`. */
static size_t char_at(const char *s, size_t n)
{
	size_t i = 0;

	for (; s[i]; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	return i;
}

/*
 * A name that others chose: clean, without parameters where they do not fit, and cut in the middle
 * to at most `width` characters.
 */
static void fit(struct strbuf *b, const char *name, size_t width)
{
	_cleanup_(strbuf_free) struct strbuf whole = { 0 }, clean = { 0 };
	size_t chars, head;

	strbuf_add_clean(&whole, name, strlen(name));
	code_name_shorten(&clean, whole.s ? whole.s : "", width);
	if (!clean.s)
		return;
	chars = count_chars(clean.s);
	if (chars <= width) {
		strbuf_puts(b, clean.s);
		return;
	}
	head = (width - 1) / 2;
	strbuf_add(b, clean.s, char_at(clean.s, head));
	strbuf_puts(b, "…");
	strbuf_puts(b, clean.s + char_at(clean.s, chars - (width - 1 - head)));
}

static void spaces(struct sink *out, size_t n)
{
	while (n-- > 0)
		sink_write(out, " ", 1);
}

static void put_right(struct sink *out, const char *text, size_t width)
{
	size_t n = count_chars(text);

	spaces(out, n < width ? width - n : 0);
	sink_puts(out, text);
}

static void put_left(struct sink *out, const char *text, size_t width)
{
	size_t n = count_chars(text);

	sink_puts(out, text);
	spaces(out, n < width ? width - n : 0);
}

static void put_name(struct sink *out, const char *name, size_t width, bool pad)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	fit(&b, name ? name : "", width);
	put_left(out, b.s ? b.s : "", pad ? width : 0);
}

/* A function and its image, to the end of the line. */
static void put_in_image(struct sink *out, const char *name, size_t name_width, const char *module,
			 size_t module_width)
{
	bool has_module = module && module[0];

	put_name(out, name, name_width, has_module);
	if (has_module) {
		sink_puts(out, "  ");
		put_name(out, module, module_width, false);
	}
	sink_puts(out, "\n");
}

/* A sentence, broken between words, its lines indented. Names in it are cleaned. */
static void put_wrapped(struct sink *out, const char *text, size_t indent, bool hang)
{
	_cleanup_(strbuf_free) struct strbuf clean = { 0 };
	size_t column = indent;
	const char *word;

	strbuf_add_clean(&clean, text, strlen(text));
	if (!clean.s)
		return;
	if (!hang)
		spaces(out, indent);
	for (word = clean.s; *word;) {
		size_t bytes = strcspn(word, " ");
		char saved = word[bytes];
		size_t chars;

		((char *)word)[bytes] = '\0';
		chars = count_chars(word);
		if (column > indent && column + 1 + chars > WIDTH) {
			sink_puts(out, "\n");
			spaces(out, indent);
			column = indent;
		} else if (column > indent) {
			sink_puts(out, " ");
			column++;
		}
		sink_puts(out, word);
		column += chars;
		((char *)word)[bytes] = saved;
		word += bytes;
		word += strspn(word, " ");
	}
	sink_puts(out, "\n");
}

/* A word at the left edge; what follows on the line begins in one column for all of them. */
static void put_label(struct sink *out, const char *label)
{
	sink_puts(out, "\n");
	put_left(out, label, LABEL_WIDTH);
}

static void put_labelled(struct sink *out, const char *label, const char *sentence)
{
	put_label(out, label);
	put_wrapped(out, sentence, LABEL_WIDTH, true);
}

/* --- sections
 * -------------------------------------------------------------------------------------- */

static void put_target(const struct run_summary *s, struct sink *out)
{
	char when[32] = "";
	time_t sec = s->start_ns / 1000000000;
	struct tm tm;

	if (s->target == RUN_HOST)
		sink_puts(out, "whole host");
	else if (s->n_processes > 1)
		sink_printf(out, "%u processes", s->n_processes);
	else if (s->n_processes == 1) {
		put_name(out, s->processes[0].comm ? s->processes[0].comm : "?", 32, false);
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

	for (uint32_t i = 0; i < s->n_processes && i < 8; i++) {
		const struct summary_process *p = &s->processes[i];

		if (s->n_processes > 1) {
			sink_printf(out, "  %7d  ", p->pid);
			put_name(out, p->comm ? p->comm : "?", 16, true);
		}
		sink_puts(out, "  ");
		put_name(out, p->cmdline && p->cmdline[0] ? p->cmdline : p->exe, WIDTH - 30, false);
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
			put_name(out, s->end_detail, 64, false);
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
	put_left(out, what, LABEL_WIDTH - 2);
	put_right(out, unit_ns(ns).s, 10);
	put_right(out, unit_percent(ns, wall_ns).s, 9);
	sink_puts(out, "\n");
}

static void put_time(const struct run_summary *s, struct sink *out)
{
	int64_t residual_ns =
		s->time.wall_ns - s->time.oncpu_ns - s->time.blocked_ns - s->time.runnable_ns;

	if (!s->time.known)
		return;
	put_label(out, "Time");
	sink_printf(out, "%s of thread time\n", unit_ns(s->time.wall_ns).s);
	put_time_row(out, "on-CPU", s->time.oncpu_ns, s->time.wall_ns);
	put_time_row(out, "blocked", s->time.blocked_ns, s->time.wall_ns);
	put_time_row(out, "runnable", s->time.runnable_ns, s->time.wall_ns);
	if (residual_ns < 0) {
		sink_puts(out, "  ");
		put_left(out, "counted twice", LABEL_WIDTH - 2);
		put_right(out, unit_ns(-residual_ns).s, 8);
		put_right(out, unit_percent(-residual_ns, s->time.wall_ns).s, 9);
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
	if (s->n_by_process == 0 || s->seen_processes < 2)
		return;
	put_label(out, "Processes");
	sink_printf(out, "%s had time in the run; those with the most\n",
		    unit_count(s->seen_processes).s);
	put_right(out, "cpu", 10);
	put_right(out, "of a CPU", 9);
	put_right(out, "runnable", 11);
	put_right(out, "blocked", 11);
	put_right(out, "pid", 9);
	sink_puts(out, "  command\n");
	for (uint32_t i = 0; i < s->n_by_process; i++) {
		const struct process_row *p = &s->by_process[i];
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)p->pid);
		put_right(out, unit_ns(p->cpu_ns).s, 10);
		put_right(out, unit_percent(p->cpu_ns, s->duration_ns).s, 9);
		put_right(out, unit_ns(p->runnable_ns).s, 11);
		put_right(out, unit_ns(p->blocked_ns).s, 11);
		put_right(out, pid, 9);
		sink_puts(out, "  ");
		put_name(out, p->comm, 16, false);
		sink_puts(out, "\n");
	}
}

static void put_top(const struct run_summary *s, struct sink *out, const char *title,
		    const struct top_row *rows, uint32_t n, bool total)
{
	if (n == 0)
		return;
	put_right(out, "self", 9);
	put_right(out, "total", 9);
	sink_printf(out, "  %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		/* Code without image and name is no function whose callees could be summed. */
		if (total && rows[i].kind == FRAME_UNKNOWN)
			continue;
		put_right(out, unit_percent(rows[i].self, (int64_t)s->oncpu.samples).s, 9);
		put_right(out, unit_percent(rows[i].total, (int64_t)s->oncpu.samples).s, 9);
		sink_puts(out, "  ");
		put_in_image(out, rows[i].name, NAME_WIDTH, rows[i].module, MODULE_WIDTH);
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
	put_wrapped(out, text, 2, false);
}

static void put_oncpu(const struct run_summary *s, struct sink *out)
{
	double share = summary_cpu_share(s);
	char text[256];

	if (s->oncpu.samples == 0 && !summary_few_samples(s))
		return;
	put_label(out, "On-CPU");
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
		put_wrapped(out, text, 2, false);
	}
	put_top(s, out, "most in itself", s->oncpu.by_self, s->oncpu.n_self, false);
	put_top(s, out, "most with what it calls", s->oncpu.by_total, s->oncpu.n_total, true);
}

static void put_wait_place(const struct site_row *w, struct sink *out)
{
	char name[80];

	snprintf(name, sizeof(name), "%.40s%s[no user stack]", w->comm ? w->comm : "",
		 w->comm && w->comm[0] ? " " : "");
	put_in_image(out, w->function[0] ? w->function : name, 32, w->module, 14);
}

static void put_waits(const struct run_summary *s, struct sink *out)
{
	if (s->offcpu.n_waits == 0)
		return;
	put_label(out, "Blocked");
	sink_printf(out, "who waited, and for what%s\n", s->offcpu.sampled ? " (estimates)" : "");
	put_right(out, "time", 10);
	put_right(out, "times", 12);
	sink_puts(out, "  ");
	put_left(out, "for", 24);
	sink_puts(out, "  in\n");
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];

		if (w->value < s->offcpu.waits[0].value / 10000)
			break; /* sorted: from here on hardly any */
		put_right(out, unit_ns(w->value).s, 10);
		put_right(out, unit_count(w->count).s, 12);
		sink_puts(out, "  ");
		/* A reason nobody has a word for is told by the kernel's. */
		put_name(out,
			 w->wait == WAIT_OTHER && w->leaf[0] ? w->leaf : wait_kind_text(w->wait),
			 24, true);
		sink_puts(out, "  ");
		put_wait_place(w, out);
	}
}

static void put_sites(struct sink *out, const char *title, const struct site_row *rows, uint32_t n,
		      uint64_t whole)
{
	if (n == 0)
		return;
	put_right(out, "bytes", 12);
	put_right(out, "blocks", 14);
	sink_printf(out, "         %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		put_right(out, unit_bytes(rows[i].value).s, 12);
		put_right(out, unit_count(rows[i].count).s, 14);
		put_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 7);
		sink_puts(out, "  ");
		put_in_image(out, rows[i].function[0] ? rows[i].function : "[unknown]", 42,
			     rows[i].module, 18);
	}
}

static void put_alloc_row(struct sink *out, const char *what, uint64_t bytes, uint64_t objects)
{
	sink_puts(out, "  ");
	put_left(out, what, LABEL_WIDTH - 2);
	put_right(out, unit_bytes((int64_t)bytes).s, 12);
	put_right(out, unit_count((int64_t)objects).s, 14);
	sink_puts(out, " blocks\n");
}

static void put_leaks(const struct summary_alloc *a, struct sink *out)
{
	if (a->n_leaks == 0)
		return;
	put_right(out, "live", 12);
	put_right(out, "a minute", 14);
	sink_printf(out, "   kept  growing, allocated by (kept: of blocks older than %.0f s)\n",
		    a->leaks[0].age_s);
	for (uint32_t i = 0; i < a->n_leaks; i++) {
		const struct summary_leak *l = &a->leaks[i];

		put_right(out, unit_bytes(l->live).s, 12);
		put_right(out, unit_bytes((int64_t)(l->slope * 60)).s, 14);
		put_right(out, unit_percent((int64_t)(l->survived * 1000), 1000).s, 7);
		sink_puts(out, "  ");
		put_in_image(out, l->site.function[0] ? l->site.function : "[unknown]", 42,
			     l->site.module, 18);
		spaces(out, LABEL_WIDTH);
		sink_printf(out, "95 %% interval %s to %s, r2 %.3f, since second %.0f\n",
			    unit_bytes((int64_t)(l->slope_low * 60)).s,
			    unit_bytes((int64_t)(l->slope_high * 60)).s, l->r2, l->since_s);
	}
}

static void put_alloc_odds(const struct summary_alloc *a, struct sink *out)
{
	static const struct {
		size_t offset;
		const char *text;
	} odds[] = {
		{ offsetof(struct summary_alloc, failed), "calls failed (returned NULL)" },
		{ offsetof(struct summary_alloc, earlier_frees),
		  "frees of blocks from before the run" },
		{ offsetof(struct summary_alloc, inherited_frees),
		  "frees of blocks inherited by fork" },
		{ offsetof(struct summary_alloc, untracked),
		  "blocks not followed: the block table was full (live is too low by these)" },
	};

	for (size_t i = 0; i < sizeof(odds) / sizeof(odds[0]); i++) {
		uint64_t n = *(const uint64_t *)((const char *)a + odds[i].offset);

		if (n > 0)
			sink_printf(out, "  %s %s\n", unit_count((int64_t)n).s, odds[i].text);
	}
}

/* Half of the interval's width, as a share of the estimate. */
static struct unit_text plus_minus(int64_t value, int64_t low, int64_t high)
{
	struct unit_text t;

	if (high <= low)
		snprintf(t.s, sizeof(t.s), "exact");
	else
		snprintf(t.s, sizeof(t.s), "± %.40s", unit_percent((high - low) / 2, value).s);
	return t;
}

static void put_estimate(struct sink *out, const char *what, uint64_t bytes, uint64_t objects,
			 const struct summary_interval *i)
{
	sink_puts(out, "  ");
	put_left(out, what, LABEL_WIDTH - 2);
	put_right(out, unit_bytes((int64_t)bytes).s, 12);
	put_right(out, plus_minus((int64_t)bytes, i->low, i->high).s, 9);
	put_right(out, unit_count((int64_t)objects).s, 14);
	sink_printf(out, " blocks, by %s samples\n", unit_count((int64_t)i->samples).s);
}

static void put_estimated_sites(struct sink *out, const char *what, const struct site_row *rows,
				uint32_t n, uint64_t whole)
{
	if (!n)
		return;
	sink_printf(out, "       bytes       95%%  samples  share  %s\n", what);
	for (uint32_t i = 0; i < n; i++) {
		put_right(out, unit_bytes(rows[i].value).s, 12);
		put_right(out, plus_minus(rows[i].value, rows[i].low, rows[i].high).s, 10);
		put_right(out, unit_count((int64_t)rows[i].samples).s, 9);
		put_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 7);
		sink_puts(out, "  ");
		put_in_image(out, rows[i].function[0] ? rows[i].function : "[unknown]", 38,
			     rows[i].module, 18);
	}
}

static void put_sampled(const struct summary_alloc *a, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	strbuf_puts(&b, "sampled by ");
	strbuf_add_clean(&b, a->sampler, strlen(a->sampler));
	if (a->rate > 0)
		strbuf_printf(&b, ", every %s on average", unit_bytes(a->rate).s);
	strbuf_puts(&b, ": unbiased estimates, with their 95% intervals");
	if (a->covered_from_ns > 0)
		strbuf_printf(&b, "; from %s of the run", unit_ns(a->covered_from_ns).s);
	if (a->reason)
		strbuf_printf(&b, ". %s", a->reason);
	put_labelled(out, "Allocations", b.s ? b.s : "");
	put_estimate(out, "allocated", a->bytes, a->objects, &a->bytes_interval);
	put_estimate(out, "live", a->live_bytes, a->live_objects, &a->live_interval);
	if (a->earlier_frees)
		sink_printf(
			out,
			"  %s samples freed that were not followed (from before the run, a parent's, or "
			"left out)\n",
			unit_count((int64_t)a->earlier_frees).s);
	if (a->untracked)
		sink_printf(out, "  %s samples not followed: no room (live is too low by these)\n",
			    unit_count((int64_t)a->untracked).s);
	put_estimated_sites(out, "allocated by", a->sites, a->n_sites, a->bytes);
	put_estimated_sites(out, "live, allocated by", a->live_sites, a->n_live_sites,
			    a->live_bytes);
}

static void put_alloc(const struct run_summary *s, struct sink *out)
{
	const struct summary_alloc *a = &s->alloc;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (a->tier == ALLOC_TIER_SAMPLED) {
		put_sampled(a, out);
		return;
	}
	if (a->tier != ALLOC_TIER_EXACT) {
		if (a->reason)
			put_labelled(out, "Allocations", a->reason);
		return;
	}
	strbuf_puts(&b, "every call");
	if (a->covered_to_ns > a->covered_from_ns)
		strbuf_printf(&b, " from %s to %s of the run", unit_ns(a->covered_from_ns).s,
			      unit_ns(a->covered_to_ns).s);
	if (a->calls_per_s > 0)
		strbuf_printf(&b, ", %s a second", unit_count((int64_t)a->calls_per_s).s);
	if (a->cost_percent > 0)
		strbuf_printf(&b, "; tracing cost about %.1f%% of one CPU", a->cost_percent);
	if (a->reason)
		strbuf_printf(&b, "; %s", a->reason);
	put_labelled(out, "Allocations", b.s ? b.s : "");
	put_alloc_row(out, "allocated", a->bytes, a->objects);
	put_alloc_row(out, "freed", a->freed_bytes, a->freed_objects);
	put_alloc_row(out, "live", a->live_bytes, a->live_objects);
	put_alloc_odds(a, out);
	put_sites(out, "allocated by", a->sites, a->n_sites, a->bytes);
	put_sites(out, "live, allocated by", a->live_sites, a->n_live_sites, a->live_bytes);
	put_leaks(a, out);
}

/* Two verdicts, kept apart: of all points, and of two. */
static void put_course(const struct run_summary *s, struct sink *out)
{
	char reason[256], line[320];

	if (s->course.kind == COURSE_SHORT)
		return;
	course_reason(&s->course, reason, sizeof(reason));
	snprintf(line, sizeof(line), "%s: %s", course_name(s->course.kind), reason);
	spaces(out, LABEL_WIDTH);
	put_wrapped(out, line, LABEL_WIDTH, true);
	spaces(out, LABEL_WIDTH);
	sink_printf(out, "plain rule: %s: RSS %+.1f%% from first to last\n",
		    plain_words(s->plain.kind), s->plain.percent);
}

static uint64_t growth_sum(const uint64_t bytes[N_GROWTH_KINDS])
{
	return bytes[GROWTH_FILE] + bytes[GROWTH_ANON] + bytes[GROWTH_SHARED];
}

static void put_growth_sites(struct sink *out, const char *title, const struct site_row *rows,
			     uint32_t n, uint64_t whole)
{
	if (n == 0)
		return;
	put_right(out, "bytes", 12);
	sink_printf(out, "         %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		const char *name = rows[i].function[0] ? rows[i].function
				   : rows[i].leaf[0]   ? rows[i].leaf
						       : "[unknown]";

		put_right(out, unit_bytes(rows[i].value).s, 12);
		put_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 7);
		sink_puts(out, "  ");
		put_in_image(out, name, 48, rows[i].module, MODULE_WIDTH);
	}
}

static struct unit_text signed_bytes(int64_t bytes)
{
	struct unit_text t = unit_bytes(bytes < 0 ? -bytes : bytes);

	memmove(t.s + 1, t.s, sizeof(t.s) - 2);
	t.s[0] = bytes < 0 ? '-' : '+';
	return t;
}

static void put_growth_check(const struct summary_growth *g, struct sink *out)
{
	int64_t more = g->check.rss_bytes - g->check.told_bytes;

	if (g->check.processes == 0)
		return;
	sink_printf(out, "  RSS changed by %s", signed_bytes(g->check.rss_bytes).s);
	if (more == 0)
		sink_puts(out, ", all of it told by the kernel's events\n");
	else
		sink_printf(out, ", which is %s %s than the kernel's events tell\n",
			    unit_bytes(more < 0 ? -more : more).s, more < 0 ? "less" : "more");
}

static void put_growth(const struct run_summary *s, struct sink *out)
{
	static const char *const kinds[N_GROWTH_KINDS] = {
		[GROWTH_ANON] = "anonymous",
		[GROWTH_FILE] = "of files",
		[GROWTH_SHARED] = "shared",
	};
	const struct summary_growth *g = &s->growth;
	uint64_t resident = growth_sum(g->resident_bytes), returned = growth_sum(g->returned_bytes);

	if (!g->known || resident + returned == 0)
		return;
	put_label(out, "Growth");
	sink_printf(out, "%s became resident, %s was given back", unit_bytes((int64_t)resident).s,
		    unit_bytes((int64_t)returned).s);
	if (g->made_bytes == 0 && g->ended_bytes == 0)
		sink_printf(out, " (%s)", signed_bytes((int64_t)(resident - returned)).s);
	sink_puts(out, "\n");
	for (int i = 0; i < N_GROWTH_KINDS; i++) {
		if (g->resident_bytes[i] + g->returned_bytes[i] == 0)
			continue;
		sink_puts(out, "  ");
		put_left(out, kinds[i], LABEL_WIDTH - 2);
		put_right(out, signed_bytes((int64_t)g->resident_bytes[i]).s, 12);
		put_right(out, signed_bytes(-(int64_t)g->returned_bytes[i]).s, 14);
		sink_puts(out, "\n");
	}
	put_growth_check(g, out);
	if (g->made_bytes > 0 || g->ended_bytes > 0)
		sink_printf(out,
			    "  besides, forks and execs made %s, and %s went with what ended\n",
			    unit_bytes((int64_t)g->made_bytes).s,
			    unit_bytes(g->ended_bytes > 0 ? g->ended_bytes : 0).s);
	put_growth_sites(out, "made resident by", g->sites, g->n_sites, g->on_stacks);
	put_growth_sites(out, "given back by", g->returned_sites, g->n_returned_sites,
			 g->returned_on_stacks);
}

static void put_rss(const struct run_summary *s, struct sink *out)
{
	int64_t grown_kb = s->rss.last_kb - s->rss.first_kb;

	if (!s->rss.known || s->rss.first_kb < 0 || s->rss.last_kb < 0)
		return;
	put_label(out, "Memory");
	sink_printf(out, "RSS %s at first, %s at last (%s%s)", unit_bytes(s->rss.first_kb * 1024).s,
		    unit_bytes(s->rss.last_kb * 1024).s, grown_kb < 0 ? "-" : "+",
		    unit_bytes((grown_kb < 0 ? -grown_kb : grown_kb) * 1024).s);
	if (s->rss.peak_kb >= 0)
		sink_printf(out, ", peak %s", unit_bytes(s->rss.peak_kb * 1024).s);
	sink_puts(out, "\n");
	if (s->rss.shared) {
		spaces(out, LABEL_WIDTH);
		sink_puts(out, "a page that several processes share counts in each\n");
	}
	if (s->memory.known) {
		spaces(out, LABEL_WIDTH);
		sink_printf(out, "its own (anonymous and swap) %s %s, %s at last\n",
			    unit_bytes(s->memory.base * 1024).s,
			    s->memory.from_quarter ? "after a quarter of the run" : "at first",
			    unit_bytes(s->memory.last * 1024).s);
	}
	put_course(s, out);
}

static void put_sources(const struct run_summary *s, struct sink *out)
{
	for (uint32_t i = 0; i < s->n_sources; i++) {
		char text[512];

		if (s->sources[i].state != SOURCE_UNAVAILABLE)
			continue;
		snprintf(text, sizeof(text), "%s: %s", s->sources[i].name,
			 s->sources[i].why ? s->sources[i].why : "not available here");
		put_labelled(out, "Missing", text);
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
			spaces(out, LABEL_WIDTH);
		else
			put_label(out, "Stacks");
		labelled = true;
		put_left(out, k->source, 8);
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

		put_right(out, unit_percent((int64_t)s->gaps[i].events, (int64_t)all).s,
			  LABEL_WIDTH + 8);
		sink_printf(out, " %s in ", s->gaps[i].verdict);
		put_name(out, slash && slash[1] ? slash + 1 : s->gaps[i].module, 48, false);
		sink_puts(out, "\n");
	}
}

static void put_unnamed(struct sink *out, uint64_t places, const char *where)
{
	if (places == 0)
		return;
	put_right(out, unit_count((int64_t)places).s, LABEL_WIDTH + 8);
	sink_printf(out, " without %s\n", where);
}

static void put_symbols(const struct run_summary *s, struct sink *out)
{
	const struct summary_symbols *y = &s->symbols;
	uint64_t in_worst = 0;

	if (y->locations == 0)
		return;
	put_label(out, "Names");
	sink_printf(out, "%s of %s places in code have one (%s)", unit_count((int64_t)y->named).s,
		    unit_count((int64_t)y->locations).s,
		    unit_percent((int64_t)y->named, (int64_t)y->locations).s);
	if (y->ranges)
		sink_printf(out, ", %s are told apart by function",
			    unit_count((int64_t)y->ranges).s);
	sink_puts(out, "\n");
	for (uint32_t i = 0; i < y->n_worst; i++) {
		const char *slash = strrchr(y->worst[i].module, '/');

		put_right(out, unit_count((int64_t)y->worst[i].locations).s, LABEL_WIDTH + 8);
		sink_puts(out, " without in ");
		put_name(out, slash && slash[1] ? slash + 1 : y->worst[i].module, 32, false);
		sink_printf(out, ": %s\n", y->worst[i].reason);
		in_worst += y->worst[i].locations;
		if (y->worst[i].package && y->worst[i].package[0]) {
			put_right(out, "", LABEL_WIDTH + 8);
			sink_puts(out, " its debug symbols: ");
			put_name(out, y->worst[i].package, 64, false);
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
	put_label(out, "Lost");
	if (lost == 0) {
		sink_puts(out, "nothing\n");
		return;
	}
	sink_puts(out, "by cause\n");
	for (uint32_t i = 0; i < s->n_drops; i++) {
		if (s->drops[i].count == 0)
			continue;
		put_right(out, unit_count((int64_t)s->drops[i].count).s, 14);
		sink_puts(out, "  ");
		put_wrapped(out, s->drops[i].help, 16, true);
	}
	if (s->sideband_lost > 0) {
		put_right(out, unit_count((int64_t)s->sideband_lost).s, 14);
		sink_puts(out,
			  "  records of new mappings and processes (their names may be missing)\n");
	}
}

static void put_own(const struct run_summary *s, struct sink *out)
{
	if (s->own.cpu_ns == 0 && s->own.rss_kb == 0)
		return;
	put_label(out, "Own cost");
	sink_printf(out, "%s of CPU (%s of the run), %s resident", unit_ns(s->own.cpu_ns).s,
		    unit_percent(s->own.cpu_ns, s->duration_ns).s,
		    unit_bytes(s->own.rss_kb * 1024).s);
	if (s->own.map_bytes > 0)
		sink_printf(out, ", %s in the kernel", unit_bytes(s->own.map_bytes).s);
	sink_puts(out, "\n");
}

/* Only when the tables had too little room. */
static void put_unwind(const struct run_summary *s, struct sink *out)
{
	if (!s->unwind.evicted_in_use && !s->unwind.refused)
		return;
	put_label(out, "Unwinding");
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
	put_label(out, "Files");
	put_name(out, s->dir, 4096, false);
	sink_puts(out, "/\n");
	for (uint32_t i = 0; i < s->n_files; i++)
		strbuf_printf(&b, "%s%s", i ? "  " : "", s->files[i]);
	if (b.s)
		put_wrapped(out, b.s, LABEL_WIDTH, false);
}

static void put_verdict(const struct run_summary *s, struct sink *out)
{
	struct verdict v;

	summary_verdict(s, &v);
	sink_puts(out, "\n");
	put_wrapped(out, v.sentence, 0, false);
	if (v.next[0]) {
		sink_puts(out, "Next: ");
		put_wrapped(out, v.next, 6, true);
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
	put_alloc(s, out);
	put_growth(s, out);
	put_rss(s, out);
	put_sources(s, out);
	put_stacks(s, out);
	put_gaps(s, out);
	put_symbols(s, out);
	put_drops(s, out);
	put_unwind(s, out);
	put_own(s, out);
	for (uint32_t i = 0; i < s->n_notes; i++)
		put_labelled(out, "Note", s->notes[i]);
	put_files(s, out);
	put_verdict(s, out);
}
