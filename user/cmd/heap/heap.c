/* memscope heap: a snapshot of a process's heap, and questions to it. */
#include "cmd/cmd.h"
#include "cmd/heap/questions.h"
#include "heap/snapshot/groups.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct heap_args, field), __VA_ARGS__                           \
	}

/* clang-format off */
static const struct opt rows[] = {
	ROW("pid", 'p', OPT_U32, "PID", pid, .min = 1, .max = 4194304, .help = "this process; it is stopped while its memory is copied, 0.3 s per GiB"),
	ROW("container", 'c', OPT_STRING, "NAME", container, .help = "the process of this container that has most memory, by the name or id that podman, CRI-O, docker or containerd knows"),
	ROW("output", 'o', OPT_STRING, "FILE", output, .help = "where snapshot writes (default heap-COMM-PID-DATE-TIME.snapshot)"),
	ROW("label", 0, OPT_LIST, "KEY=VALUE", labels, .help = "kept in the snapshot and shown with it, like env=prod; may be given again"),
	ROW("anchor", 0, OPT_LIST, "SYMBOL|ADDR+LEN", anchors, .help = "chains that begin at this variable or in these bytes are shown before all others; may be given again"),
	ROW("contents", 0, OPT_CHOICE, NULL, contents, .choices = "none|words|all", .help = "what a snapshot has of the memory itself: names alone (default), addresses and small numbers, or every byte; and what search, query and dups show of it"),
	ROW("core", 0, OPT_FLAG, NULL, core, .help = "snapshot writes an ELF core instead, with every byte of memory, for gdb (default core.PID)"),
	ROW("top", 0, OPT_U32, "N", top, .min = 1, .max = 100000, .help = "at most so many rows (default 20)"),
	ROW("by", 0, OPT_CHOICE, NULL, by, .choices = GROUPS_CHOICES, .help = "rows of a census: types, their modules, arenas of allocators, types with what they refer to or with what refers to them, who allocated them, for which --trace is needed (default type)"),
	ROW("json", 0, OPT_FLAG, NULL, json, .help = "print JSON, in bytes and nanoseconds"),
	ROW("trace", 0, OPT_DOUBLE, "SEC", trace_s, .min = 0.1, .max = 1e6, .help = "trace every allocation for SEC seconds, until Ctrl-C if that comes first, and ask then: of blocks that were allocated in that time it is known where and when"),
	ROW("inject", 0, OPT_FLAG, NULL, inject, .help = "with --trace: by memscope's library in the process instead of probes, as record --alloc=exact --inject"),
	ROW("python-objects", 0, OPT_FLAG, NULL, python_objects, .help = "with --trace: the objects that CPython allocates, too, as record --python-objects"),
	ROW("mem", 0, OPT_U32, "MIB", mem_mb, .min = 16, .max = 65536, .help = "with --trace: at most so much memory for what is traced; 256, the default, has room for 880,000 live blocks where it was tried"),
	ROW("twin", 0, OPT_FLAG, NULL, twin, .help = "let the process go on while a copy-on-write twin of it is copied, which takes 20 ms per GiB to make; refused under seccomp and near a limit of memory"),
	ROW("scratch", 0, OPT_STRING, "DIR", folder, .help = "where the copy lies meanwhile, without a name (default /var/tmp)"),
	{ 0 },
};
/* clang-format on */

const struct opt_command heap_options = {
	.name = "heap",
	.synopsis =
		"allocator|caches|census|diff|dominators|dups|fragmentation|leaks|query|refcounts|retainers|search|snapshot|thunks -p PID|-c NAME|FILE [WHAT]",
	.doc = "Explains the heap of a running process that nobody prepared for it, or of a snapshot of one: what it consists of, what "
	       "keeps objects alive, what is lost, what changed. `memscope heap QUESTION --help` has a question's own options and an example; `memscope help objects` the heaps "
	       "and types that are known, and what WHAT may be: a type, a size, an address, a condition.",
	.opts = rows,
};

/* --- the command line --- */

bool cmd_heap_asks(const char *word)
{
	return heap_question_find(word) != NULL;
}

bool cmd_heap_help(const char *question, FILE *f)
{
	const struct heap_question *q = heap_question_find(question);

	if (q)
		heap_question_help(q, rows, f);
	return q != NULL;
}

static const struct heap_question *question_of(const char *name, struct err *e)
{
	const struct heap_question *found = heap_question_find(name);
	const char *names[32], *near;
	char list[256];
	size_t n = 0;

	if (found)
		return found;
	for (const struct heap_question *q = heap_questions; q->name && n < 32; q++)
		names[n++] = q->name;
	near = opt_nearest(name, names, n);
	heap_questions_list(list, sizeof(list));
	err_set(e, -EINVAL, "\"%.32s\" is no question to a heap%s%s%s: %s", name,
		near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "", list);
	return NULL;
}

/* What is asked, of which file unless of a process, and what of. */
struct words {
	const struct heap_question *question;
	const char *file, *what;
	char **before;
	uint32_t n_before;
};

