/*
 * Who was profiled, when, for how long, and how it ended.
 */
#include "base/strbuf.h"
#include "base/units.h"
#include "render/summary/sections.h"
#include "render/tables/cells.h"

#include <string.h>
#include <time.h>

static void put_group_name(const struct summary_group *g, struct sink *out)
{
	const char *slash = strrchr(g->path, '/');

	if (g->id)
		sink_puts(out, "container ");
	else
		sink_puts(out, "control group ");
	cells_name(out, g->name ? g->name : slash && slash[1] ? slash + 1 : g->path, 40, false);
}

/* What became of one, in a line. */
static void put_group(const struct summary_group *g, bool named, struct sink *out)
{
	sink_puts(out, "  ");
	if (named) {
		put_group_name(g, out);
		sink_puts(out, ": ");
	}
	if (g->id) {
		sink_puts(out, g->engine && *g->engine ? g->engine : "no engine:");
		sink_puts(out, " ");
		cells_name(out, g->id, 12, false);
		if (g->image) {
			sink_puts(out, ", ");
			cells_name(out, g->image, 40, false);
		}
		sink_puts(out, ", ");
	}
	cells_name(out, g->path, CELLS_WIDTH, false);
	sink_puts(out, "\n");
	if (g->restarts)
		sink_printf(out, "  restarted %u time%s during the run\n", g->restarts,
			    g->restarts == 1 ? "" : "s");
	if (g->gone_ns)
		sink_printf(out, "  gone for the last %s\n", unit_ns(g->gone_ns).s);
}

/* Programs given as an argument (python3 -c) have several lines. */
static void put_command(const char *command, size_t width, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf line = { 0 };

	for (const char *c = command ? command : ""; *c; c++)
		if (*c != '\n' && *c != '\t')
			strbuf_putc(&line, *c);
		else if (line.len && line.s[line.len - 1] != ' ')
			strbuf_putc(&line, ' ');
	cells_name(out, line.s, width, false);
}

static void put_heading(const struct run_summary *s, struct sink *out)
{
	char when[32] = "";
	time_t sec = s->start_ns / 1000000000;
	struct tm tm;

	if (s->target == RUN_HOST)
		sink_puts(out, "whole host");
	else if (s->n_groups) {
		put_group_name(&s->groups[0], out);
		if (s->n_groups > 1)
			sink_printf(out, " and %u more", s->n_groups - 1);
	} else if (s->n_processes > 1)
		sink_printf(out, "%u processes", s->n_processes);
	else if (s->n_processes == 1) {
		cells_name(out, s->processes[0].comm ? s->processes[0].comm : "?", 32, false);
		sink_printf(out, " (pid %d)", s->processes[0].pid);
	} else {
		sink_puts(out, "no process");
	}
	localtime_r(&sec, &tm);
	if (s->start_ns > 0 && strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm) > 0)
		sink_printf(out, ", %s", when);
	sink_printf(out, ", %s", unit_ns(s->duration_ns).s);
	if (s->version)
		sink_printf(out, "  (memscope %s)", s->version);
	sink_puts(out, "\n");
	if (s->title) {
		sink_puts(out, "  ");
		cells_name(out, s->title, CELLS_WIDTH - 2, false);
		sink_puts(out, "\n");
	}
	for (uint32_t i = 0; i < s->n_labels; i++) {
		sink_puts(out, i ? ", " : "  ");
		cells_name(out, s->labels[i], CELLS_WIDTH - 2, false);
	}
	if (s->n_labels)
		sink_puts(out, "\n");
}

static void put_target(const struct run_summary *s, struct sink *out)
{
	put_heading(s, out);
	for (uint32_t i = 0; i < s->n_groups; i++)
		put_group(&s->groups[i], s->n_groups > 1, out);
	if (s->n_groups)
		sink_printf(out, "  %u process%s in it during the run\n", s->n_members,
			    s->n_members == 1 ? "" : "es");
	for (uint32_t i = 0; i < s->n_processes && i < 8; i++) {
		const struct summary_process *p = &s->processes[i];

		if (s->n_processes > 1 || s->n_groups) {
			sink_printf(out, "  %7d  ", p->pid);
			cells_name(out, p->comm ? p->comm : "?", 16, true);
		}
		if (p->ns_pid)
			sink_printf(out, "  pid %d inside", p->ns_pid);
		sink_puts(out, "  ");
		put_command(p->cmdline && p->cmdline[0] ? p->cmdline : p->exe, CELLS_WIDTH - 30,
			    out);
		sink_puts(out, "\n");
	}
	if (s->n_processes > 8)
		sink_printf(out, "  and %u more\n", s->n_processes - 8);
	if (s->seen_processes > 1)
		sink_printf(out, "  %s processes, %s threads\n", unit_count(s->seen_processes).s,
			    unit_count(s->seen_threads).s);
	else if (s->seen_threads > 1)
		sink_printf(out, "  %s threads\n", unit_count(s->seen_threads).s);
}

