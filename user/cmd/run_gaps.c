/*
 * Stacks that are not complete: which code is to blame, and how many there were of each.
 *
 * Guessed: the code whose caller was first found by a frame pointer that nothing vouches for, by the
 * tables as they are now. Else the code in which the walk ended.
 */
#include "cmd/run_parts.h"
#include "unwind/host_walk.h"

#include <string.h>

struct gap_key {
	uint32_t module;
	uint32_t verdict;
};

struct gap {
	struct gap_key key;
	uint64_t events;
	UT_hash_handle hh;
};

static uint64_t to_blame(const struct run *r, const struct ms_proc *proc, enum ms_verdict verdict,
			 const uint64_t *frames, uint32_t n)
{
	struct ms_space space;
	uint32_t i = n - 1;

	if (verdict == MS_GUESSED && run_unwind_known(r, proc, &space))
		i = host_first_guess(run_unwind_mem(r), &space, frames, n);
	if (i >= n)
		i = n - 1;
	return (frames[i] & MS_FRAME_ADDR_MASK) - (i > 0);
}

void run_on_gap(void *ctx, const struct ms_total_key *key, enum ms_verdict verdict,
		const uint64_t *frames, uint32_t n, uint64_t count)
{
	const struct ms_proc *p = &key->proc;
	struct proc_id id = { .pid = (pid_t)p->tgid,
			      .exec_id = p->exec_id,
			      .start_ns = p->start_ns };
	struct run *r = ctx;
	struct gap_key k;
	module_id module = { 0 };
	uint64_t vaddr;
	struct gap *g;

	if (!n || verdict == MS_TRUNCATED)
		return;
	proc_resolve(r->procs, proc_table_find(r->procs, &id), key->as_gen,
		     to_blame(r, p, verdict, frames, n), &module, &vaddr);
	k = (struct gap_key){ module.ix, verdict };
	g = hash_get(r->gaps, key, &k);
	if (g)
		g->events += count;
}

static int by_events(const struct gap *a, const struct gap *b)
{
	return a->events < b->events ? 1 : a->events > b->events ? -1 : 0;
}

void run_gap_facts(struct run *r, struct run_summary *to)
{
	static const char *const words[MS_N_VERDICTS] = {
		[MS_NO_TABLE] = "no table",
		[MS_UNREADABLE] = "unreadable",
		[MS_GUESSED] = "guessed",
		[MS_LOST] = "lost",
	};

	HASH_SORT(r->gaps, by_events);
	for (struct gap *g = r->gaps; g && to->n_gaps < SUMMARY_GAPS; g = g->hh.next) {
		const char *path = dict_str(
			r->dict, dict_module_get(r->dict, (module_id){ g->key.module })->path);

		to->gaps[to->n_gaps++] = (struct summary_gap){
			.module = *path ? path : "[unknown]",
			.verdict = words[g->key.verdict],
			.events = g->events,
		};
	}
}

void run_free_gaps(struct run *r)
{
	hash_free(r->gaps);
}
