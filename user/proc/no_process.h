/* The one sentence for a process that is not in /proc. */
#ifndef MEMSCOPE_PROC_NO_PROCESS_H
#define MEMSCOPE_PROC_NO_PROCESS_H

#include "base/err.h"

#include <sys/types.h>

/*
 * -ESRCH, and a sentence: there is none, or there is one that /proc hides from who we are (proc(5), hidepid), as the kernel says that a
 * signal could not be sent to it.
 */
int err_no_process(struct err *e, pid_t pid);

#endif
