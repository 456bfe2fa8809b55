/* memscope top: a live screen of processes, their profiles and heaps; or the same as text. */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "run/target.h"
#include "screen/picker.h"
#include "screen/screen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct top_args {
	bool all, batch;
	uint32_t pid, iterations;
	const char *container;
	double delay_s;
};

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct top_args, field), __VA_ARGS__                            \
	}

/* clang-format off */
static const struct opt rows[] = {
	ROW("delay", 'd', OPT_DOUBLE, "SEC", delay_s, .min = 0.1, .max = 3600, .help = "between two readings (2 for the list of processes, longer where that would take more than 1.5 % of a CPU; 1 for a profile)"),
	ROW("batch", 'b', OPT_FLAG, NULL, batch, .help = "print what the screen would show, all rows, as text: for pipes and logs"),
	ROW("iterations", 'n', OPT_U32, "N", iterations, .min = 1, .max = 1e9, .help = "with --batch: print N times (default: until it is stopped)"),
	{ 0 },
};
/* clang-format on */

const struct opt_command top_options = {
	.name = "top",
	.synopsis = "[OPTION…]",
	.doc = "A live screen of the processes and containers of this host: CPU, memory and how it grows, the runtime of the language, "
	       "and whether memscope heap can explain the heap. ? shows the keys.",
	.opts = rows,
};

int cmd_top(int argc, char **argv)
{
	struct top_args a = { 0 };
	struct screen s = { 0 };
	struct view *v = NULL;
	struct err e = { 0 };
	int operand, r;

	if (opt_parse(&top_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (a.iterations && !a.batch) {
		err_set(&e, -EINVAL, "-n goes with --batch");
		return command_fail(EXIT_USAGE, &e);
	}
	if (!a.batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		err_set(&e, -ENOTTY, "the screen needs a terminal; memscope top --batch prints it as text");
		return command_fail(EXIT_USAGE, &e);
	}
	target_raise_files();
	r = picker_new(a.delay_s > 0 ? a.delay_s : 2, a.batch, &v, &e);
	if (r == 0) {
		screen_push(&s, v);
		v->ops->tick(v, &s);
		r = a.batch ? screen_batch(&s, a.iterations, a.delay_s > 0 ? a.delay_s : 2, stdout, &e) : screen_run(&s, &e);
	}
	screen_fini(&s);
	return r < 0 && r != -EINTR ? command_fail(EXIT_NOTHING, &e) : EXIT_DONE;
}
