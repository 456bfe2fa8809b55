/* memscope flame: profiles already taken, ours or anyone's, as one flame graph. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "import/readers.h"
#include "render/palette.h"
#include "render/render.h"
#include "render/shown.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_OUTPUT "flame.svg"

struct flame_args {
	const char *output, *value, *title, *subtitle, *countname;
	int format, colors;
	uint32_t width, fontsize;
	double minwidth;
	bool inverted, no_comm;
};

#define AT(field) offsetof(struct flame_args, field)

static const struct opt rows[] = {
	{ "Output", .kind = OPT_HEADING },
	{ "output", 'o', OPT_STRING, "FILE", AT(output),
	  .help = "write to FILE, its ending says how (.svg, .folded, .pb.gz); - is standard output "
		  "(" DEFAULT_OUTPUT ")" },
	{ "format", 0, OPT_CHOICE, NULL, AT(format), .choices = FORMAT_CHOICES,
	  .help = "write this format, whatever the ending" },
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "show this value type of the profile: alloc_space, runnable, cpu/nanoseconds "
		  "(samples, blocked time, or what the profile names first)" },
	{ "Picture", .kind = OPT_HEADING },
	{ "inverted", 'i', OPT_FLAG, NULL, AT(inverted), .help = "root at the top (icicle graph)" },
	{ "title", 0, OPT_STRING, "TEXT", AT(title), .help = "title (what the value type is)" },
	{ "subtitle", 0, OPT_STRING, "TEXT", AT(subtitle), .help = "second line (the total)" },
	{ "width", 0, OPT_U32, "PX", AT(width), 200, 20000, .help = "width of the picture (1200)" },
	{ "fontsize", 0, OPT_U32, "PX", AT(fontsize), 6, 64, .help = "size of the letters (12)" },
	{ "minwidth", 0, OPT_DOUBLE, "PX", AT(minwidth), 0, 1000,
	  .help = "leave out frames narrower than this (0.1)" },
	{ "colors", 0, OPT_CHOICE, "NAME", AT(colors), .choices = PALETTE_CHOICES,
	  .help = "palette (auto, by kind of frame)" },
	{ "countname", 0, OPT_STRING, "NAME", AT(countname),
	  .help = "name of the values: bytes, objects, us" },
	{ "no-comm", 0, OPT_FLAG, NULL, AT(no_comm),
	  .help = "merge processes: no process name at the root" },
	{ 0 },
};

const struct opt_command flame_options = {
	.name = "flame",
	.synopsis = "[OPTION…] FILE…",
	.doc = "Draws profiles as a flame graph: pprof files (gzipped or not) and folded stacks, from "
	       "memscope or any other profiler. Several files are added up; - is standard input.",
	.opts = rows,
};

static int usage(struct err *e, const char *fmt, const char *arg)
{
	err_set(e, -EINVAL, fmt, arg);
	return command_fail(EXIT_USAGE, e);
}

/* --- adding up
 * ----------------------------------------------------------------------------------- */

/* "samples/count, cpu/nanoseconds" */
static void list_types(const struct profile *p, char *out, size_t cap)
{
	size_t n = 0;

	*out = 0;
	for (uint32_t i = 0; i < profile_n_types(p) && n < cap; i++)
		n += (size_t)snprintf(out + n, cap - n, "%s%.40s/%.40s", i ? ", " : "",
				      profile_type(p, i)->name, profile_type(p, i)->unit);
}

static int find_same_type(const struct profile *p, const struct value_type *t)
{
	for (uint32_t i = 0; i < profile_n_types(p); i++)
		if (strcmp(profile_type(p, i)->name, t->name) == 0 &&
		    strcmp(profile_type(p, i)->unit, t->unit) == 0)
			return (int)i;
	return -1;
}

/* The value types that both have, in a's order; `from` says where each is in a and in b. */
struct common {
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t from[2][PROFILE_MAX_TYPES];
	uint32_t n, default_type;
};

static struct common common_types(const struct profile *a, const struct profile *b)
{
	struct common c = { .n = 0 };

	for (uint32_t i = 0; i < profile_n_types(a); i++) {
		int j = find_same_type(b, profile_type(a, i));

		if (j < 0)
			continue;
		if (i == profile_get_meta(a)->default_type)
			c.default_type = c.n;
		c.types[c.n] = *profile_type(a, i);
		c.from[0][c.n] = i;
		c.from[1][c.n++] = (uint32_t)j;
	}
	return c;
}

