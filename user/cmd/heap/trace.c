/*
 * --trace: every allocation of the process is traced for a while, and the snapshot is taken at the end of it.
 *
 *   tracing ──────────────► stop, copy, go on ─► list live blocks ─► … walk the copy, build ─► stacks get names
 *                                                 (address, stack, when)
 *
 * Blocks that were born after the copy are left out by their time; one that was freed between the copy and the list,
 * some milliseconds, is in the snapshot and has no site. Should the copy turn out to be of no use, the next one has a list of its
 * own: what is traced never stops, so no block has the site of one that was there before it.
 */
#include "analyse/frame.h"
#include "analyse/sites.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/large.h"
#include "cmd/heap/view.h"
#include "collect/probes/uprobes.h"
#include "collect/session/stats.h"
#include "heap/snapshot/exact.h"
#include "run/output/facts.h"
#include "run/run.h"
#include "run/target.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { FRAMES_MAX = 2048 }; /* of a stack */

/* What of stacks is known already: of the run's, its number in the snapshot. */
struct known_stack {
	uint32_t ix;
	uint32_t number;
	location_id call; /* in its site */
	UT_hash_handle hh;
};

/* A call of an allocator, and what its result points to. */
struct known_call {
	uint32_t ix;
	char *name; /* NULL: not known */
	struct allocated_type type;
	UT_hash_handle hh;
};

struct trace {
	struct run run;
	struct heap_view *v;
	struct drain_block *blocks;
	uint64_t n, room;
	uint64_t copied_ns; /* CLOCK_MONOTONIC, of the copy */
	struct known_stack *stacks;
	struct known_call *calls;
	struct site_place *places; /* of one stack */
	bool oom;
};

static void trace_free(struct trace *t)
{
	if (!t)
		return;
	for (struct known_call *c = t->calls; c; c = c->hh.next)
		free(c->name);
	hash_free(t->calls);
	large_free(t->blocks);
	hash_free(t->stacks);
	free(t->places);
	free(t);
}
DEFINE_CLEANUP(struct trace *, trace_freep, trace_free)

/* --- the moment --- */

static void add_block(void *ctx, const struct drain_block *block)
{
	struct trace *t = ctx;

	if ((pid_t)block->proc.pid != t->v->pid || block->born_ns > t->copied_ns)
		return;
	if (t->n == t->room) {
		uint64_t room = t->room ? 2 * t->room : 4096;
		struct drain_block *more = large_resize(t->blocks, room, sizeof(*more));

		t->oom |= !more;
		if (!more)
			return;
		t->blocks = more;
		t->room = room;
	}
	t->blocks[t->n++] = *block;
}

static int copied(void *ctx, const struct copy_facts *facts, struct err *e)
{
	struct trace *t = ctx;
	int r;

	t->copied_ns = facts->at_ns;
	t->n = 0;
	r = t->run.alloc.live_blocks(t->run.alloc.live_ctx, add_block, t, e);
	return r == 0 && t->oom ? err_set(e, -ENOMEM, "out of memory") : r;
}

/* --- stacks, once all have names --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static struct site_place place_of(struct dict *d, location_id id, uint32_t frame)
{
	const struct location *loc = dict_location_get(d, id);
	struct frame f = frame_get(d, id, frame);
	struct site_place place = {
		.function = dict_str(d, f.name),
		.module = base_name(f.module),
	};

	if (frame < loc->n_lines) {
		place.file = dict_str(d, loc->lines[frame].file);
		place.line = loc->lines[frame].line;
	}
	return place;
}

/* 0: not known, or out of memory. */
static uint32_t add_stack(struct trace *t, stack_id stack, location_id *ret_call)
{
	struct dict *d = t->run.dict;
	struct site_place site;
	location_id at;
	uint32_t n = 0, frame;
	int r = site_place_of_stack(d, stack, &at, &frame);

	t->oom |= r == -ENOMEM;
	if (r < 0)
		return 0;
	site = place_of(d, at, frame);
	*ret_call = at;
	for (; stack.ix && n < FRAMES_MAX; stack = dict_stack_parent(d, stack)) {
		location_id leaf = dict_stack_leaf(d, stack);

		for (uint32_t i = 0; i < frame_count(d, leaf) && n < FRAMES_MAX; i++)
			t->places[n++] = place_of(d, leaf, i);
	}
	return sites_add(t->v->s->sites, &site, t->places, n);
}

/* NULL: not known, or out of memory. */
static const struct known_stack *stack_of(struct trace *t, const struct drain_block *block)
{
	struct known_stack *known;
	stack_id stack;

	if (!t->run.alloc.block_stack(t->run.alloc.live_ctx, block, &stack))
		return NULL;
	known = hash_get(t->stacks, ix, &stack.ix);
	t->oom |= !known;
	if (known && !known->number)
		known->number = add_stack(t, stack, &known->call);
	return known && known->number ? known : NULL;
}

/* BLOCK_NONE: a block that is not the one that was traced is smaller; then its free was missed. */
static uint32_t node_of(const struct trace *t, const struct drain_block *block)
{
	const struct snapshot *s = t->v->s;
	uint32_t offset, node = block_index_find(s->index, block->addr, &offset);

	return node == BLOCK_NONE || offset + block->size > snapshot_bytes(s, node) ||
			       exact_brought(s->exact, node)
		       ? BLOCK_NONE
		       : node;
}

