#include "render/formats/trend_svg.h"

#include "base/units.h"
#include "render/formats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

enum {
	WIDTH = 1200,
	HEIGHT = 520,
	LEFT = 90,
	RIGHT = 20,
	TOP = 76,
	BOTTOM = 60,
	PLOT_W = WIDTH - LEFT - RIGHT,
	PLOT_H = HEIGHT - TOP - BOTTOM,
	LEAST_TICKS = 4,
};

/* A silence this much longer than the usual distance of two rows breaks the line. */
#define GAP_FACTOR 3.0

static const struct {
	int column;
	const char *label, *color, *width;
} curves[] = {
	/* The first lies on top. */
	{ MEM_COLUMN_RSS, "RSS", "#1f5fa8", "2" },
	{ MEM_COLUMN_ANONYMOUS, "anonymous", "#c8501e", "1.2" },
	{ MEM_COLUMN_PSS, "PSS", "#6f4fa0", "1.2" },
	{ MEM_COLUMN_FILE, "file", "#4f8f3a", "1.2" },
	{ MEM_COLUMN_SWAP, "swap", "#777777", "1.2" },
	{ MEM_COLUMN_GROUP, "cgroup", "#b08400", "1.2" },
};

enum { N_CURVES = sizeof(curves) / sizeof(*curves) };

struct chart {
	const struct mem_log *log;
	const struct mem_trend *trend;
	struct sink *out;
	double span_s;    /* of the x axis, at least 1 */
	double low, high; /* of the y axis, kB         */
	double gap_s;     /* a longer silence breaks a line */
};

static double x_of(const struct chart *c, double t_s)
{
	return LEFT + (t_s - c->trend->begin_s) / c->span_s * PLOT_W;
}

