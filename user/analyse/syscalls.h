/*
 * System calls: how many, how long, and how they failed, by process and call.
 */
#ifndef MEMSCOPE_ANALYSE_SYSCALLS_H
#define MEMSCOPE_ANALYSE_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

#define SYSCALL_HISTOGRAM                                                                          \
	32               /* part i: [2^i, 2^(i+1)) * 64 ns; the first and the last without an end */
#define SYSCALL_ERRNOS 4 /* of a row: the most frequent ones */

struct syscall_row {
	uint32_t pid; /* 0: of all processes */
	const char *comm, *container;
	const char *name;      /* "openat" */
	int64_t calls, errors; /* of calls that returned in the run */
	int64_t ns, max_ns;
	int64_t no_return; /* exit, exit_group, and calls within which their thread was ended */
	int64_t open;      /* at the end of the run */
	double variance;   /* of `calls`; 0: they were counted */
	uint32_t n_errnos;
	struct {
		uint32_t error;
		int64_t count;
	} errnos[SYSCALL_ERRNOS];
	int64_t parts[SYSCALL_HISTOGRAM];
};

struct syscall_sums {
	int64_t calls, errors, ns, no_return, open;
	int64_t begun_before;   /* and returned in the run: in no row     */
	int64_t compat;         /* of `calls`, those of 32-bit programs  */
	uint32_t one_in;        /* at most so many calls for one that was counted; 1: all were */
	uint32_t stacks_one_in; /* the same of short calls' stacks     */
	double variance;
};

/* Most time first; then most calls, then by name and process. Returns `n`, or `cap` where that is less: those are first. */
uint32_t syscalls_rank(struct syscall_row *rows, uint32_t n, uint32_t cap);

/* `from` into `to`: errors too, of which the rarest may find no room. */
void syscall_row_add(struct syscall_row *to, const struct syscall_row *from);
void syscall_error_add(struct syscall_row *to, uint32_t error, int64_t count);

/* The time within which the part `q` (0 to 1) of calls returned, ns: the upper end of its part of the histogram, and at
 * most `max_ns`. 0: none did. */
int64_t syscall_quantile(const struct syscall_row *row, double q);
/* The same of any durations that are counted in such parts. */
int64_t histogram_quantile(const int64_t parts[SYSCALL_HISTOGRAM], int64_t max_ns, double q);

/* Half the width of the interval in which `calls` is, 95 times in 100. */
int64_t syscall_calls_error(double variance);

#endif
