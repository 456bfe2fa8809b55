#include "analyse/leaks.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STILL_TIME                                                                                 \
	0.05 /* of the time without work: enough to say what became of memory then      */
#define ENDED_PART                                                                                 \
	0.1 /* of the mean rate of work: less of it after growth stopped is that it ended */
#define IDLE_PART 0.25 /* of growth: what is certain to come without work is no more              */
#define STILL_GAIN                                                                                 \
	0.5 /* of the idle growth that a line says, at least seen in that time          */
#define BENDS_PART                                                                                 \
	0.67          /* of the squares that lines leave: a curve that leaves less is the shape   */
#define HALF_GAIN 0.7 /* of what the first half of the work took, in the second                   */
#define LESS_PART 0.7 /* of what a quarter of the work took, the next takes at most               */
#define LEFT_PART 0.03 /* … or of what it holds: the last that there is to learn                  */
#define WORK_R2   0.5 /* of what does not rise on the whole: so much is explained by work          */
#define WOULD_SHOW                                                                                 \
	4 /* times the height that the private memory reached: growth that it would show */
#define RATE_PART                                                                                  \
	0.02 /* of the time: a rate is that of so much                                   */
#define PLACE_BYTES 80 /* of names, in sentences                                                  */

bool growth_is_leak(enum growth_says says)
{
	return says <= GROWTH_LEAK_WORK;
}

const char *growth_name(enum growth_says says)
{
	static const char *const names[N_GROWTHS] = {
		[GROWTH_LEAK] = "leak",         [GROWTH_LEAK_IDLE] = "idle",
		[GROWTH_LEAK_WORK] = "work",    [GROWTH_FOLLOWS] = "follows",
		[GROWTH_FILLS] = "fills",       [GROWTH_STOPPED] = "stopped",
		[GROWTH_REPLACES] = "replaces",
	};

	return names[says];
}

/* --- what grows ------------------------------------------------------------------------------- */

/* At most LEAK_POINTS, evenly spread, the first and the last among them. */
static void put_points(struct summary_leak *leak, const struct point *p, uint32_t n, double unit)
{
	leak->n_points = n < LEAK_POINTS ? n : LEAK_POINTS;
	for (uint32_t i = 0; i < leak->n_points; i++) {
		uint32_t at = leak->n_points > 1
				      ? (uint32_t)((uint64_t)i * (n - 1) / (leak->n_points - 1))
				      : 0;

		leak->points[i] = (struct point){ p[at].t, p[at].y * unit };
	}
}

static void put_shape(struct summary_leak *leak, const struct trend_shape *shape)
{
	const struct series_line *l = &shape->tail;

	leak->slope = l->slope * 1024;
	leak->slope_low = l->slope_low * 1024;
	leak->slope_high = l->slope_high * 1024;
	leak->r2 = l->r2;
	leak->since_s = shape->since_s;
	leak->changed = shape->changed * 1024;
}

/* false: the stack has no site. */
static bool put(const struct live_series *series, struct dict *d, const struct leak *found,
		enum growth_says says, struct summary_leak *to)
{
	struct point p[LIVE_SERIES_TICKS];
	const double *times;
	uint32_t n = live_series_times(series, &times);

	*to = (struct summary_leak){ .says = says };
	if (site_of_stack(d, found->row->stack, &to->site) < 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		p[i] = (struct point){ times[i], (double)found->row->bytes[i] };
	put_points(to, p, n, 1);
	put_shape(to, &found->shape);
	to->live = found->row->live;
	to->survived = found->survived;
	to->age_s = found->age_s;
	to->sampled = found->sampled;
	to->ended = found->ended;
	to->sampled_age_s = found->sampled_age_s;
	to->held_known = live_series_held_grew(series, &to->held_grew);
	return true;
}

void leaks_of(const struct live_series *series, struct dict *d, double age_s,
	      struct summary_alloc *to)
{
	struct leak found[SUMMARY_LEAKS];
	uint32_t n = live_series_leaks(series, age_s, found, SUMMARY_LEAKS);

