/* memscope diff: profiles or runs before and after, one of each or several. */
#include "analyse/series.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/diff_write.h"
#include "cmd/inputs.h"
#include "cmd/inputs_list.h"
#include "cmd/outputs.h"
#include "collect/session/sources.h"
#include "import/run_scalars.h"
#include "render/formats/text.h"
#include "render/tables/diff_report.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

struct diff_args {
	struct input_args in;
	const char *output, *value;
	int by, format;
	uint32_t rows, width;
	double least;
	bool normalize, rate, absolute, json, inverted, no_comm;
};

#define AT(field) offsetof(struct diff_args, field)

static const struct opt rows[] = {
	{ "Output", .kind = OPT_HEADING },
	{ "output", 'o', OPT_STRING, "FILE", AT(output),
	  .help = "besides, write the difference to FILE, its ending says how: .svg (a flame graph of "
		  "both), .csv (a table), .folded (two counts a line), .pb.gz (after minus before); of "
		  "two runs one for each source, FILE-SOURCE" },
	{ "format", 0, OPT_CHOICE, "FORMAT", AT(format), .choices = FORMAT_CHOICES,
	  .help = "write this format, whatever the ending" },
	{ "json", 0, OPT_FLAG, NULL, AT(json), .help = "print JSON" },
	{ "rows", 'n', OPT_U32, "N", AT(rows), 1, 1000000, .help = "lines of each table (20)" },
	{ "by", 0, OPT_CHOICE, NULL, AT(by), .choices = "function|stack",
	  .help = "compare functions, or whole stacks (function)" },
	{ "inverted", 'i', OPT_FLAG, NULL, AT(inverted), .help = "picture: root at the top" },
	{ "width", 0, OPT_U32, "PX", AT(width), 200, 20000, .help = "of the picture (1200)" },
	{ "no-comm", 0, OPT_FLAG, NULL, AT(no_comm),
	  .help = "merge processes: no process name at the root" },
	{ "What is compared", .kind = OPT_HEADING },
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "this value type: alloc_space, runnable, cpu/nanoseconds (samples, blocked time, or "
		  "what the profile names first)" },
	{ "normalize", 0, OPT_FLAG, NULL, AT(normalize),
	  .help = "compare shares: the profile before is scaled to the total of the one after" },
	{ "rate", 0, OPT_FLAG, NULL, AT(rate),
	  .help = "compare per second: it is scaled to the duration of the one after (done where durations differ by more than 5 %, but for memory in use and for runs of programs that ended by themselves)" },
	{ "absolute", 0, OPT_FLAG, NULL, AT(absolute),
	  .help = "compare sums as they are, however long each took" },
	{ "min-change", 0, OPT_DOUBLE, "PERCENT", AT(least), 0, 100,
	  .help = "what differs by less of the larger total has not changed (1)" },
	INPUT_OPTS(struct diff_args),
	{ 0 },
};

const struct opt_command diff_options = {
	.name = "diff",
	.synopsis = "[OPTION…] BEFORE AFTER | [OPTION…] BEFORE… -- AFTER…",
	.doc = "Compares two profiles of any format that flame reads, or the directories of two "
	       "runs: their figures, and every profile that both have. With several on a side each function is tested against the variation between runs. Otherwise "
	       "estimates are tested against their own noise: samples, or the variation between bursts. "
	       "A function has changed when it differs by more than chance explains, at a false discovery "
	       "rate of 1 % over all functions, and by --min-change of the total.",
	.opts = rows,
};

/* The runs of a side: each is one operand, or a directory and what is chosen of it. */
struct side {
	char **operands;
	int n; /* operands */
	uint32_t runs;
};

/* What is at hand while two things are compared. */
struct job {
	const struct diff_args *a;
	struct inputs in;
	struct side sides[2];
	char names[2][256];
	char files[2][256]; /* of the profiles being compared */
	struct sink *out;
	struct strbuf json; /* the profiles of one JSON object */
	bool several;       /* sources of two runs */
	uint32_t n_profiles;
};

static void job_fini(struct job *j)
{
	inputs_fini(&j->in);
	if (j->out)
		sink_close(j->out);
	strbuf_free(&j->json);
}