#define LATE_NS 200000000

/* It took longer than asked by so much that somebody would notice: how much, and why. */
static void put_late(const struct run_summary *s, struct sink *out)
{
	int64_t late = s->duration_ns - s->asked_ns;

	if (s->end != RUN_END_DURATION || s->asked_ns <= 0 || late < LATE_NS ||
	    late < s->asked_ns / 20)
		return;
	sink_printf(out, ", %s later than asked", unit_ns(late).s);
	if (s->closing_ns > late / 2)
		sink_printf(out, ": reading what is in use took %s", unit_ns(s->closing_ns).s);
	else
		sink_puts(out, ": the CPUs were busy");
}

static void put_end(const struct run_summary *s, struct sink *out)
{
	static const char *const ends[] = {
		[RUN_END_DURATION] = "duration reached",
		[RUN_END_SIGNAL] = "stopped by a signal",
		[RUN_END_TARGET] = "the target ended",
		[RUN_END_ERROR] = "ended early by an error",
		[RUN_END_MEMORY] = "memscope's own memory reached its limit",
		[RUN_END_AGAIN] = "another run follows",
	};

	if (s->end != RUN_END_UNKNOWN) {
		sink_printf(out, "  ended: %s", ends[s->end]);
		if (s->end_detail) {
			sink_puts(out, " (");
			cells_name(out, s->end_detail, 64, false);
			sink_puts(out, ")");
		}
		put_late(s, out);
		sink_puts(out, "\n");
	}
	if (s->child.known && s->child.exited)
		sink_printf(out, "  the command's exit status: %d\n", s->child.code);
	else if (s->child.known)
		sink_printf(out, "  the command was killed by signal %d (%s)\n", s->child.signal,
			    strsignal(s->child.signal));
}

void section_target_text(const struct run_summary *s, struct sink *out)
{
	put_target(s, out);
	put_end(s, out);
}

/* What was asked for, and how it went, a line each. */
void section_target_brief(const struct run_summary *s, uint32_t rows, struct sink *out)
{
	static const char *const ends[] = {
		[RUN_END_DURATION] = "duration reached",
		[RUN_END_SIGNAL] = "stopped by a signal",
		[RUN_END_TARGET] = "the target ended",
		[RUN_END_ERROR] = "ended early by an error",
		[RUN_END_MEMORY] = "memscope's own memory reached its limit",
		[RUN_END_AGAIN] = "another run follows",
	};

	(void)rows;
	put_heading(s, out);
	if (s->n_processes == 1 && !s->n_groups && s->processes[0].cmdline) {
		sink_puts(out, "  ");
		put_command(s->processes[0].cmdline, CELLS_WIDTH - 2, out);
		sink_puts(out, "\n");
	}
	sink_puts(out, "  ");
	if (s->seen_processes > 1 || s->n_groups)
		sink_printf(out, "%s processes, ",
			    unit_count(s->n_groups ? s->n_members : s->seen_processes).s);
	if (s->seen_threads)
		sink_printf(out, "%s thread%s, ", unit_count(s->seen_threads).s,
			    s->seen_threads == 1 ? "" : "s");
	sink_puts(out, s->end != RUN_END_UNKNOWN ? ends[s->end] : "still running");
	if (s->end_detail) {
		sink_puts(out, " (");
		cells_name(out, s->end_detail, 40, false);
		sink_puts(out, ")");
	}
	put_late(s, out);
	if (s->child.known && s->child.exited)
		sink_printf(out, ", exit status %d", s->child.code);
	else if (s->child.known)
		sink_printf(out, ", killed by signal %d (%s)", s->child.signal,
			    strsignal(s->child.signal));
	sink_puts(out, "\n");
}

