#include "analyse/survival_verdict.h"

#include "analyse/beta.h"

#include <math.h>

#define BEGUN        0.05 /* of the blocks: a few at first are no beginning      */
#define WINDOW_LEAST 0.25 /* of the run                                        */
#define FIRST_PART   (1 / 3.)
#define FIRST_STAY   0.5    /* … of which so many stay                           */
#define EARLY_PART   0.6    /* of the window: births after it are late           */
#define LATE_FEW     0.0625 /* of the early rate: they have stopped, or nearly   */
#define LATE_LEAST   (1 / 3.)
#define ROOM_PART    0.75 /* of what is claimed                                */
#define RESIDENCE    0.5  /* of the window                                     */
#define Z            1.96

unsigned survival_part(double t, double span)
{
	double part = span > 0 ? SURVIVAL_PARTS * t / span : 0;

	return part < 0 ? 0 : part >= SURVIVAL_PARTS ? SURVIVAL_PARTS - 1 : (unsigned)part;
}

double survival_moment(unsigned m)
{
	return m ? 2 / 3. : 0.5;
}

void survival_add(struct survival *to, const struct survival *from)
{
	to->from_s = from->from_s;
	to->span_s = from->span_s;
	to->looked = from->looked;
	to->lived += from->lived;
	to->ended += from->ended;
	to->blocks += from->blocks;
	to->blocks_ended += from->blocks_ended;
	for (unsigned i = 0; i < SURVIVAL_PARTS; i++) {
		to->bursts[i] = from->bursts[i];
		to->stay[i] += from->stay[i];
		to->gone[i] += from->gone[i];
		to->bytes[i] += from->bytes[i];
		to->squares[i] += from->squares[i];
	}
	for (unsigned i = 0; i < SURVIVAL_SINCE; i++) {
		to->claim[i] += from->claim[i];
		to->room[i] += from->room[i];
	}
}

static double sum(const double *by, unsigned from, unsigned end)
{
	double sum = 0;

	for (unsigned i = from; i < end; i++)
		sum += by[i];
	return sum;
}

/* At most so many, where `mean` are expected. */
static double poisson_at_most(double n, double mean)
{
	double p = 0;

	if (n >= mean)
		return 1;
	for (double k = 0; k <= n; k++)
		p += exp(k * log(mean) - mean - lgamma(k + 1));
	return p;
}

/* Where births begin to go on without a gap. */
static unsigned window_begin(const struct survival *s, unsigned end)
{
	double all = sum(s->stay, 0, end) + sum(s->gone, 0, end), before = 0;
	unsigned at = 0;

	for (; at < end; at++) {
		before += s->stay[at] + s->gone[at];
		if (before > BEGUN * all)
			break;
	}
	while (at > 0 && at < end && s->stay[at - 1] + s->gone[at - 1] > 0)
		at--;
	return at;
}

static bool oldest_stay(const struct survival *s, unsigned begin, unsigned end)
{
	unsigned third = begin + (unsigned)lround((end - begin) * FIRST_PART);
	double stay = sum(s->stay, begin, third), gone = sum(s->gone, begin, third);

	return stay >= SURVIVAL_LEAST && stay >= FIRST_STAY * (stay + gone);
}

static double exposure(const struct survival *s, unsigned from, unsigned end)
{
	if (sum(s->bursts, 0, SURVIVAL_PARTS) <= 0)
		return end - from;
	return sum(s->bursts, from, end);
}

static bool goes_on(const struct survival *s, unsigned begin, unsigned end, double alpha)
{
	unsigned cut = begin + (unsigned)lround((end - begin) * EARLY_PART);
	double early = sum(s->stay, begin, cut), late = floor(sum(s->stay, cut, end));
	double of_early = exposure(s, begin, cut), few = LATE_FEW * exposure(s, cut, end);

	return of_early > 0 && few > 0 &&
	       sum(s->bytes, cut, end) / (end - cut) >=
		       LATE_LEAST * sum(s->bytes, begin, cut) / (cut - begin) &&
	       binomial_tail(late + ceil(early), late, few / (few + of_early)) <= alpha;
}

static bool has_room(const struct survival *s)
{
	double room = 0, claim = 0;

	for (unsigned i = 0; i < SURVIVAL_SINCE; i++) {
		room += s->room[i];
		claim += s->claim[i];
	}
	return room >= ROOM_PART * claim;
}

static void put_slope(const struct survival *s, unsigned begin, unsigned end,
		      struct survival_verdict *v)
{
	double bytes = sum(s->bytes, begin, end), squares = sum(s->squares, begin, end), n;

	v->since_s = s->from_s + begin * s->span_s / SURVIVAL_PARTS;
	v->slope = bytes / ((end - begin) * s->span_s / SURVIVAL_PARTS);
	if (squares <= 0)
		return;
	n = bytes * bytes / squares;
	v->low = v->slope * pow(fmax(0, 1 - 1 / (9 * n) - Z / (3 * sqrt(n))), 3);
	v->high = v->slope * (n + 1) / n * pow(1 - 1 / (9 * (n + 1)) + Z / (3 * sqrt(n + 1)), 3);
}

void survival_verdict(const struct survival *s, double alpha, struct survival_verdict *ret_verdict)
{
	const unsigned end = SURVIVAL_PARTS - SURVIVAL_YOUNG;
	unsigned begin = window_begin(s, end);
	double window = (double)(end - begin) / SURVIVAL_PARTS;
	struct survival_verdict v = { .says = SURVIVAL_FEW,
				      .blocks = s->blocks,
				      .ended = s->blocks_ended };

	*ret_verdict = v;
	if (sum(s->stay, 0, end) < SURVIVAL_LEAST || window < WINDOW_LEAST || s->span_s <= 0)
		return;
	put_slope(s, begin, end, &v);
	if (s->ended > 0 && s->ended >= s->lived / (RESIDENCE * window))
		v.says = SURVIVAL_ENDS;
	else if (poisson_at_most(ceil(s->ended), s->lived / (RESIDENCE * window)) > alpha)
		v.says = SURVIVAL_FEW;
	else if (!oldest_stay(s, begin, end))
		v.says = SURVIVAL_ENDS;
	else if (!goes_on(s, begin, end, alpha))
		v.says = SURVIVAL_STOPPED;
	else if (!s->looked)
		v.says = SURVIVAL_FEW;
	else
		v.says = has_room(s) ? SURVIVAL_LEAKS : SURVIVAL_NO_ROOM;
	*ret_verdict = v;
}