/* Standard output is for what --output says: no tables. */
static bool only_output(const struct job *j)
{
	return j->a->output && strcmp(j->a->output, "-") == 0;
}

/* --- one pair of profiles --- */

/* "x.svg", "oncpu" → "x-oncpu.svg" */
static void output_name(const struct job *j, const char *source, const char *ext, char *out,
			size_t cap)
{
	size_t len = strlen(j->a->output), n = strlen(ext);

	if (!j->several || strcmp(j->a->output, "-") == 0)
		snprintf(out, cap, "%s", j->a->output);
	else if (len < n || strcmp(j->a->output + len - n, ext) != 0)
		snprintf(out, cap, "%s-%s", j->a->output, source);
	else
		snprintf(out, cap, "%.*s-%s%s", (int)(len - strlen(ext)), j->a->output, source,
			 ext);
}

static int write_file(const struct job *j, const struct diff_report *report, struct err *e)
{
	const struct format *f = output_format(j->a->output, j->a->format, "svg", e);
	struct render_opts opts = {
		.value_type = (int)report->opts->after_type,
		.before = report->opts->before,
		.before_type = (int)report->opts->before_type,
		.before_scale = report->diff->tree_scale,
		.what = j->files[1],
		.before_what = j->files[0],
		.inverted = j->a->inverted,
		.no_comm = j->a->no_comm,
		.width = j->a->width,
	};
	char path[4096];

	if (!f)
		return -EINVAL;
	output_name(j, report->source, f->ext, path, sizeof(path));
	if (strcmp(f->name, "csv") == 0)
		return diff_write_table(report, path, e);
	if (strcmp(f->name, "pprof") == 0)
		return diff_write_profile(report->opts, path, e);
	if (strcmp(f->name, "speedscope") == 0)
		return err_set(e, -EINVAL,
			       "--output: speedscope has no form for a difference; "
			       "--json prints one");
	return output_profile(report->opts->after, path, f, &opts, e);
}

static int print(struct job *j, const struct diff_report *r, struct err *e)
{
	_cleanup_(sink_closep) struct sink *memory = NULL;
	const char *text;
	size_t len;
	int rc;

	if (only_output(j))
		return 0;
	if (!j->a->json) {
		if (j->n_profiles++)
			sink_puts(j->out, "\n");
		return diff_text_write(r, j->out, e);
	}
	rc = sink_open_memory(&memory, e);
	if (rc == 0)
		rc = diff_json_write(r, memory, e);
	if (rc == 0)
		rc = sink_commit(memory, e);
	if (rc < 0)
		return rc;
	text = sink_memory(memory, &len);
	strbuf_puts(&j->json, j->n_profiles++ ? ",\n{" : "{");
	if (r->source)
		strbuf_printf(&j->json, "\"source\":\"%s\",", r->source);
	strbuf_add(&j->json, text, len);
	strbuf_putc(&j->json, '}');
	return 0;
}

/* Which value of each: the same one. */
static int choose_types(const struct job *j, struct diff_opts *o, struct err *e)
{
	int after = j->a->value ? inputs_find_value(o->after, j->a->value) : -1, before;
	char types[2][200];

	profile_list_types(o->before, types[0], sizeof(types[0]));
	profile_list_types(o->after, types[1], sizeof(types[1]));
	if (j->a->value && after < 0)
		return err_set(e, -EINVAL, "--value: there is no %.64s in %.100s; it has %s",
			       j->a->value, j->names[1], types[1]);
	o->after_type = shown_pick(o->after, after).type;
	before = profile_same_type(o->before, profile_type(o->after, o->after_type));
	if (before < 0)
		return err_set(e, -EDOM, "%.80s and %.80s count different things: %s, and %s",
			       j->names[0], j->names[1], types[0], types[1]);
	o->before_type = (uint32_t)before;
	return 0;
}

/* More samples of a second are no more of its time. */
static void tell_rates(const struct job *j, const struct diff_opts *o)
{
	const struct profile_meta *before = profile_get_meta(o->before),
				  *after = profile_get_meta(o->after);
	struct err e;

	if (strcmp(profile_type(o->after, o->after_type)->name, "samples") != 0 ||
	    before->period <= 0 || after->period <= 0 || before->period == after->period)
		return;
	err_set(&e, 0,
		"%.100s and %.100s were sampled at different rates: counts of samples differ by that "
		"alone; --value cpu compares times, --normalize shares",
		j->names[0], j->names[1]);
	command_fail(EXIT_DONE, &e);
}