	for (uint32_t i = 0; i < n && to->n_leaks < SUMMARY_LEAKS; i++)
		to->n_leaks += put(series, d, &found[i], GROWTH_LEAK, &to->leaks[to->n_leaks]);
	n = live_series_stopped(series, age_s, found, SUMMARY_LEAKS);
	for (uint32_t i = 0; i < n && to->n_no_leaks < SUMMARY_LEAKS; i++)
		to->n_no_leaks +=
			put(series, d, &found[i], GROWTH_STOPPED, &to->no_leaks[to->n_no_leaks]);
}

void leaks_peak(const struct live_series *series, struct summary_alloc *to)
{
	struct live_series_peak peak;

	if (!live_series_peak(series, &peak))
		return;
	to->live_peak.known = true;
	to->live_peak.in_use = peak.held;
	to->live_peak.bytes = llround(peak.bytes);
	to->live_peak.low = llround(peak.low);
	to->live_peak.high = llround(peak.high);
	to->live_peak.at_ns = llround(peak.t_s * 1e9);
}

void leaks_growing(const struct live_series *series, struct dict *d, struct summary_growth *to)
{
	struct leak found[SUMMARY_LEAKS];
	uint32_t n = live_series_growing(series, found, SUMMARY_LEAKS);

	for (uint32_t i = 0; i < n && to->n_growing < SUMMARY_LEAKS; i++)
		to->n_growing +=
			put(series, d, &found[i], GROWTH_LEAK, &to->growing[to->n_growing]);
}

void leaks_private(const struct point *kb, uint32_t n, const struct trend_shape *shape,
		   struct summary_leak *to)
{
	*to = (struct summary_leak){ .says = GROWTH_STOPPED, .survived = 1 };
	if (n < 2)
		return;
	put_points(to, kb, n, 1024);
	put_shape(to, shape);
	to->live = (int64_t)(kb[n - 1].y * 1024);
	if (shape->kind == TREND_SHAPE_GROWING)
		to->says = GROWTH_LEAK;
}

/* --- beside work ------------------------------------------------------------------------------ */

/* A series, or how fast it rises: a queue is as long as the rush is. */
struct beside {
	const struct summary_workload *work;
	bool rate;
};

/* Between the two that are nearest; NAN before the first and after the last. */
static double value_at(const struct summary_workload *w, double t)
{
	const struct point *p = w->points;

	t += w->begin_s;
	for (uint32_t i = 0; i < w->n_points; i++) {
		if (p[i].t == t)
			return p[i].y;
		if (p[i].t > t)
			return i ? p[i - 1].y + (p[i].y - p[i - 1].y) * (t - p[i - 1].t) /
							(p[i].t - p[i - 1].t)
				 : NAN;
	}
	return NAN;
}

/* The rate is that of RATE_PART of the time. */
static double level_at(const struct beside *by, double t)
{
	const struct summary_workload *w = by->work;
	double span = RATE_PART * (w->points[w->n_points - 1].t - w->points[0].t);

	if (!by->rate)
		return value_at(w, t);
	return span > 0 ? (value_at(w, t) - value_at(w, t - span)) / span : NAN;
}

/* From `from_s` after the first point on. */
static uint32_t points_beside(const struct summary_leak *leak, const struct beside *by,
			      double from_s, struct workload_point *ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < leak->n_points; i++) {
		const struct point *p = &leak->points[i];
		double work = level_at(by, p->t);

		if (!isnan(work) && p->t >= leak->points[0].t + from_s)
			ret[n++] = (struct workload_point){ p->t, p->y, work };
	}
	return n;
}

/* With work for certain, whatever else: not by a chance of 1 in 40, but of 1 in 1,000 or less. */
static bool is_sure_of_work(const struct workload_fit *f)
{
	return f->unit_low > f->per_unit / 3 &&
	       f->idle_low * f->span_s <= IDLE_PART * fmax(f->grown, 0);
}

