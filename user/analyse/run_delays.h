/*
 * Run-queue delay by who ran instead: while threads of one process waited for a CPU.
 */
#ifndef MEMSCOPE_ANALYSE_RUN_DELAYS_H
#define MEMSCOPE_ANALYSE_RUN_DELAYS_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_DELAY_NAME 64

/* One process that waited, and one that ran on its CPU meanwhile. */
struct run_delay_row {
	uint32_t pid;      /* that waited */
	uint32_t by_pid;   /* that ran; 0: threads of the kernel of that name */
	const char *comm, *container;       /* of the former; container "": none */
	const char *by_comm, *by_container; /* of the latter                     */
	bool own;          /* they are one: its other threads ran */
	int64_t ns, count; /* how long in all, and how often it ran */
};

/* All of it, ns. */
struct run_delay_sums {
	int64_t total_ns;
	int64_t own_ns;       /* other threads of the same process ran   */
	int64_t idle_ns;      /* the CPU was idle                        */
	int64_t elsewhere_ns; /* in the queue of a CPU that it did not get */
	int64_t unknown_ns;   /* longer ago than is remembered           */
};

/* Longest first; by process where equal. Returns `n`, or `cap` where that is less: those are first. */
uint32_t run_delays_rank(struct run_delay_row *rows, uint32_t n, uint32_t cap);

#endif
