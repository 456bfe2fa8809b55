/*
 * Who had the time: a profile's values by process. Of a whole host there is no other first question.
 */
#ifndef MEMSCOPE_ANALYSE_BY_PROCESS_H
#define MEMSCOPE_ANALYSE_BY_PROCESS_H

#include "model/profile.h"

#include <sys/types.h>

struct process_row {
	pid_t pid;
	const char *comm;    /* as `names` has it, else one that it had in the profiles; borrowed from there */
	int64_t samples;     /* on a CPU                                                 */
	int64_t cpu_ns;      /* what those stand for                                     */
	int64_t blocked_ns, runnable_ns;  /* of all its threads                          */
	const char *container; /* NULL or "": in none; borrowed from the dict            */
	pid_t ns_pid;        /* as its own pid namespace knows it; 0: the same, or unknown */
};

/*
 * What a process is called: by its last exec, since a shell that starts a program by exec was that program. A profile alone
 * cannot say which of a process's names came last. NULL: that of the samples.
 */
struct process_names {
	const char *(*name_of)(void *ctx, pid_t pid); /* NULL: not known */
	void *ctx;
};

/*
 * At most `cap` rows: most CPU time first, then most time waiting for a CPU, then most blocked.
 * Either profile may be NULL. A pid that was used twice is one row. `*ret_seen` is how many
 * processes there are. Returns the number of rows, or -ENOMEM.
 */
int by_process(const struct profile *oncpu, const struct profile *offcpu, const struct process_names *names,
	       struct process_row *out, uint32_t cap, uint32_t *ret_seen);

/* The CPU time of all processes of one command: the compiler of a build is a hundred of them. */
struct command_row {
	const char *comm; /* borrowed from the dict */
	int64_t cpu_ns;
	uint32_t processes;
};

/* At most `cap` rows, most CPU time first, then by name. Returns the number of rows, or -ENOMEM. */
int by_command(const struct profile *oncpu, const struct process_names *names, struct command_row *out,
	       uint32_t cap);

#endif
