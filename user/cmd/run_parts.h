/*
 * What the files of a run (run.c, run_*.c) know of each other. Everyone else includes run.h.
 */
#ifndef MEMSCOPE_CMD_RUN_PARTS_H
#define MEMSCOPE_CMD_RUN_PARTS_H

#include "base/hash.h"
#include "cmd/run.h"
#include "render/render.h"
#include "symbolize/symbolize.h"
#include "unwind/publish.h"

#define DRAIN_NS         1000000000ULL /* while the totals stay far from full */
#define DRAIN_FASTEST_NS 50000000ULL

/* What an epoll event is about; above TAG_PID, the end of process tag - TAG_PID. */
enum { TAG_SIGNAL, TAG_TIMER, TAG_SIDEBAND, TAG_EVENTS, TAG_TABLES, TAG_PID = 1000 };

/* A process that is watched. */
struct watched {
	pid_t pid;
	bool asked;
	bool leader_gone;  /* other threads live on                      */
	uint64_t ended_ns; /* when it ended; its last switches may follow */
	int pid_fd;
	pid_t ns_pid;      /* of a control group's member: in its own namespace; 0: not known */
	UT_hash_handle hh;
};

/* CLOCK_MONOTONIC. */
uint64_t run_now_ns(void);
int run_watch_fd(struct run *r, int fd, uint64_t tag);

/* --- run_targets.c --- */

/* NULL when `pid` is not watched. */
struct watched *run_target_find(struct run *r, pid_t pid);
/* Watches what was asked for, and starts the command. */
int run_add_targets(struct run *r, struct err *e);
/* The task iterator's callback; `ctx` is the run. */
void run_on_task(void *ctx, const struct ms_task *task);
/* A process that was asked for has ended; with the last of them the run does. */
void run_target_ended(struct run *r, pid_t pid);
/* Hands on what the kernel has recorded about processes, and what follows from it. */
void run_read_sideband(struct run *r);
/* Frees pids whose process has ended, some time after it did. */
void run_untarget_the_dead(struct run *r);

/* A member of a watched control group that is not known yet. */
void run_target_member(struct run *r, pid_t pid);
/* Those who left their control group are watched no more. */
void run_targets_left(struct run *r);

/* --- run_groups.c --- */

/* The members that there are, and all that come. */
int run_groups_begin(struct run *r, struct err *e);
/* A process is heard of: is it a member, and not known? Then run_groups_look() is due. */
bool run_groups_met(struct run *r, pid_t pid);
/* Takes up members, as the kernel names them now. Not while records are read. */
void run_groups_look(struct run *r);
/* A member was killed because memory ran out. */
void run_groups_oom(struct run *r, pid_t pid);
void run_groups_tick(struct run *r, uint64_t now_ns);

/* --- run_output.c --- */

/* Names every location that has no name yet. `ret_stats` may be NULL. */
int run_name(struct run *r, struct symbolize_stats *ret_stats, struct err *e);
/* What a profile of this kind says of itself, but for when and how long. */
struct profile_meta run_profile_meta(const struct run *r, const struct profile_row *row);
/* -ENODATA: there is nothing to show in this format. */
int run_write_profile(const struct run *r, const struct profile *p, const char *name, const struct format *f,
		      const char *path, struct err *e);

/* --- run_containers.c --- */

int run_containers_begin(struct run *r, struct err *e);
void run_containers_free(struct run *r);
/* From the ring, and from ingest; `ctx` is the run. */
void run_on_cgroup(void *ctx, const struct ms_cgroup_rec *rec);
void run_whose(void *ctx, const struct ms_proc *proc, uint64_t cgroup_id,
	       struct ingest_container *ret_container);

/* --- run_finish.c --- */

/* A stack to be walked here: waits for run_finish_pending(). */
void run_on_pending(void *ctx, const struct ms_pending_rec *rec, const uint8_t *bytes);
/* Walks those that wait, once the records about processes have been read; `all`: also those whose
 * tables are not made yet. */
void run_finish_pending(struct run *r, bool all);
/* Something is mapped over what process `pid` had there: its stacks of before `ns` are walked now. */
void run_finish_before(struct run *r, pid_t pid, uint64_t ns);
void run_free_pending(struct run *r);
/* With -v: how many, and what became of them. */
void run_finish_say(const struct run *r);

/* --- run_gaps.c --- */

/* Stacks that are not complete, from ingest: counted by the code that is to blame. */
void run_on_gap(void *ctx, const struct ms_total_key *key, enum ms_verdict verdict,
		const uint64_t *frames, uint32_t n, uint64_t count);
void run_free_gaps(struct run *r);

/* --- run_drain.c --- */

