#include "collect/stream/strata.h"
#include "collect/overhead/slices.h"
#include "collect/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STRATUM_S (STRATUM_NS / MS_SLOT_NS)
#define KEPT      1024 /* the last strata: 34 minutes */

struct strata {
	uint64_t no[KEPT];               /* which one is here, plus 1 */
	double sums[N_STRATA_OF][KEPT];  /* what was left to chance */
	double whole[N_STRATA_OF][KEPT]; /* all of it               */
	uint64_t last;                   /* the latest that was seen */
};

/* The low 16 bits of a second: the one that is nearest to the latest. */
static uint64_t stratum_of(const struct strata *s, uint16_t slot)
{
	uint64_t latest = s->last * STRATUM_S;
	int64_t second = (int64_t)latest + (int16_t)(uint16_t)(slot - (uint16_t)latest);

	return second > 0 ? (uint64_t)second / STRATUM_S : 0;
}

static int kind_of(const struct ms_total_key *key)
{
	if (key->source == MS_OFFCPU)
		return key->state == MS_BLOCKED ? STRATA_BLOCKED : STRATA_RUNNABLE;
	return key->source == MS_GROWTH && key->state == MS_RESIDENT ? STRATA_RESIDENT : -1;
}

/* What of it was before its second belongs to strata of which nothing was left to chance, but for the first one. */
static enum drain_says on_total(void *ctx, const void *record, const void *more)
{
	const struct ms_total_key *key = more;
	const struct ms_total *total = record;
	struct strata *s = ctx;
	int kind = kind_of(key);
	uint64_t no, at;

	if (kind < 0)
		return DRAIN_NEXT;
	no = stratum_of(s, key->slot);
	at = no % KEPT;
	if (no > s->last)
		s->last = no;
	if (s->no[at] != no + 1) {
		s->no[at] = no + 1;
		for (int i = 0; i < N_STRATA_OF; i++)
			s->sums[i][at] = s->whole[i][at] = 0;
	}
	s->sums[kind][at] += (double)(int64_t)(total->value - total->before);
	s->whole[kind][at] += (double)(int64_t)total->value;
	return DRAIN_NEXT;
}

double strata_collapsed(const double *sums, uint32_t n)
{
	double variance = 0;

	for (uint32_t i = 0; i + 1 < n; i += 2)
		variance += pow(sums[i] - sums[i + 1], 2);
	if (n > 2 && n % 2)
		variance += pow(sums[n - 1] - sums[n - 2], 2) / 2;
	return sqrt(variance);
}

bool strata_error(const struct strata *s, enum strata_of of, uint64_t from_s, uint64_t to_s,
		  double *ret_sum, double *ret_se)
{
	uint64_t from = (from_s + STRATUM_S - 1) / STRATUM_S, to = to_s / STRATUM_S;
	double sums[KEPT];
	uint32_t n = 0;

	*ret_sum = *ret_se = 0;
	if (to > from + KEPT)
		from = to - KEPT;
	for (uint64_t i = from; i < to; i++) {
		bool is_here = s->no[i % KEPT] == i + 1;

		*ret_sum += is_here ? s->whole[of][i % KEPT] : 0;
		sums[n++] = is_here ? s->sums[of][i % KEPT] : 0;
	}
	*ret_se = strata_collapsed(sums, n);
	return n >= 2;
}

struct strata *strata_new(struct drain *d)
{
	struct strata *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	drain_on(d, DRAIN_TOTAL, on_total, s);
	return s;
}

void strata_free(struct strata *s)
{
	free(s);
}