/* The profiles of a side, and their sum. */
struct side_profiles {
	struct profile **runs, *sum;
	uint32_t n;
};

static void side_profiles_fini(struct side_profiles *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->runs[i] != s->sum)
			profile_free(s->runs[i]);
	profile_free(s->sum);
	free(s->runs);
}

/* The mean of a side, in seconds; 0: not all say how long they took. */
static double mean_seconds(const struct side_profiles *side)
{
	double sum = 0;

	for (uint32_t i = 0; i < side->n; i++) {
		int64_t ns = profile_get_meta(side->runs[i])->duration_ns;

		if (ns <= 0)
			return 0;
		sum += (double)ns / 1e9 / side->n;
	}
	return sum;
}

/* Was the run whose directory this is, or which has left this file, over when its work was done? Then sums are of the same work. */
static bool ended_by_itself(const char *operand)
{
	const char *slash = strrchr(operand, '/');
	struct run_scalars run;
	char dir[4096];

	if (input_is_directory(operand))
		snprintf(dir, sizeof(dir), "%s", operand);
	else
		snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - operand) : 1,
			 slash ? operand : ".");
	return run_scalars_read(dir, &run, NULL) == 0 && run.ended_by_itself;
}

static bool any_ended_by_itself(const struct side *side)
{
	for (int i = 0; i < side->n; i++)
		if (ended_by_itself(side->operands[i]))
			return true;
	return false;
}

/* Sums of unequal lengths of time differ by that alone. What is in use at the end adds up over no time. */
static bool needs_rate(const struct job *j, const struct side_profiles sides[2],
		       const struct diff_opts *o)
{
	const char *type = profile_type(o->after, o->after_type)->name;

	if (any_ended_by_itself(&j->sides[0]) || any_ended_by_itself(&j->sides[1]))
		return false;
	return !j->a->absolute && !j->a->normalize && !j->a->rate &&
	       strncmp(type, "inuse_", 6) != 0 &&
	       diff_lengths_differ(mean_seconds(&sides[0]), mean_seconds(&sides[1]));
}

static int compare(struct job *j, const struct side_profiles sides[2], const char *source,
		   struct err *e)
{
	struct diff_opts o = {
		.before = sides[0].sum,
		.after = sides[1].sum,
		.runs = { (const struct profile *const *)sides[0].runs,
			  (const struct profile *const *)sides[1].runs },
		.n_runs = { sides[0].n, sides[1].n },
		.scale = j->a->normalize ? DIFF_TOTALS
			 : j->a->rate    ? DIFF_SECONDS
					 : DIFF_ABSOLUTE,
		.by = j->a->by == 1 ? DIFF_BY_STACK : DIFF_BY_FUNCTION,
		.least_share = j->a->least / 100,
	};
	_cleanup_(diff_fini) struct diff d = { 0 };
	struct diff_report report = {
		{ j->names[0], j->names[1] }, source, &d, &o, .rows = j->a->rows,
		.after_scalars = j->several,
	};
	int r = choose_types(j, &o, e);

	if (r < 0)
		return r;
	if (needs_rate(j, sides, &o)) {
		o.scale = DIFF_SECONDS;
		report.seconds[0] = mean_seconds(&sides[0]);
		report.seconds[1] = mean_seconds(&sides[1]);
	}
	r = diff_make(&o, &d);
	if (r == -EDOM)
		return err_set(e, -EDOM,
			       o.scale == DIFF_SECONDS
				       ? "--rate: the profiles do not all say how long they took"
				       : "--normalize: one of the profiles has a total of 0");
	if (r < 0)
		return err_set(e, r, "out of memory for a difference");
	if (o.scale == DIFF_ABSOLUTE)
		tell_rates(j, &o);
	report.shown = shown_pick(o.after, (int)o.after_type);
	r = print(j, &report, e);
	if (r == 0 && j->a->output)
		r = write_file(j, &report, e);
	return r;
}