static void set_block(struct trace *t, const struct drain_block *block)
{
	uint32_t node = node_of(t, block);
	const struct known_stack *stack = node == BLOCK_NONE ? NULL : stack_of(t, block);

	if (node != BLOCK_NONE)
		sites_set(t->v->s, node, stack ? stack->number : 0, t->copied_ns - block->born_ns);
}

/* --- types --- */

static void on_type(void *ctx, const struct call_type *type)
{
	struct trace *t = ctx;
	struct known_call *call = hash_get(t->calls, ix, &type->call.ix);

	if (call && !call->name) {
		call->name = strdup(type->name);
		call->type = (struct allocated_type){ .name = call->name,
						      .each = type->bytes,
						      .is_guess = type->is_guess };
	}
	t->oom |= !call || !call->name;
}

static void set_type(struct trace *t, const struct drain_block *block)
{
	uint32_t node = node_of(t, block);
	const struct known_stack *stack = node == BLOCK_NONE ? NULL : stack_of(t, block);
	struct known_call *call = NULL;

	if (stack)
		HASH_FIND(hh, t->calls, &stack->call.ix, sizeof(stack->call.ix), call);
	if (call)
		t->oom |= types_set_allocated(t->v->s, node, &call->type, block->size) < 0;
}

/* Of each site's call what its result points to, by debug info. */
static void find_types(struct trace *t)
{
	struct snapshot *s = t->v->s;
	_cleanup_(freep) location_id *calls = calloc(HASH_COUNT(t->stacks) + 1ul, sizeof(*calls));
	uint32_t n = 0;

	t->oom |= !calls;
	for (const struct known_stack *k = t->stacks; calls && k; k = k->hh.next)
		if (k->number)
			calls[n++] = k->call;
	if (t->oom || output_call_types(&t->run, calls, n, on_type, t) < 0) {
		t->oom = true;
		return;
	}
	for (uint64_t i = 0; i < t->n; i++)
		set_type(t, &t->blocks[i]);
	types_count(&s->types, &s->blocks);
}

static void put_sites(void *ctx, const struct run_summary *summary)
{
	struct trace *t = ctx;
	struct snapshot *s = t->v->s;
	uint64_t stats[N_STATS], began = t->run.alloc.from_ns;

	s->sites = sites_new(s->blocks.n);
	t->places = calloc(FRAMES_MAX, sizeof(*t->places));
	t->oom |= !s->sites || !t->places;
	if (t->oom)
		return;
	drain_stats(t->run.drain, stats);
	s->sites->traced_ns = began && t->copied_ns > began ? t->copied_ns - began : 0;
	s->sites->lost = summary->alloc.untracked + stats[STAT_SITES_NONE];
	for (uint64_t i = 0; i < t->n; i++)
		set_block(t, &t->blocks[i]);
	find_types(t);
}

/* --- the run --- */

static void configure(const struct heap_args *a, pid_t *pid, struct run_config *cfg)
{
	*cfg = (struct run_config){
		.pids = pid,
		.n_pids = 1,
		.duration_s = a->trace_s,
		.hz = 99,
		.sources = { [SOURCE_ALLOC] = true },
		.alloc = ALLOC_EXACT,
		.alloc_asked = true,
		.inject = a->inject,
		.python_objects = a->python_objects,
		.blocks_alone = true,
		.max_overhead = 5,
		.user_stacks = true,
		.interval_s = 1,
		.mem_mb = a->mem_mb,
		.quiet = true,
	};
}

/* The process is still traced, and every call is. */
static int check(const struct trace *t, struct err *e)
{
	const struct alloc_state *alloc = &t->run.alloc;

	if (t->run.end.why == RUN_END_TARGET)
		return err_set(e, -ESRCH, "process %d has ended", (int)t->v->pid);
	if (alloc->tier != ALLOC_TIER_EXACT || !alloc->tracing || !alloc->live_blocks)
		return err_set(e, -ENODATA,
			       "--trace: the allocations of process %d cannot be traced%s%s",
			       (int)t->v->pid, alloc->reason && *alloc->reason ? ": " : "",
			       alloc->reason ? alloc->reason : "");
	return 0;
}

int heap_trace_take(struct heap_view *v, struct snapshot_how *how, struct err *e)
{
	_cleanup_(trace_freep) struct trace *t = calloc(1, sizeof(*t));
	struct run_config cfg;
	struct err later = { 0 };
	int r;

	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->v = v;
	configure(v->args, &v->pid, &cfg);
	r = target_check(v->pid, e);
	if (r < 0)
		return r;
	r = run_begin(&t->run, &cfg, e);
	if (r == 0)
		fprintf(stderr,
			"memscope: tracing every allocation of process %d for %g s; Ctrl-C ends that sooner\n",
			(int)v->pid, v->args->trace_s);
	if (r == 0)
		r = run_loop(&t->run, e);
	if (r == 0)
		r = check(t, e);
	how->copied = copied;
	how->ctx = t;
	if (r == 0)
		r = snapshot_take(v->pid, how, &v->s, e);
	run_end(&t->run, r == 0 ? &later : NULL);
	if (r == 0)
		r = run_facts(&t->run, put_sites, t, e);
	if (r == 0 && t->oom)
		r = err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; r == 0 && i < t->run.notes.n; i++)
		if (t->run.notes.missing[i])
			answer_say(v->out, "%s", t->run.notes.text[i]);
	run_free(&t->run);
	uprobes_wait();
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	return r;
}
