/*
 * Why perf events are refused, and what to do about it. Mainline kernels let whoever has CAP_PERFMON open them, at every
 * kernel.perf_event_paranoid; those of Debian ask for CAP_SYS_ADMIN from 3 on, their default.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_KERNEL_PERF_H
#define MEMSCOPE_COLLECT_SESSION_KERNEL_PERF_H

/* kernel.perf_event_paranoid; -2: this kernel has none. */
long kernel_perf_level(void);
/* "perf events are not permitted: …", for who got EACCES or EPERM. A constant. */
const char *kernel_perf_refused(void);
/* The second half of that, for doctor: what to do. */
const char *kernel_perf_todo(void);

#endif