static double y_of(const struct chart *c, double kb)
{
	return TOP + PLOT_H - (kb - c->low) / (c->high - c->low) * PLOT_H;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int find_gap(struct chart *c, struct err *e)
{
	uint32_t n = c->log->n;
	double *d;

	c->gap_s = HUGE_VAL;
	if (n < 3)
		return 0;
	d = malloc((n - 1) * sizeof(*d));
	if (!d)
		return err_set(e, -ENOMEM, "out of memory for a chart");
	for (uint32_t i = 1; i < n; i++)
		d[i - 1] = c->log->rows[i].time_s - c->log->rows[i - 1].time_s;
	qsort(d, n - 1, sizeof(*d), by_size);
	/* Stamps are whole seconds: rows of less than a second's distance share one. */
	c->gap_s = GAP_FACTOR * fmax(d[(n - 1) / 2], 1);
	free(d);
	return 0;
}

/* A distance of ticks, in kB: 1, 2, 4 … 512 of a power of 1,024, so that labels are round. */
static double tick_kb(double range)
{
	double tick = 1.0 / 1024;

	while (range / tick > 2 * LEAST_TICKS)
		tick *= 2;
	return tick;
}

/* From 0, unless all that happens would lie in the top fifth. */
static void choose_range(struct chart *c, double least, double most)
{
	double tick;

	c->low = 0;
	c->high = fmax(most, 1);
	if (least > 0.8 * most && most - least > 0) {
		tick = tick_kb(most - least);
		c->low = floor(least / tick) * tick;
	}
	tick = tick_kb(c->high - c->low);
	c->high = (floor(c->high / tick) + 1) * tick;
}

static void put_text(struct chart *c, const char *attributes, const char *text, uint32_t columns)
{
	struct strbuf b = { 0 };

	text_add(&b, TEXT_XML, text, columns);
	sink_printf(c->out, "<text %s>%s</text>\n", attributes, b.s ? b.s : "");
	strbuf_free(&b);
}

static void put_y_axis(struct chart *c)
{
	double tick = tick_kb(c->high - c->low);
	char at[96];

	for (double kb = ceil(c->low / tick) * tick; kb <= c->high * (1 + 1e-9); kb += tick) {
		double y = y_of(c, kb);

		sink_printf(c->out, "<path class=\"grid\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, PLOT_W);
		snprintf(at, sizeof(at), "x=\"%d\" y=\"%.1f\" text-anchor=\"end\"", LEFT - 8,
			 y + 4);
		put_text(c, at, unit_bytes((int64_t)llround(kb * 1024)).s, UINT32_MAX);
	}
	if (c->low > 0)
		put_text(c, "x=\"1180\" y=\"504\" text-anchor=\"end\" class=\"note\"",
			 "the axis does not begin at 0", UINT32_MAX);
}

static double time_tick(double span)
{
	static const double steps[] = { 1,     2,     5,      10,     30,      60,      120,
					300,   600,   1800,   3600,   7200,    10800,   21600,
					43200, 86400, 172800, 604800, 2592000, 7776000, 31536000 };
	size_t i = 0;

	while (i + 1 < sizeof(steps) / sizeof(*steps) && span / steps[i] > 2 * LEAST_TICKS)
		i++;
	return steps[i];
}

static void put_tick(struct chart *c, double t_s, const char *text)
{
	double x = x_of(c, t_s);
	char at[96];

	sink_printf(c->out, "<path class=\"grid\" d=\"M%.1f %dv%d\"/>\n", x, TOP, PLOT_H);
	snprintf(at, sizeof(at), "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"", x,
		 TOP + PLOT_H + 18);
	put_text(c, at, text, UINT32_MAX);
}

/* Since each log began. */
static void put_elapsed_axis(struct chart *c)
{
	double tick = time_tick(c->span_s);
	double unit_s = tick >= 86400 ? 86400 : tick >= 3600 ? 3600 : tick >= 60 ? 60 : 1;
	char text[32];

	for (double t = 0; t <= c->span_s; t += tick) {
		snprintf(text, sizeof(text), "%g %s", t / unit_s,
			 unit_s >= 86400  ? "d"
			 : unit_s >= 3600 ? "h"
			 : unit_s >= 60   ? "min"
					  : "s");
		put_tick(c, c->trend->begin_s + t, text);
	}
}

static void put_x_axis(struct chart *c)
{
	double tick = time_tick(c->span_s), begin = c->trend->begin_s;
	const char *form = tick >= 86400       ? "%Y-%m-%d"
			   : c->span_s > 86400 ? "%m-%d %H:%M"
			   : tick >= 60        ? "%H:%M"
					       : "%H:%M:%S";
	time_t first = (time_t)begin;
	char text[32];
	struct tm tm;
	double offset;

	localtime_r(&first, &tm);
	offset = (double)tm.tm_gmtoff; /* ticks are round in local time */
	for (double t = ceil((begin + offset) / tick) * tick - offset; t <= begin + c->span_s;
	     t += tick) {
		time_t sec = (time_t)t;

		localtime_r(&sec, &tm);
		strftime(text, sizeof(text), form, &tm);
		put_tick(c, t, text);
	}
}

/* The rows that fall into one pixel, drawn as a stroke from the lowest to the highest. */
struct pixel {
	double x, first, last, low, high;
	uint32_t n;
};

static void put_pixel(struct chart *c, const struct pixel *p, bool begins)
{
	if (!p->n)
		return;
	sink_printf(c->out, "%c%.1f %.1f", begins ? 'M' : 'L', p->x, y_of(c, p->first));
	if (p->n > 1)
		sink_printf(c->out, "V%.1fV%.1fV%.1f", y_of(c, p->high), y_of(c, p->low),
			    y_of(c, p->last));
}

static void put_curve(struct chart *c, int column, const char *color, const char *width)
{
	struct pixel p = { 0 };
	double before = -HUGE_VAL;
	bool begins = true;

	sink_printf(c->out, "<path class=\"curve\" stroke=\"%s\" stroke-width=\"%s\" d=\"", color,
		    width);
	for (uint32_t i = 0; i < c->log->n; i++) {
		const struct mem_log_row *row = &c->log->rows[i];
		double v = row->value[column], x = round(x_of(c, row->time_s));

		if (isnan(v))
			continue;
		if (p.n && (x != p.x || row->time_s - before > c->gap_s)) {
			put_pixel(c, &p, begins);
			begins = row->time_s - before > c->gap_s;
			p.n = 0;
		}
		if (!p.n)
			p = (struct pixel){ .x = x, .first = v, .low = v, .high = v };
		p.n++;
		p.last = v;
		p.low = fmin(p.low, v);
		p.high = fmax(p.high, v);
		before = row->time_s;
	}
	put_pixel(c, &p, begins);
	sink_puts(c->out, "\"/>\n");
}

static bool shown(const struct chart *c, int curve)
{
	int column = curves[curve].column;

	return c->trend->column[column].known && c->trend->column[column].facts.max > 0;
}

static void put_legend(struct chart *c)
{
	int x = LEFT;
	char at[96];

	for (int i = 0; i < N_CURVES; i++) {
		if (!shown(c, i))
			continue;
		sink_printf(c->out, "<path stroke=\"%s\" stroke-width=\"3\" d=\"M%d %dh18\"/>\n",
			    curves[i].color, x, HEIGHT - 20);
		snprintf(at, sizeof(at), "x=\"%d\" y=\"%d\"", x + 24, HEIGHT - 16);
		put_text(c, at, curves[i].label, UINT32_MAX);
		x += 110;
	}
}

static void put_trend_shape(struct chart *c)
{
	const struct trend_shape *shape = &c->trend->shape;
	double begin = c->trend->begin_s, from = begin + shape->since_s;
	const struct series_line *l = &shape->tail;

	for (uint32_t i = 0; i < shape->n_changes; i++)
		sink_printf(c->out, "<path class=\"change\" d=\"M%.1f %dv%d\"/>\n",
			    x_of(c, begin + shape->changes_s[i]), TOP, PLOT_H);
	if (shape->kind == TREND_SHAPE_GROWING || shape->kind == TREND_SHAPE_SHRINKING)
		sink_printf(c->out, "<path class=\"line\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
			    x_of(c, from), y_of(c, l->at), x_of(c, c->trend->end_s),
			    y_of(c, l->at + l->slope * (c->trend->end_s - from)));
}

static void put_words(struct chart *c, const char *name)
{
	char text[512], reason[256];

	snprintf(text, sizeof(text), "Memory over time: %s", name);
	put_text(c, "x=\"600\" y=\"24\" text-anchor=\"middle\" class=\"title\"", text, 120);
	trend_shape_reason(&c->trend->shape, reason, sizeof(reason));
	snprintf(text, sizeof(text), "%s: %s", trend_shape_name(c->trend->shape.kind), reason);
	put_text(c, "x=\"90\" y=\"46\"", text, 160);
	snprintf(text, sizeof(text), "%s, by the first and the last row alone: RSS %+.1f%%",
		 plain_words(c->trend->plain.kind), c->trend->plain.percent);
	put_text(c, "x=\"90\" y=\"64\"", text, 160);
}

static void put_opening(struct chart *c, int height)
{
	sink_printf(c->out,
		    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		    "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		    "<style>.grid{stroke:#ddd;fill:none}.curve{fill:none;stroke-linejoin:round}"
		    ".change{stroke:#888;stroke-dasharray:4 4}"
		    ".line{stroke:#000;stroke-dasharray:8 4;fill:none}"
		    ".title{font-size:16px}.note{fill:#777}</style>\n"
		    "<clipPath id=\"plot\"><path d=\"M%d %dh%dv%dh-%dz\"/></clipPath>\n"
		    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		    WIDTH, height, WIDTH, height, LEFT, TOP, PLOT_W, PLOT_H, PLOT_W);
}

int trend_svg(const struct mem_log *log, const struct mem_trend *trend, const char *name,
	      struct sink *out, struct err *e)
{
	struct chart c = {
		.log = log,
		.trend = trend,
		.out = out,
		.span_s = fmax(trend->end_s - trend->begin_s, 1),
	};
	int r = find_gap(&c, e);

	if (r < 0)
		return r;
	choose_range(&c, trend->column[MEM_COLUMN_RSS].facts.min,
		     trend->column[MEM_COLUMN_RSS].facts.max);
	put_opening(&c, HEIGHT);
	put_words(&c, name);
	put_y_axis(&c);
	put_x_axis(&c);
	sink_puts(out, "<g clip-path=\"url(#plot)\">\n");
	for (int i = N_CURVES; i-- > 0;)
		if (shown(&c, i))
			put_curve(&c, curves[i].column, curves[i].color, curves[i].width);
	put_trend_shape(&c);
	sink_puts(out, "</g>\n");
	put_legend(&c);
	sink_puts(out, "</svg>\n");
	return 0;
}

/* --- several --- */

enum { LEGEND_LINE = 18 };

static const char *const colors[] = { "#1f5fa8", "#c8501e", "#4f8f3a", "#6f4fa0", "#b08400",
				      "#008b8b", "#b0306a", "#777777", "#7a4a1e", "#000000" };

enum { N_COLORS = sizeof(colors) / sizeof(*colors) };

static void put_log_legend(struct chart *c, const char *const *names,
			   const struct mem_trend *trends, uint32_t n)
{
	char at[96], text[512];

	for (uint32_t i = 0; i < n; i++) {
		int y = HEIGHT - 20 + LEGEND_LINE * (int)i;

		sink_printf(c->out, "<path stroke=\"%s\" stroke-width=\"3\" d=\"M%d %dh18\"/>\n",
			    colors[i % N_COLORS], LEFT, y);
		snprintf(at, sizeof(at), "x=\"%d\" y=\"%d\"", LEFT + 24, y + 4);
		snprintf(text, sizeof(text), "%.400s: %s", names[i],
			 trend_shape_name(trends[i].shape.kind));
		put_text(c, at, text, 160);
	}
}

int trend_svg_compare(const struct mem_log *const *logs, const struct mem_trend *trends,
		      const char *const *names, uint32_t n, struct sink *out, struct err *e)
{
	struct chart c = { .trend = trends, .out = out, .span_s = 1 };
	double least = HUGE_VAL, most = 0;
	char title[64];
	int r = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct series_facts *rss = &trends[i].column[MEM_COLUMN_RSS].facts;

		c.span_s = fmax(c.span_s, trends[i].end_s - trends[i].begin_s);
		least = fmin(least, rss->min);
		most = fmax(most, rss->max);
	}
	choose_range(&c, least, most);
	put_opening(&c, HEIGHT + LEGEND_LINE * (int)(n - 1));
	snprintf(title, sizeof(title), "RSS of %u logs, each since its first row", n);
	put_text(&c, "x=\"600\" y=\"24\" text-anchor=\"middle\" class=\"title\"", title, 120);
	put_y_axis(&c);
	put_elapsed_axis(&c);
	sink_puts(out, "<g clip-path=\"url(#plot)\">\n");
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		c.log = logs[i];
		c.trend = &trends[i];
		r = find_gap(&c, e);
		if (r == 0)
			put_curve(&c, MEM_COLUMN_RSS, colors[i % N_COLORS], "1.6");
	}
	sink_puts(out, "</g>\n");
	put_log_legend(&c, names, trends, n);
	sink_puts(out, "</svg>\n");
	return r;
}
