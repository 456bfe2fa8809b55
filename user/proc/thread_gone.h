/* Whether a thread has ended, by /proc. */
#ifndef MEMSCOPE_PROC_THREAD_GONE_H
#define MEMSCOPE_PROC_THREAD_GONE_H

#include <stdbool.h>
#include <sys/types.h>

/* Numbers as the host's /proc has them. A number that is another thread's by now is not gone. */
bool thread_is_gone(pid_t pid, pid_t tid);

#endif
