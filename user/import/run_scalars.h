/*
 * The numbers of a run as its summary.json has them (render/summary/summary_json.h): those that a run before
 * is compared with.
 */
#ifndef MEMSCOPE_IMPORT_RUN_SCALARS_H
#define MEMSCOPE_IMPORT_RUN_SCALARS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

enum run_scalar {
	RUN_DURATION,      /* ns         */
	RUN_CPU,           /* ns         */
	RUN_BLOCKED,       /* ns         */
	RUN_RUNNABLE,      /* ns         */
	RUN_RSS_PEAK,      /* bytes      */
	RUN_RSS_LAST,      /* bytes      */
	RUN_ALLOCATED,     /* bytes      */
	RUN_ALLOCATIONS,   /* count      */
	RUN_LIVE,          /* bytes      */
	RUN_RESIDENT,      /* bytes made resident, of all kinds */
	N_RUN_SCALARS,
};

struct run_scalars {
	double value[N_RUN_SCALARS]; /* NAN: the run does not say */
	/* Estimates: 95 % intervals; NAN where there is none. */
	double low[N_RUN_SCALARS], high[N_RUN_SCALARS];
	bool ended_by_itself; /* its target did: it had all of its work done, however long that took */
};

/* For people, and for JSON; the unit as pprof spells it. */
struct run_scalar_name {
	const char *text, *key, *unit;
	bool of_time; /* grows with the run's duration: compared per second too */
};
extern const struct run_scalar_name run_scalar_names[N_RUN_SCALARS];

/* -EBADMSG with a sentence: not JSON, or not a summary. */
int run_scalars_parse(struct bytes json, const char *name, struct run_scalars *ret_scalars,
		      struct err *e);
/* The same from DIR/summary.json. -ENOENT (no sentence): there is none. */
int run_scalars_read(const char *dir, struct run_scalars *ret_scalars, struct err *e);

#endif
