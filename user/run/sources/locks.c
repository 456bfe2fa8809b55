/*
 * Locks that threads waited for: which variable, who owned it, and what the owner did meanwhile.
 */
#include "analyse/locks.h"
#include "base/hash.h"
#include "base/units.h"
#include "collect/stream/lock_waits.h"
#include "proc/place.h"
#include "proc/variable.h"
#include "run/component.h"
#include "run/lock_blocks.h"

#include <errno.h>
#include <string.h>

#define LOCK_ROWS 10
#define USES_MAX                                                                                   \
	65536 /* of some 200 bytes: what else is waited for is left out, and that is said */

/* What is added up: all of it, padding too, is the key. */
struct use_key {
	struct event_key at;
	uint64_t lock;
	uint32_t pid; /* whose lock it is */
	uint32_t owner;
	uint32_t part; /* enum lock_part   */
	char comm[16]; /* LOCK_RELEASED: of the thread */
	uint32_t pad;
};

struct use {
	struct use_key key;
	const char *kind;
	stack_id stack; /* 0: not arrived yet */
	uint64_t count, ns;
	UT_hash_handle hh;
};

/* A thread that owned a lock, by the number that its process knows. */
struct owner_key {
	struct proc_id proc;
	uint32_t owner, pad;
};

struct owner {
	struct owner_key key;
	uint32_t tid;
	UT_hash_handle hh;
};

struct locks {
	struct run *run;
	struct lock_waits *waits;
	struct use *uses;
	struct owner *owners;
	uint32_t n_uses;
	uint64_t left_out;         /* waits, and what owners did */
	struct lock_block *blocks; /* that the locks are in, where that is known */
	uint32_t n_blocks;
	struct lock_row rows[LOCK_ROWS];
	struct lock_use *ranked; /* while rows are made */
	char names[LOCK_ROWS][256], places[LOCK_ROWS][PLACE_MAX];
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU];
}

static void note_owner(struct locks *l, const struct lock_event *event)
{
	struct owner_key key;
	struct owner *o;

	if (!event->hold || !event->owner)
		return;
	memset(&key, 0, sizeof(key));
	key.proc = event->proc;
	key.owner = event->owner;
	HASH_FIND(hh, l->owners, &key, sizeof(key), o);
	if (!o && HASH_COUNT(l->owners) < USES_MAX)
		o = hash_new(l->owners, key, &key);
	if (o)
		o->tid = event->tid;
}

static void use_add(struct locks *l, const struct use_key *key, const char *kind, uint64_t count,
		    uint64_t ns)
{
	struct use *u;

	HASH_FIND(hh, l->uses, key, sizeof(*key), u);
	if (!u && l->n_uses >= USES_MAX) {
		l->left_out += count;
		return;
	}
	if (!u) {
		u = hash_new(l->uses, key, key);
		l->n_uses++;
	}
	if (!u) {
		l->run->oom = true;
		return;
	}
	u->kind = kind;
	u->count += count;
	u->ns += ns;
}

static void on_event(void *ctx, const struct lock_event *event)
{
	struct locks *l = ctx;
	struct use_key key;

	memset(&key, 0, sizeof(key));
	key.at = event->at;
	key.lock = event->lock;
	key.pid = event->proc.pid;
	key.owner = event->owner;
	key.part = event->hold ? LOCK_HELD : LOCK_WAITED;
	use_add(l, &key, event->kind, event->count, event->ns);
	note_owner(l, event);
}

/* Who ends a wait for a lock has released it. */
static void on_waker(void *ctx, const struct waker_event *event)
{
	struct use_key key;

	if (!event->lock || event->kind != WAKER_TASK || event->of_kernel)
		return;
	memset(&key, 0, sizeof(key));
	key.at = event_user_stack(&event->waker);
	key.lock = event->lock;
	key.pid = event_proc(&event->at).pid;
	key.part = LOCK_RELEASED;
	memcpy(key.comm, event->comm, sizeof(key.comm));
	use_add(ctx, &key, event->lock_kind, event->count, event->ns);
}

static int open_locks(void *self, struct err *e)
{
	struct locks *l = self;

	l->waits = lock_waits_new(l->run->drain, &l->run->clock.end_ns, on_event, l);
	if (l->run->waits.wakers)
		wakers_listen(l->run->waits.wakers, on_waker, l);
	return l->waits ? 0 : err_set(e, -ENOMEM, "out of memory");
}