struct drain_fns run_drain_fns(struct run *r);
/* Totals and sites into the profiles. */
int run_take_totals(struct run *r, struct err *e);
/* Stack records, and those stacks that are to be walked here. */
int run_take_stacks(struct run *r, struct err *e);
/* All of it, and everything that is due with it; sets when it is next due. */
int run_drain(struct run *r, struct err *e);

/* --- run_alloc.c --- */

bool run_tracing_allocs(const struct run *r);
/* Looks what tracing would cost, and begins it where it may. */
int run_alloc_begin(struct run *r, struct err *e);
/* The gate has opened. */
int run_alloc_opened(struct run *r, struct err *e);
/* Stops tracing, or goes on in slices, when it has come to cost more than was promised. */
void run_alloc_govern(struct run *r);
/* Notes what could not be probed; before the probes are given back. */
void run_alloc_say_failed(struct run *r);

/* --- run_slices.c --- */

bool run_slicing_allocs(const struct run *r);
/* Every call is traced, always or in slices: probes follow processes and what they map. */
bool run_probing_allocs(const struct run *r);
/* What they may cost, and do cost so far; percent of one CPU. */
void run_slices_limit(struct run *r, double max_percent);
double run_slices_percent(struct run *r, uint64_t now_ns);
/* From now on in slices, with the probes that there are; they stand for all since `from_ns`. */
int run_slices_begin(struct run *r, uint64_t from_ns, struct err *e);
/* A total of a slice; around a drain: before the maps are exchanged, and when all has been read. */
int run_slices_total(struct run *r, const struct ms_total_key *key, const struct ms_total *total);
void run_slices_flip(struct run *r);
void run_slices_read(struct run *r);
void run_slices_stop(struct run *r);
/* What slices say, into the alloc profile; after ingest_finish(). */
int run_slices_finish(struct run *r, struct err *e);
void run_slices_free(struct run *r);

/* --- run_costs.c --- */

/* Programs are attached; ten times a second or oftener; before the gate closes. */
void run_costs_begin(struct run *r);
void run_costs_tick(struct run *r, uint64_t now_ns);
/* Divides --max-overhead among the sources, by what they cost so far. */
void run_costs_govern(struct run *r, uint64_t now_ns);
void run_costs_stop(struct run *r);
void run_costs_free(struct run *r);

/* --- run_bands.c --- */

/* From ingest; `ctx` is the run. */
void run_on_alloc(void *ctx, const struct ms_proc *proc, stack_id stack, int64_t blocks,
		  int64_t bytes, uint64_t born_ns);
/* A row of trend.csv is due: what each stack holds now. */
void run_bands_tick(struct run *r);
void run_bands_free(struct run *r);

/* --- run_sites.c --- */

int run_open_sites(struct run *r, struct err *e);
/* Takes all that is left of exact allocations; after ingest_finish(). */
int run_finish_sites(struct run *r, struct err *e);

/* --- run_mappings.c --- */

/* Every allocation is traced from now on, and mappings with them; no more. */
int run_mappings_begin(struct run *r, struct err *e);
void run_mappings_end(struct run *r);
void run_on_mapping(void *ctx, const struct ms_mapping_rec *rec);
/* What images that ended had mapped goes. */
void run_mappings_sweep(struct run *r);
/* Into the profile; after ingest_finish(). */
int run_mappings_finish(struct run *r, struct err *e);

/* --- run_sampled.c --- */

bool run_sampling_allocs(const struct run *r);
/* Before and after a command is started: memscope's library is in its environment. */
int run_sampled_preload(struct run *r, struct err *e);
void run_sampled_preloaded(struct run *r);
int run_sampled_begin(struct run *r, struct err *e);
/* Exact tracing was declined: listens to a sampler, where the process has one. */
int run_sampled_instead(struct run *r, struct err *e);
/* `pid` may map a sampler that is not listened to yet. */
void run_sampled_look(struct run *r, pid_t pid);
/* Keeps listening within --max-overhead. */
void run_sampled_govern(struct run *r, uint64_t now_ns);
void run_on_sample(void *ctx, const struct ms_sample_rec *rec);
/* Drops live samples of processes that ended. */
void run_sampled_sweep(struct run *r);
void run_sampled_stop(struct run *r);
/* What the samples say, into the profiles; after ingest_finish(). */
int run_sampled_finish(struct run *r, struct err *e);
void run_sampled_free(struct run *r);

/* --- run_inject.c --- */

/* With --inject: the library is in the processes asked for, and does nothing yet. */
int run_inject_begin(struct run *r, struct err *e);
/* Samples are listened to: let there be some. */
int run_inject_hook(struct run *r, struct err *e);
/* `pid` has mapped something, which is heeded at the next tick. */
void run_inject_look(struct run *r, pid_t pid);
void run_inject_tick(struct run *r);
void run_inject_end(struct run *r);
void run_inject_free(struct run *r);

/* --- run_waits.c --- */

