#include "collect/stream/wakers.h"
#include "base/grow.h"
#include "base/hash.h"
#include "collect/stream/lock_waits.h"
#include "collect/stream/record_age.h"
#include "collect/stream/stacks_in_use.h"
#include "collect/wire.h"

#include <assert.h>

#include <stdlib.h>

#define RECORDS_MAX (1u << 18) /* of either kind: some 40 MiB; the kernel sends each once */
#define WAITING_MAX (1u << 16)

struct waker {
	struct ms_hash hash;
	struct ms_waker_rec rec;
	struct record_age age;
	UT_hash_handle hh;
};

struct ended {
	struct ms_hash hash;
	struct ms_ended_rec rec;
	struct record_age age;
	UT_hash_handle hh;
};

struct waiting_total {
	struct ms_total_key key;
	struct ms_total total;
};

struct wakers {
	struct {
		waker_event_fn fn;
		void *ctx;
	} listeners[WAKER_LISTENERS];
	uint32_t n_listeners;
	struct waker *wakers;
	struct ended *ended;
	uint32_t n_wakers, n_ended, ages;
	struct waiting_total *waiting; /* their records have not come */
	uint32_t n_waiting, cap_waiting;
	uint64_t left_out;
};

static enum drain_says on_waker(void *ctx, const void *record, const void *more)
{
	const struct ms_waker_rec *rec = record;
	struct wakers *w = ctx;
	struct waker *one;

	(void)more;
	HASH_FIND(hh, w->wakers, &rec->hash, sizeof(rec->hash), one);
	if (!one && w->n_wakers < RECORDS_MAX)
		one = hash_get(w->wakers, hash, &rec->hash);
	if (one) {
		one->rec = *rec;
		one->age.used = w->ages;
		w->n_wakers = HASH_COUNT(w->wakers);
	}
	return DRAIN_TAKEN;
}

static enum drain_says on_ended(void *ctx, const void *record, const void *more)
{
	const struct ms_ended_rec *rec = record;
	struct wakers *w = ctx;
	struct ended *one;

	(void)more;
	HASH_FIND(hh, w->ended, &rec->hash, sizeof(rec->hash), one);
	if (!one && w->n_ended < RECORDS_MAX)
		one = hash_get(w->ended, hash, &rec->hash);
	if (one) {
		one->rec = *rec;
		one->age.used = w->ages;
		w->n_ended = HASH_COUNT(w->ended);
	}
	return DRAIN_TAKEN;
}

static struct event_key event_of(struct ms_total_key key)
{
	key.source = MS_OFFCPU;
	key.state = MS_STATE_NONE;
	key.slot = 0;
	key.bucket = 0;
	return wire_event(&key);
}

static void set_waker(struct waker_event *event, const struct ms_waker_rec *rec)
{
	event->kind = rec->interrupt ? WAKER_INTERRUPT : WAKER_TASK;
	event->pid = (pid_t)rec->proc.tgid;
	event->of_kernel = !rec->user.lo;
	memcpy(event->comm, rec->comm, sizeof(event->comm));
	event->comm[sizeof(event->comm) - 1] = '\0';
	event->waker = event_of((struct ms_total_key){ .proc = rec->proc,
						       .user = rec->user,
						       .kernel = rec->kernel,
						       .as_gen = (uint32_t)rec->as_gen });
}

/* false: a record has not come. */
static bool hand_on(const struct wakers *w, const struct ms_total_key *key,
		    const struct ms_total *total, bool anyway)
{
	struct waker_event event = { .kind = WAKER_UNKNOWN,
				     .count = total->count,
				     .ns = total->value };
	struct ms_total_key at = *key;
	struct ended *ended;
	struct waker *waker = NULL;

	HASH_FIND(hh, w->ended, &key->kernel, sizeof(key->kernel), ended);
	if (ended)
		ended->age.used = w->ages;
	at.kernel = ended ? ended->rec.kernel : (struct ms_hash){ 0, 0 };
	if (ended && ended->rec.waker.lo)
		HASH_FIND(hh, w->wakers, &ended->rec.waker, sizeof(ended->rec.waker), waker);
	if (waker)
		waker->age.used = w->ages;
	if (!anyway && (!ended || (ended->rec.waker.lo && !waker)))
		return false;
	event.at = event_of(at);
	event.lock = ended ? lock_waits_address(ended->rec.lock) : 0;
	event.lock_kind = ended ? lock_waits_kind(ended->rec.lock) : "";
	if (waker)
		set_waker(&event, &waker->rec);
	for (uint32_t i = 0; i < w->n_listeners; i++)
		w->listeners[i].fn(w->listeners[i].ctx, &event);
	return true;
}

