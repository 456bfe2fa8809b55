/* memscope top: a live screen of processes, their profiles and heaps; or the same as text. */
#include "base/cleanup.h"
#include "base/rights.h"
#include "cmd/cmd.h"
#include "cmd/inputs.h"
#include "cmd/inputs_list.h"
#include "cmd/recording.h"
#include "cmd/top_heap.h"
#include "cmd/top_record.h"
#include "heap/snapshot/file.h"
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
	{ .name = "What to show; without any, all processes and containers, to choose from", .kind = OPT_HEADING },
	ROW("pid", 'p', OPT_U32, "PID", pid, .min = 1, .max = 4194304, .help = "the profile of this process and its children, live"),
	ROW("container", 'c', OPT_STRING, "NAME", container, .help = "of the processes of this container, by its name or id"),
	ROW("all", 'a', OPT_FLAG, NULL, all, .help = "of the whole host"),
	{ .name = "How", .kind = OPT_HEADING },
	ROW("delay", 'd', OPT_DOUBLE, "SEC", delay_s, .min = 0.1, .max = 3600, .help = "between two readings (2 for the list of processes, longer where that would take more than 1.5 % of a CPU; 1 for a profile)"),
	ROW("batch", 'b', OPT_FLAG, NULL, batch, .help = "print what the screen would show, all rows, as text: for pipes and logs"),
	ROW("iterations", 'n', OPT_U32, "N", iterations, .min = 1, .max = 1e9, .help = "with --batch: print N times (default: until it is stopped)"),
	{ 0 },
};
/* clang-format on */

const struct opt_command top_options = {
	.name = "top",
	.synopsis = "[-a|-p PID|-c NAME] [OPTION…] | FILE… | DIR | SNAPSHOT",
	.doc = "A live screen. Without a target: the processes and containers of this host, with CPU, memory and how it grows, "
	       "the runtime of the language, and whether memscope heap can explain the heap; Enter profiles one. With a target: its "
	       "call tree with CPU time, waits and memory, and as a flame graph (F). With the profiles of a finished run, or any "
	       "that flame reads: the same, and no root is needed. The heap of a process (h), or of a SNAPSHOT that memscope heap wrote: what it "
	       "consists of, what keeps it alive, what changed. ? shows the keys.",
	.opts = rows,
};

static double profile_delay_s;

static void show_profile(struct screen *s, const struct screen_target *t)
{
	struct top_record record = { .target = *t, .delay_s = profile_delay_s };
	struct view *v = NULL;
	struct err e = { 0 };

	if (!rights_enough())
		screen_say(s, "profiling needs root: run memscope top with sudo");
	else if (profile_view_live(top_record, &record, t, top_save, &v, &e) < 0)
		screen_say(s, "%s", e.msg);
	else
		screen_push(s, v);
}

static void show_heap(struct screen *s, const struct screen_target *t)
{
	struct top_heap heap = { .pid = t->pid, .container = t->container };
	char title[160];
	struct view *v = NULL;
	struct err e = { 0 };

	snprintf(title, sizeof(title), t->pid ? "%.100s (pid %d)" : "%.100s",
		 t->title ? t->title : "process", (int)t->pid);
	if (!t->pid && !t->container)
		screen_say(s, "the heap of which process? choose one from the list");
	else if (heap_screen_new(top_heap, &heap, title, &v, &e) < 0)
		screen_say(s, "%s", e.msg);
	else
		screen_push(s, v);
}

static const struct screen_sources sources = { .profile = show_profile, .heap = show_heap };

/* Of a run's directory, what goes together into one tree. */
static const char *const run_profiles[] = { "oncpu", "offcpu", "alloc", "heap", "growth" };

static int read_files(char *const *operands, int n, struct profile_set *set, struct dict **ret_dict,
		      struct err *e)
{
	struct input_args none = { 0 };
	_cleanup_(inputs_fini) struct inputs in = { 0 };
	bool is_run = input_is_directory(operands[0]) && input_main_source(operands[0], NULL);
	int r = inputs_init(&in, &none, e);

