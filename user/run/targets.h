/*
 * Who is profiled: the processes asked for and their descendants, the members of control groups, the
 * command that is started. What the kernel records about processes comes in here and goes to the
 * components as events.
 */
#ifndef MEMSCOPE_RUN_TARGETS_H
#define MEMSCOPE_RUN_TARGETS_H

#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run;
struct targets;

enum process_event_kind {
	PROCESS_ADDED,     /* became a target; after start(): while the run goes on              */
	PROCESS_MEMBER,    /* … as a member of a control group, in the run                       */
	PROCESS_LISTED,    /* is there, says the kernel, whether a target or not                 */
	PROCESS_REMAPPING, /* is about to be known to map something over what it had there       */
	PROCESS_MAPPED,    /* has mapped a file for execution                                    */
	PROCESS_EXEC,      /* runs another program                                               */
	PROCESS_FORKED,    /* was forked; `child` where that made it a target                    */
	PROCESS_ENDED,     /* its last thread has ended                                          */
	PROCESS_LEFT,      /* left its control group                                             */
	PROCESS_HELD,      /* the command waits: what it has mapped so far is known              */
};

struct process_event {
	enum process_event_kind kind;
	pid_t pid, ppid;
	uint64_t ns;      /* CLOCK_MONOTONIC, when it happened           */
	bool target;      /* it is profiled (all are with -a)            */
	bool listed;      /* … and in the list of targets                */
	bool asked;       /* by its pid, or it is the command            */
	bool newborn;     /* began in the run                            */
	bool child;       /* of PROCESS_FORKED                           */
	bool leader_gone; /* of PROCESS_EXEC: another thread called it   */
	bool held;        /* the command, which waits meanwhile          */
};

/* A process that is profiled. */
struct target {
	pid_t pid;
	bool asked;
	bool leader_gone;  /* other threads live on                      */
	uint64_t ended_ns; /* when it ended; its last switches may follow */
	int pid_fd;
	pid_t ns_pid;      /* of a control group's member: in its own namespace; 0: not known */
	struct run *run;
	UT_hash_handle hh;
};

struct target_counts {
	uint32_t live;     /* asked for, not ended                     */
	uint32_t members;  /* of control groups, all that were met     */
	uint32_t children; /* that were forked in the run              */
};

int targets_open(struct run *r, struct err *e);
/* The kernel records what happens to processes from here on. Before /proc is read. */
int targets_listen(struct run *r, struct err *e);
void targets_free(struct run *r);
/* Starts a command that is to run for a while before it is profiled (--delay). */
int targets_start_early(struct run *r, struct err *e);
/* What was asked for, and what it has forked; the command, which waits. */
int targets_add(struct run *r, struct err *e);
/* Lists the tasks that there are; opens the gate (collect/session/bpf_session.h). */
int targets_attach(struct run *r, struct err *e);
/* Lets the command go. `until_ns`: when the run ends, 0: not known. */
int targets_go(struct run *r, uint64_t until_ns, struct err *e);
/* Hands on what the kernel has recorded; by the pipeline alone. */
void targets_read(struct run *r, uint64_t now_ns);
void targets_tick(struct run *r, uint64_t now_ns);
/* After each round of the loop: members of control groups that are new. */
void targets_look(struct run *r);
/* Frees pids whose process has ended, some time after it did. */
void targets_drained(struct run *r, uint64_t now_ns);
/* The command: has it ended, and how? */
void targets_end(struct run *r);

/* NULL when `pid` is not among them. */
struct target *target_of(const struct run *r, pid_t pid);
void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx);
struct target_counts targets_count(const struct run *r);
/* The command's process; 0: none was started. */
pid_t targets_command(const struct run *r);
/* The pid that a control group's member has in its own namespace; 0: not known, or the same. */
pid_t target_ns_pid(const struct run *r, pid_t pid);
/* The command line of the `i`th process asked for: as it is, or was when the run began. NULL: not
 * known. The caller frees it. */
char *targets_cmdline(const struct run *r, uint32_t i);
/* By its last exec, also of a process that has ended; NULL: not known (analyse/by_process.h). `procs`: struct proc_table. */
const char *run_process_name(void *procs, pid_t pid);
/* Records that the kernel dropped. */
uint64_t targets_lost(const struct run *r);

#endif
