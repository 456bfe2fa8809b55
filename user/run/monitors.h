/*
 * Who holds the monitors of Java that threads wait for: looked at some ten times a second while the run goes on, for the kernel sees a futex
 * and no owner.
 */
#ifndef MEMSCOPE_RUN_MONITORS_H
#define MEMSCOPE_RUN_MONITORS_H

#include "analyse/summary.h"
#include "collect/stacks/user_stacks.h"

#define MONITOR_OWNERS 256

struct monitors {
	uint64_t next_ns;
	uint64_t waits, unowned; /* threads seen waiting, each time; without a known owner */
	struct monitor_owner {
		pid_t pid;
		uint32_t tid;
		uint64_t waits;
		char comm[16];
	} owners[MONITOR_OWNERS];
	uint32_t n_owners;
};

void monitors_tick(struct monitors *m, struct user_stacks *st, uint64_t now);
void monitors_report(const struct monitors *m, struct run_summary *to);

#endif
