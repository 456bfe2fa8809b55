/*
 * What threads waited for, and where.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <stdio.h>
#include <string.h>

static void put_wait_site(const struct site_row *w, size_t name_width, size_t module_width,
			  struct sink *out)
{
	char name[80];

	snprintf(name, sizeof(name), "%.40s%s[no user stack]", w->comm ? w->comm : "",
		 w->comm && w->comm[0] ? " " : "");
	cells_in_image(out, w->function[0] ? w->function : name, name_width, w->module,
		       module_width);
}

/* Workers without work go by their pool; a reason without a word of its own by the kernel's function. */
static void put_reason(const struct site_row *w, size_t width, struct sink *out)
{
	cells_name(out,
		   w->pool                               ? w->pool->name
		   : w->wait == WAIT_OTHER && w->leaf[0] ? w->leaf
							 : wait_kind_text(w->wait),
		   width, true);
}

/* At most so many of each sort. */
enum { WAITS_SHOWN = 10, IDLE_SHOWN = 5, ENDPOINTS_SHOWN = 10, PEERS_SHOWN = 5 };

static void put_wait_rows(const struct run_summary *s, struct sink *out, bool idle)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];

		if (w->value < s->offcpu.waits[0].value / 10000)
			break; /* sorted: from here on hardly any */
		if (summary_wait_is_idle(s, w) != idle ||
		    shown == (idle ? IDLE_SHOWN : WAITS_SHOWN))
			continue;
		if (idle && !shown)
			sink_puts(out, "  probably idle\n");
		shown++;
		cells_right(out, unit_ns(w->value).s, 10);
		cells_right(out, unit_count(w->count).s, 12);
		sink_puts(out, "  ");
		put_reason(w, 24, out);
		sink_puts(out, "  ");
		put_wait_site(w, 32, 14, out);
		if (w->high > w->low) {
			sink_printf(out, "  %10s", "");
			sink_printf(out, "  95 %%: %s", unit_ns(w->low).s);
			sink_printf(out, " to %s\n", unit_ns(w->high).s);
		}
	}
}

static void put_sampling(const struct run_summary *s, struct sink *out)
{
	char text[640];

	if (!s->offcpu.sampled || !s->offcpu.wait_sampler_switches)
		return;
	snprintf(
		text, sizeof(text),
		"Stacks were sampled for %s of %s waits: for threads that switch often, only a random sample "
		"of waits has its stack captured; the others are attributed to the last stack seen at the "
		"same wait site. %s were reassigned to the stack found. Estimates carry their 95%% "
		"interval. Times per thread are exact; --offcpu=exact captures every stack.",
		unit_count((int64_t)(s->offcpu.switches - s->offcpu.wait_sampler_switches +
				     s->offcpu.stacks_sampled))
			.s,
		unit_count((int64_t)s->offcpu.switches).s,
		unit_count((int64_t)s->offcpu.reassigned).s);
	cells_wrapped(out, text, 2, false);
}

static void put_thresholds(const struct run_summary *s, struct sink *out)
{
	char range[120] = "", text[300];

	if (s->offcpu.min_ns)
		snprintf(range, sizeof(range), "shorter than %s", unit_ns(s->offcpu.min_ns).s);
	if (s->offcpu.max_ns)
		snprintf(range + strlen(range), sizeof(range) - strlen(range), "%slonger than %s",
			 *range ? " or " : "", unit_ns(s->offcpu.max_ns).s);
	if (!*range)
		return;
	snprintf(text, sizeof(text),
		 "%s waits %s (%s in all) have no stack; the times above include them.",
		 unit_count((int64_t)s->offcpu.left_out).s, range,
		 unit_ns((int64_t)s->offcpu.left_out_ns).s);
	cells_wrapped(out, text, 2, false);
}

static void put_monitors(const struct run_summary *s, struct sink *out)
{
	struct strbuf b = { 0 };

	if (!s->monitors.waits)
		return;
	strbuf_printf(&b, "Monitors of Java: of %s waits that were looked at",
		      unit_count((int64_t)s->monitors.waits).s);
	if (s->monitors.owner) {
		strbuf_puts(&b, ", thread ");
		strbuf_add_clean(&b, s->monitors.owner, strlen(s->monitors.owner));
		strbuf_printf(
			&b, " (%u) held up %s", s->monitors.tid,
			unit_percent((int64_t)s->monitors.held, (int64_t)s->monitors.waits).s);
	}
	strbuf_printf(&b, "; of %s it could not be seen who did.",
		      unit_count((int64_t)s->monitors.unowned).s);
	cells_wrapped(out, b.s ? b.s : "", 2, false);
	strbuf_free(&b);
}

