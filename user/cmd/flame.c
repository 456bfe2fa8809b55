/* memscope flame: profiles already taken, ours or anyone's, as one flame graph. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/named_outputs.h"
#include "cmd/outputs.h"
#include "render/formats/palette.h"
#include "render/render.h"
#include "render/shown.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_OUTPUT "flame.svg"

struct flame_args {
	struct input_args in;
	const char *output, *names, *value, *title, *subtitle, *countname;
	int format, colors;
	uint32_t width, fontsize;
	double minwidth;
	const char *by;
	bool inverted, no_comm;
};

#define AT(field) offsetof(struct flame_args, field)

static const struct opt rows[] = {
	{ "Output", .kind = OPT_HEADING },
	{ "output", 'o', OPT_STRING, "FILE", AT(output),
	  .help = "write to FILE, its ending says how (.svg, .folded, .pb.gz, .csv, .json); - is standard output "
		  "(" DEFAULT_OUTPUT ")" },
	NAMES_OPT(struct flame_args),
	{ "format", 0, OPT_CHOICE, "FORMAT", AT(format), .choices = FORMAT_CHOICES,
	  .help = "write this format, whatever the ending" },
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "show this value type of the profile: alloc_space, runnable, cpu/nanoseconds "
		  "(samples, blocked time, or what the profile names first)" },
	{ "Input", .kind = OPT_HEADING },
	INPUT_OPTS(struct flame_args),
	TIME_OPTS(struct flame_args),
	SELECT_OPTS(struct flame_args),
	{ "Picture", .kind = OPT_HEADING },
	{ "inverted", 'i', OPT_FLAG, NULL, AT(inverted), .help = "root at the top (icicle graph)" },
	{ "title", 0, OPT_STRING, "TEXT", AT(title),
	  .help = "title (what was profiled, when, for how long)" },
	{ "subtitle", 0, OPT_STRING, "TEXT", AT(subtitle),
	  .help = "second line (what the width means, and the recording's labels)" },
	{ "width", 0, OPT_U32, "PX", AT(width), 200, 20000, .help = "width of the picture (1200)" },
	{ "fontsize", 0, OPT_U32, "PX", AT(fontsize), 6, 64, .help = "size of the letters (12)" },
	{ "minwidth", 0, OPT_DOUBLE, "PX", AT(minwidth), 0, 1000,
	  .help = "leave out frames narrower than this (0.1; more where the file would pass 1 MB)" },
	{ "colors", 0, OPT_CHOICE, "NAME", AT(colors), .choices = PALETTE_CHOICES,
	  .help = "palette (auto, by kind of frame)" },
	{ "countname", 0, OPT_STRING, "NAME", AT(countname),
	  .help = "name of the values: bytes, objects, us" },
	BY_OPT(struct flame_args),
	{ "no-comm", 0, OPT_FLAG, NULL, AT(no_comm), .help = "the same as --by none" },
	{ 0 },
};

const struct opt_command flame_options = {
	.name = "flame",
	.synopsis = "[OPTION…] FILE… | DIR [all|latest|last:N|at:TIME|A..B|a,b]",
	.doc = "Draws profiles as a flame graph: pprof files (gzipped or not), heap dumps of jemalloc "
	       "(heap_v2), gperftools and tcmalloc, what perf script prints, "
	       "GHC's eventlogs and .hp files, folded stacks, and files of heaptrack, massif, DHAT, callgrind, "
	       "speedscope and the Firefox Profiler (memscope help formats). "
	       "Several files are added up; - is standard input. Of a directory's dumps the latest "
	       "is taken, or all, or the last N, or those named: by file, or by number.",
	.opts = rows,
};

static int usage(struct err *e, const char *fmt, const char *arg)
{
	err_set(e, -EINVAL, fmt, arg);
	return command_fail(EXIT_USAGE, e);
}

/* --- choices --- */

static uint32_t count_negative(const struct profile *p, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++)
		n += profile_sample(p, i).values[type] < 0;
	return n;
}

