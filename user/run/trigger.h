/*
 * A condition of --when: what is said of it, and when it is met.
 *
 *   rss>4G             resident memory; of a control group what is charged without files; of the host what is
 *                      not available
 *   rss+=1G            each further gigabyte of it
 *   growth>100M/min    how fast that rises: over 10 s for /s, a minute for /min, ten minutes for /h
 *   allocated>2G       bytes allocated since the run began; allocated+=1G: each further gigabyte
 *   cpu>80%            CPU time, percent of one CPU, over 5 s
 *   oom                memory is about to run out, or has
 *
 * Bytes: K, M, G and T are powers of 1,024 ("Ki", "KiB" and "KB" as well); none: bytes.
 *
 * A condition fires when it becomes true, and then not before it was false: below 95 % of its bound. It fires
 * once in `rearm` at most; what would have fired meanwhile is counted as suppressed.
 */
#ifndef MEMSCOPE_RUN_TRIGGER_H
#define MEMSCOPE_RUN_TRIGGER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum trigger_what {
	TRIGGER_RSS,
	TRIGGER_GROWTH,
	TRIGGER_ALLOCATED,
	TRIGGER_CPU,
	TRIGGER_OOM,
	N_TRIGGERS,
};

struct trigger {
	enum trigger_what what;
	bool each;        /* each further `bound`                                          */
	double bound;     /* bytes; growth: bytes a second; cpu: percent; oom: used part   */
	double span_s;    /* growth and cpu: over so long                                  */
	const char *text; /* as it was given; borrowed                                     */
	char word[48];    /* fit for a file name, of letters, digits and '_'               */
};

/* -EINVAL with a sentence that names --when. */
int trigger_parse(const char *text, struct trigger *ret_trigger, struct err *e);

/* Zeroed in the beginning. */
struct trigger_state {
	bool met, has_next, has_fired;
	double next;      /* of `each`: the next that counts */
	uint64_t last_ns; /* when it fired last              */
	uint64_t fired, suppressed;
};

/* `value` is how it is now (NAN: not known). true: it fires. */
bool trigger_step(const struct trigger *t, struct trigger_state *state, double value,
		  uint64_t now_ns, uint64_t rearm_ns);

/* How much a figure rose within a span that ends now: at most TRIGGER_POINTS of it are remembered. */
#define TRIGGER_POINTS 64
struct trigger_rise {
	struct {
		uint64_t ns;
		double value;
	} points[TRIGGER_POINTS];
	uint32_t n;
};

/* Its rise in the last `span_s`, by the second; as long as less is known, what rose is taken for all of
 * it, so that a short moment never looks like a fast rise. NAN: not known. */
double trigger_rise(struct trigger_rise *r, double value, uint64_t now_ns, double span_s);

#endif