/* With work, and not without it; or it comes and goes with it. */
static bool is_with(const struct workload_fit *f)
{
	if (f->says == WORKLOAD_STEADY)
		return is_sure_of_work(f) && f->r2 >= WORK_R2;
	return f->says == WORKLOAD_WITH ||
	       ((f->says == WORKLOAD_UNTOLD || f->says == WORKLOAD_BOTH) && is_sure_of_work(f));
}

/* By itself for certain: there were times without work, and it grew in them. */
static bool is_idle(const struct workload_fit *f)
{
	return (f->says == WORKLOAD_IDLE || f->says == WORKLOAD_BOTH) && f->still >= STILL_TIME &&
	       f->still_grown >= STILL_GAIN * f->idle * f->still * f->span_s;
}

/*
 * Growth that goes on is of its last piece: how a cache filled at first says nothing of it. Where that is too
 * short to tell, all of it may show that it follows a level.
 */
static void fit_beside(const struct summary_leak *leak, const struct beside *by,
		       struct workload_fit *ret)
{
	bool goes_on = leak->says != GROWTH_STOPPED;
	struct workload_point p[LEAK_POINTS];
	struct workload_fit all;

	workload_fit(p, points_beside(leak, by, goes_on ? leak->since_s : 0, p), ret);
	if (!goes_on || is_idle(ret) || is_with(ret))
		return;
	workload_fit(p, points_beside(leak, by, 0, p), &all);
	if (ret->says == WORKLOAD_SHORT || is_with(&all))
		*ret = all;
}

/* A least-squares fit of y by 1, a and b: the sum of the squares that it leaves, and the coefficient of b. */
static double left_by(const double *a, const double *b, const double *y, uint32_t n, double *ret_b)
{
	double ma = 0, mb = 0, my = 0, aa = 0, ab = 0, bb = 0, ay = 0, by = 0, left = 0, det, ka,
	       kb;

	for (uint32_t i = 0; i < n; i++) {
		ma += a[i] / n;
		mb += b[i] / n;
		my += y[i] / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		aa += (a[i] - ma) * (a[i] - ma);
		ab += (a[i] - ma) * (b[i] - mb);
		bb += (b[i] - mb) * (b[i] - mb);
		ay += (a[i] - ma) * (y[i] - my);
		by += (b[i] - mb) * (y[i] - my);
	}
	det = aa * bb - ab * ab;
	if (!(det > 1e-9 * aa * bb))
		return INFINITY;
	ka = (ay * bb - by * ab) / det;
	kb = (by * aa - ay * ab) / det;
	for (uint32_t i = 0; i < n; i++) {
		double r = y[i] - my - ka * (a[i] - ma) - kb * (b[i] - mb);

		left += r * r;
	}
	*ret_b = kb;
	return left;
}

/*
 * Does each unit of work take less than the one before? Two models of as many numbers of the last piece: memory
 * by work and its square, which bends down, leaves much less than memory by work and time.
 */
static bool bends(const struct summary_leak *leak, const struct beside *by)
{
	double t[LEAK_POINTS], w[LEAK_POINTS], ww[LEAK_POINTS], y[LEAK_POINTS], bend, drift, lines;
	struct workload_point p[LEAK_POINTS];
	uint32_t n = points_beside(leak, by, leak->since_s, p);

	if (n < WORKLOAD_LEAST || p[n - 1].work <= p[0].work)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		t[i] = p[i].t_s - p[0].t_s;
		w[i] = (p[i].work - p[0].work) / (p[n - 1].work - p[0].work);
		ww[i] = w[i] * w[i];
		y[i] = p[i].bytes;
	}
	lines = left_by(w, t, y, n, &drift);
	return left_by(w, ww, y, n, &bend) < BENDS_PART * lines && bend < 0;
}

/* The mean of a few points: each has its noise. */
static double level_before(const struct workload_point *p, uint32_t at)
{
	uint32_t n = at < 4 ? at + 1 : 5;
	double sum = 0;

	for (uint32_t i = at + 1 - n; i <= at; i++)
		sum += p[i].bytes;
	return sum / n;
}

/* Of all its growth, each quarter of the work took much less than the one before: a table that learns. Or the
 * last took hardly anything, and that it goes on rising may be chance. */
