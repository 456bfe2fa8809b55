#include "analyse/workload.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SMALL_PART                                                                                 \
	0.5 /* of a rise: a cause that makes less than this may be there, and is not the one */
#define STILL_PART 0.1 /* of the mean rate of work */

const char *workload_name(enum workload_says says)
{
	static const char *const names[N_WORKLOADS] = { "short", "steady", "work",
							"idle",  "both",   "unknown" };

	return names[says];
}

/* The 97.5 % quantile of Student's distribution (Cornish and Fisher; 0.5 % off at 8 degrees). */
static double student(double freedom)
{
	const double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z;

	return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom);
}

/* Differences between runs of points, of each of which its last quarter counts. */
struct steps {
	double t[WORKLOAD_BINS], work[WORKLOAD_BINS], bytes[WORKLOAD_BINS];
	uint32_t n;
};

static struct workload_point mean(const struct workload_point *p, uint32_t from, uint32_t end)
{
	uint32_t n = end - from > 4 ? (end - from) / 4 : 1;
	struct workload_point m = { 0 };

	p += end - n;
	for (uint32_t i = 0; i < n; i++) {
		m.t_s += p[i].t_s / n;
		m.bytes += p[i].bytes / n;
		m.work += p[i].work / n;
	}
	return m;
}

static void make_steps(const struct workload_point *p, uint32_t n, struct steps *to)
{
	uint32_t bins = n < WORKLOAD_BINS ? n : WORKLOAD_BINS;
	struct workload_point before = mean(p, 0, n / bins);

	to->n = 0;
	for (uint32_t i = 1; i < bins; i++) {
		uint32_t from = (uint32_t)((uint64_t)n * i / bins);
		uint32_t end = (uint32_t)((uint64_t)n * (i + 1) / bins);
		struct workload_point m = mean(p, from, end);

		to->t[to->n] = m.t_s - before.t_s;
		to->work[to->n] = m.work - before.work;
		to->bytes[to->n++] = m.bytes - before.bytes;
		before = m;
	}
}

/* What memory gains by chance grows with the root of the time; some steps are longer, as when nobody looked. */
static void weigh(struct steps *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		double root = sqrt(s->t[i] > 0 ? s->t[i] : 1e-9);

		s->t[i] /= root;
		s->work[i] /= root;
		s->bytes[i] /= root;
	}
}

/* Of two columns: a 2x2 matrix that is symmetric. */
struct square {
	double tt, tw, ww;
};

static bool invert(const struct square *a, struct square *ret)
{
	double det = a->tt * a->ww - a->tw * a->tw;

	if (!(det > 1e-9 * a->tt * a->ww))
		return false;
	*ret = (struct square){ a->ww / det, -a->tw / det, a->tt / det };
	return true;
}

/* b a b */
static struct square sandwich(const struct square *b, const struct square *a)
{
	double p = b->tt * a->tt + b->tw * a->tw, q = b->tt * a->tw + b->tw * a->ww;
	double r = b->tw * a->tt + b->ww * a->tw, s = b->tw * a->tw + b->ww * a->ww;

	return (struct square){ p * b->tt + q * b->tw, p * b->tw + q * b->ww,
				r * b->tw + s * b->ww };
}

static void add_product(struct square *to, const struct steps *s, uint32_t i, uint32_t k,
			double weight)
{
	to->tt += weight * s->t[i] * s->t[k];
	to->tw += weight * (s->t[i] * s->work[k] + s->work[i] * s->t[k]) / 2;
	to->ww += weight * s->work[i] * s->work[k];
}

/* The variance of the two slopes. `lag`: 1, or 0, which is never below 0. */
static struct square variance(const struct steps *s, const struct square *inverse,
			      const double *rest, int lag)
{
	struct square meat = { 0 };
	for (uint32_t i = 0; i < s->n; i++) {
		add_product(&meat, s, i, i, rest[i] * rest[i]);
		if (lag && i > 0) /* Bartlett's weight, 1/2, of both orders */
			add_product(&meat, s, i, i - 1, rest[i] * rest[i - 1]);
	}
	return sandwich(inverse, &meat);
}

static enum workload_says judge(const struct workload_fit *f, double at_first)
{
	bool with = f->unit_low > 0, idle = f->idle_low > 0;
	double small = SMALL_PART * f->grown, least = at_first * WORKLOAD_LEAST_PART;

