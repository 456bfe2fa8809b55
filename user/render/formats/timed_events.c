#include "render/formats/timed_events.h"

#include "model/sample_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct making {
	struct timed_events *to;
	size_t cap;
	int64_t most_apart;
};

static int add(struct making *m, uint32_t sample, int64_t ns, int64_t value)
{
	if (m->to->n == m->cap) {
		size_t cap = m->cap * 2 + 1024;
		struct timed_event *grown = reallocarray(m->to->all, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->to->all = grown;
		m->cap = cap;
	}
	m->to->all[m->to->n++] = (struct timed_event){ ns, value, sample };
	return 0;
}

static int add_bin(struct making *m, uint32_t sample, int64_t from, int64_t value)
{
	int r = 0;

	if (value <= 0)
		return 0;
	if (value > m->most_apart)
		return add(m, sample, from, value);
	for (int64_t i = 0; r == 0 && i < value; i++)
		r = add(m, sample, from, 1);
	return r;
}

/* Which of the types with times `type` is; -1: none. */
static int timed_type(const struct sample_times *t, uint32_t type)
{
	for (uint32_t i = 0; t && i < sample_times_n_types(t); i++)
		if (sample_times_type(t, i) == type)
			return (int)i;
	return -1;
}

static int by_time(const void *a, const void *b)
{
	const struct timed_event *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

/* Events of a bin have its begin as their time: from there to its end, in equal steps. */
static void spread(struct timed_events *e, int64_t bin_ns)
{
	for (size_t at = 0, to; at < e->n; at = to) {
		int64_t from = e->all[at].ns;

		for (to = at; to < e->n && e->all[to].ns == from; to++)
			;
		for (size_t i = at; i < to; i++)
			e->all[i].ns += (int64_t)((double)bin_ns * ((double)(i - at) + 0.5) /
						  (double)(to - at));
	}
}

int timed_events_make(const struct profile *p, uint32_t type, int64_t most_apart,
		      struct timed_events *ret)
{
	const struct sample_times *t = profile_times(p);
	struct making m = { .to = ret, .most_apart = most_apart };
	uint32_t n = profile_n_samples(p);
	int timed = timed_type(t, type), r = 0;
	int64_t bin_ns = t ? (int64_t)sample_times_bin_ns(t) : 0;

	*ret = (struct timed_events){ .timed = timed >= 0 };
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		struct profile_sample s = profile_sample(p, i);
		struct sample_time_reader at;
		struct sample_time entry;

		if (timed < 0) {
			r = add_bin(&m, i, profile_get_meta(p)->duration_ns / n * i,
				    s.values[type]);
			continue;
		}
		at = sample_times_read(t, i);
		while (r == 0 && sample_times_next(&at, &entry))
			r = add_bin(&m, i, entry.bin * bin_ns, entry.values[timed]);
	}
	if (r == 0 && ret->n)
		qsort(ret->all, ret->n, sizeof(*ret->all), by_time);
	if (r == 0 && ret->timed)
		spread(ret, bin_ns);
	return r;
}

void timed_events_fini(struct timed_events *e)
{
	free(e->all);
	*e = (struct timed_events){ 0 };
}