/* One run of a side, and into its sum. */
static int read_run(struct job *j, struct side_profiles *s, char **operands, int n,
		    const char *source, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r = inputs_read(&j->in, operands, n, source, MERGE_COMMON, NULL, &p, e);

	if (r == 0)
		r = profile_merge(&s->sum, p, operands[0], MERGE_COMMON, NULL, e);
	if (r == 0)
		s->runs[s->n++] = TAKE_PTR(p);
	return r;
}

static int read_side(struct job *j, const struct side *side, const char *source,
		     struct side_profiles *s, char *file, size_t cap, struct err *e)
{
	int r = 0;

	s->runs = calloc(side->runs + 1ul, sizeof(*s->runs));
	if (!s->runs)
		return err_set(e, -ENOMEM, "out of memory");
	/* Of one there is no sum. */
	if (side->runs == 1) {
		r = inputs_read(&j->in, side->operands, side->n, source, MERGE_COMMON, NULL,
				&s->sum, e);
		if (r == 0)
			s->runs[s->n++] = s->sum;
	}
	for (int at = 0, n; side->runs > 1 && at < side->n && r == 0; at += n) {
		n = inputs_first(side->operands + at, side->n - at);
		r = read_run(j, s, side->operands + at, n, source, e);
	}
	if (r == 0 && side->runs > 1)
		snprintf(file, cap, "%u runs", side->runs);
	else
		snprintf(file, cap, "%s", j->in.name);
	return r;
}

static int compare_inputs(struct job *j, const char *source, struct err *e)
{
	struct side_profiles sides[2] = { 0 };
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++)
		r = read_side(j, &j->sides[i], source, &sides[i], j->files[i], sizeof(j->files[i]),
			      e);
	if (r == 0)
		r = compare(j, sides, source, e);
	for (int i = 0; i < 2; i++)
		side_profiles_fini(&sides[i]);
	return r;
}

/* --- directories of runs --- */

static bool has_source(const char *dir, const char *source)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.pb.gz", dir, source);
	return access(path, R_OK) == 0;
}

static bool share_source(const struct job *j, const char *source)
{
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < j->sides[i].n; k++)
			if (!has_source(j->sides[i].operands[k], source))
				return false;
	return true;
}

/* Are all operands directories of runs? */
static bool are_runs(const struct job *j)
{
	for (int i = 0; i < 2; i++) {
		if (j->sides[i].runs != (uint32_t)j->sides[i].n)
			return false;
		for (int k = 0; k < j->sides[i].n; k++)
			if (!input_is_directory(j->sides[i].operands[k]))
				return false;
	}
	for (int i = 0; i < N_PROFILE_KINDS; i++)
		if (share_source(j, profile_rows[i].name))
			return true;
	return false;
}

/* The mean of the runs of a side, and its 95 % interval by their variation; of one, what it says itself. */
static void mean_scalar(const struct run_scalars *runs, uint32_t n, int k, int side,
			struct diff_scalar *to)
{
	double mean = 0, squares = 0, half;

	for (uint32_t i = 0; i < n; i++)
		mean += runs[i].value[k] / n;
	for (uint32_t i = 0; i < n; i++)
		squares += (runs[i].value[k] - mean) * (runs[i].value[k] - mean);
	to->value[side] = mean;
	to->low[side] = runs[0].low[k];
	to->high[side] = runs[0].high[k];
	if (n < 2)
		return;
	half = student_t_quantile(0.975, n - 1) * sqrt(squares / (n - 1) / n);
	to->low[side] = mean - half;
	to->high[side] = mean + half;
}

