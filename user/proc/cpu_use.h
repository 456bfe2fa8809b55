/*
 * What the CPUs of the machine did, by /proc/stat: one line a CPU, "cpu3 user nice system idle iowait irq softirq steal
 * …", in ticks since the start. The time of guests is in user and nice. (proc(5).)
 */
#ifndef MEMSCOPE_PROC_CPU_USE_H
#define MEMSCOPE_PROC_CPU_USE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* A sum over CPUs. Waiting for disks is idle; what the hypervisor took is busy. */
struct cpu_use {
	uint32_t n;
	int64_t busy_ns, idle_ns;
};

/* Of the text of a /proc/stat, the CPUs in `of`. False: it has none of them. */
bool cpu_use_parse(const char *text, const cpu_set_t *of, struct cpu_use *ret_use);
bool cpu_use_read(const cpu_set_t *of, struct cpu_use *ret_use);

/* Those that are online, "0-3,8-11" (cpu-online in the kernel's sysfs). False: it is not known. */
bool cpu_list_parse(const char *text, cpu_set_t *ret);
bool cpus_online(cpu_set_t *ret);

#endif