/* The rest of the words are files: the last one is the newest, unless that is a process. */
static int read_files(char **files, int n, bool process, struct words *w, struct err *e)
{
	if (n < 2 - process || n > HEAP_BEFORE_MAX)
		return err_set(
			e, -EINVAL,
			"memscope heap %s compares 2 to %d snapshots: FILE FILE, or FILE -p PID",
			w->question->name, HEAP_BEFORE_MAX);
	w->before = files;
	w->n_before = (uint32_t)(process ? n : n - 1);
	w->file = process ? NULL : files[n - 1];
	return 0;
}

/* A process's number where a file is expected. */
static int check_file(const struct words *w, struct err *e)
{
	if (w->file[strspn(w->file, "0123456789")] || access(w->file, F_OK) == 0)
		return 0;
	return err_set(e, -EINVAL,
		       "there is no file %.20s; of process %.20s: memscope heap %s -p %.20s%s%s",
		       w->file, w->file, w->question->name, w->file, w->what ? " " : "",
		       w->what ? w->what : "");
}

static int read_words(const struct heap_args *a, char **words, int n, struct words *ret_words,
		      struct err *e)
{
	struct words *w = ret_words;
	bool process = a->pid || a->container;
	char list[256];
	int used = 1;

	heap_questions_list(list, sizeof(list));
	if (!n)
		return err_set(
			e, -EINVAL,
			"ask one of %s: memscope heap census -p PID (memscope help objects has them all)",
			list);
	w->question = question_of(words[0], e);
	if (!w->question)
		return -EINVAL;
	if ((a->pid && a->container) || (n == 1 && !process))
		return err_set(
			e, -EINVAL,
			"say of which process: memscope heap %s -p PID, -c CONTAINER or FILE",
			w->question->name);
	if (w->question->compares)
		return read_files(words + 1, n - 1, process, w, e);
	if (!process)
		w->file = words[used++];
	if (w->question->what && used < n)
		w->what = words[used++];
	if (w->question->what && !w->what)
		return err_set(e, -EINVAL, "say of what: memscope heap %s %s %s", w->question->name,
			       w->file ? "FILE" : "-p PID", w->question->what);
	if (a->trace_s > 0 && (w->file || a->core))
		return err_set(
			e, -EINVAL,
			"--trace is for questions to a process, and snapshots of one: memscope heap %s -p PID --trace SEC",
			w->question->name);
	if ((a->inject || a->python_objects || a->mem_mb != HEAP_TRACE_MB) && a->trace_s <= 0)
		return err_set(e, -EINVAL, "--%s says how to trace: it goes with --trace SEC",
			       a->inject           ? "inject"
			       : a->python_objects ? "python-objects"
						   : "mem");
	if (a->core && w->file)
		return err_set(e, -EINVAL, "--core is for memscope heap snapshot -p PID");
	if (used < n)
		return err_set(e, -EINVAL, "\"%.64s\" is one word too many for memscope heap %s%s",
			       words[used], w->question->name,
			       w->question->what ? ": a condition with spaces stands in quotes"
						 : "");
	return w->file ? check_file(w, e) : 0;
}

static int print(const struct heap_view *v, struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	int r = sink_open_file("-", &out, e);

	if (r == 0)
		r = answer_write(v->out, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}

/* `memscope heap census --help`, in any order: of that question alone. */
static bool helped(int argc, char **argv)
{
	const char *question = NULL;
	bool help = false;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		help |= strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0;
		if (!question && cmd_heap_asks(argv[i]))
			question = argv[i];
	}
	return help && question && cmd_heap_help(question, stdout);
}

int cmd_heap(int argc, char **argv)
{
	/* A choice of -1 was not made. */
	const struct heap_args defaults = {
		.top = 20, .folder = "/var/tmp", .by = -1, .contents = -1, .mem_mb = HEAP_TRACE_MB
	};
	struct heap_args a = defaults;
	_cleanup_(heap_view_fini) struct heap_view v = { 0 };
	struct words w = { 0 };
	struct err e = { 0 };
	int operand, r;

	if (helped(argc, argv))
		return err_flush_stdout() < 0 ? EXIT_NOTHING : EXIT_DONE;
	if (opt_parse(&heap_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (read_words(&a, argv + operand, argc - operand, &w, &e) < 0 ||
	    heap_question_check(w.question, rows, &a, &defaults, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	a.by = a.by < 0 ? 0 : a.by;
	a.contents = a.contents < 0 ? 0 : a.contents;
	r = w.question->check ? w.question->check(&a, &e) : 0;
	v.before_stop = w.question->before_stop;
	if (r == 0)
		r = heap_view_open(&v, &a, w.file, w.before, w.n_before, &e);
	if (r == 0) {
		if (v.s)
			heap_put_header(&v);
		r = w.question->answer(&v, w.what, &e);
	}
	if (r == 0)
		r = print(&v, &e);
	if (r < 0)
		return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	return EXIT_DONE;
}