static int read_scalars(const struct side *side, struct run_scalars *runs, struct err *e)
{
	for (int i = 0; i < side->n; i++) {
		int r = run_scalars_read(side->operands[i], &runs[i], e);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add_scalars(const struct side *side, int which, struct diff_scalar *scalars,
		       struct err *e)
{
	_cleanup_(freep) struct run_scalars *runs = calloc((size_t)side->n + 1, sizeof(*runs));
	int r = runs ? read_scalars(side, runs, e) : err_set(e, -ENOMEM, "out of memory");
	bool by_sum = false;
	double seconds = 0;

	for (int i = 0; i < side->n && r == 0; i++) {
		seconds += runs[i].value[RUN_DURATION] / 1e9 / side->n;
		by_sum |= runs[i].ended_by_itself;
	}
	for (int k = 0; k < N_RUN_SCALARS && r == 0; k++) {
		mean_scalar(runs, (uint32_t)side->n, k, which, &scalars[k]);
		scalars[k].seconds[which] = run_scalar_names[k].of_time ? seconds : 0;
		scalars[k].by_sum |= by_sum;
	}
	return r;
}

static int compare_scalars(struct job *j, struct err *e)
{
	const char *names[2] = { j->names[0], j->names[1] };
	struct diff_scalar scalars[N_RUN_SCALARS] = { 0 };

	for (int k = 0; k < N_RUN_SCALARS; k++) {
		scalars[k].text = run_scalar_names[k].text;
		scalars[k].key = run_scalar_names[k].key;
		scalars[k].unit = run_scalar_names[k].unit;
	}
	for (int i = 0; i < 2; i++) {
		int r = add_scalars(&j->sides[i], i, scalars, e);

		/* Runs of earlier versions have none. */
		if (r < 0)
			return r == -ENOENT ? 0 : r;
	}
	if (!j->a->json) {
		diff_scalars_text(scalars, N_RUN_SCALARS, names,
				  j->sides[0].runs > 1 && j->sides[1].runs > 1, j->out);
		return 0;
	}
	sink_puts(j->out, "\"scalars\":{");
	diff_scalars_json(scalars, N_RUN_SCALARS, j->out);
	sink_puts(j->out, "},\n");
	return 0;
}

/* The profile of one source in each of the directories. */
static int compare_source(struct job *j, const char *source, struct err *e)
{
	struct side dirs[2] = { j->sides[0], j->sides[1] };
	int r = 0;

	for (int i = 0; i < 2; i++) {
		j->sides[i].operands = calloc((size_t)dirs[i].n + 1, sizeof(char *));
		for (int k = 0; j->sides[i].operands && k < dirs[i].n; k++)
			if (asprintf(&j->sides[i].operands[k], "%s/%s.pb.gz", dirs[i].operands[k],
				     source) < 0)
				j->sides[i].operands[k] = NULL;
		for (int k = 0; k < dirs[i].n; k++)
			if (!j->sides[i].operands || !j->sides[i].operands[k])
				r = err_set(e, -ENOMEM, "out of memory");
	}
	if (r == 0)
		r = compare_inputs(j, source, e);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; j->sides[i].operands && k < dirs[i].n; k++)
			free(j->sides[i].operands[k]);
		free(j->sides[i].operands);
		j->sides[i] = dirs[i];
	}
	return r;
}

static int compare_runs(struct job *j, struct err *e)
{
	int r = compare_scalars(j, e);

	j->several = true;
	for (int i = 0; i < N_PROFILE_KINDS && r == 0; i++) {
		if (!share_source(j, profile_rows[i].name))
			continue;
		r = compare_source(j, profile_rows[i].name, e);
		/* A value that only one of the sources has is compared where it is. */
		if (j->a->value && r == -EINVAL)
			r = 0;
		/* Nothing was allocated: no share of it either. */
		if (j->a->normalize && r == -EDOM)
			r = 0;
	}
	if (r == 0 && !j->n_profiles)
		return err_set(e, -EINVAL, "--value: no source of both runs has %.64s",
			       j->a->value ? j->a->value : "");
	return r;
}

/* --- all of it --- */

static void add_json_name(struct job *j, const char *key, const char *name)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	text_add(&b, TEXT_JSON, name, UINT32_MAX);
	sink_printf(j->out, "\"%s\":\"%s\",", key, b.s ? b.s : "");
}

static int find_two(struct job *j, char **operands, int n, struct err *e)
{
	int first = inputs_first(operands, n);

	/* A directory and a word that names nothing: most likely a name that was misspelt. */
	if (first == n && n == 2 && access(operands[1], F_OK) < 0)
		return err_set(
			e, -EINVAL,
			"%s: No such file or directory; which two? (memscope diff BEFORE AFTER)",
			operands[1]);
	if (first == n)
		return err_set(e, -EINVAL, "which two? (memscope diff BEFORE AFTER)");
	if (n - first > 1 && inputs_first(operands + first, n - first) < n - first)
		return err_set(
			e, -EINVAL,
			"two are compared, and \"%.200s\" is one too many; several runs a side "
			"are memscope diff BEFORE… -- AFTER…",
			operands[first + inputs_first(operands + first, n - first)]);
	j->sides[0] = (struct side){ operands, first, 1 };
	j->sides[1] = (struct side){ operands + first, n - first, 1 };
	return 0;
}