	if (least < WORKLOAD_LEAST_BYTES)
		least = WORKLOAD_LEAST_BYTES;
	if (f->grown_low <= 0 || f->grown < least)
		return WORKLOAD_STEADY;
	if (with && f->idle_high * f->span_s < small)
		return WORKLOAD_WITH;
	if (idle && f->unit_high * f->work < small)
		return WORKLOAD_IDLE;
	return with && idle ? WORKLOAD_BOTH : WORKLOAD_UNTOLD;
}

/* The rise as a whole, when it cannot be divided: by time alone. */
static void fit_time(const struct steps *s, struct workload_fit *f)
{
	double sum = 0, squares = 0, mean_step, half;

	for (uint32_t i = 0; i < s->n; i++)
		sum += s->bytes[i];
	mean_step = sum / s->n;
	for (uint32_t i = 0; i < s->n; i++)
		squares += (s->bytes[i] - mean_step) * (s->bytes[i] - mean_step);
	half = student(s->n - 1) * sqrt(squares * s->n / (s->n - 1));
	f->grown = sum;
	f->grown_low = sum - half;
	f->grown_high = sum + half;
	f->unit_low = f->idle_low = -INFINITY;
	f->unit_high = f->idle_high = INFINITY;
}

/* How much of a step's own value is in what the line says there, 0 … 1. */
static double pull(const struct steps *s, uint32_t i, const struct square *inverse)
{
	double t = s->t[i], w = s->work[i];
	double h = t * t * inverse->tt + 2 * t * w * inverse->tw + w * w * inverse->ww;

	return h < 0.99 ? h : 0.99;
}

static void fit_both(const struct steps *s, const struct square *inverse, struct workload_fit *f)
{
	double ty = 0, wy = 0, yy = 0, left = 0, rest[WORKLOAD_BINS], t = student(s->n - 2), half;
	struct square v;

	for (uint32_t i = 0; i < s->n; i++) {
		ty += s->t[i] * s->bytes[i];
		wy += s->work[i] * s->bytes[i];
		yy += s->bytes[i] * s->bytes[i];
	}
	f->idle = inverse->tt * ty + inverse->tw * wy;
	f->per_unit = inverse->tw * ty + inverse->ww * wy;
	for (uint32_t i = 0; i < s->n; i++) {
		rest[i] = s->bytes[i] - f->idle * s->t[i] - f->per_unit * s->work[i];
		left += rest[i] * rest[i];
		/* A step that pulls the line its way leaves less than it should (MacKinnon and White's HC3). */
		rest[i] /= 1 - pull(s, i, inverse);
	}
	f->r2 = yy > 0 ? 1 - left / yy : 1;
	v = variance(s, inverse, rest, 1);
	half = f->span_s * f->span_s * v.tt + 2 * f->span_s * f->work * v.tw +
	       f->work * f->work * v.ww;
	if (!(v.tt > 0 && v.ww > 0 && half > 0)) {
		v = variance(s, inverse, rest, 0);
		half = f->span_s * f->span_s * v.tt + 2 * f->span_s * f->work * v.tw +
		       f->work * f->work * v.ww;
	}
	half = t * sqrt(half > 0 ? half : 0);
	f->grown = f->idle * f->span_s + f->per_unit * f->work;
	f->grown_low = f->grown - half;
	f->grown_high = f->grown + half;
	f->idle_low = f->idle - t * sqrt(v.tt);
	f->idle_high = f->idle + t * sqrt(v.tt);
	f->unit_low = f->per_unit - t * sqrt(v.ww);
	f->unit_high = f->per_unit + t * sqrt(v.ww);
}

static void find_still(const struct steps *s, struct workload_fit *f)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (fabs(s->work[i]) * f->span_s >= STILL_PART * fabs(f->work) * s->t[i])
			continue;
		f->still += s->t[i] / f->span_s;
		f->still_grown += s->bytes[i];
	}
}

void workload_fit(const struct workload_point *p, uint32_t n, struct workload_fit *ret_fit)
{
	struct workload_fit f = { .says = WORKLOAD_SHORT };
	struct square a = { 0 }, inverse;
	struct steps s;

	if (n >= WORKLOAD_LEAST) {
		make_steps(p, n, &s);
		for (uint32_t i = 0; i < s.n; i++) {
			f.span_s += s.t[i];
			f.work += s.work[i];
		}
		find_still(&s, &f);
		fit_time(&s, &f);
		weigh(&s);
		for (uint32_t i = 0; i < s.n; i++)
			add_product(&a, &s, i, i, 1);
		if (invert(&a, &inverse))
			fit_both(&s, &inverse, &f);
		f.says = judge(&f, p[0].bytes);
	}
	*ret_fit = f;
}
