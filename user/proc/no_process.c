#include "proc/no_process.h"

#include <errno.h>
#include <signal.h>

int err_no_process(struct err *e, pid_t pid)
{
	if (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM))
		return err_set(
			e, -ESRCH,
			"process %d is hidden from this user: /proc is mounted with hidepid, "
			"which CAP_SYS_PTRACE sees through",
			(int)pid);
	return err_set(e, -ESRCH, "there is no process %d", (int)pid);
}
