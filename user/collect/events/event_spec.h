/*
 * Events as perf record -e spells them, and what the kernel is asked for by each.
 *
 *   page-faults  cpu-clock:u  cycles/period=100000/           by name (event_names.c)
 *   r1a8  cpu/event=0x3c,umask=0/  msr/tsc/                   of a PMU, as sysfs describes it
 *   sched:sched_process_fork  syscalls:sys_enter_*  t:…       tracepoints (bcc's t: and tracepoint: as well)
 *   usdt:FILE:PROVIDER:NAME  usdt:PROVIDER:NAME  u:FILE:NAME  sdt_PROVIDER:NAME    sites of USDT
 *   uprobe:FILE:FUNCTION  p:FILE:FUNCTION                     functions, where they begin
 *   uretprobe:FILE:FUNCTION  r:FILE:FUNCTION                  … and where they return
 *
 * Commas separate events, except between the slashes of /terms/. Each may have the terms period=N, freq=N and name=TEXT;
 * those by name and of a PMU, and raw ones, modifiers: u and k (user, kernel alone), p (precise) up to three times. In the
 * names of tracepoints, of sites and of functions * and ? stand for any text and any character.
 */
#ifndef MEMSCOPE_COLLECT_EVENTS_EVENT_SPEC_H
#define MEMSCOPE_COLLECT_EVENTS_EVENT_SPEC_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_SPECS_MAX 16

enum event_kind { EVENT_PERF, EVENT_TRACEPOINT, EVENT_USDT, EVENT_UPROBE };

struct event_spec {
	char text[200]; /* without its terms: "sched:sched_*" */
	char name[64];  /* of its profile and files: "page-faults", "sched_process_fork" */
	enum event_kind kind;
	/* Of EVENT_PERF, as in struct perf_event_attr. */
	uint32_t type, precise;
	uint64_t config, config1, config2;
	bool no_user, no_kernel;
	char pmu[64];    /* that it is of, by name; "": none is named       */
	uint64_t period; /* one in so many; 0: as is usual for its kind  */
	uint64_t freq;   /* a second and CPU; 0: not asked for          */
	/* Of tracepoints: system and name; of sites: provider ("*": any) and name; of functions: "" and name. */
	char group[64], event[128];
	char file
		[256]; /* of sites and functions: a path, or the name of a library or program; "": any file */
	bool at_return; /* of a function                                */
	bool timed;     /* … whose calls are counted and timed (--count) */
};

/* What samples of it are counted in. */
enum event_unit {
	EVENT_UNIT_COUNT,       /* each is one, and is counted exactly unless it is thinned */
	EVENT_UNIT_NS,          /* it is a clock                                             */
	EVENT_UNIT_OF_HARDWARE, /* a counter of hardware: fires once in a period          */
};
enum event_unit event_unit(const struct event_spec *spec);

/*
 * Adds the events of a list to `specs`, which has room for EVENT_SPECS_MAX. Names are made different from each other.
 * -EINVAL with a sentence: what is not understood, and what may have been meant; -ENODEV: there is no such PMU here.
 */
int events_parse(const char *list, struct event_spec *specs, uint32_t *n, struct err *e);

/*
 * The same of functions that are counted and timed: FUNCTION, in any file, or FILE:FUNCTION. Names of C++ and Rust are also
 * understood as people write them, without parameters.
 */
int counts_parse(const char *list, struct event_spec *specs, uint32_t *n, struct err *e);

/* Does `text` match, where * in `pattern` stands for any text, ? for any character? */
bool event_matches(const char *pattern, const char *text);
bool event_is_pattern(const char *text);

#endif
