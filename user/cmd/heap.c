/* memscope heap: what a process's heap consists of, what keeps an object, and what nothing refers to any more. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "heap/graph/dominators.h"
#include "heap/graph/leaks.h"
#include "heap/snapshot/retainers.h"
#include "heap/snapshot/select.h"
#include "model/dict.h"
#include "proc/variable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct heap_args {
	uint32_t pid, top;
	const char *folder;
};

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct heap_args, field), __VA_ARGS__                           \
	}

/* clang-format off */
static const struct opt rows[] = {
	ROW("pid", 'p', OPT_U32, "PID", pid, .min = 1, .max = 4194304, .help = "this process; it is stopped while its memory is copied, 0.1 s per GiB"),
	ROW("top", 0, OPT_U32, "N", top, .min = 1, .max = 100000, .help = "at most so many rows (default 20)"),
	ROW("scratch", 0, OPT_STRING, "DIR", folder, .help = "where the copy lies meanwhile, without a name (default /var/tmp)"),
	{ 0 },
};
/* clang-format on */

const struct opt_command heap_options = {
	.name = "heap",
	.synopsis = "census|dominators|leaks|retainers -p PID [WHAT]",
	.doc = "Explains the heap of a running process that nobody prepared for it: what it consists of (census), what keeps "
	       "objects alive (retainers), which objects retain most (dominators), what nothing refers to any more (leaks). WHAT is type:NAME, size:BYTES or an "
	       "address, 0x…; a bare name is a type's. The heap may be glibc's, jemalloc's, mimalloc's or CPython's.",
	.opts = rows,
};

/* What the questions are asked of. */
struct view {
	pid_t pid;
	uint32_t top;
	struct snapshot *s;
	struct dict *dict;
	struct proc_table *procs;
};

static void view_fini(struct view *v)
{
	snapshot_free(v->s);
	proc_table_free(v->procs);
	dict_free(v->dict);
}

static int view_open(struct view *v, const struct heap_args *a, struct err *e)
{
	int r;

	v->pid = (pid_t)a->pid;
	v->top = a->top;
	v->dict = dict_new();
	v->procs = v->dict ? proc_table_new(v->dict) : NULL;
	if (!v->procs)
		return err_set(e, -ENOMEM, "out of memory");
	r = proc_table_scan(v->procs, v->pid, 0, now_ns(), e);
	return r < 0 ? r : snapshot_take(v->pid, a->folder, &v->s, e);
}

static void print_header(const struct view *v)
{
	struct copy_facts f = copy_facts(v->s->copy);
	struct proc *proc = proc_table_first(v->procs, v->pid);

	printf("%s (%d): %s blocks in use, %s, with %s references between them; stopped for %s\n",
	       proc ? proc_comm(proc) : "process", (int)v->pid,
	       unit_count((int64_t)v->s->blocks.n).s,
	       unit_bytes((int64_t)v->s->blocks.all.words * 8).s,
	       unit_count((int64_t)graph_edges(v->s->graph)).s, unit_ns((int64_t)f.pause_ns).s);
	for (uint32_t i = 0; i < v->s->census.n; i++) {
		const struct heap_use *u = &v->s->census.use[i];

		if (u->unknown.bytes)
			printf("of %s, %s could not be walked and are left out\n", u->allocator,
			       unit_bytes((int64_t)u->unknown.bytes).s);
	}
	if (f.n_missed)
		printf("%u threads did not stop: what only their registers refer to seems lost\n",
		       f.n_missed);
	printf("\n");
}

/* --- rows by type --- */

struct type_row {
	const struct type *type;
	uint64_t objects, bytes, indirect, indirect_bytes;
};

static int by_bytes(const void *a, const void *b)
{
	const struct type_row *x = a, *y = b;
	uint64_t p = x->bytes + x->indirect_bytes, q = y->bytes + y->indirect_bytes;

	return p != q ? (p < q ? 1 : -1) : (x->type > y->type) - (x->type < y->type);
}

static struct type_row *type_rows(const struct view *v)
{
	struct type_row *found = calloc(v->s->types.n, sizeof(*found));

	for (uint32_t i = 0; found && i < v->s->types.n; i++)
		found[i].type = &v->s->types.type[i];
	return found;
}

static int census(const struct view *v, const char *what, struct err *e)
{
	_cleanup_(freep) struct type_row *found = type_rows(v);

	(void)what;
	if (!found)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < v->s->types.n; i++) {
		found[i].objects = found[i].type->blocks;
		found[i].bytes = found[i].type->bytes;
	}
	qsort(found, v->s->types.n, sizeof(*found), by_bytes);
	printf("%12s %12s  type\n", "bytes", "objects");
	for (uint32_t i = 0; i < v->s->types.n && i < v->top; i++)
		printf("%12s %12s  %s\n", unit_bytes((int64_t)found[i].bytes).s,
		       unit_count((int64_t)found[i].objects).s, found[i].type->name);
	return 0;
}

