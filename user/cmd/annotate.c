/* memscope annotate: what each line of source and each instruction of a function cost. */
#include "analyse/function_find.h"
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/inputs_list.h"
#include "render/shown.h"
#include "render/tables/annotation_text.h"
#include "run/output/sources.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct annotate_args {
	struct input_args in;
	const char *value;
	uint32_t rows, context;
	int syntax;
	bool no_source, of_all, json;
};

#define AT(field) offsetof(struct annotate_args, field)

static const struct opt rows[] = {
	{ "What to print", .kind = OPT_HEADING },
	{ "rows", 'n', OPT_U32, "N", AT(rows), 1, SOURCES_FUNCTIONS,
	  .help = "without FUNCTION: this many functions, by self cost (1)" },
	{ "context", 0, OPT_U32, "N", AT(context), 0, 1000000,
	  .help = "lines and instructions shown around those with cost (6)" },
	{ "of-all", 0, OPT_FLAG, NULL, AT(of_all),
	  .help = "percentages of the whole profile, not of the function" },
	{ "disassembler-style", 'M', OPT_CHOICE, "STYLE", AT(syntax), .choices = "att|intel",
	  .help = "syntax of x86 instructions: att or intel (att)" },
	{ "no-source", 0, OPT_FLAG, NULL, AT(no_source), .help = "do not read source files" },
	{ "json", 0, OPT_FLAG, NULL, AT(json),
	  .help = "print JSON, with all lines that have cost and all instructions" },
	{ "Input", .kind = OPT_HEADING },
	{ "value", 0, OPT_STRING, "NAME", AT(value),
	  .help = "the value type that is the cost: alloc_space, blocked, cpu/nanoseconds (samples, blocked time, or "
		  "the profile's first)" },
	INPUT_OPTS(struct annotate_args),
	TIME_OPTS(struct annotate_args),
	{ 0 },
};

const struct opt_command annotate_options = {
	.name = "annotate",
	.synopsis = "[OPTION…] [FUNCTION] FILE | DIR",
	.doc = "Prints the source lines of FUNCTION (or part of its name) with self and total cost, and its "
	       "instructions with self cost, as perf annotate does; without FUNCTION, those of the function with "
	       "the most self cost. Lines of inlined functions are listed separately and named beside the "
	       "instructions. The program's file and its sources are read on this machine; the file must have "
	       "the build ID of the profile. Interpreted functions have lines only.",
	.opts = rows,
};

/* What one command reads and prints. */
struct annotation {
	const struct annotate_args *a;
	struct inputs in;
	struct profile *p;
	struct line_costs costs;
	struct code_sources sources;
	uint32_t type;
	const char *function; /* its whole name; NULL: those with the most self cost */
};

static void annotation_fini(struct annotation *an)
{
	code_sources_fini(&an->sources);
	line_costs_fini(&an->costs);
	profile_free(an->p);
	inputs_fini(&an->in);
}

static int read_profile(struct annotation *an, char **operands, int n, struct err *e)
{
	const char *source = an->a->in.source;
	char types[256];
	int r, type = -1;

	if (!source && input_is_directory(operands[0]))
		source = input_main_source(operands[0], an->a->in.container);
	r = inputs_read(&an->in, operands, n, source, MERGE_COMMON, NULL, &an->p, e);
	if (r < 0)
		return r;
	if (!profile_n_samples(an->p))
		return err_set(e, -ENODATA, "%s: the profile is empty", operands[0]);
	if (an->a->value && (type = inputs_find_value(an->p, an->a->value)) < 0) {
		profile_list_types(an->p, types, sizeof(types));
		return err_set(e, -EINVAL, "--value: there is no %.64s in this profile; it has %s",
			       an->a->value, types);
	}
	an->type = shown_pick(an->p, type).type;
	r = line_costs_make(an->p, an->type, &an->costs);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

static int read_sources(struct annotation *an, struct err *e)
{
	struct symbolize_opts files;
	struct sources_opts opts = {
		.files = &files,
		.open_in = inputs_open,
		.in_own_root = inputs_in_own_root,
		.reader = geteuid(), /* who asks for a file by this command may read it */
		.function = an->function,
		.functions = an->function ? SOURCES_FUNCTIONS : an->a->rows,
		.syntax = an->a->syntax == 1 ? SYNTAX_INTEL : SYNTAX_ATT,
		.max_ms = SYMBOLIZE_DWARF_MS_MAX,
		.taken_s = profile_get_meta(an->p)->time_ns / 1000000000,
		.no_source = an->a->no_source,
	};
	const struct sources_profile profile = { an->p, &an->costs };
	int r;

	inputs_files(&an->in, &files);
	r = sources_read(&profile, 1, &opts, &an->sources);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

static int write_all(struct annotation *an, struct err *e)
{
	const struct annotation_opts opts = {
		.p = an->p,
		.costs = &an->costs,
		.sources = &an->sources,
		.type = an->type,
		.context = an->a->context,
		.of_all = an->a->of_all,
		.no_source = an->a->no_source,
	};
	const struct function_cost *functions[SOURCES_FUNCTIONS];
	_cleanup_(sink_closep) struct sink *out = NULL;
	const struct dict *d = profile_dict(an->p);
	uint32_t n = 0, most = an->function ? SOURCES_FUNCTIONS : an->a->rows;
	int r;

	for (uint32_t i = 0; i < an->costs.n_functions && n < most; i++) {
		const struct function_cost *f = &an->costs.functions[i];

		if (an->function ? strcmp(dict_str(d, f->function), an->function) == 0
				 : f->self > 0)
			functions[n++] = f;
	}
	if (!n)
		return err_set(e, -ENODATA, "no function of this profile has lines or code%s%s",
			       an->function ? " of " : "", an->function ? an->function : "");
	r = sink_open_file("-", &out, e);
	if (r == 0 && an->a->json)
		r = annotation_json_write(&opts, functions, n, out, e);
	for (uint32_t i = 0; i < n && r == 0 && !an->a->json; i++) {
		sink_puts(out, i ? "\n" : "");
		r = annotation_text_write(&opts, functions[i], out, e);
	}
	return r == 0 ? sink_commit(out, e) : r;
}

int cmd_annotate(int argc, char **argv)
{
	struct annotate_args a = { .rows = 1, .context = 6, .syntax = 0 };
	_cleanup_(annotation_fini) struct annotation an = { .a = &a };
	struct err e = { 0 };
	int operand, r;

	r = opt_parse(&annotate_options, argc, argv, &a, &operand, &e);
	if (r == 0 && operand == argc)
		r = err_set(&e, -EINVAL, "which profile? (memscope annotate FUNCTION FILE)");
	if (r < 0)
		return command_fail(EXIT_USAGE, &e);
	r = inputs_init(&an.in, &a.in, &e);
	if (r == 0)
		r = read_profile(&an, argv + operand + (argc - operand > 1),
				 argc - operand - (argc - operand > 1), &e);
	if (r == 0 && argc - operand > 1) {
		r = function_find(an.p, argv[operand], &an.function, &e);
		r = r == -ENOENT ? -EINVAL : r;
	}
	if (r == 0)
		r = read_sources(&an, &e);
	if (r == 0)
		r = write_all(&an, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return inputs_left_out(&an.in);
}
