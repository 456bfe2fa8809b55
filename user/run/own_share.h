/*
 * How a service's limit (--max-overhead of serve) is divided: the one place that says which part of it work may take that can wait,
 * or be left out. What costs by the rate of the host's events is kept to the limit by run/serve/own_cpu.c.
 */
#ifndef MEMSCOPE_RUN_OWN_SHARE_H
#define MEMSCOPE_RUN_OWN_SHARE_H

#include "run/run.h"

enum own_share {
	SHARE_LINES,  /* windows: beyond it they read no debug info          */
	SHARE_TABLES, /* unwind tables: beyond it those that walks need wait */
	N_OWN_SHARES
};

/* CPU time that such work may have taken since the run began; 0: none of it is bounded, as this is no service. */
uint64_t own_share_ns(const struct run *r, enum own_share which);

/*
 * What is left out, one after the other, when the process and its children pass the limit by themselves: run.serving.savings of
 * them are.
 */
enum own_saving {
	SAVE_RECORDS, /* records about processes are read once a second              */
	SAVE_HEAPS,   /* heaps are walked a tenth as often                           */
	SAVE_LINES,   /* windows read no debug info: functions are named by symbols  */
	SAVE_TABLES,  /* no unwind table is made: stacks end at code that has none   */
	SAVE_WINDOWS, /* windows are twice as long: half as many are named and written */
	SAVE_WINDOWS_AGAIN, /* … four times as long */
	N_OWN_SAVINGS
};
extern const char *const own_saving_names[N_OWN_SAVINGS];

bool own_saves(const struct run *r, enum own_saving what);

#define OWN_WINDOW_LONGEST 4
/* The next window is so many times as long as was asked for, up to OWN_WINDOW_LONGEST. */
uint32_t own_window_factor(const struct run *r);

#endif
