/*
 * Labels that programs set themselves, of samples and waits: Go's.
 */
#include "base/units.h"
#include "collect/stream/go_labels.h"
#include "run/component.h"
#include "run/targets.h"

#include <errno.h>

#define PENDING_MAX 256
#define TRIES       100 /* at ticks: the kernel names a process with its first event */

struct labels {
	struct run *run;
	struct go_labels *go;
	struct {
		pid_t pid;
		uint32_t tries;
	} pending[PENDING_MAX]; /* looked at again */
	uint32_t n_pending;
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

static void look(struct labels *l, pid_t pid, uint32_t tries)
{
	if (go_labels_look(l->go, pid) || tries >= TRIES || l->n_pending >= PENDING_MAX)
		return;
	l->pending[l->n_pending].pid = pid;
	l->pending[l->n_pending++].tries = tries + 1;
}

static void process(void *self, const struct process_event *event)
{
	switch (event->kind) {
	case PROCESS_ADDED:
	case PROCESS_MEMBER:
	case PROCESS_LISTED:
	case PROCESS_EXEC:
	case PROCESS_HELD:
		if (event->target)
			look(self, event->pid, 0);
		break;
	default:
		break;
	}
}

static void tick(void *self, uint64_t now_ns)
{
	struct labels *l = self;
	uint32_t n = l->n_pending;

	(void)now_ns;
	l->n_pending = 0;
	for (uint32_t i = 0; i < n; i++)
		look(l, l->pending[i].pid, l->pending[i].tries);
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