/* --- retainers --- */

static void print_root(const struct view *v, const struct snapshot_root *root)
{
	static const char *const kinds[] = {
		"the module", "the variable", "a thread's own variable",
		"the stack",  "a register",   "memory of no known allocator"
	};
	struct proc *proc = proc_table_first(v->procs, v->pid);
	char name[256] = "";
	uint32_t n;

	if (root->kind == SNAPSHOT_ROOT_MODULE &&
	    chain_module_name(v->s, root->at, name, sizeof(name)))
		printf("%s %s", kinds[root->kind], name);
	else if (root->kind == SNAPSHOT_ROOT_GLOBAL && proc &&
		 proc_variable_name(v->procs, proc, root->at, name, sizeof(name), NULL))
		printf("%s %s", kinds[root->kind], name);
	else if (root->kind == SNAPSHOT_ROOT_REGISTER)
		printf("%s", kinds[root->kind]);
	else
		printf("%s at 0x%llx", kinds[root->kind], (unsigned long long)root->at);
	if (root->kind == SNAPSHOT_ROOT_STACK || root->kind == SNAPSHOT_ROOT_REGISTER ||
	    root->kind == SNAPSHOT_ROOT_TLS) {
		const struct stopped_thread *t = copy_threads(v->s->copy, &n);

		if (root->thread < n)
			printf(" of thread %d", (int)t[root->thread].tid);
	}
}

static void print_retainer(const struct view *v, const struct retainer *r)
{
	printf("%s, %s, through ", unit_count((int64_t)r->objects).s,
	       unit_bytes((int64_t)r->bytes).s);
	print_root(v, &v->s->roots[r->root]);
	printf("\n");
	if (r->cut)
		printf("    … many more …\n");
	for (uint32_t i = 0; i < r->n_links; i++) {
		if (r->left_out && i == r->n_links - 1)
			printf("    … %s more …\n", unit_count(r->left_out).s);
		printf("    %s%s\n", r->links[i], r->repeats[i] ? ", one behind the other" : "");
	}
}

static int retainers(const struct view *v, const char *what, struct err *e)
{
	_cleanup_(freep) uint32_t *objects = NULL;
	_cleanup_(retainers_fini) struct retainers found = { 0 };
	uint64_t n;
	int r = select_objects(v->s, what, &objects, &n, e);

	if (r == 0)
		r = retainers_find(v->s, objects, n, ~0u, &found);
	if (r < 0)
		return r == -ENOMEM ? err_set(e, r, "out of memory") : r;
	printf("%s objects are %s, %s\n", unit_count((int64_t)found.objects).s, what,
	       unit_bytes((int64_t)found.bytes).s);
	if (found.one_in > 1)
		printf("by a sample of one object in %s:\n", unit_count((int64_t)found.one_in).s);
	for (uint32_t i = 0; i < found.n && i < v->top; i++)
		print_retainer(v, &found.rows[i]);
	if (found.n > v->top)
		printf("%s more kinds of chains\n", unit_count(found.n - v->top).s);
	if (found.unreached)
		printf("%s, %s: nothing refers to them any more\n",
		       unit_count((int64_t)found.unreached).s,
		       unit_bytes((int64_t)found.unreached_bytes).s);
	return 0;
}

/* --- dominators --- */

/* An object that no other one dominates, and what would be freed with it. */
struct keeper {
	uint32_t node;
	uint64_t retained;
};

static int by_retained(const void *a, const void *b)
{
	const struct keeper *x = a, *y = b;

	if (x->retained != y->retained)
		return x->retained < y->retained ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static void print_keepers(const struct view *v, const struct keeper *keepers, uint32_t n)
{
	printf("%12s %12s %-20s  type\n", "retained", "itself", "address");
	for (uint32_t i = 0; i < n && i < v->top; i++)
		printf("%12s %12s 0x%-18llx  %s\n", unit_bytes((int64_t)keepers[i].retained).s,
		       unit_bytes((int64_t)snapshot_bytes(v->s, keepers[i].node)).s,
		       (unsigned long long)v->s->blocks.rows[keepers[i].node].addr,
		       v->s->types.type[v->s->types.of[keepers[i].node]].name);
}

static int dominators(const struct view *v, const char *what, struct err *e)
{
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	_cleanup_(freep) uint64_t *sizes = calloc(v->s->blocks.n + 1, sizeof(*sizes));
	_cleanup_(freep) struct keeper *keepers = calloc(v->s->blocks.n + 1, sizeof(*keepers));
	_cleanup_(freep) uint64_t *retained = NULL;
	uint32_t n = 0;

	(void)what;
	for (uint32_t i = 0; sizes && i < v->s->blocks.n; i++)
		sizes[i] = snapshot_bytes(v->s, i);
	if (sizes && keepers &&
	    graph_dominators_find(v->s->graph, v->s->reverse, v->s->graph_roots, v->s->n_roots,
				  &d) == 0)
		retained = graph_retained(&d, sizes);
	if (!retained)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < v->s->blocks.n; i++)
		if (d.of[i] == d.n)
			keepers[n++] = (struct keeper){ i, retained[i] };
	qsort(keepers, n, sizeof(*keepers), by_retained);
	print_keepers(v, keepers, n);
	return 0;
}

