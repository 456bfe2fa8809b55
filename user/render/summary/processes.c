/*
 * The processes with the most CPU time.
 */
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

/* Of one process the table would say what stands above it. */
void section_processes_text(const struct run_summary *s, struct sink *out)
{
	bool inside = false, contained = false;

	if (s->n_by_process == 0 || s->seen_processes < 2)
		return;
	for (uint32_t i = 0; i < s->n_by_process; i++) {
		inside |= s->by_process[i].ns_pid != 0;
		contained |= s->by_process[i].container && *s->by_process[i].container;
	}
	cells_label(out, "Processes");
	sink_printf(out, "%s ran or waited; those with the most CPU time\n",
		    unit_count(s->seen_processes).s);
	cells_right(out, "cpu", 10);
	cells_right(out, "of a CPU", 9);
	cells_right(out, "runnable", 11);
	cells_right(out, "blocked", 11);
	cells_right(out, "pid", 9);
	if (inside)
		cells_right(out, "inside", 8);
	sink_puts(out, contained ? "  command          container\n" : "  command\n");
	for (uint32_t i = 0; i < s->n_by_process; i++) {
		const struct process_row *p = &s->by_process[i];
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)p->pid);
		cells_right(out, unit_ns(p->cpu_ns).s, 10);
		cells_right(out, unit_percent(p->cpu_ns, s->duration_ns).s, 9);
		cells_right(out, unit_ns(p->runnable_ns).s, 11);
		cells_right(out, unit_ns(p->blocked_ns).s, 11);
		cells_right(out, pid, 9);
		snprintf(pid, sizeof(pid), "%d", (int)p->ns_pid);
		if (inside)
			cells_right(out, p->ns_pid ? pid : "", 8);
		sink_puts(out, "  ");
		cells_name(out, p->comm, 16, p->container && *p->container);
		if (p->container && *p->container) {
			sink_puts(out, " ");
			cells_name(out, p->container, 24, false);
		}
		sink_puts(out, "\n");
	}
}

void section_processes_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	if (s->n_by_process == 0 || s->seen_processes < 2)
		return;
	cells_line(out, "Processes");
	cells_right(out, "of a CPU", 10);
	cells_right(out, "runnable", 11);
	cells_right(out, "blocked", 11);
	cells_right(out, "pid", 10);
	sink_puts(out, "  command\n");
	for (uint32_t i = 0; i < s->n_by_process && i < rows; i++) {
		const struct process_row *p = &s->by_process[i];
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)p->pid);
		cells_right(out, unit_percent(p->cpu_ns, s->duration_ns).s, CELLS_LABEL_WIDTH + 10);
		cells_right(out, unit_ns(p->runnable_ns).s, 11);
		cells_right(out, unit_ns(p->blocked_ns).s, 11);
		cells_right(out, pid, 10);
		sink_puts(out, "  ");
		cells_name(out, p->comm, 16, false);
		if (p->container && *p->container) {
			sink_puts(out, " in ");
			cells_name(out, p->container, 20, false);
		}
		sink_puts(out, "\n");
	}
}

void section_processes_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *list = json_array(d, root, "by_process");

	for (uint32_t i = 0; i < s->n_by_process; i++) {
		const struct process_row *p = &s->by_process[i];
		cJSON *o = json_element(d, list);

		json_number(d, o, "pid", p->pid);
		json_text(d, o, "comm", p->comm);
		if (p->container && *p->container)
			json_text(d, o, "container", p->container);
		if (p->ns_pid)
			json_number(d, o, "ns_pid", p->ns_pid);
		json_number(d, o, "samples", p->samples);
		json_number(d, o, "cpu_ns", p->cpu_ns);
		json_number(d, o, "blocked_ns", p->blocked_ns);
		json_number(d, o, "runnable_ns", p->runnable_ns);
	}
}