/* Looks at all waits, or not at all those of threads that switch often, by r->cfg->waits. */
int run_waits_begin(struct run *r, struct err *e);
/* Keeps what looking at waits costs within --max-overhead. */
void run_waits_govern(struct run *r, uint64_t now_ns);
/* The arithmetic of that; NULL: all waits are looked at, whatever it costs. */
struct busy *run_waits_busy(struct run *r);
void run_on_moved(void *ctx, const struct ms_moved_rec *rec);
/*
 * What was moved from a stack is an estimate, and can be more than it had: then it has nothing, and the
 * others of its thread have less in proportion, so that what the thread waited in all stays as it was
 * (if that is less than nothing: nothing).
 * By how much is added to `ret_changes`, if it is not NULL. 0 or -ENOMEM.
 */
int run_waits_settle(struct profile *p, struct profile *ret_changes);
/* How sure the profile is; after ingest_finish(). 0 or -ENOMEM. */
int run_waits_finish(struct run *r);
/* Which it was, and how sure the `rows` of waits are. */
void run_waits_facts(struct run *r, const uint64_t *stats, struct run_summary *to, struct site_row *rows);
/* What the profile says of that. */
void run_waits_comment(const struct run_summary *s, char *buf, size_t size);
void run_waits_free(struct run *r);

/* --- run_growth.c --- */

/* The gate has opened; has closed. In between, now and then: what is kept of memory that has gone. */
void run_growth_begin(struct run *r);
void run_growth_end(struct run *r);
void run_growth_sweep(struct run *r);
void run_growth_free(struct run *r);

/* --- run_ledger.c --- */

/* The gate has opened: what the processes asked for hold already. */
void run_ledger_begin(struct run *r);
/* Somebody came into a watched control group, or a child of somebody watched was forked. */
void run_ledger_member(struct run *r, pid_t pid);
/* ledger.csv is begun; that of an earlier run in the same place goes. */
void run_ledger_open(struct run *r);
/* A row of trend.csv was written; one of ledger.csv where that is not too dear. `traced`: live bytes. */
void run_ledger_tick(struct run *r, int64_t traced);
/* Before the gate closes; `exact`: every allocation was traced up to now. */
void run_ledger_end(struct run *r, bool exact);
/* Blocks of the table, once it has closed; then what is in use is told apart. */
void run_ledger_block(struct run *r, const struct ms_block_key *key);
void run_ledger_finish(struct run *r);
void run_ledger_free(struct run *r);

/* --- run_unwind.c --- */

/* Before the session is opened: the tables of processes that were asked for are begun to be made.
 * *ret_bytes: room that tables are to have, 0: none are wanted. */
int run_unwind_prepare(struct run *r, uint64_t *ret_bytes, struct err *e);
int run_unwind_open(struct run *r, struct err *e);
void run_unwind_close(struct run *r);
/* Tables of what is watched, before the gate opens; waits for them. */
int run_unwind_begin(struct run *r, struct err *e);
/* A command is held: tables of what it has mapped so far. Call it after run_read_sideband(). */
void run_unwind_held(struct run *r);
/* The run ends: tables that stacks wait for are still made, for a while. */
void run_unwind_settle(struct run *r);
/* From the records: a process has other mappings, or another image; is new; has ended. */
void run_unwind_changed(struct run *r, pid_t pid);
void run_unwind_forked(struct run *r, pid_t pid);
void run_unwind_ended(struct run *r, pid_t pid);
/* Puts what has changed, once it is due; when that is, ms from now (-1: nothing has). */
void run_unwind_flush(struct run *r);
/* All records of before `ns` have been read; puts what is due. */
void run_unwind_read(struct run *r, uint64_t ns);
int run_unwind_due_ms(const struct run *r);
/* Takes tables that are done. */
void run_unwind_tables(struct run *r);
void run_unwind_tick(struct run *r);
/*
 * What walks on behalf of a process image start from, as it is mapped now, after a stack of it could
 * not be walked in place. Puts its spans and has its tables made, where that is not so; the records
 * about processes have been read. -EAGAIN: there is no room for its spans yet; -ESRCH: nothing is known of it. 0
 * does not say that all tables are there.
 */
int run_unwind_space(struct run *r, const struct ms_proc *proc, struct ms_space *ret_space);
/*
 * Such a walk ended with MS_NO_TABLE at `addr`. -EAGAIN: the table is being made, or waits for
 * room: walk again later; -ENOENT: there is none, or it will not come soon.
 */
int run_unwind_need(struct run *r, const struct ms_space *space, uint64_t addr);
/* The same without doing anything for it; false: nothing is known of this image. */
bool run_unwind_known(const struct run *r, const struct ms_proc *proc, struct ms_space *ret_space);
/* The memory that such walks read. */
const struct publish_mem *run_unwind_mem(const struct run *r);
/* With -v. */
void run_unwind_say(struct run *r);

#endif
