#include "render/html/page_moments.h"

#include "analyse/site_stats.h"
#include "analyse/sites.h"
#include "base/hash.h"
#include "render/html/page_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BURST_OF_RUN .25
#define BEGIN_OF_RUN .1
#define LAST_OF_RUN  .8
#define LEAST_SHARE  .1
#define LARGE_SHARE  .25
#define LEAST_USE    .1 /* of a CPU, or of a thread */
#define LEAST_BYTES  1048576.
#define LEAST_BINS   8 /* in fewer nothing is short */
#define LEAST_EVENTS 5 /* bins or samples that a begin has: one is no begin */

struct place {
	const char *function, *module; /* borrowed from the dict */
	uint64_t wait; /* enum wait_kind; as wide as a pointer: a key has no padding */
};

struct function {
	struct place key;
	double total;
	uint32_t rank;
	UT_hash_handle hh;
};

struct moment {
	const struct page_profile *of;
	uint32_t type;
	struct place place;
	double from_s, to_s, value, share;
	bool burst;
};

struct moments {
	struct moment list[PAGE_MOMENTS];
	uint32_t n;
};

/* How much it stands out: what is much, in a short time. */
static double weight(const struct moment *m, double seconds)
{
	return m->share * (1.25 - (m->to_s - m->from_s) / seconds);
}

static void offer(struct moments *to, const struct moment *m, double seconds)
{
	uint32_t at = to->n < PAGE_MOMENTS ? to->n++ : PAGE_MOMENTS;

	while (at > 0 && weight(m, seconds) > weight(&to->list[at - 1], seconds)) {
		if (at < PAGE_MOMENTS)
			to->list[at] = to->list[at - 1];
		at--;
	}
	if (at < PAGE_MOMENTS)
		to->list[at] = *m;
}

/* Where a sample's value belongs. false: to nothing that could stand out. */
static bool place_of(const struct profile *p, uint32_t type, stack_id stack,
		     struct place *ret_place, int *error)
{
	bool wait = sites_kind(p, type) == SITE_WAIT;
	struct site_row row = { .function = "", .module = "" };
	int r = wait ? site_of_wait_stack(profile_dict(p), stack, &row)
		     : site_of_stack(profile_dict(p), stack, &row);

	*error = r < 0 ? r : *error;
	if (r < 0 || !*row.function)
		return false;
	if (wait &&
	    (row.role == WAIT_ROLE_IDLE || row.role == WAIT_ROLE_JOIN || row.wait == WAIT_TIMER ||
	     row.wait == WAIT_EVENTS || row.wait == WAIT_CHILD || row.wait == WAIT_SIGNAL ||
	     row.wait == WAIT_TERMINAL || row.wait == WAIT_OTHER))
		return false;
	*ret_place = (struct place){ row.function, row.module, wait ? row.wait : 0 };
	return true;
}

static int by_total(const void *a, const void *b)
{
	double x = (*(struct function *const *)a)->total, y = (*(struct function *const *)b)->total;

	return (y > x) - (y < x);
}

/* One profile's work. */
struct search {
	const struct page_profile *pp;
	uint32_t type, n_bins, n;
	uint64_t bin_ns;
	double seconds, all;
	struct function *functions;
	struct function **of_sample; /* NULL: of none */
	struct point *points;        /* n_bins for each of the n functions that are looked at */
	double *span_s;
};

static void search_fini(struct search *s)
{
	hash_free(s->functions);
	free(s->of_sample);
	free(s->points);
	free(s->span_s);
}

static int group(struct search *s)
{
	const struct profile *p = s->pp->p;
	uint32_t n = profile_n_samples(p), count = 0;
	_cleanup_(freep) struct function **order = NULL;
	struct function *f, *next;
	int error = 0;

	s->of_sample = calloc(n + 1ul, sizeof(struct function *));
	if (!s->of_sample)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && error == 0; i++) {
		struct profile_sample sample = profile_sample(p, i);
		struct place place;

		s->all += (double)sample.values[s->type];
		if (!place_of(p, s->type, sample.stack, &place, &error))
			continue;
		f = hash_get(s->functions, key, &place);
		if (!f)
			return -ENOMEM;
		f->total += (double)sample.values[s->type];
		s->of_sample[i] = f;
	}
	order = calloc(HASH_COUNT(s->functions) + 1ul, sizeof(*order));
	if (error < 0 || !order)
		return error < 0 ? error : -ENOMEM;
	HASH_ITER (hh, s->functions, f, next)
		order[count++] = f;
	qsort(order, count, sizeof(struct function *), by_total);
	s->n = count < PAGE_MOMENT_FUNCTIONS ? count : PAGE_MOMENT_FUNCTIONS;
	for (uint32_t i = 0; i < count; i++)
		order[i]->rank = i;
	return 0;
}

