#include "base/rights.h"
#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROW(name, needed, use, without)                                                            \
	{                                                                                          \
#name, name, needed, use, without                                                  \
	}

const struct right rights[] = {
	ROW(CAP_BPF, true, "loads programs into the kernel", "nothing can be profiled"),
	ROW(CAP_PERFMON, true, "samples CPUs and reads stacks", "nothing can be profiled"),
	ROW(CAP_SYS_PTRACE, false, "reads maps and memory of other users' processes",
	    "processes of other users, and those with more capabilities, have no names"),
	ROW(CAP_DAC_READ_SEARCH, false, "reads the files that processes run",
	    "what only others may read has no names and no unwind tables"),
	ROW(CAP_SYSLOG, false, "reads addresses of kernel functions", "these have no names"),
	ROW(CAP_SYS_ADMIN, false, "asks the kernel what programs cost, and opens replaced files",
	    "cost is what memscope's own counters say; replaced files have no names"),
	ROW(CAP_SYS_RESOURCE, false, "keeps tables in kernels before 5.11",
	    "there the limit of locked memory holds"),
	{ 0 },
};

uint64_t rights_held(void)
{
	char text[8192];
	const char *row;

	if (small_file_read(AT_FDCWD, "/proc/thread-self/status", text, sizeof(text)) < 0)
		return 0;
	row = strstr(text, "\nCapEff:");
	return row ? strtoull(row + strlen("\nCapEff:"), NULL, 16) : 0;
}

bool rights_have(uint64_t held, int number)
{
	uint64_t admin = number == CAP_BPF || number == CAP_PERFMON ? 1ull << CAP_SYS_ADMIN : 0;

	return held & (1ull << number | admin);
}

uint32_t rights_missing(uint64_t held, bool needed, char *ret_names, size_t size)
{
	uint32_t n = 0;
	size_t len = 0;

	*ret_names = '\0';
	for (const struct right *r = rights; r->name; r++) {
		if (r->needed != needed || rights_have(held, r->number))
			continue;
		len += (size_t)snprintf(ret_names + len, size - len, "%s%s", n++ ? ", " : "",
					r->name);
		if (len >= size)
			len = size - 1;
	}
	return n;
}

bool rights_are_the_hosts(void)
{
	unsigned long long inside, outside, n;
	char text[4096];

	if (small_file_read(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) <= 0)
		return true;
	return sscanf(text, "%llu %llu %llu", &inside, &outside, &n) != 3 ||
	       (inside == 0 && outside == 0 && n == UINT32_MAX);
}

bool rights_enough(void)
{
	char names[256];

	return rights_are_the_hosts() && !rights_missing(rights_held(), true, names, sizeof(names));
}

int rights_set_held(uint64_t held)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		data[i].effective = (uint32_t)(held >> 32 * i) & data[i].permitted;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int rights_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	/* An older kernel has none that are kept over execve(). */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}