/* While the process is known. */
static void place_stacks(struct locks *l)
{
	labels_id labels;
	struct use *u, *next;

	HASH_ITER (hh, l->uses, u, next)
		if (!u->stack.ix)
			ingest_place(l->run->ingest, &u->key.at, &u->stack, &labels);
}

static void drained(void *self, uint64_t now_ns)
{
	(void)now_ns;
	place_stacks(self);
}

/* While blocks are still live. */
static void closing(void *self)
{
	struct locks *l = self;

	l->blocks = calloc(l->n_uses + 1ul, sizeof(*l->blocks));
	for (const struct use *u = l->uses; u && l->blocks; u = u->hh.next)
		if (u->key.part == LOCK_WAITED)
			l->blocks[l->n_blocks++] =
				(struct lock_block){ .pid = u->key.pid, .lock = u->key.lock };
	if (l->blocks)
		lock_blocks_find(l->run, l->blocks, l->n_blocks);
}

static int finish(void *self, struct err *e)
{
	(void)e;
	place_stacks(self);
	return 0;
}

/* --- in the end ------------------------------------------------------------------------------- */

static struct proc *process_of(const struct locks *l, uint32_t pid)
{
	return proc_table_first(l->run->procs, (pid_t)pid);
}

static const char *owner_name(const struct locks *l, const struct lock_row *row)
{
	struct proc *proc = process_of(l, row->pid);
	const char *name;
	uint32_t tid = row->owner;

	for (const struct owner *o = l->owners; o; o = o->hh.next)
		if (o->key.proc.pid == row->pid && o->key.owner == row->owner)
			tid = o->tid;
	name = proc && row->owner ? proc_thread_comm(proc, (pid_t)tid) : NULL;
	return name ? name : "";
}

static uint32_t gather(struct locks *l)
{
	uint32_t n = 0;

	l->ranked = calloc(l->n_uses + 1ul, sizeof(*l->ranked));
	for (const struct use *u = l->uses; u && l->ranked; u = u->hh.next) {
		l->ranked[n++] = (struct lock_use){ .pid = u->key.pid,
						    .lock = u->key.lock,
						    .kind = u->kind,
						    .stack = u->stack,
						    .owner = u->key.owner,
						    .part = (enum lock_part)u->key.part,
						    .comm = u->key.comm,
						    .count = u->count,
						    .ns = u->ns };
	}
	return n;
}

static void name_lock(struct locks *l, struct variable_names *variables, uint32_t i)
{
	if (variables && variable_name(variables, process_of(l, l->rows[i].pid), l->rows[i].lock,
				       l->names[i], sizeof(l->names[i])))
		return;
	if (!lock_block_text(l->run, l->blocks, l->n_blocks, l->rows[i].pid, l->rows[i].lock,
			     l->places[i], sizeof(l->places[i])))
		place_of_address((pid_t)l->rows[i].pid, l->rows[i].lock, l->places[i],
				 sizeof(l->places[i]));
}

static void report(void *self, struct run_summary *to)
{
	struct locks *l = self;
	_cleanup_(variable_names_freep) struct variable_names *variables =
		variable_names_new(l->run->procs);
	uint32_t n = gather(l);

	to->locks.n = row_count(locks_rank(l->run->dict, l->ranked, n, l->rows, LOCK_ROWS));
	free(l->ranked);
	l->ranked = NULL;
	for (uint32_t i = 0; i < to->locks.n; i++) {
		if (strcmp(l->rows[i].kind, "GIL") != 0)
			name_lock(l, variables, i);
		l->rows[i].name = l->names[i];
		l->rows[i].place = l->places[i];
		l->rows[i].owner_name = owner_name(l, &l->rows[i]);
	}
	to->locks.rows = l->rows;
	if (l->left_out)
		run_note(l->run, false,
			 "%s waits for locks are not in the table of locks, which was full: they "
			 "are in the off-CPU profile",
			 unit_count((int64_t)l->left_out).s);
}

static void free_locks(void *self)
{
	struct locks *l = self;

	hash_free(l->uses);
	free(l->blocks);
	hash_free(l->owners);
	lock_waits_free(l->waits);
}

const struct component locks_component = {
	.name = "locks",
	.size = sizeof(struct locks),
	.wanted = wanted,
	.open = open_locks,
	.drained = drained,
	.closing = closing,
	.finish = finish,
	.report = report,
	.free = free_locks,
};
