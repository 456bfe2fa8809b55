/* memscope diff: profiles or runs before and after, one of each or several. */
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/diff_page.h"
#include "cmd/diff_sides.h"
#include "cmd/diff_write.h"
#include "cmd/inputs.h"
#include "cmd/inputs_list.h"
#include "cmd/outputs.h"
#include "collect/session/sources.h"
#include "import/run_scalars.h"
#include "render/formats/text.h"
#include "render/tables/diff_report.h"
#include "run/named_kinds.h"

#include <errno.h>
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
		  "both), .csv (a table), .folded (two counts a line), .pb.gz (after minus before), .html (a "
		  "page of all that both have, side by side); of two runs one for each source, "
		  "FILE-SOURCE, but one page" },
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

/* What is at hand while two things are compared. */
struct job {
	const struct diff_args *a;
	struct inputs in;
	struct diff_side sides[2];
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

/* -o FILE.html: a page of all that both have, besides. */
static bool is_page(const struct diff_args *a)
{
	size_t len = a->output ? strlen(a->output) : 0;

	return len > 5 && a->format < 0 && strcmp(a->output + len - 5, ".html") == 0;
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
	if (!j->a->absolute && !j->a->normalize && !j->a->rate &&
	    diff_sides_need_rate(j->sides, sides, profile_type(o.after, o.after_type)->name)) {
		o.scale = DIFF_SECONDS;
		report.seconds[0] = side_profiles_seconds(&sides[0]);
		report.seconds[1] = side_profiles_seconds(&sides[1]);
	}
	r = diff_make(&o, &d);
	if (r == -EDOM)
		return err_set(e, -EDOM,
			       o.scale == DIFF_SECONDS
				       ? "--rate: the profiles do not all say how long they took"
				       : "--normalize: one of the profiles has a total of 0");
	if (r < 0)
		return err_set(e, r, "out of memory for a difference");
	if (o.scale != DIFF_TOTALS)
		tell_rates(j, &o);
	report.shown = shown_pick(o.after, (int)o.after_type);
	r = print(j, &report, e);
	if (r == 0 && j->a->output && !is_page(j->a))
		r = write_file(j, &report, e);
	return r;
}

static int compare_inputs(struct job *j, const char *source, struct err *e)
{
	struct side_profiles sides[2] = { 0 };
	int r = source ? 0 : diff_sides_source(&j->in, j->sides, &source, e);

	for (int i = 0; i < 2 && r == 0; i++) {
		const struct diff_side *side = &j->sides[i];

		r = side_profiles_read(&j->in, side, source, &sides[i], e);
		if (side->runs > 1)
			snprintf(j->files[i], sizeof(j->files[i]), "%u runs", side->runs);
		else
			snprintf(j->files[i], sizeof(j->files[i]), "%s", j->in.name);
	}
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
	for (int i = 0; i < profile_kinds(); i++)
		if (share_source(j, profile_rows[i].name))
			return true;
	return false;
}

/* Are both sides windows of an archive? */
static bool are_windows(const struct job *j)
{
	return input_is_windows(j->sides[0].operands, j->sides[0].n) &&
	       input_is_windows(j->sides[1].operands, j->sides[1].n);
}

/* Each source that both have; what one of them has not is no fault unless it is all. */
static int compare_windows(struct job *j, struct err *e)
{
	struct err why = { 0 };
	int last = 0;

	j->several = true;
	for (int i = 0; i < N_PROFILE_KINDS; i++) {
		struct err one = { 0 };
		int r = compare_inputs(j, profile_rows[i].name, &one);

		if (r == 0)
			continue;
		if (r != -ENOENT && r != -EINVAL && r != -EDOM) {
			*e = one;
			return r;
		}
		if (!last) {
			last = r;
			why = one;
		}
	}
	if (!j->n_profiles)
		*e = why;
	return j->n_profiles ? 0 : last;
}

static int compare_scalars(struct job *j, struct err *e)
{
	const char *names[2] = { j->names[0], j->names[1] };
	struct diff_scalar scalars[N_RUN_SCALARS] = { 0 };
	int r = diff_scalars_read(j->sides, scalars, e);

	/* Runs of earlier versions have none. */
	if (r < 0)
		return r == -ENOENT ? 0 : r;
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
	struct diff_side dirs[2] = { j->sides[0], j->sides[1] };
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
	for (int i = 0; i < profile_kinds() && r == 0; i++) {
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

static int write_page(struct job *j, struct err *e)
{
	const struct diff_page page = {
		.sides = { j->sides[0], j->sides[1] },
		.names = { j->names[0], j->names[1] },
		.source = j->a->in.source,
		.scale = j->a->normalize ? DIFF_TOTALS
			 : j->a->rate    ? DIFF_SECONDS
					 : DIFF_ABSOLUTE,
		.scale_as_needed = !j->a->normalize && !j->a->rate && !j->a->absolute,
		.least_share = j->a->least / 100,
	};
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	int r = inputs_init(&in, &j->a->in, e);

	return r < 0 ? r : diff_page_write(&page, &in, j->a->output, e);
}

static void add_json_name(struct job *j, const char *key, const char *name)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	text_add(&b, TEXT_JSON, name, UINT32_MAX);
	sink_printf(j->out, "\"%s\":\"%s\",", key, b.s ? b.s : "");
}

static int run(struct job *j, struct err *e)
{
	int r = diff_sides_find(j->sides, e);

	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < j->sides[i].n; k++)
			named_kinds_of(j->sides[i].operands[k]);
	for (int i = 0; i < 2; i++)
		diff_side_name(&j->sides[i], j->names[i], sizeof(j->names[i]));
	if (only_output(j)) {
		if (!j->a->in.source && (are_runs(j) || are_windows(j)))
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
	else if (!j->a->in.source && are_windows(j))
		r = compare_windows(j, e);
	else
		r = compare_inputs(j, j->a->in.source, e);
	if (r == 0 && is_page(j->a))
		r = write_page(j, e);
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
static int parse(struct diff_args *a, int argc, char **argv, struct diff_side sides[2],
		 struct err *e)
{
	int between = find_separator(argc, argv), operand;
	int r = opt_parse(&diff_options, between, argv, a, &operand, e);

	if (r < 0)
		return r;
	sides[0] = (struct diff_side){ argv + operand, between - operand, 0 };
	sides[1] = (struct diff_side){ argv + argc, 0, 0 };
	if (between == argc)
		return 0;
	argv += between;
	argc -= between;
	argv[0] = (char *)diff_options.name;
	if (find_separator(argc, argv) < argc)
		return err_set(e, -EINVAL, "\"--\" parts two sides, and was given twice");
	r = opt_parse(&diff_options, argc, argv, a, &operand, e);
	if (r == 0)
		sides[1] = (struct diff_side){ argv + operand, argc - operand, 0 };
	return r;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_args a = { .rows = 20, .least = 1, .format = -1 };
	_cleanup_(job_fini) struct job j = { .a = &a };
	struct err e = { 0 };
	int r = parse(&a, argc, argv, j.sides, &e);

	if (r == 0 && a.normalize + a.rate + a.absolute > 1)
		r = err_set(&e, -EINVAL, "--normalize, --rate and --absolute: choose one");
	if (r == 0 && a.output && !is_page(&a) && !output_format(a.output, a.format, "svg", &e))
		r = -EINVAL;
	if (r == 0)
		r = inputs_init(&j.in, &a.in, &e);
	if (r == 0)
		r = run(&j, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return inputs_left_out(&j.in);
}