	for (size_t i = 0;
	     r == 0 && i < (is_run ? sizeof(run_profiles) / sizeof(*run_profiles) : 1); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct err one = { 0 };
		int r2 = inputs_read(&in, operands, n, is_run ? run_profiles[i] : NULL,
				     MERGE_COMMON, NULL, &p, &one);

		if (r2 < 0 && (!is_run || r2 != -ENOENT)) {
			*e = one;
			r = r2;
		}
		if (r2 == 0) {
			r = profile_set_add(set, is_run ? run_profiles[i] : "profile", p);
			if (profile_get_meta(p)->duration_ns > set->duration_ns)
				set->duration_ns = profile_get_meta(p)->duration_ns;
		}
	}
	if (r == 0)
		*ret_dict = TAKE_PTR(in.d);
	return r;
}

static int first_view(const struct top_args *a, char *const *operands, int n, struct screen *s,
		      struct err *e)
{
	struct screen_target t = { .all = a->all,
				   .pid = (pid_t)a->pid,
				   .container = a->container,
				   .title = a->container };
	struct profile_set set = { 0 };
	struct dict *d = NULL;
	struct view *v = NULL;
	char comm[64];
	int r;

	if (n == 1 && snapshot_file_is(operands[0])) {
		r = heap_screen_new(top_heap, &(struct top_heap){ .file = operands[0] },
				    operands[0], &v, e);
		if (r == 0)
			screen_push(s, v);
		return r;
	}
	if (n) {
		r = read_files(operands, n, &set, &d, e);
		if (r < 0) {
			profile_set_fini(&set);
			return r;
		}
		v = profile_view_of(d, &set, operands[0]);
		return screen_push(s, v) ? 0 : err_set(e, -ENOMEM, "out of memory");
	}
	if (!t.all && !t.pid && !t.container) {
		r = picker_new(a->delay_s > 0 ? a->delay_s : 2, a->batch, &v, e);
		if (r == 0)
			screen_push(s, v);
		return r;
	}
	r = recording_allowed(e);
	if (r < 0)
		return r;
	if (t.pid) {
		r = target_check(t.pid, e);
		if (r < 0)
			return r;
		target_comm(t.pid, comm, sizeof(comm));
		t.title = comm;
	}
	show_profile(s, &t);
	return s->n_views ? 0 : err_set(e, -EIO, "%s", s->message);
}

static int check(const struct top_args *a, int operands, struct err *e)
{
	if (a->all + !!a->pid + !!a->container + !!operands > 1)
		return err_set(e, -EINVAL,
			       "name one kind of target: -p, -c, -a, or profiles already taken");
	if (a->iterations && !a->batch)
		return err_set(e, -EINVAL, "-n goes with --batch");
	if (!a->batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return err_set(
			e, -ENOTTY,
			"the screen needs a terminal; memscope top --batch prints it as text");
	return 0;
}

int cmd_top(int argc, char **argv)
{
	struct top_args a = { 0 };
	struct screen s = { .sources = &sources };
	struct err e = { 0 };
	uint32_t times;
	int operand, r;

	if (opt_parse(&top_options, argc, argv, &a, &operand, &e) < 0 ||
	    check(&a, argc - operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	profile_delay_s = a.delay_s > 0 ? a.delay_s : 1;
	times = a.iterations ? a.iterations : operand < argc ? 1 : 0; /* files do not change */
	target_raise_files();
	r = first_view(&a, argv + operand, argc - operand, &s, &e);
	if (r == 0 && screen_top(&s)->ops->tick)
		screen_top(&s)->ops->tick(screen_top(&s), &s);
	if (r == 0 && a.batch)
		r = screen_batch(&s, times,
				 operand < argc  ? 0
				 : a.delay_s > 0 ? a.delay_s
						 : 2,
				 stdout, &e);
	else if (r == 0)
		r = screen_run(&s, &e);
	screen_fini(&s);
	workers_wait(5000);
	return r == -EINVAL           ? command_fail(EXIT_USAGE, &e)
	       : r < 0 && r != -EINTR ? command_fail(EXIT_NOTHING, &e)
				      : EXIT_DONE;
}
