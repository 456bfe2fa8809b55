/*
 * Windows: a run that writes its profiles every so many seconds and goes on.
 *
 * A window holds what the profiles gained since the one before (model/profile_mark.h), so windows
 * add up to the run: nothing falls between two, nothing is in both. Waits that are going on at a
 * boundary are cut there, 0.1 ms early where a thread was woken and does not run yet. Those that end in
 * its very moment (some tens of ms) are in one window each, as a whole. With --max-block waits are told
 * where they end.
 * What is live in the heap is told as of the window's end.
 *
 * Naming and writing is done by a child process over a copy of what was gathered, so that it never
 * holds up the emptying of the kernel's maps; a memscope that is killed loses the open window only.
 */
#ifndef MEMSCOPE_CMD_RUN_WINDOWS_H
#define MEMSCOPE_CMD_RUN_WINDOWS_H

#include "cmd/run.h"

/* After the gate has opened. Nothing without cfg->every_s. -ENOMEM. */
int run_windows_begin(struct run *r, struct err *e);
/* Closes the window if it is due. 0 or an error of the drain. */
int run_windows_tick(struct run *r, struct err *e);
/* Until the window is due, ms; -1 without windows. */
int run_windows_due_ms(const struct run *r);
/* While a boundary is made: a thread's open wait. false: none is. */
bool run_windows_thread(struct run *r, uint32_t tid, const struct ms_thread *thread);
/* The same: waits of a busy thread that are in no total yet. */
bool run_windows_rest(struct run *r, const struct ms_total_key *key, const struct ms_total *total);
/* A total of waits that is read. */
void run_windows_total(struct run *r, const struct ms_total_key *key, const struct ms_total *total);
/* The last window, with all names there, after run_end(); then waits for those still in the making. */
int run_windows_end(struct run *r, struct err *e);
void run_windows_free(struct run *r);

#endif
