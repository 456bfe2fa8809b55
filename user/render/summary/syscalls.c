/*
 * System calls.
 */
#include "base/syscall_names.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>

enum { ROWS_TEXT = 12 };

static void put_head(const struct syscall_sums *sums, struct sink *out)
{
	char text[500], more[120] = "";

	if (sums->variance > 0)
		snprintf(more, sizeof(more), " +- %s",
			 unit_count(syscall_calls_error(sums->variance)).s);
	snprintf(
		text, sizeof(text),
		"%s%s returned, %s failed, %s in them; %s never return, %s in flight at the start, %s at the end",
		unit_count(sums->calls).s, more, unit_count(sums->errors).s, unit_ns(sums->ns).s,
		unit_count(sums->no_return).s, unit_count(sums->begun_before).s,
		unit_count(sums->open).s);
	cells_labelled(out, "System calls", text);
	if (sums->one_in > 1) {
		snprintf(
			text, sizeof(text),
			"estimates: at times only 1 call in %u was counted, by chance; --max-overhead says how many",
			sums->one_in);
		cells_wrapped(out, text, 2, false);
	}
	if (sums->compat) {
		snprintf(text, sizeof(text), "%s of them are of 32-bit programs, by number",
			 unit_count(sums->compat).s);
		cells_wrapped(out, text, 2, false);
	}
}

void section_syscalls_text(const struct run_summary *s, struct sink *out)
{
	if (!s->syscalls.n_by_call)
		return;
	put_head(&s->syscalls.sums, out);
	cells_right(out, "time", 10);
	cells_right(out, "calls", 11);
	cells_right(out, "errors", 10);
	cells_right(out, "p50", 10);
	cells_right(out, "p99", 10);
	cells_right(out, "longest", 10);
	sink_puts(out, "  call\n");
	for (uint32_t i = 0; i < s->syscalls.n_by_call && i < ROWS_TEXT; i++) {
		const struct syscall_row *row = &s->syscalls.by_call[i];
		const char *error = row->n_errnos ? errno_name((int)row->errnos[0].error) : NULL;

		cells_right(out, unit_ns(row->ns).s, 10);
		cells_right(out, unit_count(row->calls).s, 11);
		cells_right(out, unit_count(row->errors).s, 10);
		cells_right(out, unit_ns(syscall_quantile(row, 0.5)).s, 10);
		cells_right(out, unit_ns(syscall_quantile(row, 0.99)).s, 10);
		cells_right(out, unit_ns(row->max_ns).s, 10);
		sink_printf(out, "  %s%s%s\n", row->name, error ? "  " : "", error ? error : "");
	}
}

static void put_row(struct json_doc *d, cJSON *list, const struct syscall_row *row, bool process)
{
	cJSON *r = json_element(d, list), *errors;

	if (process) {
		json_number(d, r, "pid", row->pid);
		json_text(d, r, "comm", row->comm);
		json_text(d, r, "container", row->container);
	}
	json_text(d, r, "call", row->name);
	json_number(d, r, "calls", row->calls);
	json_number(d, r, "calls_error", syscall_calls_error(row->variance));
	json_number(d, r, "errors", row->errors);
	json_number(d, r, "time_ns", row->ns);
	json_number(d, r, "longest_ns", row->max_ns);
	json_number(d, r, "p50_ns", syscall_quantile(row, 0.5));
	json_number(d, r, "p99_ns", syscall_quantile(row, 0.99));
	json_number(d, r, "no_return", row->no_return);
	json_number(d, r, "in_flight", row->open);
	errors = json_array(d, r, "errnos");
	for (uint32_t i = 0; i < row->n_errnos; i++) {
		const char *name = errno_name((int)row->errnos[i].error);
		cJSON *e = json_element(d, errors);

		json_number(d, e, "errno", row->errnos[i].error);
		json_text(d, e, "name", name ? name : "");
		json_number(d, e, "count", row->errnos[i].count);
	}
}

void section_syscalls_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	const struct syscall_sums *sums = &s->syscalls.sums;
	cJSON *o, *list;

	if (!s->syscalls.known) {
		json_null(d, root, "syscalls");
		return;
	}
	o = json_object(d, root, "syscalls");
	json_number(d, o, "calls", sums->calls);
	json_number(d, o, "calls_error", syscall_calls_error(sums->variance));
	json_number(d, o, "errors", sums->errors);
	json_number(d, o, "time_ns", sums->ns);
	json_number(d, o, "no_return", sums->no_return);
	json_number(d, o, "in_flight_before", sums->begun_before);
	json_number(d, o, "in_flight", sums->open);
	json_number(d, o, "of_32bit", sums->compat);
	json_number(d, o, "one_in", sums->one_in);
	json_number(d, o, "stacks_one_in", sums->stacks_one_in);
	list = json_array(d, o, "by_call");
	for (uint32_t i = 0; i < s->syscalls.n_by_call; i++)
		put_row(d, list, &s->syscalls.by_call[i], false);
	list = json_array(d, o, "rows");
	for (uint32_t i = 0; i < s->syscalls.n; i++)
		put_row(d, list, &s->syscalls.rows[i], true);
}
