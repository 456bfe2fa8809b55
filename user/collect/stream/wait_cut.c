#include "collect/stream/wait_cut.h"
#include "base/clock.h"
#include "base/grow.h"
#include "collect/session/sources.h"
#include "collect/stream/ingest_wire.h"
#include "model/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct open_thread {
	uint32_t tid;
	struct ms_thread state;
};

struct thread_list {
	struct open_thread *rows;
	uint32_t n, cap;
};

/* Waits of a busy thread that are in no total then; how many of them came in one after all. */
struct rest {
	struct ms_total_key key;
	struct ms_total total;
	int64_t came;
};

struct rest_list {
	struct rest *rows;
	uint32_t n, cap;
};

/* What is not in the totals yet. */
struct wait_gathered {
	struct thread_list threads;
	struct rest_list rests;
};

struct wait_cut {
	struct drain *drain;
	struct dict *dict;
	uint64_t max_ns;
	bool *oom;
	struct wait_gathered before, after; /* the exchange of totals at a boundary */
	struct wait_gathered *gathering;
	bool exchanging;
	uint64_t boundary_ns;
};

static enum drain_says on_thread(void *ctx, const void *thread, const void *tid)
{
	struct wait_cut *w = ctx;
	struct thread_list *to;

	if (!w->gathering)
		return DRAIN_NEXT;
	to = &w->gathering->threads;
	if (!GROW(to->rows, to->n, to->cap)) {
		*w->oom = true;
		return DRAIN_TAKEN;
	}
	to->rows[to->n++] =
		(struct open_thread){ *(const uint32_t *)tid, *(const struct ms_thread *)thread };
	return DRAIN_TAKEN;
}

static enum drain_says on_rest(void *ctx, const void *total, const void *key)
{
	struct wait_cut *w = ctx;
	struct rest_list *to;

	if (!w->gathering)
		return DRAIN_NEXT;
	to = &w->gathering->rests;
	if (!GROW(to->rows, to->n, to->cap)) {
		*w->oom = true;
		return DRAIN_TAKEN;
	}
	to->rows[to->n++] = (struct rest){ *(const struct ms_total_key *)key,
					   *(const struct ms_total *)total, 0 };
	return DRAIN_TAKEN;
}