static enum drain_says on_total(void *ctx, const void *record, const void *more)
{
	const struct ms_total_key *key = more;
	const struct ms_total *total = record;
	struct wakers *w = ctx;

	if (key->source != MS_WAKERS)
		return DRAIN_NEXT;
	if (hand_on(w, key, total, false))
		return DRAIN_TAKEN;
	if (w->n_waiting < WAITING_MAX && GROW(w->waiting, w->n_waiting, w->cap_waiting))
		w->waiting[w->n_waiting++] = (struct waiting_total){ *key, *total };
	else
		w->left_out += total->count;
	return DRAIN_TAKEN;
}

void wakers_stacks_in_use(const struct wakers *w, stack_hash_fn fn, void *ctx)
{
	for (const struct waker *one = w->wakers; one; one = one->hh.next)
		if (one->rec.user.lo)
			fn(ctx, &one->rec.user);
	for (uint32_t i = 0; i < w->n_waiting; i++)
		if (w->waiting[i].key.user.lo)
			fn(ctx, &w->waiting[i].key.user);
}

/* Where there is no room for more, those that have waited longest are handed on as they are. */
void wakers_waiting(struct wakers *w)
{
	uint32_t left = 0, anyway = w->n_waiting >= WAITING_MAX ? WAITING_MAX / 2 : 0;

	for (uint32_t i = 0; i < w->n_waiting; i++)
		if (!hand_on(w, &w->waiting[i].key, &w->waiting[i].total, i < anyway))
			w->waiting[left++] = w->waiting[i];
	w->n_waiting = left;
}

uint32_t wakers_age(struct wakers *w, uint32_t calls, stack_hash_fn again, void *ctx)
{
	struct waker *waker, *next_waker;
	struct ended *ended, *next_ended;
	uint32_t forgotten = 0;

	w->ages++;
	HASH_ITER (hh, w->wakers, waker, next_waker) {
		enum record_old old = record_old(&waker->age, w->ages, calls);

		if (old == RECORD_SEND_AGAIN)
			again(ctx, &waker->hash);
		if (old != RECORD_FORGET)
			continue;
		HASH_DEL(w->wakers, waker);
		free(waker);
		forgotten++;
	}
	HASH_ITER (hh, w->ended, ended, next_ended) {
		enum record_old old = record_old(&ended->age, w->ages, calls);

		if (old == RECORD_SEND_AGAIN)
			again(ctx, &ended->hash);
		if (old != RECORD_FORGET)
			continue;
		HASH_DEL(w->ended, ended);
		free(ended);
		forgotten++;
	}
	w->n_wakers = HASH_COUNT(w->wakers);
	w->n_ended = HASH_COUNT(w->ended);
	return forgotten;
}

void wakers_finish(struct wakers *w)
{
	for (uint32_t i = 0; i < w->n_waiting; i++)
		hand_on(w, &w->waiting[i].key, &w->waiting[i].total, true);
	w->n_waiting = 0;
}

uint64_t wakers_left_out(const struct wakers *w)
{
	return w->left_out;
}

void wakers_listen(struct wakers *w, waker_event_fn fn, void *ctx)
{
	assert(w->n_listeners < WAKER_LISTENERS);
	w->listeners[w->n_listeners].fn = fn;
	w->listeners[w->n_listeners++].ctx = ctx;
}

struct wakers *wakers_new(struct drain *d)
{
	struct wakers *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	drain_on(d, DRAIN_WAKER, on_waker, w);
	drain_on(d, DRAIN_ENDED, on_ended, w);
	drain_on(d, DRAIN_TOTAL, on_total, w);
	return w;
}

void wakers_free(struct wakers *w)
{
	if (!w)
		return;
	hash_free(w->wakers);
	hash_free(w->ended);
	free(w->waiting);
	free(w);
}
