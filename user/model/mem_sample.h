/*
 * The memory and CPU use of one process, or of several summed, at one moment. Read by
 * proc/proc_mem.h, written as a row of trend.csv by render/tables/trend_csv.h.
 *
 * Sizes are in kB of 1,024 bytes, as the kernel prints them. MEM_UNKNOWN marks what this kernel
 * does not say, what we may not read, and what cost too much to read at this moment; it is never
 * shown as 0.
 */
#ifndef MEMSCOPE_MODEL_MEM_SAMPLE_H
#define MEMSCOPE_MODEL_MEM_SAMPLE_H

#include <stdint.h>

#define MEM_UNKNOWN ((int64_t)-1)

struct mem_sample {
	int64_t time_ns;          /* wall clock, Unix time                                       */
	int64_t interval_ns;      /* since the sample before; since the start for the first      */
	int64_t interval_cpu_ns;  /* user and system time spent in the interval                  */
	uint32_t processes;       /* how many are summed                                         */
	int64_t rss_kb;           /* as ps shows it (VmRSS)                                      */
	int64_t vsz_kb;
	int64_t anonymous_kb;     /* RssAnon                                                     */
	int64_t file_kb;          /* RssFile and RssShmem: rss = anonymous + file                */
	int64_t swap_kb;
	int64_t pss_kb;           /* shared pages divided by how many share them                 */
	int64_t shared_kb;        /* mapped by others too, clean and dirty                       */
	int64_t private_kb;       /* mapped by it alone, clean and dirty                         */
	int64_t own_kb;           /* anonymous memory and swap, shared pages counted once: what a
				   * leak adds to. Of several processes by PSS, so known when that is */
	int64_t threads;
	int64_t minor_faults;     /* since the processes started, waited-for children left out   */
	int64_t major_faults;
	int64_t cpu_ns;           /* user and system time since the processes started            */
};

/*
 * What control groups are charged, by their own account, at the same moment: all that their processes
 * brought into memory, also files that nobody maps, and what the kernel keeps for them. A page is charged
 * to the group that touched it first, so this is neither more nor less than the sums above by any rule.
 */
struct mem_group {
	int64_t processes;     /* in them now                                                    */
	int64_t charged_kb;    /* all of it                                                      */
	int64_t anonymous_kb;
	int64_t file_kb;       /* page cache, tmpfs and shared memory too                        */
	int64_t kernel_kb;
	int64_t limit_kb;      /* MEM_UNKNOWN: none, or several groups                           */
	int64_t cpu_ns;        /* user and system time so far, of processes that ended too       */
	int64_t fixed_kb;      /* of the charged what cannot be dropped: not page cache and inodes */
};

#endif
