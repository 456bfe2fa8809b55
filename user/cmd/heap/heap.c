/* memscope heap: a snapshot of a process's heap, and questions to it. */
#include "cmd/cmd.h"
#include "cmd/heap/view.h"
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
	ROW("container", 'c', OPT_STRING, "NAME", container, .help = "the process of this container that has most memory, by the name or id that podman, docker or containerd knows"),
	ROW("output", 'o', OPT_STRING, "FILE", output, .help = "where snapshot writes (default heap-COMM-PID-DATE-TIME.snapshot)"),
	ROW("label", 0, OPT_LIST, "KEY=VALUE", labels, .help = "kept in the snapshot and shown with it, like env=prod; may be given again"),
	ROW("anchor", 0, OPT_LIST, "SYMBOL|ADDR+LEN", anchors, .help = "chains that begin at this variable or in these bytes are shown before all others; may be given again"),
	ROW("contents", 0, OPT_CHOICE, NULL, contents, .choices = "none|words|all", .help = "what a snapshot has of the memory itself: names alone (default), addresses and small numbers, or every byte; and what search, query and dups show of it"),
	ROW("core", 0, OPT_FLAG, NULL, core, .help = "snapshot writes an ELF core instead, with every byte of memory, for gdb (default core.PID)"),
	ROW("top", 0, OPT_U32, "N", top, .min = 1, .max = 100000, .help = "at most so many rows (default 20)"),
	ROW("by", 0, OPT_CHOICE, NULL, by, .choices = GROUPS_CHOICES, .help = "rows of a census: types, their modules, arenas of allocators, types with what they refer to or with what refers to them (default type)"),
	ROW("json", 0, OPT_FLAG, NULL, json, .help = "print JSON, in bytes and nanoseconds"),
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
	       "keeps objects alive, what is lost, what changed. `memscope help objects` has each question, the heaps and types that are "
	       "known, and what WHAT may be: a type, a size, an address, a condition.",
	.opts = rows,
};

/* In the order of the sentence that names them. */
static const struct question {
	const char *name;
	const char *what; /* what stands behind it in an example; NULL: nothing */
	int (*answer)(const struct heap_view *v, const char *what, struct err *e);
	/* Before a process is stopped; NULL: nothing. */
	int (*check)(const struct heap_args *a, struct err *e);
	bool compares; /* older snapshots, which are files, are named first */
} questions[] = {
	{ "census", NULL, heap_census },
	{ "retainers", "type:NAME", heap_retainers },
	{ "dominators", NULL, heap_dominators },
	{ "allocator", NULL, heap_allocator },
	{ "fragmentation", NULL, heap_fragmentation },
	{ "leaks", NULL, heap_leaks },
	{ "caches", NULL, heap_caches },
	{ "dups", NULL, heap_dups },
	{ "search", "text:TEXT", heap_search },
	{ "query", "'type = NAME and size > 4K'", heap_query },
	{ "diff", NULL, heap_diff, .compares = true },
	{ "refcounts", NULL, heap_refcounts },
	{ "thunks", NULL, heap_thunks },
	{ "snapshot", NULL, heap_snapshot, heap_snapshot_check },
};

enum { N_QUESTIONS = sizeof(questions) / sizeof(*questions) };

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

bool cmd_heap_asks(const char *word)
{
	for (int i = 0; i < N_QUESTIONS; i++)
		if (strcmp(word, questions[i].name) == 0)
			return true;
	return false;
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

/* What is asked, of which file unless of a process, and what of. */
struct words {
	const struct question *question;
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

	list_questions(list, sizeof(list));
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
	if (a->core && (w->question->answer != heap_snapshot || w->file))
		return err_set(e, -EINVAL, "--core is for memscope heap snapshot -p PID");
	if (used < n)
		return err_set(e, -EINVAL, "memscope heap %s takes no more words",
			       w->question->name);
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

int cmd_heap(int argc, char **argv)
{
	struct heap_args a = { .top = 20, .folder = "/var/tmp" };
	_cleanup_(heap_view_fini) struct heap_view v = { 0 };
	struct words w = { 0 };
	struct err e = { 0 };
	int operand, r;

	if (opt_parse(&heap_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (read_words(&a, argv + operand, argc - operand, &w, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	r = w.question->check ? w.question->check(&a, &e) : 0;
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
