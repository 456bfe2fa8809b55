/*
 * Stacks that are not complete: which code is to blame, and how many there were of each.
 *
 * Guessed: the code whose caller was first found by a frame pointer that nothing vouches for, by the
 * tables as they are now. Else the code in which the walk ended.
 */
#include "collect/stacks/stacks_parts.h"
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

static uint64_t to_blame(const struct user_stacks *st, const struct proc_id *id,
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
	struct user_stacks *st = ctx;
	struct incomplete_key k;
	module_id module = { 0 };
	uint64_t vaddr;
	struct incomplete_stacks *g;

	if (!n || verdict == STACK_TRUNCATED)
		return;
	proc_resolve(st->env.procs, proc_table_find(st->env.procs, id), as_gen,
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

uint32_t user_stacks_incomplete(struct user_stacks *st, struct user_stacks_incomplete *ret_rows,
				uint32_t cap)
{
	uint32_t n = 0;

	HASH_SORT(st->incomplete, by_events);
	for (struct incomplete_stacks *g = st->incomplete; g && n < cap; g = g->hh.next)
		ret_rows[n++] = (struct user_stacks_incomplete){ { g->key.module },
								 (enum stack_verdict)g->key.verdict,
								 g->events };
	return n;
}

void incomplete_free(struct user_stacks *st)
{
	hash_free(st->incomplete);
}
