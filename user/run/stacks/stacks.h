/*
 * Whole user stacks: the unwind tables of the targets where the kernel's walker finds them, stacks that
 * are walked here because it could not, and which code is to blame for those that are not complete.
 * What the files of this folder know of each other; to the rest of a run it is one component.
 */
#ifndef MEMSCOPE_RUN_STACKS_STACKS_H
#define MEMSCOPE_RUN_STACKS_STACKS_H

#include "base/clock.h"
#include "base/hash.h"
#include "run/component.h"
#include "run/pipeline.h"
#include "run/stacks/unwind_files.h"
#include "run/targets.h"
#include "unwind/publish.h"

struct run_unwind;
struct deferred_stack;
struct incomplete_stacks;

struct stacks {
	struct run *run;
	struct run_unwind *unwind; /* NULL: user stacks by frame pointer */
	struct deferred_stack *deferred;
	uint64_t deferred_bytes;
	uint64_t finished[N_SOURCES][N_STACK_VERDICTS];
	struct incomplete_stacks *incomplete;
	struct summary_stacks rows[N_SOURCES];
};

/* --- tables.c --- */

/* Before the session is opened: the tables of processes that were asked for are begun to be made.
 * *ret_bytes: room that tables are to have, 0: none are wanted. */
int tables_prepare(struct stacks *st, uint64_t *ret_bytes, struct err *e);
int tables_open(struct stacks *st, struct err *e);
void tables_close(struct stacks *st);
/* Tables of the targets, before the gate opens; waits for them. */
int tables_begin(struct stacks *st, struct err *e);
/* A command is held: tables of what it has mapped so far. */
void tables_held(struct stacks *st);
/* The run ends: tables that stacks wait for are still made, for a while. */
void tables_settle(struct stacks *st);
/* From the records: a process has other mappings, or another image; is new; has ended. */
void tables_changed(struct stacks *st, pid_t pid);
void tables_forked(struct stacks *st, pid_t pid);
void tables_ended(struct stacks *st, pid_t pid);
/* All records of before `ns` have been read; puts what is due. */
void tables_read(struct stacks *st, uint64_t ns);
void tables_tick(struct stacks *st);
/*
 * What walks on behalf of a process image start from, as it is mapped now, after a stack of it could
 * not be walked in place. Puts its spans and has its tables made, where that is not so; the records
 * about processes have been read. -EAGAIN: there is no room for its spans yet; -ESRCH: nothing is known of it. 0
 * does not say that all tables are there.
 */
int tables_space(struct stacks *st, const struct proc_id *id, struct ms_space *ret_space);
/*
 * Such a walk ended with STACK_NO_TABLE at `addr`. -EAGAIN: the table is being made, or waits for
 * room: walk again later; -ENOENT: there is none, or it will not come soon.
 */
int tables_need(struct stacks *st, const struct ms_space *space, uint64_t addr);
/* The same without doing anything for it; false: nothing is known of this image. */
bool tables_known(const struct stacks *st, const struct proc_id *id, struct ms_space *ret_space);
/* The memory that such walks read. */
const struct publish_mem *tables_mem(const struct stacks *st);
/* With -v. */
void tables_say(struct stacks *st);
/* Strings live as long as the run. */
void tables_facts(struct stacks *st, struct run_summary *to);

/* --- deferred.c --- */

/* A stack to be walked here: waits for deferred_walk(). */
enum drain_says on_deferred(void *ctx, const void *record, const void *bytes);
/* Walks those that wait, once the records about processes have been read; `all`: also those whose
 * tables are not made yet. */
void deferred_walk(struct stacks *st, bool all);
/* Something is mapped over what process `pid` had there: its stacks of before `ns` are walked now. */
void deferred_before(struct stacks *st, pid_t pid, uint64_t ns);
void deferred_free(struct stacks *st);
/* With -v: how many, and what became of them. */
void deferred_say(const struct stacks *st);

/* --- incomplete.c --- */

/* Stacks that are not complete, from ingest: counted by the code that is to blame. */
void on_incomplete(void *ctx, const struct proc_id *id, uint32_t as_gen, enum stack_verdict verdict,
		   const uint64_t *frames, uint32_t n, uint64_t count);
/* Where stacks came to be not complete, the worst first. */
void incomplete_facts(struct stacks *st, struct run_summary *to);
void incomplete_free(struct stacks *st);

#endif
