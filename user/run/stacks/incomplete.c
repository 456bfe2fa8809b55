/*
 * Stacks that are not complete: which code is to blame, and how many there were of each.
 *
 * Guessed: the code whose caller was first found by a frame pointer that nothing vouches for, by the
 * tables as they are now. Else the code in which the walk ended.
 */
#include "run/stacks/stacks.h"
#include "unwind/host_walk.h"

#include <string.h>

struct incomplete_key {
	uint32_t module;
	uint32_t verdict;
};

struct incomplete_stacks {
	struct incomplete_key key;
	uint64_t events;
	UT_hash_handle hh;
};

static uint64_t to_blame(const struct stacks *st, const struct proc_id *id,
			 enum stack_verdict verdict, const uint64_t *frames, uint32_t n)
{
	struct ms_space space;
	uint32_t i = n - 1;

	if (verdict == STACK_GUESSED && tables_known(st, id, &space))
		i = host_first_guess(tables_mem(st), &space, frames, n);
	if (i >= n)
		i = n - 1;
	return (frames[i] & MS_FRAME_ADDR_MASK) - (i > 0);
}

void on_incomplete(void *ctx, const struct proc_id *id, uint32_t as_gen, enum stack_verdict verdict,
		   const uint64_t *frames, uint32_t n, uint64_t count)
{
	struct stacks *st = ctx;
	struct incomplete_key k;
	module_id module = { 0 };
	uint64_t vaddr;
	struct incomplete_stacks *g;

	if (!n || verdict == STACK_TRUNCATED)
		return;
	proc_resolve(st->run->procs, proc_table_find(st->run->procs, id), as_gen,
		     to_blame(st, id, verdict, frames, n), &module, &vaddr);
	k = (struct incomplete_key){ module.ix, verdict };
	g = hash_get(st->incomplete, key, &k);
	if (g)
		g->events += count;
}

static int by_events(const struct incomplete_stacks *a, const struct incomplete_stacks *b)
{
	return a->events < b->events ? 1 : a->events > b->events ? -1 : 0;
}

void incomplete_facts(struct stacks *st, struct run_summary *to)
{
	HASH_SORT(st->incomplete, by_events);
	for (struct incomplete_stacks *g = st->incomplete;
	     g && to->n_incomplete < SUMMARY_INCOMPLETE; g = g->hh.next) {
		const char *path = dict_str(
			st->run->dict,
			dict_module_get(st->run->dict, (module_id){ g->key.module })->path);

		to->incomplete[to->n_incomplete++] = (struct summary_incomplete){
			.module = *path ? path : "[unknown]",
			.verdict = stack_verdict_names[g->key.verdict],
			.events = g->events,
		};
	}
}

void incomplete_free(struct stacks *st)
{
	hash_free(st->incomplete);
}