static struct render_opts render_options(const struct flame_args *a, const struct inputs *in)
{
	return (struct render_opts){
		.title = a->title,
		.subtitle = a->subtitle,
		.what = in->name,
		.width = a->width,
		.fontsize = a->fontsize,
		.minwidth = a->minwidth < 0   ? 0
			    : a->minwidth > 0 ? a->minwidth
					      : -1,
		.colors = palette_choice(a->colors),
		.countname = a->countname,
		.inverted = a->inverted,
	};
}

/* Says what did not make it into the output; false: all of it did. */
static bool tell_negative(const struct profile *p, int type)
{
	uint32_t negative = type >= 0 ? count_negative(p, (uint32_t)type) : 0;
	struct err e;

	if (!negative)
		return false;
	err_set(&e, 0,
		"samples with negative values, not drawn: %s (is this the difference of "
		"two profiles?)",
		unit_count(negative).s);
	command_fail(EXIT_PARTIAL, &e);
	return true;
}

/* A profile on its way into a file. */
struct drawing {
	const struct flame_args *args;
	const struct inputs *in;
	const struct format *format;
	int status; /* EXIT_PARTIAL: something was left out */
};

static int draw(void *ctx, struct profile *p, const char *path, struct err *e)
{
	struct drawing *d = ctx;
	const struct flame_args *a = d->args;
	struct render_opts opts = render_options(a, d->in);
	int type = a->value ? inputs_find_value(p, a->value) : -1, r;
	char types[256];
	bool comm;

	if (a->value && type < 0) {
		profile_list_types(p, types, sizeof(types));
		return err_set(e, -EINVAL, "--value: there is no %.64s in this profile; it has %s",
			       a->value, types);
	}
	opts.value_type = type;
	r = inputs_find_by(p, a->by, &opts.by, &comm, e);
	if (r < 0)
		return r;
	opts.no_comm = a->no_comm || !comm;
	r = output_profile(p, path, d->format, &opts, e);
	if (r == 0 && tell_negative(p, d->format->one_value ? (int)shown_pick(p, type).type : -1))
		d->status = EXIT_PARTIAL;
	return r;
}

static int read_and_draw(struct inputs *in, const struct flame_args *a, char **operands, int n,
			 struct drawing *d, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r;

	in->times = d->format->of_times;
	in->times_if_known = d->format->with_times;
	if (a->names)
		return named_outputs_write(in, operands, n, a->in.source, a->names, draw, d, e);
	r = inputs_read(in, operands, n, a->in.source, MERGE_COMMON, NULL, &p, e);
	if (r == 0 && a->value && inputs_find_value(p, a->value) < 0)
		return draw(d, p, a->output, e); /* which says so, also of an empty one */
	if (r == 0 && !profile_n_samples(p))
		return err_set(e, -ENODATA, "%s: the profile is empty", operands[0]);
	return r == 0 ? draw(d, p, a->output, e) : r;
}

int cmd_flame(int argc, char **argv)
{
	struct flame_args a = { .format = -1, .minwidth = -1 };
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	struct drawing d = { .args = &a, .in = &in, .status = EXIT_DONE };
	struct err e = { 0 };
	int operand, r, status;

	if (opt_parse(&flame_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (operand == argc)
		return usage(&e, "which profile? (memscope flame FILE… -o out.svg%s)", "");
	if (a.output && a.names)
		return usage(&e, "-o and --names: choose one%s", "");
	if (!a.output)
		a.output = DEFAULT_OUTPUT;
	d.format = output_format(a.names ? a.names : a.output, a.format, "svg", &e);
	if (!d.format)
		return command_fail(EXIT_USAGE, &e);
	r = inputs_init(&in, &a.in, &e);
	if (r == 0)
		r = read_and_draw(&in, &a, argv + operand, argc - operand, &d, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	status = inputs_left_out(&in);
	return d.status != EXIT_DONE ? d.status : status;
}
