#include "run/memory/rss_look.h"

#include "base/clock.h"
#include "heap/process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void rss_add(struct ledger_row *row, const struct heap_amount *a)
{
	row->blocks += (int64_t)a->blocks;
	row->bytes += (int64_t)a->bytes;
	row->resident += (int64_t)a->resident;
}

static void add_use(struct ledger_row *parts, const struct heap_use *u)
{
	rss_add(&parts[LEDGER_LIVE], &u->live);
	rss_add(&parts[LEDGER_FREE], &u->cached);
	rss_add(&parts[LEDGER_FREE], &u->fast);
	rss_add(&parts[LEDGER_FREE], &u->free);
	rss_add(&parts[LEDGER_FREE], &u->top);
	rss_add(&parts[LEDGER_METADATA], &u->metadata);
	rss_add(&parts[LEDGER_HELD], &u->unknown);
}

static void take_census(struct ledger *l, const struct heap_census *c)
{
	size_t len = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct heap_use *u = &c->use[i];

		add_use(l->parts, u);
		if (u->objects) {
			add_use(l->objects, u);
			l->object_arenas += u->arenas;
			l->objects_by = u->allocator;
		}
		if (u->caveat)
			l->caveat = u->caveat;
		if (len < sizeof(l->allocators))
			len += (size_t)snprintf(l->allocators + len, sizeof(l->allocators) - len,
						"%s%s", len ? ", " : "", u->allocator);
	}
}

/* What no walk has found of the memory that heaps are in. */
static int64_t rest_of(int64_t anonymous, int64_t heap)
{
	/* The heap has grown since smaps was read: what is too much is in not explained. */
	return anonymous > heap ? anonymous - heap : 0;
}

static void take_proportional(struct ledger *l, const struct heap_resident *r,
			      const struct heap_resident *pss)
{
	int64_t heap = 0;

	l->heap_pss = r->anonymous ? (double)pss->anonymous / (double)r->anonymous : 1;
	ledger_apportion(l);
	for (int i = 0; i < N_LEDGER_HEAP_PARTS; i++)
		heap += l->parts[i].pss;
	l->pss = (int64_t)pss->rollup;
	l->parts[LEDGER_STACKS].pss = (int64_t)pss->stacks;
	l->parts[LEDGER_DATA].pss = (int64_t)pss->written;
	l->parts[LEDGER_FILE].pss = (int64_t)(pss->file + pss->special);
	l->parts[LEDGER_SHARED].pss = (int64_t)pss->shmem;
	l->parts[LEDGER_ANONYMOUS].pss = rest_of((int64_t)pss->anonymous, heap);
}

static void take_resident(struct ledger *l, const struct heap_resident *r)
{
	int64_t heap = 0;

	for (int i = 0; i < N_LEDGER_PARTS; i++)
		if (ledger_of_heap((enum ledger_part)i))
			heap += l->parts[i].resident;
	l->rss = (int64_t)r->rollup;
	l->parts[LEDGER_STACKS].resident = (int64_t)r->stacks;
	l->parts[LEDGER_DATA].resident = (int64_t)r->written;
	l->parts[LEDGER_FILE].resident = (int64_t)(r->file + r->special);
	l->parts[LEDGER_SHARED].resident = (int64_t)r->shmem;
	l->parts[LEDGER_ANONYMOUS].resident = rest_of((int64_t)r->anonymous, heap);
}

static int look(const struct rss_look *at, int64_t budget_ns, struct ledger *ret_ledger,
		struct heap_census *ret_census, struct err *e)
{
	_cleanup_(heap_process_closep) struct heap_process *p = NULL;
	struct heap_census c = { .blocks = at->blocks };
	struct heap_memory mem;
	struct ledger l = { .processes = 1 };
	uint64_t from = now_ns();
	int r = heap_process_open(at->pid, budget_ns, &p, e);

	if (r < 0)
		return r;
	/* One that has ended, and not been waited for. */
	if (!heap_process_memory(p)->n_maps)
		return err_set(e, -ESRCH, "process %d has ended", (int)at->pid);
	mem = *heap_process_memory(p);
	mem.found = at->found;
	r = heap_census_take(&mem, &c);
	if (r < 0)
		return err_set(e, r, "out of memory for the heap of process %d", (int)at->pid);
	take_census(&l, &c);
	take_resident(&l, heap_process_resident(p));
	take_proportional(&l, heap_process_resident(p), heap_process_proportional(p));
	l.unsupported_allocator = heap_process_unsupported(p);
	l.objects_traced = l.objects_by && at->objects_traced;
	for (uint32_t i = 0; l.unsupported_allocator && i < c.n; i++)
		if (strstr(l.unsupported_allocator, c.use[i].allocator))
			l.unsupported_allocator = NULL;
	l.took_ns = (int64_t)(now_ns() - from);
	*ret_ledger = l;
	*ret_census = c;
	return 0;
}

/* Of those that were not found just now. */
static void search_again(struct heap_found *f)
{
	for (int i = 0; i < HEAP_WALKERS_MAX; i++)
		f->searched[i].wait = 0;
}

int rss_look(const struct rss_look *at, struct ledger *ret_ledger, struct heap_census *ret_census,
	     struct err *e)
{
	int64_t until_ns = (int64_t)thread_cpu_ns() + at->budget_ns, left_ns = at->budget_ns;
	int rc = 0;

	for (int i = 0; i == 0 || (i < at->tries && left_ns > 0); i++) {
		if (i && at->found)
			search_again(at->found);
		rc = look(at, left_ns, ret_ledger, ret_census, e);
		left_ns = until_ns - (int64_t)thread_cpu_ns();
		if (rc < 0 || ret_census->n)
			break;
	}
	return rc;
}

struct beside {
	const struct rss_look *at;
	struct ledger *ledger;
	struct heap_census *census;
	struct err *e;
	int result;
};

static void *look_beside(void *ctx)
{
	struct beside *b = ctx;

	b->result = rss_look(b->at, b->ledger, b->census, b->e);
	return NULL;
}

int rss_look_beside(const struct rss_look *at, void (*meanwhile)(void *ctx), void *ctx,
		    struct ledger *ret_ledger, struct heap_census *ret_census, struct err *e)
{
	struct beside b = { at, ret_ledger, ret_census, e, 0 };
	sigset_t all, before;
	struct timespec until;
	pthread_t thread;
	int r;

	sigfillset(&all); /* signals are for the main thread */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, look_beside, &b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return rss_look(at, ret_ledger, ret_census, e);
	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 20000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		if (pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT)
			return b.result;
		meanwhile(ctx);
	}
}
