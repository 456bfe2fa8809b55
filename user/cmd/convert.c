/* memscope convert: profiles already taken, in the format that the output's name says. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/inputs_list.h"
#include "cmd/named_outputs.h"
#include "cmd/outputs.h"
#include "import/time_table.h"
#include "model/over_time.h"

#include <errno.h>

struct convert_args {
	struct input_args in;
	const char *output, *names, *value, *by;
	const char *operand;      /* all that was named; NULL: several */
	const char *what;         /* of a profile that does not say whose it is */
	const struct format *how; /* by --format, or the ending of a name */
	int format;
	bool no_comm;
};

#define AT(field) offsetof(struct convert_args, field)

static const struct opt rows[] = {
	{ "output", 'o', OPT_STRING, "FILE", AT(output),
	  .help = "write to FILE, its ending says how: .pb.gz, .folded, .svg, .csv, .json "
		  "(speedscope), .callgrind, .dot, .massif, .dhat, .firefox.json, .perf, .otlp; - is standard output" },
	NAMES_OPT(struct convert_args),
	{ "format", 0, OPT_CHOICE, "FORMAT", AT(format), .choices = FORMAT_CHOICES,
	  .help = "write this format, whatever the ending" },
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "of formats that show one value type: this one" },
	INPUT_OPTS(struct convert_args),
	TIME_OPTS(struct convert_args),
	SELECT_OPTS(struct convert_args),
	BY_OPT(struct convert_args),
	{ "no-comm", 0, OPT_FLAG, NULL, AT(no_comm), .help = "the same as --by none" },
	{ 0 },
};

const struct opt_command convert_options = {
	.name = "convert",
	.synopsis =
		"[OPTION…] FILE… | DIR [all|latest|last:N|at:TIME|A..B|a,b] -o OUT | --names TEMPLATE",
	.doc = "Reads whatever flame reads, adds it up and writes it in the format that OUT's name "
	       "says. pprof keeps everything, also how sure estimates are; a table (.csv) and speedscope keep every value type.",
	.opts = rows,
};

/* live_series.csv of the run that a profile is of: the format goes without where it cannot be had. */
static void add_levels(struct profile *p, const char *operand)
{
	const char *slash = strrchr(operand, '/');
	bool dir = input_is_directory(operand);
	struct time_table *table = NULL;
	struct over_time *o;
	char path[4096];

	snprintf(path, sizeof(path), "%.*s/live_series.csv",
		 dir     ? (int)strlen(operand)
		 : slash ? (int)(slash - operand)
			 : 1,
		 dir || slash ? operand : ".");
	if (profile_over_time(p) || time_table_read(path, &table, NULL, NULL) < 0)
		return;
	o = over_time_new();
	if (!o) {
		time_table_free(table);
		return;
	}
	over_time_add_series(o, "live_series", "Live bytes by stack", table);
	profile_set_over_time(p, o);
}

static int write_one(void *ctx, struct profile *p, const char *path, struct err *e)
{
	const struct convert_args *a = ctx;
	struct render_opts opts = { .value_type = -1, .what = a->what };
	char types[256];
	bool comm;
	int r;

	if (a->how->with_levels && a->operand)
		add_levels(p, a->operand);
	if (a->value && (opts.value_type = inputs_find_value(p, a->value)) < 0) {
		profile_list_types(p, types, sizeof(types));
		return err_set(e, -EINVAL, "--value: there is no %.64s in this profile; it has %s",
			       a->value, types);
	}
	r = inputs_find_by(p, a->by, &opts.by, &comm, e);
	if (r < 0)
		return r;
	opts.no_comm = a->no_comm || !comm;
	r = output_profile(p, path, a->how, &opts, e);
	if (r == 0)
		output_tell_lost_errors(p, a->how);
	return r;
}

static int read_and_write(struct inputs *in, struct convert_args *a, char **operands, int n,
			  struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r;

	in->times = a->how->of_times;
	in->times_if_known = a->how->with_times;
	a->what = in->name;
	a->operand = n == 1 ? operands[0] : NULL;
	if (a->names)
		return named_outputs_write(in, operands, n, a->in.source, a->names, write_one, a,
					   e);
	r = inputs_read(in, operands, n, a->in.source, MERGE_COMMON, NULL, &p, e);
	return r == 0 ? write_one(a, p, a->output, e) : r;
}

int cmd_convert(int argc, char **argv)
{
	struct convert_args a = { .format = -1 };
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	struct err e = { 0 };
	int operand, r;

	r = opt_parse(&convert_options, argc, argv, &a, &operand, &e);
	if (r == 0 && (operand == argc || (!a.output && !a.names)))
		r = err_set(&e, -EINVAL,
			    "which profile, and where to? (memscope convert FILE… -o OUT)");
	if (r == 0 && a.output && a.names)
		r = err_set(&e, -EINVAL, "-o and --names: choose one");
	if (r == 0 && !(a.how = output_format(a.names ? a.names : a.output, a.format, "pprof", &e)))
		r = -EINVAL;
	if (r == 0)
		r = inputs_init(&in, &a.in, &e);
	if (r == 0)
		r = read_and_write(&in, &a, argv + operand, argc - operand, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return inputs_left_out(&in);
}
