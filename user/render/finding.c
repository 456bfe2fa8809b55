#include "render/finding.h"

#include "base/shell_words.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "model/about.h"
#include "render/formats/text.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum {
	TEXT_COLUMNS = 1000, /* of a sentence that others wrote */
	NAME_COLUMNS = 80,   /* of a name in a table             */
	DEPTH_MAX = 32,      /* of a summary; its own has 5      */
};

/* --- the summary ------------------------------------------------------------------------------ */

static const cJSON *at(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

static const char *text_at(const cJSON *o, const char *key)
{
	const cJSON *v = at(o, key);

	return cJSON_IsString(v) ? v->valuestring : "";
}

/* NAN: it is not known. */
static double number_at(const cJSON *o, const char *key)
{
	const cJSON *v = at(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static int64_t scaled_at(const cJSON *o, const char *key, double scale)
{
	double v = number_at(o, key) * scale;

	return isnan(v) ? 0 : v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

static int64_t whole_at(const cJSON *o, const char *key)
{
	return scaled_at(o, key, 1);
}

/* Of a number in KiB. */
static int64_t kb_at(const cJSON *o, const char *key)
{
	return scaled_at(o, key, 1024);
}

static bool truth_at(const cJSON *o, const char *key)
{
	return cJSON_IsTrue(at(o, key));
}

/* --- Markdown --------------------------------------------------------------------------------- */

/* Within a paragraph of ours: what others wrote is text, whatever is in it. */
static void add_text(struct strbuf *out, const char *text)
{
	text_add(out, TEXT_MARKDOWN, text, TEXT_COLUMNS);
}

static void heading(struct strbuf *out, const char *name)
{
	strbuf_printf(out, "\n## %s\n\n", name);
}

static void to_fill_in(struct strbuf *out, const char *what)
{
	strbuf_printf(out, "**To fill in:** %s\n", what);
}

/*
 * Lines in a fence are as they are; ours begin with a number or a prompt, and what others wrote has no line ends, so that
 * none closes it.
 */
static void fence(struct strbuf *out)
{
	strbuf_puts(out, "```\n");
}

static void add_name(struct strbuf *out, const char *name, const char *module)
{
	text_add(out, TEXT_PLAIN, *name ? name : "[unknown]", NAME_COLUMNS);
	if (!*module)
		return;
	strbuf_puts(out, *module == '[' ? "  " : "  [");
	text_add(out, TEXT_PLAIN, module, 40);
	strbuf_puts(out, *module == '[' ? "" : "]");
}

/* A row of a table: "   4.4%      60  dictFind  [redis]" */
static void add_row(struct strbuf *out, const char *value, int64_t part, int64_t whole,
		    const char *name, const char *module)
{
	strbuf_printf(out, "%12s %7s  ", value, unit_percent(part, whole).s);
	add_name(out, name, module);
	strbuf_putc(out, '\n');
}

typedef struct unit_text (*unit_fn)(int64_t value);

/* The largest of an array of {function, module, KEY}, in percent of `whole`. */
static void add_table(struct strbuf *out, const cJSON *rows, const char *key, unit_fn unit,
		      int64_t whole)
{
	const cJSON *row;
	int n = 0;

	fence(out);
	cJSON_ArrayForEach(row, rows)
	{
		if (n++ == FINDING_ROWS)
			break;
		add_row(out, unit(whole_at(row, key)).s, whole_at(row, key), whole,
			*text_at(row, "function") ? text_at(row, "function")
						  : "[in the kernel alone, or unknown]",
			text_at(row, "module"));
		if (truth_at(row, "idle")) {
			out->len--;
			strbuf_puts(out, "  (idle)\n");
		}
	}
	fence(out);
	if (cJSON_GetArraySize(rows) > FINDING_ROWS)
		strbuf_puts(out, "\nThe first of more rows.\n");
}

/* --- what is known ---------------------------------------------------------------------------- */

static void add_target(struct strbuf *out, const cJSON *s)
{
	const cJSON *target = at(s, "target"), *processes = at(target, "processes"),
		    *first = cJSON_GetArrayItem(processes, 0);
	int n = cJSON_GetArraySize(processes);

	if (n < 1) {
		const cJSON *group = cJSON_GetArrayItem(at(target, "groups"), 0);
		const char *name = text_at(group, "container");

		add_text(out, *name ? name : group ? text_at(group, "path") : "the host");
		return;
	}
	add_text(out, text_at(first, "comm"));
	strbuf_printf(out, " (pid %" PRId64 ")", whole_at(first, "pid"));
	if (n > 1)
		strbuf_printf(out, " and %d more", n - 1);
}

static void add_title(struct strbuf *out, const struct finding *f, const cJSON *s)
{
	const char *title = s ? text_at(s, "title") : profile_about(f->p, ABOUT_TITLE, 0);
	const char *target = s ? NULL : profile_about(f->p, ABOUT_TARGET, 0);

	strbuf_puts(out, "# Finding: ");
	if (title && *title)
		add_text(out, title);
	else if (s)
		add_target(out, s);
	else
		add_text(out, target ? target : f->of);
	strbuf_putc(out, '\n');
}

static void add_date(struct strbuf *out, const struct finding *f, const cJSON *s)
{
	int64_t ns = s ? whole_at(s, "duration_ns") : profile_get_meta(f->p)->duration_ns;
	time_t sec = s ? 0 : profile_get_meta(f->p)->time_ns / 1000000000;
	char when[64] = "";
	struct tm tm;

	heading(out, "Date");
	if (!s && sec > 0 && localtime_r(&sec, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S%z", &tm);
	if (s ? *text_at(s, "start") : *when) {
		strbuf_puts(out, "Recorded ");
		add_text(out, s ? text_at(s, "start") : when);
	} else {
		strbuf_puts(out, "Recorded at a time that is not known");
	}
	if (ns > 0)
		strbuf_printf(out, ", for %s", unit_ns(ns).s);
	if (s && *text_at(s, "version")) {
		strbuf_puts(out, ", by memscope ");
		add_text(out, text_at(s, "version"));
	}
	strbuf_puts(out, ".\n");
}

static void add_symptom(struct strbuf *out, const cJSON *s)
{
	const char *verdict = text_at(at(s, "verdict"), "sentence");

	heading(out, "Symptom");
	to_fill_in(out, "what was noticed, by whom, since when, and what it cost users.");
	if (!*verdict)
		return;
	strbuf_puts(out, "\nThe run's verdict: ");
	add_text(out, verdict);
	strbuf_putc(out, '\n');
}

/* "$ memscope diff RUN", to be copied. */
static void add_command(struct strbuf *out, const char *command, const char *of, const char *more)
{
	_cleanup_(strbuf_free) struct strbuf word = { 0 };

	shell_word_add(&word, of);
	strbuf_printf(out, "$ memscope %s", command);
	text_add(out, TEXT_PLAIN, word.s ? word.s : "", 4000);
	strbuf_printf(out, " %s\n", more);
}

static void add_commands(struct strbuf *out, const struct finding *f, const cJSON *s)
{
	const char *command = text_at(s, "command_line");

	strbuf_puts(out, "Commands:\n\n");
	fence(out);
	if (*command) {
		strbuf_puts(out, "$ ");
		text_add(out, TEXT_PLAIN, command, 4000);
		strbuf_putc(out, '\n');
	}
	add_command(out, "report", f->of, "--markdown");
	fence(out);
	if (s && !*command)
		strbuf_puts(
			out,
			"\n**To fill in:** the command that recorded it, which the run does not say.\n");
}

static void add_processes(struct strbuf *out, const cJSON *s)
{
	const cJSON *processes = at(at(s, "target"), "processes"), *p;
	int n = 0;

	cJSON_ArrayForEach(p, processes)
	{
		if (n++ == FINDING_ROWS)
			break;
		strbuf_puts(out, n == 1 ? "\nTarget:\n\n" : "");
		strbuf_printf(out, "- pid %" PRId64 ": ", whole_at(p, "pid"));
		add_text(out, *text_at(p, "cmdline") ? text_at(p, "cmdline") : text_at(p, "comm"));
		strbuf_putc(out, '\n');
	}
	if (cJSON_GetArraySize(processes) > FINDING_ROWS)
		strbuf_printf(out, "- and %d more\n", cJSON_GetArraySize(processes) - FINDING_ROWS);
}

static void add_times(struct strbuf *out, const cJSON *time)
{
	static const struct {
		const char *key, *name;
	} parts[] = { { "oncpu_ns", "on a CPU" },
		      { "blocked_ns", "blocked" },
		      { "runnable_ns", "ready, and waiting for a CPU" } };

	if (!(number_at(time, "wall_ns") > 0))
		return;
	strbuf_printf(out,
		      "\nTime of all threads, %s, measured at every switch between threads:\n\n",
		      unit_ns(whole_at(time, "wall_ns")).s);
	fence(out);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!isnan(number_at(time, parts[i].key)))
			add_row(out, unit_ns(whole_at(time, parts[i].key)).s,
				whole_at(time, parts[i].key), whole_at(time, "wall_ns"),
				parts[i].name, "");
	fence(out);
}

static void add_oncpu(struct strbuf *out, const cJSON *o)
{
	if (!(number_at(o, "samples") > 0))
		return;
	strbuf_printf(out, "\nOn-CPU: %s samples at %" PRId64 " Hz",
		      unit_count(whole_at(o, "samples")).s, whole_at(o, "hz"));
	if (*text_at(o, "event")) {
		strbuf_puts(out, " (");
		add_text(out, text_at(o, "event"));
		strbuf_puts(out, ")");
	}
	if (number_at(o, "cpu_ns") > 0)
		strbuf_printf(out, ", of %s CPU time", unit_ns(whole_at(o, "cpu_ns")).s);
	strbuf_printf(out, ". By self%s:\n\n",
		      truth_at(o, "few_samples") ? " (few samples: shares are uncertain)" : "");
	add_table(out, at(o, "top_self"), "self", unit_count, whole_at(o, "samples"));
}

static void add_waits(struct strbuf *out, const cJSON *o, const cJSON *time)
{
	const cJSON *waits = at(o, "waits");
	int64_t blocked = whole_at(time, "blocked_ns");

	if (cJSON_GetArraySize(waits) < 1)
		return;
	strbuf_puts(out, "\nBlocked: times measured at every switch");
	if (truth_at(o, "sampled"))
		strbuf_printf(out, "; stacks of %s of %s waits of threads that switch often",
			      unit_count(whole_at(o, "stacks_sampled")).s,
			      unit_count(whole_at(o, "wait_sampler_switches")).s);
	strbuf_puts(out, ". By wait site, idle threads included:\n\n");
	add_table(out, waits, "blocked_ns", unit_ns, blocked);
}

static void add_memory(struct strbuf *out, const cJSON *s)
{
	const cJSON *rss = at(s, "rss"), *memory = at(s, "memory");

	if (isnan(number_at(rss, "last_kb")))
		return;
	strbuf_printf(out, "\nMemory, read from /proc: RSS %s at first, ",
		      unit_bytes(kb_at(rss, "first_kb")).s);
	strbuf_printf(out, "%s at the end, ", unit_bytes(kb_at(rss, "last_kb")).s);
	strbuf_printf(out, "peak %s", unit_bytes(kb_at(rss, "peak_kb")).s);
	if (strcmp(text_at(memory, "trend_shape"), "short") == 0) {
		strbuf_puts(out, "; the run is too short for a trend");
	} else if (*text_at(memory, "trend_shape")) {
		strbuf_puts(out, "; trend of private memory: ");
		add_text(out, text_at(memory, "trend_shape"));
	}
	strbuf_puts(out, ".\n");
}

static void add_alloc(struct strbuf *out, const cJSON *a)
{
	const cJSON *i = at(a, "bytes_interval");
	const char *tier = text_at(a, "tier");
	bool bursts = strcmp(tier, "bursts") == 0, sampled = strcmp(tier, "sampled") == 0;

	if (cJSON_GetArraySize(at(a, "sites")) < 1)
		return;
	strbuf_printf(out, "\nAllocations: %s", unit_bytes(whole_at(a, "bytes")).s);
	if (!isnan(number_at(i, "low")))
		strbuf_printf(out, " (95 %% interval %s)",
			      unit_bytes_range(whole_at(i, "low"), whole_at(i, "high"), false).s);
	if (bursts)
		strbuf_printf(out, ", estimated from %s calls seen in %" PRId64 " bursts",
			      unit_count(whole_at(at(a, "bursts"), "seen_calls")).s,
			      whole_at(at(a, "bursts"), "bursts"));
	else if (sampled)
		strbuf_printf(out, ", estimated from samples, one per %s on average",
			      unit_bytes(whole_at(a, "rate")).s);
	else
		strbuf_puts(out, ", every call counted");
	strbuf_puts(out, ". By site:\n\n");
	add_table(out, at(a, "sites"), "bytes", unit_bytes, whole_at(a, "bytes"));
	if (cJSON_GetArraySize(at(a, "live_sites")) < 1 || !(number_at(a, "live_bytes") > 0))
		return;
	strbuf_printf(out, "\nStill in use at the end, %s:\n\n",
		      unit_bytes(whole_at(a, "live_bytes")).s);
	add_table(out, at(a, "live_sites"), "bytes", unit_bytes, whole_at(a, "live_bytes"));
}

static void add_growth(struct strbuf *out, const cJSON *g)
{
	const cJSON *resident = at(g, "resident"), *kind;
	double sum = 0;

	if (cJSON_GetArraySize(at(g, "sites")) < 1)
		return;
	cJSON_ArrayForEach(kind, resident) sum += cJSON_IsNumber(kind) ? kind->valuedouble : 0;
	strbuf_printf(
		out,
		"\nMemory that became resident, %s, from %s samples of page faults. First touched by:\n\n",
		unit_bytes(sum < 0x1p62 ? (int64_t)sum : INT64_MAX).s,
		unit_count(whole_at(g, "samples")).s);
	add_table(out, at(g, "sites"), "bytes", unit_bytes,
		  sum < 0x1p62 ? (int64_t)sum : INT64_MAX);
}

/* What may be wrong with the figures. */
static void add_losses(struct strbuf *out, const cJSON *s)
{
	const cJSON *row, *symbols = at(s, "symbols"), *sources = at(s, "sources");
	uint32_t n = 0;

	strbuf_puts(out, "\nWhat was lost or not measured:\n\n");
	cJSON_ArrayForEach(row, at(s, "drops"))
	{
		if (!(number_at(row, "count") > 0))
			continue;
		strbuf_printf(out, "- %s: ", unit_count(whole_at(row, "count")).s);
		add_text(out, text_at(row, "help"));
		strbuf_putc(out, '\n');
		n++;
	}
	cJSON_ArrayForEach(row, at(s, "stacks"))
	{
		double all = 0;
		static const char *const verdicts[] = { "complete", "truncated",  "guessed",
							"no_table", "unreadable", "lost" };

		for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++)
			all += fmax(0, number_at(row, verdicts[i]));
		if (!(all > number_at(row, "complete")))
			continue;
		strbuf_puts(out, "- stacks, ");
		add_text(out, text_at(row, "source"));
		strbuf_printf(out, ": %s of %s complete\n", unit_count(whole_at(row, "complete")).s,
			      unit_count((int64_t)fmin(all, 0x1p62)).s);
		n++;
	}
	if (number_at(symbols, "locations") > number_at(symbols, "symbolized")) {
		strbuf_printf(out, "- symbols: %s of %s locations\n",
			      unit_count(whole_at(symbols, "symbolized")).s,
			      unit_count(whole_at(symbols, "locations")).s);
		n++;
	}
	cJSON_ArrayForEach(row, sources)
	{
		if (strcmp(text_at(row, "state"), "unavailable") != 0 || !row->string)
			continue;
		strbuf_puts(out, "- not available: ");
		add_text(out, row->string);
		strbuf_puts(out, *text_at(row, "why") ? ": " : "");
		add_text(out, text_at(row, "why"));
		strbuf_putc(out, '\n');
		n++;
	}
	cJSON_ArrayForEach(row, at(s, "notes"))
	{
		if (!cJSON_IsString(row))
			continue;
		strbuf_puts(out, "- note: ");
		add_text(out, row->valuestring);
		strbuf_putc(out, '\n');
		n++;
	}
	if (!n)
		strbuf_puts(out, "- nothing\n");
}

static void add_cost(struct strbuf *out, const cJSON *cost)
{
	if (isnan(number_at(cost, "profiled_percent")))
		return;
	strbuf_printf(out, "\nMeasuring cost the target %.2g %% of one CPU",
		      number_at(cost, "profiled_percent"));
	if (number_at(cost, "limit_percent") > 0)
		strbuf_printf(out, " (limit %.3g %%)", number_at(cost, "limit_percent"));
	strbuf_puts(out, ".\n");
}

/* Of a profile alone: its functions. */
static void add_profile(struct strbuf *out, const struct finding *f)
{
	int64_t total = profile_total(f->p, f->shown.type);
	const char *estimate = profile_about(f->p, ABOUT_ESTIMATE, 0);

	strbuf_puts(out, "\nProfile, ");
	add_text(out, f->shown.title);
	strbuf_printf(out, ": %s in all", shown_text(&f->shown, NULL, total).s);
	if (estimate) {
		strbuf_puts(out, "; estimated: ");
		add_text(out, estimate);
	}
	strbuf_puts(out, ". By self:\n\n");
	fence(out);
	for (uint32_t i = 0; i < f->n_rows; i++)
		add_row(out, shown_text(&f->shown, NULL, f->rows[i].self).s, f->rows[i].self, total,
			f->rows[i].name, f->rows[i].module);
	fence(out);
}

static void add_investigation(struct strbuf *out, const struct finding *f, const cJSON *s)
{
	heading(out, "Investigation");
	add_commands(out, f, s);
	if (!s) {
		add_profile(out, f);
		return;
	}
	add_processes(out, s);
	add_times(out, at(s, "time"));
	add_oncpu(out, at(s, "oncpu"));
	add_waits(out, at(s, "offcpu"), at(s, "time"));
	add_memory(out, s);
	add_alloc(out, at(s, "alloc"));
	add_growth(out, at(s, "growth"));
	add_losses(out, s);
	add_cost(out, at(s, "cost"));
}

static void add_cause(struct strbuf *out, const cJSON *s)
{
	const char *next = text_at(at(s, "verdict"), "next");
	const cJSON *row;

	heading(out, "Root cause");
	cJSON_ArrayForEach(row, at(s, "diagnoses"))
	{
		strbuf_puts(out, "Diagnosis, ");
		add_text(out, text_at(row, "kind"));
		strbuf_puts(out, ": ");
		add_text(out, text_at(row, "evidence"));
		strbuf_puts(out, ".\n\n");
	}
	if (*next) {
		strbuf_puts(out, "Next step that the run names: ");
		add_text(out, next);
		strbuf_puts(out, "\n\n");
	}
	to_fill_in(
		out,
		"the cause, and what shows that it is the cause: an experiment, or code that explains the figures.");
}

static void add_end(struct strbuf *out, const struct finding *f)
{
	heading(out, "Fix");
	to_fill_in(out,
		   "what was changed, where (commit, configuration), and when it was deployed.");
	heading(out, "Result");
	to_fill_in(
		out,
		"the same figures after the fix, recorded under the same load; AFTER stands for that run.");
	strbuf_putc(out, '\n');
	fence(out);
	add_command(out, "diff", f->of, "AFTER");
	fence(out);
}

/* cJSON gives up far deeper than a summary is. */
static bool too_deep(const cJSON *o, int depth)
{
	const cJSON *item;

	if (depth > DEPTH_MAX)
		return true;
	cJSON_ArrayForEach(item, o) if (too_deep(item, depth + 1)) return true;
	return false;
}

int finding_write(const struct finding *f, struct sink *out, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	cJSON *s = NULL;

	if (f->summary.len) {
		s = cJSON_ParseWithLength((const char *)f->summary.data, f->summary.len);
		if (!cJSON_IsObject(s) || !cJSON_IsObject(at(s, "verdict")) || too_deep(s, 0)) {
			cJSON_Delete(s);
			return err_set(e, -EBADMSG,
				       "%s: its summary.json is not the summary of a run", f->of);
		}
	}
	add_title(&text, f, s);
	add_date(&text, f, s);
	add_symptom(&text, s);
	add_investigation(&text, f, s);
	add_cause(&text, s);
	add_end(&text, f);
	cJSON_Delete(s);
	if (strbuf_oom(&text))
		return err_set(e, -ENOMEM, "out of memory for a finding");
	sink_write(out, text.s, text.len);
	return 0;
}
