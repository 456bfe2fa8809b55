#include "render/summary_cost.h"

#include "base/units.h"
#include "render/cells.h"

#define SECOND_NS 1e9

static void put_own(const struct run_summary *s, struct sink *out)
{
	if (s->own.cpu_ns == 0 && s->own.rss_kb == 0)
		return;
	cells_label(out, "Own cost");
	sink_printf(out, "%s of CPU (%s of the run), %s resident", unit_ns(s->own.cpu_ns).s,
		    unit_percent(s->own.cpu_ns, s->duration_ns).s,
		    unit_bytes(s->own.rss_kb * 1024).s);
	if (s->own.peak_kb > 0)
		sink_printf(out, " (%s at most)", unit_bytes(s->own.peak_kb * 1024).s);
	if (s->own.map_bytes > 0)
		sink_printf(out, ", %s in the kernel", unit_bytes(s->own.map_bytes).s);
	sink_puts(out, "\n");
}

static double percent_of_cpu(const struct run_summary *s, int64_t ns)
{
	return s->duration_ns > 0 ? (double)ns * 100 / (double)s->duration_ns : 0;
}

/* What the programs cost those who ran them. */
static void put_cost(const struct run_summary *s, struct sink *out)
{
	char line[160], cell[32], limit[32] = "";

	if (!s->cost.known)
		return;
	if (s->cost.limit_percent > 0)
		snprintf(limit, sizeof(limit), " (limit %.3g%%)", s->cost.limit_percent);
	snprintf(line, sizeof(line),
		 "%.2g%% of one CPU%s, and %.2g%% in others that ran into what is traced",
		 percent_of_cpu(s, s->cost.target_ns), limit,
		 percent_of_cpu(s, s->cost.ns - s->cost.target_ns));
	cells_labelled(out, "Overhead", line);
	sink_puts(out, "      events    program       trap  of one CPU  source\n");
	for (uint32_t i = 0; i < s->cost.n; i++) {
		const struct summary_cost *c = &s->cost.sources[i];

		cells_right(out, unit_count((int64_t)c->events).s, 12);
		cells_right(out, unit_ns((int64_t)c->program_ns).s, 11);
		cells_right(out, unit_ns((int64_t)c->trap_ns).s, 11);
		snprintf(cell, sizeof(cell), "%.2f%%", percent_of_cpu(s, c->ns));
		cells_right(out, cell, 12);
		sink_printf(out, "  %s\n", c->name);
	}
	/* What a run begins with, before it knows rates, is what the limit gives in a second. */
	if (s->cost.limit_percent > 0 &&
	    (double)s->cost.target_ns >
		    s->cost.limit_percent / 100 * ((double)s->duration_ns + SECOND_NS))
		cells_wrapped(
			out,
			"More than the limit: allocations and stacks of waits are told for less of the time, "
			"but each sample, switch and page fault costs what it costs. --only leaves out "
			"sources, and -F takes fewer samples.",
			2, false);
}

void summary_put_cost(const struct run_summary *s, struct sink *out)
{
	put_cost(s, out);
	put_own(s, out);
}