static bool is_full_soon(const struct summary_leak *leak, const struct beside *by)
{
	struct workload_point p[LEAK_POINTS];
	uint32_t n = points_beside(leak, by, 0, p), at = 0;
	bool dwindles = true, unsure = false;
	double before = 0, bytes;

	if (n < WORKLOAD_LEAST || p[n - 1].work <= p[0].work)
		return false;
	bytes = p[0].bytes;
	for (int q = 1; q <= 4; q++) {
		double end = p[0].work + (p[n - 1].work - p[0].work) * q / 4, gain;

		while (at + 1 < n && p[at].work < end)
			at++;
		gain = level_before(p, at) - bytes;
		dwindles &= q == 1 || gain <= fmax(LESS_PART * before, LEFT_PART * bytes);
		unsure = gain <= LEFT_PART * bytes && leak->slope_low < leak->slope / 2;
		before = gain;
		bytes += gain;
	}
	return dwindles || unsure;
}

/* It stands still while there is no work, and the second half of the work took about what the first did. */
static bool goes_on_with(const struct summary_leak *leak, const struct beside *by,
			 const struct workload_fit *f)
{
	struct workload_point w[LEAK_POINTS];
	uint32_t n = points_beside(leak, by, 0, w), half = 0, k = 0;
	struct point p[LEAK_POINTS];
	struct trend_shape shape;

	if (!by->work->counter || by->rate || !is_with(f) || f->r2 < WORK_R2 ||
	    leak->survived < LEAK_SURVIVAL)
		return false;
	for (uint32_t i = 0; i < n; i++) { /* work in the place of time */
		if (k && w[i].work <= p[k - 1].t)
			p[k - 1].y = w[i].bytes / 1024;
		else
			p[k++] = (struct point){ w[i].work, w[i].bytes / 1024 };
	}
	trend_shape_of(p, k, &shape);
	if (shape.kind != TREND_SHAPE_GROWING)
		return false;
	while (p[half].t - p[0].t < (p[k - 1].t - p[0].t) / 2)
		half++;
	return p[k - 1].y - p[half].y >= HALF_GAIN * (p[half].y - p[0].y);
}

static enum growth_says judge(const struct summary_leak *leak, const struct beside *by,
			      const struct workload_fit *f)
{
	bool level = by->rate || !by->work->counter;

	if (level && is_with(f))
		return GROWTH_FOLLOWS;
	if (leak->says == GROWTH_STOPPED)
		return goes_on_with(leak, by, f) ? GROWTH_LEAK_WORK : GROWTH_STOPPED;
	if (is_idle(f))
		return GROWTH_LEAK_IDLE;
	if (!level && (bends(leak, by) || is_full_soon(leak, by)))
		return GROWTH_FILLS;
	return !level && f->says == WORKLOAD_WITH ? GROWTH_LEAK_WORK : GROWTH_LEAK;
}

/*
 * Which of several series says most. Of ours the CPU time alone, and only that memory grows without it: what a
 * program does takes time and memory, whether it leaks or loads. Of those that were given, one with which it grows
 * explains why it grows without another.
 */
static int worth(const struct beside *by, const struct workload_fit *f, enum growth_says says)
{
	static const int of[N_GROWTHS] = {
		[GROWTH_LEAK] = 1,  [GROWTH_LEAK_IDLE] = 2, [GROWTH_LEAK_WORK] = 3,
		[GROWTH_FILLS] = 3, [GROWTH_FOLLOWS] = 3,   [GROWTH_STOPPED] = 1,
	};

	if (f->says == WORKLOAD_SHORT)
		return 0;
	if (by->rate && says != GROWTH_FOLLOWS)
		return 0;
	if (!by->work->own)
		return 10 + of[says];
	return strcmp(by->work->name, "cpu_seconds") == 0 && says == GROWTH_LEAK_IDLE;
}

