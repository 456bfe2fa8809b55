/*
 * Thread time: on a CPU, blocked, waiting for one.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

static void put_time_row(struct sink *out, const char *what, int64_t ns, int64_t wall_ns)
{
	sink_puts(out, "  ");
	cells_left(out, what, CELLS_LABEL_WIDTH - 2);
	cells_right(out, unit_ns(ns).s, 10);
	cells_right(out, unit_percent(ns, wall_ns).s, 9);
	sink_puts(out, "\n");
}

/* Of the wall time what is in none of the three; < 0: more is in them than there was. */
static int64_t residual(const struct run_summary *s)
{
	return s->time.wall_ns - s->time.oncpu_ns - s->time.blocked_ns - s->time.runnable_ns;
}

void section_time_text(const struct run_summary *s, struct sink *out)
{
	int64_t residual_ns = residual(s);

	if (!s->time.known)
		return;
	cells_label(out, "Time");
	sink_printf(out, "%s of thread time\n", unit_ns(s->time.wall_ns).s);
	put_time_row(out, "on-CPU", s->time.oncpu_ns, s->time.wall_ns);
	put_time_row(out, "blocked", s->time.blocked_ns, s->time.wall_ns);
	put_time_row(out, "runnable", s->time.runnable_ns, s->time.wall_ns);
	put_time_row(out, residual_ns < 0 ? "overcounted" : "unaccounted",
		     residual_ns < 0 ? -residual_ns : residual_ns, s->time.wall_ns);
	if (s->cpus.throttled_ns > 0)
		sink_printf(out, "  held back by CPU quotas of control groups for %s\n",
			    unit_ns(s->cpus.throttled_ns).s);
	if (s->time.held_ns > 0)
		sink_printf(
			out,
			"  stopped by memscope for %s while it placed its probes: not counted above\n",
			unit_ns(s->time.held_ns).s);
}

void section_time_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	int64_t wall_ns = s->time.wall_ns, residual_ns = residual(s);
	char text[512];

	(void)rows;
	sink_puts(out, "\n");
	if (!s->time.known)
		return;
	snprintf(text, sizeof(text), "thread time %s: %s on-CPU, %s blocked, %s runnable, %s %s",
		 unit_ns(wall_ns).s, unit_percent(s->time.oncpu_ns, wall_ns).s,
		 unit_percent(s->time.blocked_ns, wall_ns).s,
		 unit_percent(s->time.runnable_ns, wall_ns).s,
		 unit_percent(residual_ns < 0 ? -residual_ns : residual_ns, wall_ns).s,
		 residual_ns < 0 ? "overcounted" : "unaccounted");
	cells_line(out, "Time");
	cells_wrapped(out, text, CELLS_LABEL_WIDTH, true);
}

void section_time_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *o;

	if (!s->time.known) {
		json_null(d, root, "time");
		return;
	}
	o = json_object(d, root, "time");
	json_number(d, o, "oncpu_ns", s->time.oncpu_ns);
	json_number(d, o, "blocked_ns", s->time.blocked_ns);
	json_number(d, o, "runnable_ns", s->time.runnable_ns);
	json_number(d, o, "wall_ns", s->time.wall_ns);
	json_number(d, o, "held_ns", s->time.held_ns);
	json_number(d, o, "residual_ns", residual(s));
	if (s->cpus.known) {
		json_number(d, o, "machine_busy_ns", s->cpus.busy_ns);
		json_number(d, o, "machine_idle_ns", s->cpus.idle_ns);
	}
	if (s->cpus.throttled_ns >= 0)
		json_number(d, o, "throttled_ns", s->cpus.throttled_ns);
}
