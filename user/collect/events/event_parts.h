/*
 * What the files of event_probes.h share: event_probes.c (perf events and tracepoints), event_sites.c (sites and functions in
 * files) and event_places.c (where they are in a file).
 */
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
	uint64_t id;         /* of a tracepoint                        */
	bool at_entry;       /* of a function: its stack is as where it begins */
	bool stepped;        /* of a place whose instruction the kernel does not emulate */
	const char *untimed; /* of one that is to be timed: why it is not; NULL: it is */
	bool kind_known;     /* … is known                                                */
	uint64_t left,
		open; /* of its calls: of processes that have ended, and that have not returned */
	struct event_fd *fds;
	uint32_t n_fds, cap_fds;
	uint64_t seen;   /* by the perf events that are closed now */
	uint64_t before; /* of what they saw, what the program had missed when the gate opened */
};

/* Where in a file a program is to run for an event. */
struct event_place {
	uint32_t number;
	uint64_t off, semaphore; /* in the file; 0: it has none */
	bool is_return;          /* of a call that is timed      */
};

/* A file that a target maps, looked into once. */
struct event_file {
	module_id module;
	int fd;        /* open while it has places */
	bool is_known; /* it could be opened …     */
	uint32_t tries;
	struct event_place *places;
	uint32_t n, cap;
};

/* The places of an item in a file, for a process (-1: for all). */
struct event_attached {
	pid_t pid;
	uint32_t file, spec, n_fds;
	bool is_return;
	int *fds;
};

struct event_probes {
	const struct event_spec *specs;
	uint32_t n_specs;
	struct {
		char why[256]; /* it is not attached; "" */
		char failed_why[256];
		uint32_t failed; /* places that have no probe */
		uint32_t thin;
		bool stopped, untimed;
	} items[EVENT_SPECS_MAX];
	struct event *events; /* by number */
	uint32_t n, cap;
	struct event_named *by_name; /* those of functions and sites (event_places.c) */
	bool has_sites;
	struct session *session;
	/* Of sites and functions. */
	double trap_ns[2]; /* of a hit, by enum trap_kind */
	struct dict *dict;
	struct proc_table *procs;
	bool file_scope;
	struct event_file *files;
	uint32_t n_files, cap_files;
	struct event_attached *attached;
	uint32_t n_attached, cap_attached;
};

/* A further event of an item. Its number; -ENOMEM; -E2BIG: there are too many. */
int event_add(struct event_probes *ep, uint32_t spec, const char *name, uint64_t id);
/* Tells the programs how an event's stacks are thinned. */
int event_set_row(const struct event_probes *ep, uint32_t number);
/* Without cookies a program knows one event: is it this one? */
bool event_has_number(const struct event_probes *ep, uint32_t number);
/* Finds the places of all items in a file that is open. 0 or -ENOMEM. */
int event_places_find(struct event_probes *ep, struct event_file *f);
/* What finding them took. */
void event_places_free(struct event_probes *ep);
/* Of a file that cannot be opened: may the item be of it, by its path? */
bool event_may_be_of(const struct event_spec *spec, const char *path);
/* `n` places of an item have no probe. */
void event_failed(struct event_probes *ep, uint32_t spec, uint32_t n, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* What hits cost on this machine, when its programs are loaded. */
void event_sites_measure(struct event_probes *ep);
/* Detaches the sites and functions of an item; frees what is known of files. */
void event_sites_stop(struct event_probes *ep, uint32_t spec);
void event_sites_free(struct event_probes *ep);

#endif
