/*
 * Labels that programs set themselves, of samples and waits: Go's.
 */
#include "base/units.h"
#include "collect/stream/go_labels.h"
#include "run/component.h"
#include "run/look_again.h"

#include <errno.h>

struct labels {
	struct run *run;
	struct go_labels *go;
	struct look_again again;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->sources[SOURCE_ONCPU] || cfg->sources[SOURCE_OFFCPU];
}

static int open_labels(void *self, struct err *e)
{
	struct labels *l = self;
	struct run *r = l->run;

	l->go = go_labels_new(r->session, r->drain, r->dict, r->procs);
	return l->go ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static int attach(void *self, struct err *e)
{
	struct labels *l = self;

	(void)e;
	go_labels_begin(l->go, l->run->ingest);
	return 0;
}

static bool look(void *self, pid_t pid, uint64_t now_ns)
{
	(void)now_ns;
	return go_labels_look(((struct labels *)self)->go, pid);
}

static void process(void *self, const struct process_event *event)
{
	look_again_process(&((struct labels *)self)->again, event, look, self, 0);
}

static void tick(void *self, uint64_t now_ns)
{
	look_again_tick(&((struct labels *)self)->again, look, self, now_ns);
}

static void report(void *self, struct run_summary *to)
{
	struct labels *l = self;
	struct go_labels_stats s = go_labels_stats(l->go);

	(void)to;
	if (s.untested && s.sets)
		run_note(
			l->run, false,
			"Labels of Go %u.%u: memscope was never tried with this version; compare them "
			"with the program's own profile",
			s.untested >> 16, s.untested >> 8 & 0xff);
	if (s.gone || s.left_out)
		run_note(
			l->run, false,
			"%s sets of labels of Go programs are missing: %s had gone before they were "
			"read, %s found no room",
			unit_count((int64_t)(s.gone + s.left_out)).s, unit_count((int64_t)s.gone).s,
			unit_count((int64_t)s.left_out).s);
}

static void free_labels(void *self)
{
	go_labels_free(((struct labels *)self)->go);
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