/* Was there hardly any work since it stopped growing? */
static bool work_ended(const struct summary_leak *leak)
{
	const struct point *p = leak->points;
	double first = value_at(leak->work, p[0].t), last = NAN, then = NAN, begun, end = 0;

	begun = p[0].t + leak->since_s;
	for (uint32_t i = 0; i < leak->n_points; i++) {
		double v = value_at(leak->work, p[i].t);

		if (isnan(v))
			continue;
		if (isnan(first))
			first = v;
		if (p[i].t <= begun || isnan(then))
			then = v;
		last = v;
		end = p[i].t;
	}
	return leak->work->counter && end > begun && begun > p[0].t && last > first &&
	       (last - then) / (end - begun) < ENDED_PART * (then - first) / (begun - p[0].t);
}

/* Its line is that of the time since work has stopped: its rate is that of all the work. */
static void take_rate_of_work(struct summary_leak *leak)
{
	double rate = leak->fit.work / leak->fit.span_s;

	leak->slope = leak->fit.per_unit * rate;
	leak->slope_low = leak->fit.unit_low * rate;
	leak->slope_high = leak->fit.unit_high * rate;
	leak->r2 = leak->fit.r2;
	leak->since_s = 0;
}

static void hold(const struct run_summary *s, struct summary_leak *leak)
{
	enum growth_says says = leak->says;
	int best = 0;

	for (uint32_t i = 0; i < 2 * s->n_workload; i++) {
		const struct beside by = { &s->workload[i / 2], i % 2 };
		struct workload_fit f;
		enum growth_says of;
		int is;

		if (!by.work->n_points || (by.rate && (by.work->own || !by.work->counter)))
			continue;
		fit_beside(leak, &by, &f);
		of = judge(leak, &by, &f);
		is = worth(&by, &f, of);
		if (is < best || !is || (is == best && f.r2 <= leak->fit.r2))
			continue;
		best = is;
		leak->work = by.work;
		leak->of_rate = by.rate;
		leak->fit = f;
		says = of;
	}
	if (leak->says == GROWTH_STOPPED && says != GROWTH_STOPPED)
		take_rate_of_work(leak);
	leak->says = says;
	if (says == GROWTH_STOPPED)
		leak->work_ended = leak->work && !leak->work->own && work_ended(leak);
}

/*
 * What is in use is level, though so much came: it went for what was there before. Where that is not known, by the private
 * memory, which may also be level because the allocator had pages to spare.
 */
static bool replaces(const struct run_summary *s, const struct summary_leak *leak)
{
	double came = leak->n_points ? leak->points[leak->n_points - 1].y - leak->points[0].y : 0;

	if (leak->held_known)
		return came >= WOULD_SHOW * leak->held_grew;
	return s->memory.known && s->shape.kind == TREND_SHAPE_FLAT &&
	       came >= WOULD_SHOW * 1024 * s->shape.matters &&
	       came >= WOULD_SHOW * 1024.0 * (double)(s->memory.peak - s->memory.base);
}

void leaks_against_work(struct run_summary *s)
{
	struct summary_leak all[2 * SUMMARY_LEAKS];
	struct summary_alloc *a = &s->alloc;
	uint32_t n = a->n_leaks, n_all = a->n_leaks + a->n_no_leaks;

	memcpy(all, a->leaks, n * sizeof(*all));
	memcpy(all + n, a->no_leaks, a->n_no_leaks * sizeof(*all));
	a->n_leaks = a->n_no_leaks = 0;
	for (uint32_t i = 0; i < n_all; i++) {
		hold(s, &all[i]);
		if (growth_is_leak(all[i].says) && replaces(s, &all[i])) {
			all[i].says = GROWTH_REPLACES;
			all[i].changed = all[i].points[all[i].n_points - 1].y - all[i].points[0].y;
		}
		if (!growth_is_leak(all[i].says) && a->n_no_leaks < SUMMARY_LEAKS)
			a->no_leaks[a->n_no_leaks++] = all[i];
		else if (growth_is_leak(all[i].says) && a->n_leaks < SUMMARY_LEAKS)
			a->leaks[a->n_leaks++] = all[i];
	}
	if (s->private.n_points)
		hold(s, &s->private);
}

/* --- in words --------------------------------------------------------------------------------- */