/* Whom the targets ask. */
static void put_peers(const struct run_summary *s, struct sink *out)
{
	struct strbuf b = { 0 };

	if (!s->peers.looks || (!s->peers.n && !s->peers.failed && !s->peers.left_out))
		return;
	strbuf_printf(&b, "Requests to others: connections were looked at %s times",
		      unit_count(s->peers.looks).s);
	if (s->peers.waiting)
		strbuf_printf(&b, "; at %s of them requests to port %u waited, %.1f on average",
			      unit_percent(s->peers.waiting, s->peers.looks).s, s->peers.port,
			      (double)s->peers.inbound / s->peers.waiting);
	for (uint32_t i = 0; i < s->peers.n && i < PEERS_SHOWN; i++) {
		const struct summary_peer *p = &s->peers.rows[i];

		strbuf_printf(&b, "; one to %s was outstanding at %s", p->name,
			      unit_percent(p->looks, s->peers.looks).s);
		if (p->for_inbound)
			strbuf_printf(&b, " (%s for those)",
				      unit_percent(p->for_inbound, s->peers.looks).s);
		strbuf_printf(&b, ", for %s on average when looked at",
			      unit_ns((int64_t)(p->age_ms * 1e6)).s);
	}
	if (s->peers.failed)
		strbuf_printf(&b, "; %s times connections could not be read",
			      unit_count(s->peers.failed).s);
	if (s->peers.left_out)
		strbuf_printf(&b, "; up to %s connections at a time were not followed",
			      unit_count(s->peers.left_out).s);
	strbuf_puts(&b, ".");
	cells_wrapped(out, b.s ? b.s : "", 2, false);
	strbuf_free(&b);
}

static void put_tasks(const struct run_summary *s, struct sink *out)
{
	double looks = s->tasks.looks;

	if (!s->tasks.looks)
		return;
	sink_printf(out, "  tasks of asyncio: %.1f on average, %.1f of them waiting; %s looks\n",
		    (double)s->tasks.seen / looks,
		    (double)(s->tasks.seen - s->tasks.ready - s->tasks.changed) / looks,
		    unit_count(s->tasks.looks).s);
	for (uint32_t i = 0; i < s->tasks.n; i++) {
		const struct task_row *row = &s->tasks.rows[i];
		char text[80];

		snprintf(text, sizeof(text), "%.1f", (double)row->seen / looks);
		cells_right(out, text, 10);
		snprintf(text, sizeof(text), "up to %s", unit_ns(row->longest_ns).s);
		cells_right(out, text, 16);
		sink_puts(out, "  ");
		cells_left(out, task_wait_text(row->wait), 18);
		snprintf(text, sizeof(text), ", line %u", row->line);
		cells_name(out, row->function, 40, false);
		sink_printf(out, "%s\n", row->line ? text : "");
	}
	if (s->tasks.changed || s->tasks.left_out || s->tasks.more)
		sink_printf(out, "  %s times a task ran while it was looked at; %s had no room%s\n",
			    unit_count((int64_t)s->tasks.changed).s,
			    unit_count((int64_t)s->tasks.left_out).s,
			    s->tasks.more ? "; there were more than are looked at" : "");
}

void section_waits_text(const struct run_summary *s, struct sink *out)
{
	if (s->offcpu.n_waits == 0 && s->offcpu.left_out == 0)
		return;
	cells_label(out, "Blocked");
	sink_printf(out, "wait sites%s\n", s->offcpu.sampled ? " (sampled: estimates)" : "");
	cells_right(out, "time", 10);
	cells_right(out, "count", 12);
	sink_puts(out, "  ");
	cells_left(out, "for", 26);
	sink_puts(out, "in\n");
	put_wait_rows(s, out, false);
	put_wait_rows(s, out, true);
	put_monitors(s, out);
	put_peers(s, out);
	put_tasks(s, out);
	put_sampling(s, out);
	put_thresholds(s, out);
}

