/* What the files of event_probes.h share: event_probes.c (perf events and tracepoints) and event_sites.c (places in files). */
#ifndef MEMSCOPE_COLLECT_EVENTS_EVENT_PARTS_H
#define MEMSCOPE_COLLECT_EVENTS_EVENT_PARTS_H

#include "abi.h"
#include "collect/events/event_probes.h"

struct event_fd {
	int perf, link; /* link -1: there is none, the event holds the program */
};

struct event {
	uint32_t spec;
	char *name;
	uint64_t id;   /* of a tracepoint                        */
	bool at_entry; /* of a function                          */
	struct event_fd *fds;
	uint32_t n_fds, cap_fds;
	uint64_t seen; /* by the perf events that are closed now */
};

struct event_probes {
	const struct event_spec *specs;
	uint32_t n_specs;
	struct {
		char why[256]; /* it is not attached; "" */
		uint32_t thin;
	} items[EVENT_SPECS_MAX];
	struct event *events; /* by number */
	uint32_t n, cap;
	bool has_sites;
	struct session *session;
};

/* A further event of an item. Its number; -ENOMEM; -E2BIG: there are too many. */
int event_add(struct event_probes *ep, uint32_t spec, const char *name, uint64_t id);
/* Tells the programs how an event's stacks are thinned. */
int event_set_row(const struct event_probes *ep, uint32_t number);

#endif
