/*
 * The processes of a host as the picker shows them: CPU use between two readings, resident memory and how it grows,
 * the container, the runtime. Kernel threads are left out. This half is pure: processes_read.c reads /proc.
 *
 *   processes_begin()                  a reading begins
 *     processes_stat()                 … a line of /proc/PID/stat
 *   processes_end()                    what was not seen is gone
 */
#ifndef MEMSCOPE_SCREEN_PROCESSES_H
#define MEMSCOPE_SCREEN_PROCESSES_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid, ppid;
	uint64_t start_ticks;   /* since boot: with the pid, who it is */
	char state;
	char comm[64];
	char *command;          /* the command line; NULL: not read yet, "" it has none */
	uint32_t threads;
	uint64_t cpu_ticks, cpu_ticks_before;
	double cpu_percent;     /* of one CPU; below 0: not known yet                  */
	uint64_t rss_bytes, first_rss_bytes;
	uint64_t first_ns;
	uint32_t container;     /* index of containers; UINT32_MAX: in none            */
	bool placed;            /* … and that is known                                 */
	const char *runtime;    /* NULL: not known yet; static */
	const char *heap;       /* which allocator's structures can be read; "" none; NULL: not known yet; static */
	bool asked;             /* … and is being found                                */
	uint32_t reading;       /* the last that had it                                */
	int fd;                 /* of its stat; -1                                     */
};

struct process_container {
	char *id, *name, *engine; /* engine "": only its control group was found */
	uint32_t processes, threads;
	double cpu_percent;
	uint64_t rss_bytes;
	double growth;          /* as process_growth() */
	bool grows;             /* that is known       */
};

struct processes {
	struct process *rows;   /* by pid */
	uint32_t n, cap;
	struct process_container *containers;
	uint32_t n_containers;
	uint32_t reading;
	uint64_t now_ns, before_ns;
	uint32_t ticks_per_s, page_bytes;
	double cpu_percent;     /* of all processes, of one CPU */
	uint64_t lost;          /* processes that could not be read for lack of memory or descriptors */
};

void processes_init(struct processes *p, uint32_t ticks_per_s, uint32_t page_bytes);
void processes_fini(struct processes *p);

void processes_begin(struct processes *p, uint64_t now_ns);
/* The process with this pid, NULL. */
struct process *processes_find(const struct processes *p, pid_t pid);
/*
 * One line of /proc/PID/stat (proc(5)). Of a kernel thread nothing is kept. Returns the process; NULL: it is none,
 * the line is damaged (*ret_bad), or there is no memory.
 */
struct process *processes_stat(struct processes *p, const char *line, bool *ret_bad);
void processes_end(struct processes *p);

/* Bytes a minute since it was first seen; false: that is less than 5 seconds ago. */
bool process_growth(const struct processes *p, const struct process *row, double *ret_bytes);

#endif