/* "± 7%", half of the interval, where it is an estimate. */
static void put_error(const struct site_row *w, struct sink *out)
{
	char text[80] = "";

	if (w->high > w->low)
		snprintf(text, sizeof(text), "± %s",
			 unit_percent((w->high - w->low) / 2, w->value).s);
	cells_right(out, text, 10);
}

/* Sorted: the last ones are hardly any. */
static bool is_shown(const struct run_summary *s, const struct site_row *w, bool idle)
{
	return w->value >= s->offcpu.waits[0].value / 10000 && summary_wait_is_idle(s, w) == idle;
}

static bool has_waits(const struct run_summary *s, bool idle)
{
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++)
		if (is_shown(s, &s->offcpu.waits[i], idle))
			return true;
	return false;
}

enum {
	BRIEF_TIME = 18
}; /* columns up to the end of times: the rest of a line of 100 is for names */

static void put_brief_waits(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	for (uint32_t i = 0; i < s->offcpu.n_waits && rows > 0; i++) {
		const struct site_row *w = &s->offcpu.waits[i];

		if (!is_shown(s, w, false))
			continue;
		rows--;
		cells_right(out, unit_ns(w->value).s, BRIEF_TIME);
		if (s->offcpu.sampled)
			put_error(w, out);
		cells_right(out, unit_count(w->count).s, 9);
		sink_puts(out, "  ");
		put_reason(w, 20, out);
		sink_puts(out, "  ");
		put_wait_site(w, s->offcpu.sampled ? 24 : 32, 12, out);
	}
}

/* In a line: who waited longest, as many as fit. */
static void put_brief_idle(const struct run_summary *s, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf line = { 0 };

	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];
		_cleanup_(strbuf_free) struct strbuf one = { 0 };
		const char *name = w->pool        ? w->pool->name
				   : *w->function ? w->function
				   : *w->leaf     ? w->leaf
						  : w->comm;

		if (!is_shown(s, w, true))
			continue;
		strbuf_add_clean(&one, name, strlen(name));
		strbuf_printf(&one, " %s%s", unit_ns(w->value).s,
			      w->high > w->low ? " (estimated)" : "");
		if (CELLS_LABEL_WIDTH + line.len + one.len + 2 > CELLS_WIDTH && line.len)
			break;
		strbuf_printf(&line, "%s%s",
			      line.len ? ", " : "probably idle: ", one.s ? one.s : "");
	}
	if (!line.s)
		return;
	cells_name(out, line.s, CELLS_WIDTH - CELLS_LABEL_WIDTH, false);
	sink_puts(out, "\n");
}

void section_waits_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	if (s->offcpu.n_waits == 0)
		return;
	if (!has_waits(s, false)) {
		cells_line(out, "Blocked");
	} else {
		cells_left(out, "Blocked", BRIEF_TIME - 10);
		cells_right(out, "time", 10);
		if (s->offcpu.sampled)
			cells_right(out, "95%", 10);
		cells_right(out, "count", 9);
		sink_puts(out, "  ");
		cells_left(out, "for", 22);
		sink_puts(out, "in\n");
		put_brief_waits(s, rows, out);
		if (has_waits(s, true))
			cells_spaces(out, CELLS_LABEL_WIDTH);
	}
	put_brief_idle(s, out);
}

static void put_peers_json(struct json_doc *d, cJSON *offcpu, const struct run_summary *s)
{
	cJSON *peers = json_object(d, offcpu, "requests");
	cJSON *list = json_array(d, peers, "peers");

	json_count(d, peers, "looks", s->peers.looks);
	json_count(d, peers, "waiting", s->peers.waiting);
	json_count(d, peers, "held", s->peers.held);
	json_count(d, peers, "inbound", s->peers.inbound);
	json_count(d, peers, "port", s->peers.port);
	json_count(d, peers, "left_out", s->peers.left_out);
	json_count(d, peers, "failed", s->peers.failed);
	for (uint32_t i = 0; i < s->peers.n && i < ENDPOINTS_SHOWN; i++) {
		const struct summary_peer *p = &s->peers.rows[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "name", p->name);
		json_count(d, o, "looks", p->looks);
		json_count(d, o, "for_inbound", p->for_inbound);
		json_count(d, o, "outstanding", p->requests);
		cJSON_AddNumberToObject(o, "age_ms", p->age_ms);
		json_count(d, o, "oldest_ms", p->oldest_ms);
		json_count(d, o, "answers", p->answers);
	}
}

