/*
 * Samples of a program as the kernel gives them to perf: user registers and a copy of the stack, and
 * which files were mapped where at that time. Nothing of memscope's own collecting is used.
 */
#ifndef MEMSCOPE_TESTS_UNWIND_SAMPLES_H
#define MEMSCOPE_TESTS_UNWIND_SAMPLES_H

#include "base/err.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SAMPLES_N_REGS = 17 }; /* DWARF's numbers: rax, rdx, … r15, and the pc 16th */

struct sample_opts {
	uint64_t hz;           /* samples a second of each CPU's time    */
	uint32_t stack_bytes;  /* at most, of each                       */
	uint32_t max;          /* samples; then the program is stopped   */
	double seconds;        /* the same after this time               */
	bool at_switches;      /* where threads leave the CPU, instead   */
};

/* One record, in the order of time. */
struct sample_rec {
	uint64_t time_ns;
	const struct perf_event_header *h;
};

/* What a record of PERF_RECORD_SAMPLE holds. */
struct sample {
	pid_t pid, tid;
	uint64_t time_ns;
	const uint64_t *regs;  /* SAMPLES_N_REGS, by DWARF number; NULL: no 64-bit user registers */
	const uint8_t *stack;  /* from sp on      */
	uint64_t stack_len;    /* bytes copied    */
};

struct samples {
	struct sample_rec *recs;
	uint32_t n;
	uint32_t n_samples;
	uint64_t lost;         /* records the kernel had no room for: mappings may be among them */
};

/* Runs `argv`, stops it when there is enough, and returns what was seen of it and its children. */
int samples_take(const struct sample_opts *o, char *const argv[], struct samples *ret_samples,
		 struct err *e);
void samples_fini(struct samples *s);

/* `regs` is room for the result's registers. */
struct sample sample_read(const struct perf_event_header *h, uint64_t regs[SAMPLES_N_REGS]);

/* PERF_RECORD_MMAP2 and the others, as far as they are used. */
struct mmap2_rec {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint64_t id[3];
	uint32_t prot, flags;
	char file[];
};

struct task_rec { /* PERF_RECORD_FORK, PERF_RECORD_EXIT */
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
};

struct comm_rec {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

#endif
