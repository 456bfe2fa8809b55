/*
 * Processes that are looked at when they begin, and again at each tick until they can be read: a language's runtime begins after the
 * program itself, and the kernel names a process with its first event.
 */
#ifndef MEMSCOPE_RUN_LOOK_AGAIN_H
#define MEMSCOPE_RUN_LOOK_AGAIN_H

#include "run/targets.h"

enum { LOOK_AGAIN_MAX = 256, LOOK_AGAIN_TRIES = 100 };

/* true: it was read, or never will be; false: not yet. */
typedef bool (*look_fn)(void *self, pid_t pid, uint64_t now_ns);

struct look_again {
	struct {
		pid_t pid;
		uint32_t tries;
	} pending[LOOK_AGAIN_MAX];
	uint32_t n;
};

/* A component's `process`: a target that has begun, or has another image now. */
void look_again_process(struct look_again *l, const struct process_event *event, look_fn look, void *self,
			uint64_t now_ns);
/* … its `tick`: those that were not read yet. */
void look_again_tick(struct look_again *l, look_fn look, void *self, uint64_t now_ns);

#endif