static void put_tasks_json(struct json_doc *d, cJSON *offcpu, const struct run_summary *s)
{
	cJSON *tasks = json_object(d, offcpu, "tasks"), *list = json_array(d, tasks, "waits");

	json_count(d, tasks, "looks", s->tasks.looks);
	json_count(d, tasks, "seen", s->tasks.seen);
	json_count(d, tasks, "ready", s->tasks.ready);
	json_count(d, tasks, "changed", s->tasks.changed);
	json_count(d, tasks, "left_out", s->tasks.left_out);
	json_truth(d, tasks, "more", s->tasks.more);
	for (uint32_t i = 0; i < s->tasks.n; i++) {
		const struct task_row *row = &s->tasks.rows[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", row->function);
		json_count(d, o, "line", row->line);
		json_text(d, o, "awaits", row->awaits);
		json_text(d, o, "kind", task_wait_name(row->wait));
		json_count(d, o, "seen", row->seen);
		json_count(d, o, "looks", row->looks);
		json_count(d, o, "left", row->left);
		json_number(d, o, "longest_ns", row->longest_ns);
	}
}

void section_waits_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *offcpu = json_object(d, root, "offcpu"), *list = json_array(d, offcpu, "waits");
	cJSON *monitors = json_object(d, offcpu, "monitors");
	cJSON *endpoints;

	json_number(d, offcpu, "min_ns", s->offcpu.min_ns);
	json_number(d, offcpu, "max_ns", s->offcpu.max_ns);
	json_count(d, offcpu, "left_out", s->offcpu.left_out);
	json_count(d, offcpu, "left_out_ns", s->offcpu.left_out_ns);
	json_truth(d, offcpu, "sampled", s->offcpu.sampled);
	json_count(d, offcpu, "switches", s->offcpu.switches);
	json_count(d, offcpu, "wait_sampler_switches", s->offcpu.wait_sampler_switches);
	json_count(d, offcpu, "stacks_sampled", s->offcpu.stacks_sampled);
	json_count(d, offcpu, "reassigned", s->offcpu.reassigned);
	cJSON_AddNumberToObject(offcpu, "sample_gap_s", s->offcpu.sample_gap_s);
	json_count(d, monitors, "waits", s->monitors.waits);
	json_count(d, monitors, "unowned", s->monitors.unowned);
	json_count(d, monitors, "held", s->monitors.held);
	json_text(d, monitors, "owner", s->monitors.owner);
	json_count(d, monitors, "tid", s->monitors.tid);
	endpoints = json_array(d, offcpu, "endpoints");
	for (uint32_t i = 0; i < s->endpoints.n && i < ENDPOINTS_SHOWN; i++) {
		cJSON *o = json_element(d, endpoints);

		json_text(d, o, "name", s->endpoints.rows[i].name);
		json_text(d, o, "kind", s->endpoints.rows[i].peer ? "peer" : "file");
		json_count(d, o, "seen", s->endpoints.rows[i].seen);
	}
	put_peers_json(d, offcpu, s);
	put_tasks_json(d, offcpu, s);
	for (uint32_t i = 0; i < s->offcpu.n_waits; i++) {
		const struct site_row *w = &s->offcpu.waits[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", w->function);
		json_text(d, o, "module", w->module);
		json_text(d, o, "comm", w->comm);
		json_text(d, o, "kernel", w->leaf);
		json_text(d, o, "kind", wait_kind_name(w->wait));
		json_number(d, o, "blocked_ns", w->value);
		json_number(d, o, "count", w->count);
		json_text(d, o, "role", wait_role_name(w->role));
		json_text(d, o, "pool", w->pool ? w->pool->name : "");
		cJSON_AddBoolToObject(o, "idle", summary_wait_is_idle(s, w));
		if (w->high > w->low) {
			json_number(d, o, "low_ns", w->low);
			json_number(d, o, "high_ns", w->high);
		}
	}
}
