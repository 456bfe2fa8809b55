/* memscope merge: profiles of one kind, added up. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/outputs.h"

#include <errno.h>

struct merge_args {
	struct input_args in;
	const char *output;
	int format;
};

#define AT(field) offsetof(struct merge_args, field)

static const struct opt rows[] = {
	{ "output", 'o', OPT_STRING, "FILE", AT(output),
	  .help = "write to FILE, usually OUT.pb.gz; - is standard output" },
	{ "format", 0, OPT_CHOICE, "FORMAT", AT(format), .choices = FORMAT_CHOICES,
	  .help = "write this format, whatever the ending" },
	INPUT_OPTS(struct merge_args),
	{ 0 },
};

const struct opt_command merge_options = {
	.name = "merge",
	.synopsis = "[OPTION…] A B… -o OUT.pb.gz",
	.doc = "Adds profiles up, as pprof does: they must count the same things; durations add, "
	       "variances of estimates and labels are kept, and images are one when their build IDs are.",
	.opts = rows,
};

/* What was added although it is not quite of one kind. */
static void tell(const struct merge_info *info)
{
	struct err e;

	if (info->periods_differ) {
		err_set(&e, 0,
			"the profiles were sampled at different rates: their counts of samples cannot be "
			"compared, times and bytes can");
		command_fail(EXIT_DONE, &e);
	}
	if (info->build_ids_differ) {
		err_set(&e, 0,
			"the profiles have different builds of a file: its functions were added up by name");
		command_fail(EXIT_DONE, &e);
	}
}

int cmd_merge(int argc, char **argv)
{
	struct merge_args a = { .format = -1 };
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct render_opts opts = { .value_type = -1 };
	const struct format *format = NULL;
	struct merge_info info = { 0 };
	struct err e = { 0 };
	int operand, r;

	r = opt_parse(&merge_options, argc, argv, &a, &operand, &e);
	if (r == 0 && (operand == argc || !a.output))
		r = err_set(&e, -EINVAL,
			    "which profiles, and where to? (memscope merge A B… -o OUT.pb.gz)");
	if (r == 0 && !(format = output_format(a.output, a.format, "pprof", &e)))
		r = -EINVAL;
	if (r == 0)
		r = inputs_init(&in, &a.in, &e);
	if (r == 0)
		r = inputs_read(&in, argv + operand, argc - operand, a.in.source, MERGE_SAME, &info,
				&p, &e);
	opts.what = in.name;
	if (r == 0)
		r = output_profile(p, a.output, format, &opts, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	tell(&info);
	output_tell_lost_errors(p, format);
	return inputs_left_out(&in);
}
