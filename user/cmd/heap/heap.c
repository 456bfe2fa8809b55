/* memscope heap: a snapshot of a process's heap, and questions to it. */
#include "base/clock.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/groups.h"
#include "model/dict.h"

#include <errno.h>
#include <string.h>

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct heap_args, field), __VA_ARGS__                           \
	}

/* clang-format off */
static const struct opt rows[] = {
	ROW("pid", 'p', OPT_U32, "PID", pid, .min = 1, .max = 4194304, .help = "this process; it is stopped while its memory is copied, 0.1 s per GiB"),
	ROW("top", 0, OPT_U32, "N", top, .min = 1, .max = 100000, .help = "at most so many rows (default 20)"),
	ROW("by", 0, OPT_CHOICE, NULL, by, .choices = GROUPS_CHOICES, .help = "rows of a census: types, their modules, types with what they refer to or with what refers to them (default type)"),
	ROW("json", 0, OPT_FLAG, NULL, json, .help = "print JSON, in bytes and nanoseconds"),
	ROW("scratch", 0, OPT_STRING, "DIR", folder, .help = "where the copy lies meanwhile, without a name (default /var/tmp)"),
	{ 0 },
};
/* clang-format on */

const struct opt_command heap_options = {
	.name = "heap",
	.synopsis = "allocator|census|dominators|fragmentation|leaks|query|retainers -p PID [WHAT]",
	.doc = "Explains the heap of a running process that nobody prepared for it: what it consists of (census), what keeps "
	       "objects alive (retainers), which objects retain most (dominators), what nothing refers to any more (leaks), what each arena holds (allocator) and what pins its free memory (fragmentation), objects that meet a condition (query). WHAT is type:NAME, size:BYTES, an "
	       "address, 0x…, a bare name, which is a type's, or a condition as `memscope help objects` says. The heap may be glibc's, jemalloc's, mimalloc's or CPython's.",
	.opts = rows,
};

/* In the order of the sentence that names them. */
static const struct question {
	const char *name;
	const char *what; /* what stands behind it in an example; NULL: nothing */
	int (*answer)(const struct heap_view *v, const char *what, struct err *e);
} questions[] = {
	{ "census", NULL, heap_census },
	{ "retainers", "type:NAME", heap_retainers },
	{ "dominators", NULL, heap_dominators },
	{ "allocator", NULL, heap_allocator },
	{ "fragmentation", NULL, heap_fragmentation },
	{ "leaks", NULL, heap_leaks },
	{ "query", "'type = NAME and size > 4K'", heap_query },
};

enum { N_QUESTIONS = sizeof(questions) / sizeof(*questions) };

/* --- the snapshot --- */

static void view_fini(struct heap_view *v)
{
	answer_free(v->out);
	snapshot_free(v->s);
	proc_table_free(v->procs);
	dict_free(v->dict);
}

static int view_open(struct heap_view *v, const struct heap_args *a, struct err *e)
{
	int r;

	v->args = a;
	v->pid = (pid_t)a->pid;
	v->out = answer_begin(a->json ? ANSWER_JSON : ANSWER_TEXT);
	v->dict = dict_new();
	v->procs = v->dict ? proc_table_new(v->dict) : NULL;
	if (!v->out || !v->procs)
		return err_set(e, -ENOMEM, "out of memory");
	r = proc_table_scan(v->procs, v->pid, 0, now_ns(), e);
	return r < 0 ? r : snapshot_take(v->pid, a->folder, &v->s, e);
}

static void put_losses(const struct heap_view *v, const struct copy_facts *f)
{
	for (uint32_t i = 0; i < v->s->census.n; i++) {
		const struct heap_use *u = &v->s->census.use[i];

		if (u->unknown.bytes)
			answer_say(v->out, "of %s, %s could not be walked and are left out",
				   u->allocator, unit_bytes((int64_t)u->unknown.bytes).s);
	}
	if (f->n_missed)
		answer_say(v->out,
			   "%u threads did not stop: what only their registers refer to seems lost",
			   f->n_missed);
}

static void put_header(const struct heap_view *v)
{
	struct copy_facts f = copy_facts(v->s->copy);
	struct proc *proc = proc_table_first(v->procs, v->pid);
	const char *name = proc ? proc_comm(proc) : "process";
	uint64_t bytes = 8 * v->s->blocks.all.words;

	answer_say(v->out,
		   "%s (%d): %s blocks in use, %s, with %s references between them; stopped for %s",
		   name, (int)v->pid, unit_count((int64_t)v->s->blocks.n).s,
		   unit_bytes((int64_t)bytes).s, unit_count((int64_t)graph_edges(v->s->graph)).s,
		   unit_ns((int64_t)f.pause_ns).s);
	answer_word(v->out, "process", name);
	answer_figure(v->out, "pid", (uint64_t)v->pid);
	answer_figure(v->out, "heap_blocks", v->s->blocks.n);
	answer_figure(v->out, "heap_bytes", bytes);
	answer_figure(v->out, "heap_references", graph_edges(v->s->graph));
	answer_figure(v->out, "pause_ns", f.pause_ns);
	put_losses(v, &f);
	answer_say(v->out, "%s", "");
}

/* --- the command line --- */

/* "census, retainers, … or leaks" */
static void list_questions(char *list, size_t cap)
{
	size_t n = 0;

	for (int i = 0; i < N_QUESTIONS && n < cap; i++)
		n += (size_t)snprintf(list + n, cap - n, "%s%s",
				      i == 0                ? ""
				      : i < N_QUESTIONS - 1 ? ", "
							    : " or ",
				      questions[i].name);
}

static const struct question *question_of(const char *name, struct err *e)
{
	const char *names[N_QUESTIONS], *near;
	char list[256];

	for (int i = 0; i < N_QUESTIONS; i++) {
		names[i] = questions[i].name;
		if (strcmp(name, questions[i].name) == 0)
			return &questions[i];
	}
	near = opt_nearest(name, names, N_QUESTIONS);
	list_questions(list, sizeof(list));
	err_set(e, -EINVAL, "\"%.32s\" is no question to a heap%s%s%s: %s", name,
		near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "", list);
	return NULL;
}

/* The question, and what of; NULL with a sentence. */
static const struct question *read_words(const struct heap_args *a, char **words, int n,
					 struct err *e)
{
	const struct question *q;

	if (!a->pid || !n) {
		err_set(e, -EINVAL, "say what and of which process: memscope heap census -p PID");
		return NULL;
	}
	q = question_of(words[0], e);
	if (q && n != 1 + !!q->what) {
		err_set(e, -EINVAL,
			q->what ? "say of what: memscope heap %s -p PID %s"
				: "memscope heap %s takes no more words",
			q->name, q->what);
		return NULL;
	}
	return q;
}

static int print(const struct heap_view *v, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r = sink_open_file("-", &out, e);

	if (r == 0)
		r = answer_write(v->out, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}

int cmd_heap(int argc, char **argv)
{
	struct heap_args a = { .top = 20, .folder = "/var/tmp" };
	_cleanup_(view_fini) struct heap_view v = { 0 };
	const struct question *q;
	struct err e = { 0 };
	int operand, r;

	if (opt_parse(&heap_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	q = read_words(&a, argv + operand, argc - operand, &e);
	if (!q)
		return command_fail(EXIT_USAGE, &e);
	if (view_open(&v, &a, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	put_header(&v);
	r = q->answer(&v, argv[operand + 1], &e);
	if (r == 0)
		r = print(&v, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return EXIT_DONE;
}