static int fill(struct search *s)
{
	uint64_t own_ns = sample_times_bin_ns(s->pp->times);
	double width = (double)s->bin_ns / 1e9;

	s->points = calloc((size_t)s->n * s->n_bins + 1, sizeof(*s->points));
	s->span_s = calloc(s->n_bins + 1ul, sizeof(*s->span_s));
	if (!s->points || !s->span_s)
		return -ENOMEM;
	for (uint32_t b = 0; b < s->n_bins; b++) {
		double to = fmin((b + 1) * width, s->seconds);

		s->span_s[b] = to - b * width > width / 100 ? to - b * width : width;
		for (uint32_t i = 0; i < s->n; i++)
			s->points[(size_t)i * s->n_bins + b].t = b * width + s->span_s[b] / 2;
	}
	for (uint32_t i = 0; i < profile_n_samples(s->pp->p); i++) {
		struct sample_time_reader read = sample_times_read(s->pp->times, i);
		struct sample_time entry;

		if (!s->of_sample[i] || s->of_sample[i]->rank >= s->n)
			continue;
		while (sample_times_next(&read, &entry)) {
			uint64_t b = entry.bin * own_ns / s->bin_ns;

			if (b < s->n_bins)
				s->points[(size_t)s->of_sample[i]->rank * s->n_bins + b].y +=
					(double)entry.values[0] / s->span_s[b];
		}
	}
	return 0;
}

/* Is it worth a look? */
static bool matters(const struct search *s, const struct moment *m)
{
	const char *unit = profile_type(s->pp->p, s->type)->unit;
	double period_ns = (double)profile_get_meta(s->pp->p)->period;

	if (strcmp(unit, "nanoseconds") == 0) /* or what a program had on a machine that is full */
		return m->value / 1e9 >= LEAST_USE * (m->to_s - m->from_s) ||
		       (period_ns > 1 && m->share >= LARGE_SHARE &&
			m->value >= 2 * LEAST_EVENTS * period_ns);
	if (strcmp(unit, "bytes") == 0)
		return m->share >= LEAST_SHARE && m->value >= LEAST_BYTES &&
		       m->from_s >= BEGIN_OF_RUN * s->seconds;
	/* Samples: of a tenth of a CPU, and enough of them; where it is not known what one stands for, a tenth of all. */
	return m->value >= 2 * LEAST_EVENTS &&
	       (period_ns > 1 ? m->value * period_ns / 1e9 >= LEAST_USE * (m->to_s - m->from_s)
			      : m->share >= LEAST_SHARE);
}

static void look(const struct search *s, const struct function *f, struct moments *to)
{
	const struct point *p = s->points + (size_t)f->rank * s->n_bins;
	struct moment m = { .of = s->pp, .type = s->type, .place = f->key };
	uint32_t from, end, filled = 0, first = s->n_bins, last = 0;

	if (!site_burst(p, s->span_s, s->n_bins, &from, &end))
		return;
	for (uint32_t b = 0; b < s->n_bins; b++) {
		if (p[b].y <= 0)
			continue;
		filled++;
		last = b;
		first = first == s->n_bins ? b : first;
	}
	m.from_s = p[from].t - s->span_s[from] / 2;
	m.to_s = p[end - 1].t + s->span_s[end - 1] / 2;
	for (uint32_t b = from; b < end; b++)
		m.value += p[b].y * s->span_s[b];
	m.burst = m.to_s - m.from_s <= BURST_OF_RUN * s->seconds;
	if (!m.burst) {
		m.from_s = p[first].t - s->span_s[first] / 2;
		m.to_s = p[last].t + s->span_s[last] / 2;
		m.value = f->total;
		if (m.from_s < BEGIN_OF_RUN * s->seconds || m.to_s < LAST_OF_RUN * s->seconds ||
		    filled < LEAST_EVENTS)
			return;
	}
	m.share = s->all > 0 ? m.value / s->all : 0;
	if (matters(s, &m))
		offer(to, &m, s->seconds);
}

static int search_profile(const struct page_profile *pp, uint64_t bin_ns, double seconds,
			  struct moments *to)
{
	_cleanup_(search_fini) struct search s = { .pp = pp, .bin_ns = bin_ns, .seconds = seconds };
	struct function *f, *next;
	int r;

	if (!pp->times || !bin_ns || !(seconds > 0))
		return 0;
	s.type = sample_times_type(pp->times, 0);
	s.n_bins = (uint32_t)fmin(ceil(seconds / ((double)bin_ns / 1e9)), 1 << 16);
	if (s.n_bins < LEAST_BINS)
		return 0;
	r = group(&s);
	if (r == 0)
		r = fill(&s);
	if (r < 0)
		return r;
	HASH_ITER (hh, s.functions, f, next)
		if (f->rank < s.n)
			look(&s, f, to);
	return 0;
}

int page_moments_json(const struct page_run *run, uint64_t bin_ns, double seconds,
		      struct strbuf *out)
{
	struct moments found = { .n = 0 };

	for (uint32_t i = 0; i < run->n_profiles; i++) {
		int r = search_profile(&run->profiles[i], bin_ns, seconds, &found);

		if (r < 0)
			return r;
	}
	strbuf_puts(out, "[");
	for (uint32_t i = 0; i < found.n; i++) {
		const struct moment *m = &found.list[i];
		bool wait = sites_kind(m->of->p, m->type) == SITE_WAIT;

		strbuf_puts(out, i ? ",{" : "{");
		page_json_text(out, "profile", m->of->id);
		strbuf_printf(out, ",\"type\":%u,", m->type);
		page_json_text(out, "function", m->place.function);
		strbuf_puts(out, ",");
		page_json_text(out, "module", m->place.module);
		strbuf_puts(out, ",");
		page_json_text(out, "wait",
			       wait ? wait_kind_text((enum wait_kind)m->place.wait) : NULL);
		strbuf_printf(
			out,
			",\"burst\":%s,\"from\":%.6g,\"to\":%.6g,\"value\":%.10g,\"share\":%.6g}",
			m->burst ? "true" : "false", m->from_s, m->to_s, m->value, m->share);
	}
	strbuf_puts(out, "]");
	return 0;
}
