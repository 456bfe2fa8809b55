#include "analyse/leaks.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STILL_TIME                                                                                 \
	0.05 /* of the time without work: enough to say what became of memory then      */
#define ENDED_PART                                                                                 \
	0.1 /* of the mean rate of work: less of it after growth stopped is that it ended */
#define PLACE_BYTES 80 /* of names, in sentences                                                  */

bool growth_is_leak(enum growth_says says)
{
	return says <= GROWTH_LEAK_WORK;
}

const char *growth_name(enum growth_says says)
{
	static const char *const names[N_GROWTHS] = {
		[GROWTH_LEAK] = "leak",      [GROWTH_LEAK_IDLE] = "idle",
		[GROWTH_LEAK_WORK] = "work", [GROWTH_FOLLOWS] = "follows",
		[GROWTH_FILLS] = "fills",    [GROWTH_STOPPED] = "stopped",
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
	return true;
}

void leaks_of(const struct live_series *series, struct dict *d, double age_s,
	      struct summary_alloc *to)
{
	struct leak found[SUMMARY_LEAKS];
	uint32_t n = live_series_leaks(series, age_s, found, SUMMARY_LEAKS);

	for (uint32_t i = 0; i < n && to->n_leaks < SUMMARY_LEAKS; i++)
		to->n_leaks += put(series, d, &found[i], GROWTH_LEAK, &to->leaks[to->n_leaks]);
	n = live_series_stopped(series, found, SUMMARY_LEAKS);
	for (uint32_t i = 0; i < n && to->n_no_leaks < SUMMARY_LEAKS; i++)
		to->n_no_leaks +=
			put(series, d, &found[i], GROWTH_STOPPED, &to->no_leaks[to->n_no_leaks]);
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
	*to = (struct summary_leak){ .says = GROWTH_STOPPED };
	if (n < 2)
		return;
	put_points(to, kb, n, 1024);
	put_shape(to, shape);
	to->live = (int64_t)(kb[n - 1].y * 1024);
	if (shape->kind == TREND_SHAPE_GROWING)
		to->says = GROWTH_LEAK;
}

/* --- beside work ------------------------------------------------------------------------------ */

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

static uint32_t beside(const struct summary_leak *leak, const struct summary_workload *w,
		       struct workload_point *ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < leak->n_points; i++) {
		double work = value_at(w, leak->points[i].t);

		if (!isnan(work))
			ret[n++] = (struct workload_point){ leak->points[i].t, leak->points[i].y,
							    work };
	}
	return n;
}

static bool is_decided(const struct workload_fit *f)
{
	return f->says == WORKLOAD_WITH || f->says == WORKLOAD_IDLE || f->says == WORKLOAD_BOTH;
}

/* Of what is ours the CPU time alone, and only that memory grows without it: what a program does takes time
 * and memory, whether it leaks or loads. */
static bool is_of_use(const struct summary_workload *w, const struct workload_fit *f)
{
	if (!w->own)
		return f->says != WORKLOAD_SHORT;
	return strcmp(w->name, "cpu_seconds") == 0 && f->still >= STILL_TIME &&
	       (f->says == WORKLOAD_IDLE || f->says == WORKLOAD_BOTH);
}

static bool is_better(const struct summary_workload *w, const struct workload_fit *f,
		      const struct summary_leak *than)
{
	if (!than->work)
		return true;
	if (than->work->own != w->own)
		return !w->own;
	if (is_decided(&than->fit) != is_decided(f))
		return is_decided(f);
	return f->r2 > than->fit.r2;
}

/* Does it take less and less for each unit of work? Its shape, with work in the place of time. */
static bool fills(const struct summary_leak *leak)
{
	struct workload_point w[LEAK_POINTS];
	uint32_t n = beside(leak, leak->work, w), k = 0;
	struct point p[LEAK_POINTS];
	struct trend_shape shape;

	for (uint32_t i = 0; i < n; i++) {
		if (k && w[i].work <= p[k - 1].t)
			p[k - 1].y = w[i].bytes / 1024; /* no work since */
		else
			p[k++] = (struct point){ w[i].work, w[i].bytes / 1024 };
	}
	trend_shape_of(p, k, &shape);
	return shape.kind == TREND_SHAPE_SETTLED || shape.kind == TREND_SHAPE_FLAT;
}

static enum growth_says judge(const struct summary_leak *leak)
{
	const struct workload_fit *f = &leak->fit;

	if (!leak->work)
		return GROWTH_LEAK;
	if (f->says == WORKLOAD_IDLE || f->says == WORKLOAD_BOTH)
		return GROWTH_LEAK_IDLE;
	if (leak->work->counter && fills(leak))
		return GROWTH_FILLS;
	if (f->says == WORKLOAD_WITH)
		return leak->work->counter ? GROWTH_LEAK_WORK : GROWTH_FOLLOWS;
	return GROWTH_LEAK;
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

static void hold(const struct run_summary *s, struct summary_leak *leak)
{
	struct workload_point p[LEAK_POINTS];

	for (uint32_t i = 0; i < s->n_workload; i++) {
		const struct summary_workload *w = &s->workload[i];
		struct workload_fit f;

		if (!w->n_points)
			continue;
		workload_fit(p, beside(leak, w, p), &f);
		if (!is_of_use(w, &f) || !is_better(w, &f, leak))
			continue;
		leak->work = w;
		leak->fit = f;
	}
	if (leak->says == GROWTH_STOPPED)
		leak->work_ended = leak->work && !leak->work->own && work_ended(leak);
	else
		leak->says = judge(leak);
}

void leaks_against_work(struct run_summary *s)
{
	struct summary_alloc *a = &s->alloc;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < a->n_no_leaks; i++)
		hold(s, &a->no_leaks[i]);
	for (uint32_t i = 0; i < a->n_leaks; i++) {
		hold(s, &a->leaks[i]);
		if (growth_is_leak(a->leaks[i].says)) {
			a->leaks[kept++] = a->leaks[i];
			continue;
		}
		/* What still grows comes before what has stopped. */
		memmove(a->no_leaks + 1, a->no_leaks, (SUMMARY_LEAKS - 1) * sizeof(*a->no_leaks));
		a->no_leaks[0] = a->leaks[i];
		if (a->n_no_leaks < SUMMARY_LEAKS)
			a->n_no_leaks++;
	}
	a->n_leaks = kept;
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
	else if (leak->says == GROWTH_LEAK_IDLE && f->still >= STILL_TIME)
		snprintf(buf, size, "it grows also without %.*s", PLACE_BYTES, name_of(leak));
	else if (leak->says == GROWTH_LEAK_IDLE)
		snprintf(buf, size, "it grows by itself, not with %.*s", PLACE_BYTES,
			 name_of(leak));
	else if (leak->says == GROWTH_LEAK_WORK || leak->says == GROWTH_FOLLOWS)
		snprintf(buf, size, "%s %.*s: %s for each (95 %% interval %s to %s)",
			 leak->says == GROWTH_FOLLOWS ? "it grows in proportion to"
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
	else if (leak->says == GROWTH_LEAK && f->says == WORKLOAD_UNTOLD)
		snprintf(buf, size, "whether with %.*s or by itself cannot be told", PLACE_BYTES,
			 name_of(leak));
}

static const char *place_of(const struct summary_leak *leak)
{
	return *leak->site.function ? leak->site.function : "[unknown]";
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
	else
		len = put_rate(s, leak, buf, size);
	if (len + 3 >= size)
		return;
	leak_work_clause(leak, buf + len + 2, size - len - 2);
	if (buf[len + 2])
		memcpy(buf + len, "; ", 2);
}