/* Bytes for a unit may be a part of one. */
static struct unit_text size_text(double bytes)
{
	struct unit_text t;

	if (fabs(bytes) < 1000)
		snprintf(t.s, sizeof(t.s), "%.3g B", bytes);
	else
		snprintf(t.s, sizeof(t.s), "%s%.62s", bytes < 0 ? "-" : "",
			 unit_bytes(llround(fabs(bytes))).s);
	return t;
}

static const char *name_of(const struct summary_leak *leak)
{
	return leak->work->own ? "its CPU time" : leak->work->name;
}

void leak_work_clause(const struct summary_leak *leak, char *buf, size_t size)
{
	const struct workload_fit *f = &leak->fit;

	*buf = '\0';
	if (!leak->work)
		return;
	if (leak->says == GROWTH_LEAK_IDLE && leak->work->own)
		snprintf(buf, size, "it grows also while the program uses hardly any CPU time");
	else if (leak->says == GROWTH_LEAK_IDLE)
		snprintf(buf, size, "it grows also without %.*s", PLACE_BYTES, name_of(leak));
	else if (leak->says == GROWTH_LEAK_WORK || leak->says == GROWTH_FOLLOWS)
		snprintf(buf, size, "%s %.*s: %s for each (95 %% interval %s to %s)",
			 leak->of_rate                  ? "it grows with the rate of"
			 : leak->says == GROWTH_FOLLOWS ? "it grows in proportion to"
							: "it grows with each of",
			 PLACE_BYTES, name_of(leak), size_text(f->per_unit).s,
			 size_text(f->unit_low).s, size_text(f->unit_high).s);
	else if (leak->says == GROWTH_FILLS)
		snprintf(buf, size, "it grows less and less with %.*s, as a cache that fills",
			 PLACE_BYTES, name_of(leak));
	else if (leak->work_ended)
		snprintf(buf, size,
			 "%.*s stopped then, so whether it would grow with more of them is unknown",
			 PLACE_BYTES, name_of(leak));
	else if (leak->says == GROWTH_LEAK)
		snprintf(buf, size, "whether with %.*s or by itself is unknown", PLACE_BYTES,
			 name_of(leak));
}

static const char *place_of(const struct summary_leak *leak)
{
	return leak->site.function && *leak->site.function ? leak->site.function : "[unknown]";
}

static size_t put_rate(const struct run_summary *s, const struct summary_leak *leak, char *buf,
		       size_t size)
{
	bool hours = s->duration_ns >= 7200000000000;
	double per = hours ? 3600 : 60;
	bool of_all = leak == &s->private;
	int n = snprintf(buf, size, "%s%s %s (95 %% interval %s)%s%.*s",
			 of_all ? "private memory grows by " : "",
			 unit_bytes((int64_t)(leak->slope * per)).s, hours ? "an hour" : "a minute",
			 unit_bytes_range((int64_t)(leak->slope_low * per),
					  (int64_t)(leak->slope_high * per), false)
				 .s,
			 of_all ? "" : " retained at ", PLACE_BYTES, of_all ? "" : place_of(leak));

	return (size_t)n;
}

void leak_sentence(const struct run_summary *s, const struct summary_leak *leak, char *buf,
		   size_t size)
{
	size_t len;

	if (leak->says == GROWTH_STOPPED)
		len = (size_t)snprintf(buf, size,
				       "%.*s grew by %s and has stayed since second %.0f: no leak",
				       PLACE_BYTES, place_of(leak),
				       unit_bytes((int64_t)leak->changed).s, leak->since_s);
	else if (leak->says == GROWTH_REPLACES)
		len = (size_t)snprintf(
			buf, size,
			"%.*s has %s more than at the start, and the process has not: it takes the "
			"place of what was there before: no leak",
			PLACE_BYTES, place_of(leak), unit_bytes((int64_t)leak->changed).s);
	else
		len = put_rate(s, leak, buf, size);
	if (len + 3 >= size)
		return;
	leak_work_clause(leak, buf + len + 2, size - len - 2);
	if (buf[len + 2])
		memcpy(buf + len, "; ", 2);
}
