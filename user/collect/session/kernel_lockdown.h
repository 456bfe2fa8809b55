/* Is the kernel locked down (kernel_lockdown(7))? In confidentiality no program of the kernel reads memory, and no process gets perf events. */
#ifndef MEMSCOPE_COLLECT_SESSION_KERNEL_LOCKDOWN_H
#define MEMSCOPE_COLLECT_SESSION_KERNEL_LOCKDOWN_H

enum kernel_lockdown { LOCKDOWN_NONE, LOCKDOWN_INTEGRITY, LOCKDOWN_CONFIDENTIALITY };

/* By securityfs; where that is not mounted, by what the kernel was started with. */
enum kernel_lockdown kernel_lockdown(void);

#endif