static int by_tid(const void *a, const void *b)
{
	const struct open_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* By thread, state and stack. */
static int by_wait(const void *a, const void *b)
{
	const struct ms_total_key *x = &((const struct rest *)a)->key,
				  *y = &((const struct rest *)b)->key;
	int order = x->tid < y->tid ? -1 : x->tid > y->tid;

	if (!order)
		order = (int)x->state - (int)y->state;
	if (!order)
		order = memcmp(&x->user, &y->user, sizeof(x->user));
	return order ? order : memcmp(&x->kernel, &y->kernel, sizeof(x->kernel));
}

static struct rest *rest_find(const struct rest_list *in, const struct rest *like)
{
	return in->n ? bsearch(like, in->rows, in->n, sizeof(*in->rows), by_wait) : NULL;
}

/* One row for each, whatever number of places it has. */
static void sort_rests(struct rest_list *l)
{
	uint32_t kept = 0;

	if (l->n)
		qsort(l->rows, l->n, sizeof(*l->rows), by_wait);
	for (uint32_t i = 0; i < l->n; i++) {
		if (!kept || by_wait(&l->rows[kept - 1], &l->rows[i])) {
			l->rows[kept++] = l->rows[i];
			continue;
		}
		l->rows[kept - 1].total.count += l->rows[i].total.count;
		l->rows[kept - 1].total.value += l->rows[i].total.value;
	}
	l->n = kept;
}

static enum drain_says on_total(void *ctx, const void *record, const void *key)
{
	struct rest like = { .key = *(const struct ms_total_key *)key }, *rest;
	const struct ms_total *total = record;
	struct wait_cut *w = ctx;

	if (!w->exchanging || like.key.source != MS_OFFCPU)
		return DRAIN_NEXT;
	rest = rest_find(&w->before.rests, &like);
	if (rest && (int64_t)total->count > 0) /* less than nothing: reassigned from there */
		rest->came += (int64_t)total->count;
	return DRAIN_NEXT;
}

static int gather_threads(struct wait_cut *w, struct wait_gathered *to, struct err *e)
{
	int rc;

	to->threads.n = to->rests.n = 0;
	w->gathering = to;
	rc = drain_threads(w->drain, true, e);
	w->gathering = NULL;
	if (to->threads.n)
		qsort(to->threads.rows, to->threads.n, sizeof(*to->threads.rows), by_tid);
	sort_rests(&to->rests);
	return rc;
}

/* Is the wait that was open before the exchange of the totals open still behind it? */
static bool goes_on(const struct wait_cut *w, const struct open_thread *was)
{
	const struct thread_list *after = &w->after.threads;
	const struct open_thread *is =
		after->n ? bsearch(was, after->rows, after->n, sizeof(*was), by_tid) : NULL;

	return is && is->state.since_ns == was->state.since_ns &&
	       is->state.state == was->state.state;
}

/* Will what was in no total before the exchange be in one of a later window? It grows until it goes into
 * one. */
static bool is_to_come(const struct wait_cut *w, const struct rest *was)
{
	const struct rest *is = rest_find(&w->after.rests, was);

	return (is && is->total.count >= was->total.count) || was->came < (int64_t)was->total.count;
}

/*
 * Waits at a boundary: what of them is before it, into `opening`. One that is open on both sides of the
 * exchange of the totals, which takes the kernel tens of ms, will count as a whole in a later window, and is
 * subtracted there. One that ended meanwhile counts in this window or in the next, and must not be in
 * both: it is still to come if this window has less of its thread and stack than it is long.
 */
static int find_opening(struct wait_cut *w, struct ingest *in, const struct profile *window,
			struct profile *opening)
{
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];
	_cleanup_(profile_freep) struct profile *ended =
		profile_new(w->dict, row->types, row->n_types);
	_cleanup_(profile_freep) struct profile *rest =
		profile_new(w->dict, row->types, row->n_types);
	int rc = ended && rest ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < w->before.threads.n; i++) {
		const struct open_thread *t = &w->before.threads.rows[i];

		rc = ingest_open_wait(in, goes_on(w, t) ? opening : ended, t->tid, &t->state,
				      w->boundary_ns);
	}
	for (uint32_t i = 0; rc == 0 && i < w->before.rests.n; i++) {
		const struct rest *was = &w->before.rests.rows[i];

		if (is_to_come(w, was))
			rc = ingest_rest(in, opening, &was->key, &was->total);
	}
	/* Samples of `rest` begin with those of `ended`, in their order. */
	if (rc == 0)
		rc = profile_add_all(rest, ended, NULL, -1);
	if (rc == 0)
		rc = profile_add_all(rest, window, NULL, 1);
	for (uint32_t i = 0; rc == 0 && i < profile_n_samples(ended); i++) {
		struct profile_sample s = profile_sample(ended, i), left = profile_sample(rest, i);
		bool to_come = false;

		for (uint32_t j = 0; j < row->n_types; j++)
			to_come |= left.values[j] < 0;
		if (to_come)
			rc = profile_add(opening, s.stack, s.labels, s.values);
	}
	return rc;
}

/* The number of a label of a thread; 0: it has none. */
static int64_t number_of(const struct dict *d, labels_id labels, const char *key)
{
	const struct label *l = dict_label_find(d, labels, key);

	return l ? l->num : 0;
}

static bool is_of_thread(const struct dict *d, labels_id labels, int64_t pid, int64_t tid)
{
	return number_of(d, labels, "pid") == pid && number_of(d, labels, "tid") == tid;
}

/* Takes up to `need` of value `type` from sample `from`, and gives it to sample `to`. What is still needed; -ENOMEM. */
static int64_t take_from(struct profile *p, uint32_t from, uint32_t to, uint32_t type, int64_t need)
{
	struct profile_sample giver = profile_sample(p, from), taker = profile_sample(p, to);
	int64_t has = giver.values[type], part = has < need ? has : need;
	int64_t values[PROFILE_MAX_TYPES] = { 0 };

	if (part <= 0)
		return need;
	values[type] = part;
	if (profile_add(p, taker.stack, taker.labels, values) < 0)
		return -ENOMEM;
	values[type] = -part;
	if (profile_add(p, giver.stack, giver.labels, values) < 0)
		return -ENOMEM;
	return need - part;
}

