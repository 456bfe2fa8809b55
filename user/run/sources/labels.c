/*
 * Labels that programs set themselves, of samples and waits: Go's, and what threads publish as OpenTelemetry has it.
 */
#include "analyse/by_label.h"
#include "base/clock.h"
#include "base/units.h"
#include "collect/stream/go_labels.h"
#include "collect/stream/otel_labels.h"
#include "run/component.h"
#include "run/look_again.h"

#include <errno.h>

#define LABEL_KEYS 8

struct labels {
	struct run *run;
	struct label_sets *sets;
	struct go_labels *go;
	struct otel_labels *otel;
	struct look_again again;
	struct label_row rows[LABEL_KEYS];
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_ONCPU] || cfg->sources[SOURCE_OFFCPU];
}

static int open_labels(void *self, struct err *e)
{
	struct labels *l = self;
	struct run *r = l->run;

	l->sets = label_sets_new(r->session, r->dict, r->procs);
	l->go = l->sets ? go_labels_new(l->sets, r->drain, r->dict, r->procs) : NULL;
	l->otel = l->sets ? otel_labels_new(l->sets, r->drain, r->dict, r->procs) : NULL;
	return l->go && l->otel ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int attach(void *self, struct err *e)
{
	struct labels *l = self;

	(void)e;
	label_sets_begin(l->sets, l->run->ingest);
	return 0;
}

static bool look(void *self, pid_t pid, uint64_t now_ns)
{
	(void)now_ns;
	return go_labels_look(((struct labels *)self)->go, pid);
}

static bool is_fresh(enum process_event_kind kind)
{
	return kind == PROCESS_EXEC || kind == PROCESS_FORKED;
}

static void process(void *self, const struct process_event *event)
{
	struct labels *l = self;

	look_again_process(&l->again, event, look, self, 0);
	switch (event->kind) {
	case PROCESS_ENDED:
		otel_labels_ended(l->otel, event->pid);
		label_sets_ended(l->sets, event->pid);
		break;
	case PROCESS_ADDED:
	case PROCESS_MEMBER:
	case PROCESS_LISTED:
	case PROCESS_MAPPED:
	case PROCESS_HELD:
	case PROCESS_EXEC:
	case PROCESS_FORKED:
		if (event->target)
			otel_labels_process(l->otel, event->pid, is_fresh(event->kind),
					    is_fresh(event->kind) || event->newborn, now_ns());
		break;
	default:
		break;
	}
}

static void tick(void *self, uint64_t now_ns)
{
	struct labels *l = self;

	look_again_tick(&l->again, look, self, now_ns);
	otel_labels_tick(l->otel, now_ns);
}

static void report_unread(struct labels *l, uint64_t n, const char *why)
{
	if (n)
		run_note(l->run, true, "%s files could not be searched for labels: %s",
			 unit_count((int64_t)n).s, why);
}

static void report_go(struct labels *l)
{
	struct go_labels_stats s = go_labels_stats(l->go);

	report_unread(l, s.unread, s.unread_why);
	if (s.untested && s.sets)
		run_note(
			l->run, false,
			"Labels of Go %u.%u: memscope was never tried with this version; compare them "
			"with the program's own profile",
			s.untested >> 16, s.untested >> 8 & 0xff);
	if (s.gone)
		run_note(
			l->run, false,
			"%s sets of labels of Go programs are missing: they had gone before they were read",
			unit_count((int64_t)s.gone).s);
}

static void report_otel(struct labels *l)
{
	struct otel_labels_stats s = otel_labels_stats(l->otel);
	static const char *const of[2] = { "samples", "waits" };

	report_unread(l, s.unread, s.unread_why);
	if (s.no_variable)
		run_note(
			l->run, false,
			"%s processes publish an OpenTelemetry context, and no otel_thread_ctx_v1 that could be "
			"found: their samples have no trace_id",
			unit_count(s.no_variable).s);
	if (s.other_schema)
		run_note(
			l->run, false,
			"%s processes publish OpenTelemetry contexts of threads as \"%s\", which is not known",
			unit_count(s.other_schema).s, s.schema);
	for (int i = 0; i < 2; i++)
		if (s.spans_full[i])
			run_note(
				l->run, false,
				"After %s spans %s have no trace_id and span_id: there are too many; attributes "
				"are there",
				unit_count(OTEL_SPANS).s, of[i]);
	if (s.cut || s.unknown_keys)
		run_note(
			l->run, false,
			"OpenTelemetry contexts of threads: %s had more attributes than are read, %s "
			"attributes had no name",
			unit_count((int64_t)s.cut).s, unit_count((int64_t)s.unknown_keys).s);
	if (s.left_out)
		run_note(
			l->run, false,
			"%s processes were not asked for OpenTelemetry contexts: there are too many",
			unit_count((int64_t)s.left_out).s);
}

static void report(void *self, struct run_summary *to)
{
	struct labels *l = self;
	struct label_sets_stats s = label_sets_stats(l->sets);

	report_go(l);
	report_otel(l);
	if (s.left_out)
		run_note(
			l->run, false,
			"%s sets of labels that programs set themselves found no room: samples are without them",
			unit_count((int64_t)s.left_out).s);
	to->n_program_labels =
		row_count(by_label(l->run->profiles[PROFILE_ONCPU],
				   l->run->profiles[PROFILE_OFFCPU], l->rows, LABEL_KEYS));
	to->program_labels = l->rows;
}

static void free_labels(void *self)
{
	struct labels *l = self;

	otel_labels_free(l->otel);
	go_labels_free(l->go);
	label_sets_free(l->sets);
}

const struct component labels_component = {
	.name = "labels",
	.size = sizeof(struct labels),
	.wanted = wanted,
	.open = open_labels,
	.attach = attach,
	.process = process,
	.tick = tick,
	.report = report,
	.free = free_labels,
};
