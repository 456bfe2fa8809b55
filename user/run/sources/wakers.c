/*
 * Who ended waits: the profile `wakers`. Its stacks are those of the off-CPU profile, and on top of each the stack of who
 * woke the thread, leaf first, so that both meet where the wake-up was, as bcc's offwaketime draws them:
 *
 *   main  serve  read  schedule  │  [woken by]  │  try_to_wake_up  pipe_write  write  produce  main  producer
 *   the wait, root to leaf                        who ended it, leaf to root, and its thread's name
 */
#include "collect/stream/wakers.h"
#include "analyse/wakers.h"
#include "base/grow.h"
#include "base/units.h"
#include "run/component.h"

#include <errno.h>
#include <string.h>

#define PENDING_MAX 65536 /* events whose stacks have not come yet */
#define WAKER_ROWS  30

struct wakers_part {
	struct run *run;
	struct waker_event *pending;
	uint32_t n_pending, cap_pending;
	uint64_t left_out;
	location_id woken_by, unknown, interrupt;
	string_id key_waker, key_waker_pid;
	struct waker_row rows[WAKER_ROWS];
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_OFFCPU] && !cfg->no_wakers;
}

static location_id named(struct dict *d, const char *name)
{
	struct line line = { .function = dict_string(d, name) };

	return dict_location_lines(d, (module_id){ 0 }, 0, &line, 1);
}

/* Kernel threads of a kind are one: ksoftirqd/0, kworker/1:2-events. */
static location_id waker_location(const struct wakers_part *w, const struct waker_event *event)
{
	char name[sizeof(event->comm)];

	if (event->kind != WAKER_TASK)
		return event->kind == WAKER_INTERRUPT ? w->interrupt : w->unknown;
	memcpy(name, event->comm, sizeof(name));
	if (event->of_kernel)
		name[strcspn(name, "/")] = '\0';
	return *name ? named(w->run->dict, name) : w->unknown;
}

static labels_id waker_labels(const struct wakers_part *w, const struct waker_event *event,
			      labels_id of_wait, location_id waker)
{
	struct dict *d = w->run->dict;
	uint32_t n, n_old;
	const struct label *old = dict_labels_get(d, of_wait, &n_old);
	const struct proc_id who = event_proc(&event->waker);
	struct label set[64];

	for (n = 0; n < n_old && n < 62; n++)
		set[n] = old[n];
	set[n++] = (struct label){ .key = w->key_waker,
				   .str = dict_location_get(d, waker)->lines[0].function };
	if (event->kind == WAKER_TASK && ingest_shows_process(w->run->ingest, &who))
		set[n++] = (struct label){ .key = w->key_waker_pid, .num = event->pid };
	return dict_labels(d, set, n);
}

/* The wait's stack, and on it, leaf first, that of the waker. */
static stack_id joined(const struct wakers_part *w, stack_id wait, stack_id waker, location_id name)
{
	struct dict *d = w->run->dict;
	stack_id s = dict_stack_push(d, wait, w->woken_by);

	for (; waker.ix; waker = dict_stack_parent(d, waker))
		s = dict_stack_push(d, s, dict_stack_leaf(d, waker));
	return dict_stack_push(d, s, name);
}

/* false: a stack has not come yet. */
static bool place(struct wakers_part *w, const struct waker_event *event)
{
	const int64_t values[] = { (int64_t)event->count, (int64_t)event->ns };
	stack_id wait, waker = { 0 };
	labels_id labels;
	location_id name;

	if (!ingest_place(w->run->ingest, &event->at, &wait, &labels) ||
	    (event->kind != WAKER_UNKNOWN &&
	     !ingest_place_stack(w->run->ingest, &event->waker, &waker)))
		return false;
	name = waker_location(w, event);
	if (profile_add(w->run->profiles[PROFILE_WAKERS], joined(w, wait, waker, name),
			waker_labels(w, event, labels, name), values) < 0)
		w->run->oom = true;
	return true;
}

static void on_event(void *ctx, const struct waker_event *event)
{
	struct wakers_part *w = ctx;

	if (!w->run->profiles[PROFILE_WAKERS] || place(w, event))
		return;
	if (w->n_pending < PENDING_MAX && GROW(w->pending, w->n_pending, w->cap_pending))
		w->pending[w->n_pending++] = *event;
	else
		w->left_out += event->count;
}

static int open_wakers(void *self, struct err *e)
{
	struct wakers_part *w = self;
	struct dict *d = w->run->dict;

	(void)e;
	w->woken_by = named(d, WAKERS_MARK);
	w->unknown = named(d, WAKERS_UNKNOWN);
	w->interrupt = named(d, WAKERS_INTERRUPT);
	w->key_waker = dict_string(d, "waker");
	w->key_waker_pid = dict_string(d, "waker_pid");
	wakers_listen(w->run->waits.wakers, on_event, w);
	return 0;
}

static int start(void *self, struct err *e)
{
	struct wakers_part *w = self;

	(void)e;
	if (!session_has_wakers(w->run->session))
		run_note(
			w->run, false,
			"who ended waits is not known: /proc/kallsyms does not show where interrupts enter "
			"the kernel (see kernel.kptr_restrict)");
	return 0;
}

static void drained(void *self, uint64_t now_ns)
{
	struct wakers_part *w = self;
	uint32_t n = 0, old = w->n_pending == PENDING_MAX ? PENDING_MAX / 2 : 0;

	(void)now_ns;
	for (uint32_t i = 0; i < w->n_pending; i++) {
		if (place(w, &w->pending[i]))
			continue;
		/* Its stack is lost: it would be in the way for good. */
		if (i < old)
			w->left_out += w->pending[i].count;
		else
			w->pending[n++] = w->pending[i];
	}
	w->n_pending = n;
}

static int finish(void *self, struct err *e)
{
	(void)e;
	drained(self, 0);
	return 0;
}

static void report(void *self, struct run_summary *to)
{
	struct wakers_part *w = self;
	uint64_t left_out = w->left_out + wakers_left_out(w->run->waits.wakers);

	to->wakers.known = session_has_wakers(w->run->session);
	to->wakers.rows = w->rows;
	to->wakers.n = row_count(wakers_rank(w->run->profiles[PROFILE_WAKERS], w->rows, WAKER_ROWS,
					     &to->wakers.sums));
	if (left_out)
		run_note(
			w->run, false,
			"%s waits are not in the profile of wakers: too many of their stacks came late",
			unit_count((int64_t)left_out).s);
}

static void free_wakers(void *self)
{
	free(((struct wakers_part *)self)->pending);
}

const struct component wakers_component = {
	.name = "wakers",
	.size = sizeof(struct wakers_part),
	.wanted = wanted,
	.open = open_wakers,
	.start = start,
	.drained = drained,
	.finish = finish,
	.report = report,
	.free = free_wakers,
};
