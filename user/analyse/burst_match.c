#include "analyse/burst_match.h"

#include "base/grow.h"
#include "base/hash.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct thread {
	uint32_t tid;
	double estimated, seen; /* calls; seen: of those that are settled just now */
	UT_hash_handle hh;
};

struct seen {
	uint32_t no, thread;
	pid_t pid;
	uint64_t calls;
};

struct burst_match {
	struct thread *threads;
	struct seen *seen;
	uint32_t n_seen, room_seen;
	double rest; /* estimated of threads of which no call was seen */
};

struct burst_match *burst_match_new(void)
{
	return calloc(1, sizeof(struct burst_match));
}

void burst_match_free(struct burst_match *m)
{
	if (!m)
		return;
	hash_free(m->threads);
	free(m->seen);
	free(m);
}

static struct thread *thread_of(struct burst_match *m, uint32_t tid)
{
	struct thread *t;

	HASH_FIND(hh, m->threads, &tid, sizeof(tid), t);
	return t ? t : hash_new(m->threads, tid, &tid);
}

int burst_match_seen(struct burst_match *m, uint32_t no, uint32_t thread, pid_t pid, uint64_t calls)
{
	if (!GROW(m->seen, m->n_seen, m->room_seen))
		return -ENOMEM;
	m->seen[m->n_seen++] = (struct seen){ no, thread, pid, calls };
	return 0;
}

int burst_match_estimated(struct burst_match *m, uint32_t thread, double calls)
{
	struct thread *t = thread_of(m, thread);

	if (!t)
		return -ENOMEM;
	t->estimated += calls;
	return 0;
}

/* What is to be matched now: sums over threads that are in bursts of both kinds, and over the others. */
struct sums {
	double estimated, seen;
	double rest_estimated, rest_seen;
};

static double weight_of(const struct thread *t, const struct sums *s)
{
	if (t->estimated > 0)
		return t->estimated / t->seen;
	if (s->rest_estimated > 0)
		return s->rest_estimated / s->rest_seen;
	return s->seen > 0 ? s->estimated / s->seen : 1;
}

static int add_seen(struct burst_match *m, uint32_t to)
{
	for (uint32_t i = 0; i < m->n_seen; i++) {
		struct thread *t = m->seen[i].no <= to ? thread_of(m, m->seen[i].thread) : NULL;

		if (m->seen[i].no <= to && !t)
			return -ENOMEM;
		if (t)
			t->seen += (double)m->seen[i].calls;
	}
	return 0;
}

int burst_match_settle(struct burst_match *m, uint32_t to, burst_match_fn fn, void *ctx)
{
	struct sums s = { .rest_estimated = m->rest };
	uint32_t left = 0;

	if (add_seen(m, to) < 0)
		return -ENOMEM;
	for (const struct thread *t = m->threads; t; t = t->hh.next) {
		bool both = t->estimated > 0 && t->seen > 0;

		*(both ? &s.estimated : &s.rest_estimated) += t->estimated;
		*(both ? &s.seen : &s.rest_seen) += t->seen;
	}
	for (uint32_t i = 0; i < m->n_seen; i++) {
		const struct seen seen = m->seen[i];

		if (seen.no > to)
			m->seen[left++] = seen;
		else
			fn(ctx, seen.no, seen.thread, seen.pid,
			   fmax(weight_of(thread_of(m, seen.thread), &s), 1));
	}
	m->n_seen = left;
	m->rest = s.rest_seen > 0 ? 0 : s.rest_estimated;
	hash_free(m->threads);
	return 0;
}