/* --- leaks --- */

static int leaks(const struct view *v, const char *what, struct err *e)
{
	_cleanup_(freep) uint8_t *reached =
		graph_reached(v->s->graph, v->s->graph_roots, v->s->n_roots);
	_cleanup_(freep) uint8_t *found = reached ? graph_leaks(v->s->graph, reached) : NULL;
	_cleanup_(freep) struct type_row *by_type = type_rows(v);
	uint64_t n[3] = { 0 }, bytes[3] = { 0 };

	(void)what;
	if (!found || !by_type)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < v->s->blocks.n; i++) {
		struct type_row *row = &by_type[v->s->types.of[i]];

		n[found[i]]++;
		bytes[found[i]] += snapshot_bytes(v->s, i);
		if (found[i] == GRAPH_LEAK_DIRECT) {
			row->objects++;
			row->bytes += snapshot_bytes(v->s, i);
		} else if (found[i] == GRAPH_LEAK_INDIRECT) {
			row->indirect++;
			row->indirect_bytes += snapshot_bytes(v->s, i);
		}
	}
	qsort(by_type, v->s->types.n, sizeof(*by_type), by_bytes);
	printf("lost, for nothing refers to them: %s objects, %s, and %s, %s, that only those refer to\n",
	       unit_count((int64_t)n[GRAPH_LEAK_DIRECT]).s,
	       unit_bytes((int64_t)bytes[GRAPH_LEAK_DIRECT]).s,
	       unit_count((int64_t)n[GRAPH_LEAK_INDIRECT]).s,
	       unit_bytes((int64_t)bytes[GRAPH_LEAK_INDIRECT]).s);
	if (n[GRAPH_LEAK_DIRECT])
		printf("%12s %12s %12s %12s  type\n", "lost bytes", "objects", "indirectly",
		       "objects");
	for (uint32_t i = 0;
	     i < v->s->types.n && i < v->top && by_type[i].bytes + by_type[i].indirect_bytes; i++)
		printf("%12s %12s %12s %12s  %s\n", unit_bytes((int64_t)by_type[i].bytes).s,
		       unit_count((int64_t)by_type[i].objects).s,
		       unit_bytes((int64_t)by_type[i].indirect_bytes).s,
		       unit_count((int64_t)by_type[i].indirect).s, by_type[i].type->name);
	return 0;
}

/* --- */

static const struct question {
	const char *name;
	bool takes_what;
	int (*answer)(const struct view *v, const char *what, struct err *e);
} questions[] = {
	{ "census", false, census },
	{ "retainers", true, retainers },
	{ "dominators", false, dominators },
	{ "leaks", false, leaks },
};

static const struct question *question_of(const char *name, struct err *e)
{
	const char *names[sizeof(questions) / sizeof(*questions)], *near;

	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		names[i] = questions[i].name;
		if (strcmp(name, questions[i].name) == 0)
			return &questions[i];
	}
	near = opt_nearest(name, names, sizeof(names) / sizeof(*names));
	err_set(e, -EINVAL,
		"\"%.32s\" is no question to a heap%s%s%s: census, retainers, dominators or leaks",
		name, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
	return NULL;
}

int cmd_heap(int argc, char **argv)
{
	struct heap_args a = { .top = 20, .folder = "/var/tmp" };
	_cleanup_(view_fini) struct view v = { 0 };
	const struct question *q;
	struct err e = { 0 };
	int operand;

	if (opt_parse(&heap_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (!a.pid || operand == argc) {
		err_set(&e, -EINVAL, "say what and of which process: memscope heap census -p PID");
		return command_fail(EXIT_USAGE, &e);
	}
	q = question_of(argv[operand], &e);
	if (!q)
		return command_fail(EXIT_USAGE, &e);
	if (argc - operand != 1 + q->takes_what) {
		err_set(&e, -EINVAL,
			q->takes_what ? "say of what: memscope heap %s -p PID type:NAME"
				      : "memscope heap %s takes no more words",
			q->name);
		return command_fail(EXIT_USAGE, &e);
	}
	if (view_open(&v, &a, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	print_header(&v);
	if (q->answer(&v, argv[operand + 1], &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	return EXIT_DONE;
}