static int add_all(struct profile *sum, const struct profile *p, const uint32_t *from, uint32_t n)
{
	int64_t values[PROFILE_MAX_TYPES];

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		int r;

		for (uint32_t t = 0; t < n; t++)
			values[t] = s.values[from[t]];
		r = profile_add(sum, s.stack, s.labels, values);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Replaces `*p` by the sum of it and `more`, in the value types that both have. */
static int add_profile(struct profile **p, const struct profile *more, const char *name,
		       struct err *e)
{
	_cleanup_(profile_freep) struct profile *sum = NULL;
	struct common c = common_types(*p, more);
	struct profile_meta meta = *profile_get_meta(*p);
	char have[160], other[160];
	int r;

	if (!c.n) {
		list_types(*p, have, sizeof(have));
		list_types(more, other, sizeof(other));
		return err_set(e, -EINVAL,
			       "%s cannot be added to what came before it: it counts %s, not %s",
			       name, other, have);
	}
	sum = profile_new(profile_dict(*p), c.types, c.n);
	if (!sum)
		return err_set(e, -ENOMEM, "%s: out of memory", name);
	r = add_all(sum, *p, c.from[0], c.n);
	if (r == 0)
		r = add_all(sum, more, c.from[1], c.n);
	meta.default_type = c.default_type;
	meta.duration_ns += profile_get_meta(more)->duration_ns;
	if (r == 0)
		r = profile_set_meta(sum, &meta);
	if (r < 0)
		return err_set(e, r, "%s: out of memory", name);
	profile_free(*p);
	*p = TAKE_PTR(sum);
	return 0;
}

static int read_all(struct dict *d, char **files, int n, struct profile **ret_profile,
		    uint64_t *ret_skipped, struct err *e)
{
	_cleanup_(profile_freep) struct profile *sum = NULL;
	uint64_t skipped = 0;

	for (int i = 0; i < n; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct import_info info;
		int r = import_read(d, files[i], &p, &info, e);

		if (r == 0 && sum)
			r = add_profile(&sum, p, files[i], e);
		if (r < 0)
			return r;
		skipped += info.skipped_lines;
		if (!sum)
			sum = TAKE_PTR(p);
	}
	*ret_profile = TAKE_PTR(sum);
	*ret_skipped = skipped;
	return 0;
}

/* --- choices
 * ------------------------------------------------------------------------------------- */

/* "blocked" alone means its time: that is what people ask about. */
static int find_value(const struct profile *p, const char *name)
{
	char timed[128];
	int type;

	snprintf(timed, sizeof(timed), "%.100s/nanoseconds", name);
	type = strchr(name, '/') ? -1 : profile_find_type(p, timed);
	return type >= 0 ? type : profile_find_type(p, name);
}

static const struct format *choose_format(const struct flame_args *a)
{
	if (a->format >= 0)
		return &formats[a->format];
	if (strcmp(a->output, "-") == 0)
		return format_find("svg");
	return format_for_path(a->output);
}

static uint32_t count_negative(const struct profile *p, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		n += profile_sample(p, i).values[type] < 0;
	return n;
}

static int write_output(const struct profile *p, const struct flame_args *a,
			const struct format *format, int type, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct render_opts opts = {
		.value_type = type,
		.title = a->title,
		.subtitle = a->subtitle,
		.width = a->width,
		.fontsize = a->fontsize,
		.minwidth = a->minwidth > 0 ? a->minwidth : -1,
		.colors = palette_choice(a->colors),
		.countname = a->countname,
		.inverted = a->inverted,
		.no_comm = a->no_comm,
	};
	int r;

	r = sink_open_file(a->output, &out, e);
	if (r == 0 && format->gzip)
		r = sink_gzip(out, e);
	if (r == 0)
		r = format->write(p, &opts, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}

/* Says what did not make it into the output. */
static int left_out(const struct profile *p, int type, uint64_t skipped_lines)
{
	uint32_t negative = type >= 0 ? count_negative(p, (uint32_t)type) : 0;
	int status = EXIT_DONE;
	struct err e;

	if (skipped_lines) {
		err_set(&e, 0, "lines that are not folded stacks, left out: %s",
			unit_count((int64_t)skipped_lines).s);
		status = command_fail(EXIT_PARTIAL, &e);
	}
	if (negative) {
		err_set(&e, 0,
			"samples with negative values, left out: %s (is this the difference of "
			"two profiles?)",
			unit_count(negative).s);
		status = command_fail(EXIT_PARTIAL, &e);
	}
	return status;
}

int cmd_flame(int argc, char **argv)
{
	struct flame_args a = { .format = -1, .output = DEFAULT_OUTPUT, .minwidth = 0.1 };
	_cleanup_(dict_freep) struct dict *d = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	const struct format *format;
	int operand, type = -1;
	struct err e = { 0 };
	uint64_t skipped;
	char types[256];

	if (opt_parse(&flame_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (operand == argc)
		return usage(&e, "which profile? (memscope flame FILE… -o out.svg%s)", "");
	format = choose_format(&a);
	if (!format)
		return usage(&e,
			     "--output: what to write does not follow from \"%.200s\"; end it in "
			     ".svg, .folded or .pb.gz, or give --format",
			     a.output);

	d = dict_new();
	if (!d) {
		err_set(&e, -ENOMEM, "out of memory");
		return command_fail(EXIT_NOTHING, &e);
	}
	if (read_all(d, argv + operand, argc - operand, &p, &skipped, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (a.value && (type = find_value(p, a.value)) < 0) {
		list_types(p, types, sizeof(types));
		err_set(&e, -EINVAL, "--value: there is no %.64s in this profile; it has %s",
			a.value, types);
		return command_fail(EXIT_USAGE, &e);
	}
	if (!profile_n_samples(p)) {
		err_set(&e, -ENODATA, "%s: the profile is empty", argv[operand]);
		return command_fail(EXIT_NOTHING, &e);
	}
	if (write_output(p, &a, format, type, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);

	return left_out(p, format->one_value ? (int)shown_pick(p, type).type : -1, skipped);
}