/* BEFORE AFTER, or BEFORE… -- AFTER… */
static int find_sides(struct job *j, const struct side sides[2], struct err *e)
{
	if (!sides[0].n || !sides[1].n) {
		int r = find_two(j, sides[sides[1].n > 0].operands, sides[0].n + sides[1].n, e);

		if (r < 0)
			return r;
	}
	for (int i = 0; i < 2; i++) {
		struct side *s = &j->sides[i];

		if (sides[0].n && sides[1].n)
			*s = sides[i];
		s->runs = 0;
		for (int at = 0; at < s->n; s->runs++)
			at += inputs_first(s->operands + at, s->n - at);
		if (s->runs > 1)
			snprintf(j->names[i], sizeof(j->names[i]), "%.180s and %u more",
				 s->operands[0], s->runs - 1);
		else
			snprintf(j->names[i], sizeof(j->names[i]), "%s", s->operands[0]);
	}
	return 0;
}

static int run(struct job *j, const struct side sides[2], struct err *e)
{
	int r = find_sides(j, sides, e);

	if (r < 0)
		return r;
	if (only_output(j)) {
		if (!j->a->in.source && are_runs(j))
			return err_set(e, -EINVAL, "--output -: of which source? (--source)");
		return compare_inputs(j, j->a->in.source, e);
	}
	r = sink_open_file("-", &j->out, e);
	if (r < 0)
		return r;
	if (j->a->json) {
		sink_puts(j->out, "{");
		add_json_name(j, "before", j->names[0]);
		add_json_name(j, "after", j->names[1]);
	}
	if (!j->a->in.source && are_runs(j))
		r = compare_runs(j, e);
	else
		r = compare_inputs(j, j->a->in.source, e);
	if (r < 0)
		return r;
	if (j->a->json)
		sink_printf(j->out, "\"profiles\":[%s]}\n", j->json.s ? j->json.s : "");
	return strbuf_oom(&j->json) ? err_set(e, -ENOMEM, "out of memory") : sink_commit(j->out, e);
}

/* The "--" between the sides, argc: there is none. */
static int find_separator(int argc, char **argv)
{
	int i = 1;

	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	return i;
}

/* Each side by itself: the parser would move all operands behind "--". Options may be in both. */
static int parse(struct diff_args *a, int argc, char **argv, struct side sides[2], struct err *e)
{
	int between = find_separator(argc, argv), operand;
	int r = opt_parse(&diff_options, between, argv, a, &operand, e);

	if (r < 0)
		return r;
	sides[0] = (struct side){ argv + operand, between - operand, 0 };
	sides[1] = (struct side){ argv + argc, 0, 0 };
	if (between == argc)
		return 0;
	argv += between;
	argc -= between;
	argv[0] = (char *)diff_options.name;
	if (find_separator(argc, argv) < argc)
		return err_set(e, -EINVAL, "\"--\" parts two sides, and was given twice");
	r = opt_parse(&diff_options, argc, argv, a, &operand, e);
	if (r == 0)
		sides[1] = (struct side){ argv + operand, argc - operand, 0 };
	return r;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_args a = { .rows = 20, .least = 1, .format = -1 };
	_cleanup_(job_fini) struct job j = { .a = &a };
	struct side sides[2];
	struct err e = { 0 };
	int r = parse(&a, argc, argv, sides, &e);

	if (r == 0 && a.normalize + a.rate + a.absolute > 1)
		r = err_set(&e, -EINVAL, "--normalize, --rate and --absolute: choose one");
	if (r == 0 && a.output && !output_format(a.output, a.format, "svg", &e))
		r = -EINVAL;
	if (r == 0)
		r = inputs_init(&j.in, &a.in, &e);
	if (r == 0)
		r = run(&j, sides, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return inputs_left_out(&j.in);
}
