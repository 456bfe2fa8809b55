/* memscope heap: what a process's heap consists of, and what keeps it. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "heap/graph/leaks.h"
#include "base/clock.h"
#include "heap/snapshot/chain.h"
#include "model/dict.h"
#include "proc/variable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct heap_args {
	uint32_t pid, top;
};

#define ROW(long_name, letter, kind_, arg_, field, ...)                                            \
	{                                                                                          \
		.name = long_name, .key = letter, .kind = kind_, .arg = arg_,                      \
		.offset = offsetof(struct heap_args, field), __VA_ARGS__                           \
	}

/* clang-format off */
static const struct opt rows[] = {
	ROW("pid", 'p', OPT_U32, "PID", pid, .min = 1, .max = 4194304, .help = "this process, which is stopped while its memory is copied"),
	ROW("top", 0, OPT_U32, "N", top, .min = 1, .max = 100000, .help = "so many rows (default 20)"),
	{ 0 },
};
/* clang-format on */

const struct opt_command heap_options = {
	.name = "heap",
	.synopsis = "census|retainers|leaks -p PID [WHAT]",
	.doc = "Explains the heap of a running process that nobody prepared for it: what it consists of (census), what keeps "
	       "an object alive (retainers), what nothing refers to any more (leaks).",
	.opts = rows,
};

struct view {
	struct snapshot *s;
	struct dict *dict;
	struct proc_table *procs;
	struct proc *proc;
	uint32_t top;
};

static void print_header(const struct view *v, pid_t pid)
{
	struct copy_facts f = copy_facts(v->s->copy);

	printf("process %d: %s blocks, %s; %s references, %s roots; stopped for %s to copy %s\n", (int)pid,
	       unit_count((int64_t)v->s->blocks.n).s, unit_bytes((int64_t)v->s->blocks.all.words * 8).s,
	       unit_count((int64_t)graph_edges(v->s->graph)).s, unit_count((int64_t)v->s->n_roots).s,
	       unit_ns((int64_t)f.pause_ns).s, unit_bytes((int64_t)f.bytes).s);
}

static int by_bytes(const void *a, const void *b)
{
	const struct type *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int census(struct view *v)
{
	qsort(v->s->types.type, v->s->types.n, sizeof(*v->s->types.type), by_bytes);
	printf("%12s %12s  type\n", "bytes", "blocks");
	for (uint32_t i = 0; i < v->s->types.n && i < v->top; i++)
		printf("%12s %12s  %s\n", unit_bytes((int64_t)v->s->types.type[i].bytes).s,
		       unit_count((int64_t)v->s->types.type[i].blocks).s, v->s->types.type[i].name);
	return EXIT_DONE;
}

static void print_node(const struct view *v, uint32_t node)
{
	printf("%s at 0x%llx (%s)", v->s->types.type[v->s->types.of[node]].name,
	       (unsigned long long)v->s->blocks.rows[node].addr, unit_bytes((int64_t)snapshot_bytes(v->s, node)).s);
}

enum { CHAIN_MAX = 64 };

static void print_root(const struct view *v, const struct snapshot_root *root, const char *kind)
{
	char name[256] = "";

	if (root->kind == SNAPSHOT_ROOT_GLOBAL)
		proc_variable_name(v->procs, v->proc, root->at, name, sizeof(name), NULL);
	printf("%s %s 0x%llx\n", kind, name, (unsigned long long)root->at);
}

static void print_chain(const struct view *v, const struct graph_chains *c, uint32_t node)
{
	struct chain_step steps[CHAIN_MAX];
	char text[CHAIN_TEXT_MAX];
	uint32_t n = 0;

	for (; n < CHAIN_MAX; node = c->next[node]) {
		steps[n++] = (struct chain_step){ node, c->at[node] };
		if (c->next[node] == GRAPH_NONE)
			break;
	}
	for (uint32_t i = 0; i < n;) {
		uint32_t at = steps[i].node;

		i += chain_link(v->s, &steps[i], n - i, text);
		printf("    %-60s 0x%llx, %s\n", text, (unsigned long long)v->s->blocks.rows[at].addr,
		       unit_bytes((int64_t)snapshot_bytes(v->s, at)).s);
	}
}

static int retainers(struct view *v, const char *what)
{
	static const char *const kinds[] = { "global", "thread-local", "stack", "register", "mapping" };
	_cleanup_(freep) uint32_t *wanted = calloc(v->s->blocks.n + 1, sizeof(*wanted));
	struct graph_chains c;
	uint64_t n = 0;

	for (uint32_t i = 0; wanted && i < v->s->blocks.n; i++)
		if (strcmp(v->s->types.type[v->s->types.of[i]].name, what) == 0)
			wanted[n++] = i;
	if (!n || graph_chains_to(v->s->reverse, v->s->graph_roots, v->s->n_roots, wanted, n, NULL, NULL, &c) < 0)
		return EXIT_NOTHING;
	printf("%s of type %s\n", unit_count((int64_t)n).s, what);
	for (uint32_t kind = 0; kind < SNAPSHOT_ROOT_KINDS; kind++) {
		const struct snapshot_root *root = &v->s->roots[c.of[kind].root];
		uint32_t node = root->node;

		if (!c.of[kind].found)
			continue;
		print_root(v, root, kinds[kind]);
		print_chain(v, &c, node);
	}
	graph_chains_fini(&c);
	return EXIT_DONE;
}

static int leaks(struct view *v)
{
	_cleanup_(freep) uint8_t *reached = graph_reached(v->s->graph, v->s->graph_roots, v->s->n_roots);
	_cleanup_(freep) uint8_t *found = reached ? graph_leaks(v->s->graph, reached) : NULL;
	uint64_t n[3] = { 0 }, bytes[3] = { 0 };

	for (uint32_t i = 0; found && i < v->s->blocks.n; i++) {
		n[found[i]]++;
		bytes[found[i]] += snapshot_bytes(v->s, i);
		if (found[i] == GRAPH_LEAK_DIRECT && n[1] <= v->top) {
			print_node(v, i);
			printf("\n");
		}
	}
	printf("direct: %s blocks, %s; indirect: %s blocks, %s\n", unit_count((int64_t)n[1]).s, unit_bytes((int64_t)bytes[1]).s,
	       unit_count((int64_t)n[2]).s, unit_bytes((int64_t)bytes[2]).s);
	return EXIT_DONE;
}

int cmd_heap(int argc, char **argv)
{
	struct heap_args a = { .top = 20 };
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct view v = { 0 };
	struct err e = { 0 };
	int operand, status;

	if (opt_parse(&heap_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (!a.pid || operand == argc) {
		err_set(&e, -EINVAL, "say what and of which process: memscope heap census -p PID");
		return command_fail(EXIT_USAGE, &e);
	}
	if (snapshot_take((pid_t)a.pid, "/var/tmp", &s, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	v.s = s;
	v.top = a.top;
	v.dict = dict_new();
	v.procs = v.dict ? proc_table_new(v.dict) : NULL;
	if (v.procs && proc_table_scan(v.procs, (pid_t)a.pid, 0, now_ns(), NULL) == 0)
		v.proc = proc_table_first(v.procs, (pid_t)a.pid);
	print_header(&v, (pid_t)a.pid);
	status = strcmp(argv[operand], "census") == 0 ? census(&v)
		 : strcmp(argv[operand], "leaks") == 0 ? leaks(&v)
		 : operand + 1 < argc ? retainers(&v, argv[operand + 1]) : EXIT_USAGE;
	return status;
}
