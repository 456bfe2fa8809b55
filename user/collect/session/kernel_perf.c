#include "collect/session/kernel_perf.h"
#include "base/rights.h"
#include "base/small_file.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <unistd.h>

#define REFUSED "perf events are not permitted: "
#define LOWER   "run as root, or set kernel.perf_event_paranoid lower"
#define ADMIN                                                                                      \
	"this kernel asks for CAP_SYS_ADMIN where kernel.perf_event_paranoid is 3 or more: run as root, or set it to 2"
#define FORBIDS                                                                                    \
	"a container or security module forbids perf_event_open(2): run memscope on the host"

long kernel_perf_level(void)
{
	char text[32];

	return small_file_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", text,
			       sizeof(text)) > 0
		       ? strtol(text, NULL, 0)
		       : -2;
}

/* CAP_PERFMON alone would do on others. */
static bool wants_admin(void)
{
	uint64_t held = rights_held();

	return kernel_perf_level() >= 3 && rights_have(held, CAP_PERFMON) &&
	       !rights_have(held, CAP_SYS_ADMIN);
}

const char *kernel_perf_refused(void)
{
	return wants_admin() ? REFUSED ADMIN : REFUSED LOWER;
}

const char *kernel_perf_todo(void)
{
	return wants_admin() ? ADMIN : geteuid() ? "run it as root" : FORBIDS;
}
