/*
 * A run's facts, for tests of what is concluded from them.
 */
#ifndef MEMSCOPE_TESTS_RUN_FIXTURE_H
#define MEMSCOPE_TESTS_RUN_FIXTURE_H

#include "analyse/summary.h"

#include <string.h>

#define S_NS 1000000000LL

static const struct summary_process redis = { .pid = 7, .comm = "redis-server" };
static const struct summary_source oncpu_ok[] = { { "oncpu", SOURCE_OK, NULL } };

/* One process, ten seconds, `cpu` of one CPU, the rest blocked. */
static inline struct run_summary run(double cpu)
{
	struct run_summary s = {
		.duration_ns = 10 * S_NS,
		.target = RUN_PROCESSES,
		.processes = &redis,
		.n_processes = 1,
		.n_cpus = 4,
		.sources = oncpu_ok,
		.n_sources = 1,
		.rss.first_kb = -1,
		.rss.last_kb = -1,
		.rss.peak_kb = -1,
	};

	s.time.known = true;
	s.time.wall_ns = 10 * S_NS;
	s.time.oncpu_ns = (int64_t)(cpu * 10 * S_NS);
	s.time.blocked_ns = s.time.wall_ns - s.time.oncpu_ns;
	s.oncpu.samples = (uint64_t)(cpu * 9900);
	s.oncpu.hz = 990;
	return s;
}

static inline struct verdict verdict_of(const struct run_summary *s)
{
	struct verdict v;

	summary_verdict(s, &v);
	return v;
}

static inline void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

#endif
