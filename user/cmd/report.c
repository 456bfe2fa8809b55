/* memscope report: the top tables of profiles already taken. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "render/profile_text.h"

#include <errno.h>

struct report_args {
	struct input_args in;
	const char *value;
	uint32_t rows;
	bool json;
};

#define AT(field) offsetof(struct report_args, field)

static const struct opt rows[] = {
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "rank by this value type: alloc_space, runnable, cpu/nanoseconds (samples, blocked "
		  "time, or what the profile names first)" },
	{ "rows", 'n', OPT_U32, "N", AT(rows), 1, 1000000, .help = "how many functions (20)" },
	{ "json", 0, OPT_FLAG, NULL, AT(json), .help = "print JSON" },
	INPUT_OPTS(struct report_args),
	{ 0 },
};

const struct opt_command report_options = {
	.name = "report",
	.synopsis = "[OPTION…] FILE… | DIR [all|latest|last:N|a,b]",
	.doc = "Prints which functions a profile is about: most in themselves, then most with all "
	       "they call. Reads whatever flame reads; several files are added up.",
	.opts = rows,
};

static int report(struct inputs *in, const struct report_args *a, char **operands, int n,
		  struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(sink_closep) struct sink *out = NULL;
	char types[256];
	int type = -1, r;

	r = inputs_read(in, operands, n, a->in.source, MERGE_COMMON, NULL, &p, e);
	if (r < 0)
		return r;
	if (a->value && (type = inputs_find_value(p, a->value)) < 0) {
		profile_list_types(p, types, sizeof(types));
		return err_set(e, -EINVAL, "--value: there is no %.64s in this profile; it has %s",
			       a->value, types);
	}
	if (!profile_n_samples(p))
		return err_set(e, -ENODATA, "%s: the profile is empty", operands[0]);
	r = sink_open_file("-", &out, e);
	if (r == 0)
		r = a->json ? profile_json_write(p, type, a->rows, out, e)
			    : profile_text_write(p, type, a->rows, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}

int cmd_report(int argc, char **argv)
{
	struct report_args a = { .rows = 20 };
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	struct err e = { 0 };
	int operand, r;

	r = opt_parse(&report_options, argc, argv, &a, &operand, &e);
	if (r == 0 && operand == argc)
		r = err_set(&e, -EINVAL, "which profile? (memscope report FILE…)");
	if (r == 0)
		r = inputs_init(&in, &a.in, &e);
	if (r == 0)
		r = report(&in, &a, argv + operand, argc - operand, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return inputs_left_out(&in);
}
