#include "cmd/event_list.h"

#include "base/cleanup.h"
#include "base/sink.h"
#include "collect/events/event_names.h"
#include "collect/events/event_probes.h"
#include "collect/events/pmu.h"
#include "collect/events/tracefs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool event_list_asked(const struct opt_list *events)
{
	for (uint32_t i = 0; i < events->n; i++)
		if (strcmp(events->items[i], "list") == 0)
			return true;
	return false;
}

/* "page-faults  OR faults", and why it cannot be had. */
static void put_named(struct sink *out, const char *name, const char *synonym)
{
	struct event_spec specs[EVENT_SPECS_MAX];
	struct err e = { 0 };
	uint32_t n = 0;
	const char *why = NULL;
	char both[96];

	snprintf(both, sizeof(both), "%s%s%s", name, synonym ? ", " : "", synonym ? synonym : "");
	if (events_parse(name, specs, &n, &e) < 0)
		why = e.msg;
	else
		why = event_why_not(&specs[0]);
	if (why)
		sink_printf(out, "  %-46s not here: %s\n", both, why);
	else
		sink_printf(out, "  %s\n", both);
}

static void put_cache(void *ctx, const char *name, uint64_t config)
{
	(void)config;
	put_named(ctx, name, NULL);
}

static void put_pmu(void *ctx, const char *name)
{
	put_named(ctx, name, NULL);
}

static void put_tracepoint(void *ctx, const char *system, const char *name, uint64_t id)
{
	(void)id;
	sink_printf(ctx, "  %s:%s\n", system, name);
}

static const char *const heads[] = { "Software events", "Hardware events" };

static void put_events(struct sink *out)
{
	uint32_t type = UINT32_MAX;

	for (const struct event_name *row = event_names; row->name; row++) {
		if (row->type != type)
			sink_printf(out, "%s%s\n", type == UINT32_MAX ? "" : "\n",
				    heads[row->type == event_names[0].type ? 0 : 1]);
		type = row->type;
		put_named(out, row->name, row->synonym);
	}
	event_names_of_caches(put_cache, out);
}

int event_list_print(struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	_cleanup_(closep) int events = -1;
	struct err why = { 0 };
	int r = sink_open_file("-", &out, e);

	if (r < 0)
		return r;
	put_events(out);
	sink_puts(out, "\nOf PMUs (" PMU_DIR ")\n  rNNN (raw, hexadecimal), PMU/TERM=VALUE,…/\n");
	pmu_events(PMU_DIR, put_pmu, out);
	sink_puts(out, "\nTracepoints\n");
	events = tracefs_open(&why);
	if (events < 0)
		sink_printf(out, "  %s\n", why.msg);
	else
		tracefs_find(events, "*", "*", put_tracepoint, out);
	return sink_commit(out, e);
}