static void add_labels(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	cJSON *labels = json_object(d, root, "labels");

	for (uint32_t i = 0; i < s->n_labels; i++) {
		char key[256];
		size_t len = strcspn(s->labels[i], "=");

		snprintf(key, sizeof(key), "%.*s", (int)len, s->labels[i]);
		cJSON_DeleteItemFromObjectCaseSensitive(labels, key); /* the last one given */
		json_text(d, labels, key, s->labels[i][len] ? s->labels[i] + len + 1 : "");
	}
}

static void add_run(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const ends[] = {
		[RUN_END_UNKNOWN] = NULL,        [RUN_END_DURATION] = "duration",
		[RUN_END_SIGNAL] = "signal",     [RUN_END_TARGET] = "target",
		[RUN_END_ERROR] = "error",       [RUN_END_AGAIN] = "again",
		[RUN_END_MEMORY] = "own_memory",
	};
	time_t sec = s->start_ns / 1000000000;
	char when[40] = "";
	struct tm tm;

	json_text(d, root, "version", s->version);
	json_text(d, root, "command_line", s->command_line);
	json_text(d, root, "title", s->title);
	add_labels(d, root, s);
	localtime_r(&sec, &tm);
	/* strftime has the offset without the colon that RFC 3339 asks for. */
	if (strftime(when, sizeof(when) - 1, "%Y-%m-%dT%H:%M:%S%z", &tm) == 24) {
		memmove(when + 23, when + 22, 3);
		when[22] = ':';
	}
	json_text(d, root, "start", s->start_ns > 0 ? when : NULL);
	json_number(d, root, "duration_ns", s->duration_ns);
	if (s->asked_ns > 0)
		json_number(d, root, "asked_ns", s->asked_ns);
	json_text(d, root, "end", ends[s->end]);
	json_text(d, root, "end_detail", s->end_detail);
}

static void add_target(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	static const char *const kinds[] = {
		[RUN_PROCESSES] = "processes",
		[RUN_COMMAND] = "command",
		[RUN_HOST] = "host",
		[RUN_GROUPS] = "groups",
	};
	cJSON *target = json_object(d, root, "target");
	cJSON *list, *child;

	json_text(d, target, "kind", kinds[s->target]);
	list = json_array(d, target, "processes");
	for (uint32_t i = 0; i < s->n_processes; i++) {
		cJSON *p = json_element(d, list);

		json_number(d, p, "pid", s->processes[i].pid);
		if (s->processes[i].ns_pid)
			json_number(d, p, "ns_pid", s->processes[i].ns_pid);
		json_text(d, p, "comm", s->processes[i].comm);
		json_text(d, p, "exe", s->processes[i].exe);
		json_text(d, p, "cmdline", s->processes[i].cmdline);
	}
	list = s->n_groups ? json_array(d, target, "groups") : NULL;
	for (uint32_t i = 0; i < s->n_groups; i++) {
		const struct summary_group *g = &s->groups[i];
		cJSON *o = json_element(d, list);

		json_text(d, o, "path", g->path);
		json_text(d, o, "container", g->name);
		json_text(d, o, "container_id", g->id);
		json_text(d, o, "engine", g->engine);
		json_text(d, o, "image", g->image);
		json_text(d, o, "pod", g->pod);
		json_text(d, o, "namespace", g->namespace);
		json_count(d, o, "restarts", g->restarts);
		json_truth(d, o, "was_gone", g->was_gone);
		json_number(d, o, "gone_ns", g->gone_ns);
	}
	if (s->n_groups)
		json_count(d, target, "members", s->n_members);
	json_count(d, target, "seen_processes", s->seen_processes);
	json_count(d, target, "seen_threads", s->seen_threads);

	if (!s->child.known) {
		json_null(d, root, "child");
		return;
	}
	child = json_object(d, root, "child");
	json_truth(d, child, "exited", s->child.exited);
	if (s->child.exited)
		json_number(d, child, "code", s->child.code);
	else
		json_null(d, child, "code");
	if (s->child.exited)
		json_null(d, child, "signal");
	else
		json_number(d, child, "signal", s->child.signal);
}

void section_target_json(struct json_doc *d, cJSON *root, const struct run_summary *s)
{
	add_run(d, root, s);
	add_target(d, root, s);
}
