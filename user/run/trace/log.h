/*
 * The log of system calls: what `memscope trace` is asked for, and what came of it.
 *
 * A line a call, in the order in which calls began, as far as they return within TRACE_HOLD_NS. One that takes longer
 * stands there as unfinished, and its result in a line of its own at the time of its end. Calls that are missing are counted in
 * the place where they are missing.
 */
#ifndef MEMSCOPE_RUN_TRACE_LOG_H
#define MEMSCOPE_RUN_TRACE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TRACE_HOLD_NS 300000000ULL

struct trace_config {
	FILE *out;
	bool json;   /* a JSON object a line */
	bool failed; /* only calls that failed */
	bool sums;   /* what they add up to stands at the end */
	bool stacks; /* below each call its user stack */
	uint64_t min_ns;
	uint32_t most_bytes; /* of buffers: at most TRACE_SHORT */
	uint64_t max_rate;   /* calls a second; 0: no limit */
	uint64_t max_bytes;  /* of the log; 0: no limit     */
	const bool *wanted;  /* TRACE_CALLS of them         */
	struct trace_result *result;
};

struct trace_result {
	uint64_t calls, lost, over, before; /* written; no room; more than max_rate */
	int error;                          /* of writing: an errno */
};

#endif
