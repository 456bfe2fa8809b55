/*
 * `memscope doctor -p PID`: whether memscope can tell what this process does, and what is in the way.
 */
#ifndef MEMSCOPE_CMD_DOCTOR_PROCESS_H
#define MEMSCOPE_CMD_DOCTOR_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Samples the process for a second and a half and prints what was found; `json`: as the summary of
 * a run. Returns the exit status: EXIT_DONE when WHOLE_ENOUGH of its stacks are complete and its
 * allocator is known, else EXIT_PARTIAL.
 */
int doctor_process(pid_t pid, bool json);

#endif