static int make_up(struct profile *p, uint32_t i, bool last)
{
	const struct dict *d = profile_dict(p);
	struct profile_sample s = profile_sample(p, i);
	int64_t pid = number_of(d, s.labels, "pid"), tid = number_of(d, s.labels, "tid");

	for (uint32_t type = 0; pid && tid && type < profile_n_types(p); type++) {
		int64_t need = -profile_sample(p, i).values[type];

		for (uint32_t k = 0; need > 0 && k < profile_n_samples(p); k++) {
			struct profile_sample other = profile_sample(p, k);

			if ((last || other.labels.ix != s.labels.ix) && k != i &&
			    is_of_thread(d, other.labels, pid, tid))
				need = take_from(p, k, i, type, need);
		}
		if (need == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

int wait_cut_make_up(struct profile *p, bool last)
{
	uint32_t n = profile_n_samples(p), n_types = profile_n_types(p);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		const int64_t *values = profile_sample(p, i).values;
		bool any = false;

		for (uint32_t type = 0; type < n_types; type++)
			any |= values[type] < 0;
		if (any)
			rc = make_up(p, i, last);
	}
	return rc;
}

/*
 * A wait that was cut and has ended, but whose stack has not come yet, leaves less than nothing: that is
 * nothing here, and taken off the window that has it. `open`: what will be taken off.
 */
static int keep_positive(struct profile **p, struct profile *open)
{
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];
	struct profile *kept = profile_new(profile_dict(*p), row->types, row->n_types);

	for (uint32_t i = 0; kept && i < profile_n_samples(*p); i++) {
		struct profile_sample s = profile_sample(*p, i);
		int64_t values[PROFILE_MAX_TYPES], later[PROFILE_MAX_TYPES];
		bool any = false, some_later = false;
		int rc = 0;

		for (uint32_t j = 0; j < row->n_types; j++) {
			values[j] = s.values[j] > 0 ? s.values[j] : 0;
			later[j] = values[j] - s.values[j];
			any |= values[j] > 0;
			some_later |= later[j] > 0;
		}
		if (any)
			rc = profile_add(kept, s.stack, s.labels, values);
		if (rc == 0 && some_later && open)
			rc = profile_add(open, s.stack, s.labels, later);
		if (rc < 0) {
			profile_free(kept);
			return rc;
		}
	}
	if (!kept)
		return -ENOMEM;
	profile_free(*p);
	*p = kept;
	return 0;
}

int wait_cut_boundary(struct wait_cut *w, bool after, struct err *e)
{
	if (!after)
		w->boundary_ns = drain_wait_clock(w->drain, now_ns());
	w->exchanging = !after;
	return gather_threads(w, after ? &w->after : &w->before, e);
}

int wait_cut(struct wait_cut *w, struct ingest *in, struct profile **window, struct profile **open,
	     bool last, wait_settle_fn settle, struct err *e)
{
	const struct profile_row *row = &profile_rows[PROFILE_OFFCPU];
	_cleanup_(profile_freep) struct profile *opening = NULL;
	int rc = 0;

	if (!last) {
		opening = profile_new(w->dict, row->types, row->n_types);
		if (!opening)
			return err_set(e, -ENOMEM, "out of memory for a window");
	}
	/* Of waits that are left out for their length it is known at their end only. */
	if (opening && !w->max_ns)
		rc = find_opening(w, in, *window, opening);
	if (rc == 0 && opening)
		rc = profile_add_all(*window, opening, NULL, 1);
	if (rc == 0 && *open)
		rc = profile_add_all(*window, *open, NULL, -1);
	/* What was reassigned from a stack here may have been counted in the window before: what is made up
	 * for that is taken back in the next one. */
	if (rc == 0 && settle)
		rc = settle(*window, opening);
	if (rc == 0)
		rc = wait_cut_make_up(*window, last);
	if (rc == 0)
		rc = keep_positive(window, opening);
	if (rc == 0) {
		profile_free(*open);
		*open = TAKE_PTR(opening);
	}
	return rc;
}

struct wait_cut *wait_cut_new(struct drain *d, struct dict *dict, uint64_t max_ns, bool *oom)
{
	struct wait_cut *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->drain = d;
	w->dict = dict;
	w->max_ns = max_ns;
	w->oom = oom;
	drain_on(d, DRAIN_THREAD, on_thread, w);
	drain_on(d, DRAIN_REST, on_rest, w);
	drain_on(d, DRAIN_TOTAL, on_total, w);
	return w;
}

void wait_cut_free(struct wait_cut *w)
{
	if (!w)
		return;
	free(w->before.threads.rows);
	free(w->before.rests.rows);
	free(w->after.threads.rows);
	free(w->after.rests.rows);
	free(w);
}
