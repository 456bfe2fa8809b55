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

#define RECORD RIGHTS_RECORD
#define WRITE  RIGHTS_WRITE
#define FILES  RIGHTS_FILES

const struct right rights[] = {
	/* programs in the kernel; samples, and the stacks that they read */
	{ "CAP_BPF", CAP_BPF, RECORD, true, "nothing can be profiled" },
	{ "CAP_PERFMON", CAP_PERFMON, RECORD, true, "nothing can be profiled" },
	/* /proc/PID/mem, maps and root; a copy of a container's process, for -c and --root, too */
	{ "CAP_SYS_PTRACE", CAP_SYS_PTRACE, RECORD | WRITE | FILES, false,
	  "other users' processes have no names" },
	{ "CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, RECORD | WRITE | FILES, false,
	  "files that only others may read have none" },
	{ "CAP_SYSLOG", CAP_SYSLOG, RECORD | WRITE, false, "kernel functions have none" },
	/* BPF_ENABLE_STATS; another network namespace's peers */
	{ "CAP_SYS_ADMIN", CAP_SYS_ADMIN, RECORD, false, "costs are memscope's own counts" },
	{ "CAP_SYS_RESOURCE", CAP_SYS_RESOURCE, RECORD, false,
	  "before Linux 5.11 memlock limits tables" },
	/* Outputs where the user says, whoever the folder belongs to. */
	{ "CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE, RECORD | WRITE | FILES, false, NULL },
	{ "CAP_FOWNER", CAP_FOWNER, RECORD | WRITE | FILES, false, NULL },
	/* A socket of --listen-group, of a group that who runs memscope is not in. */
	{ "CAP_CHOWN", CAP_CHOWN, RECORD, false, NULL },
	/* A command that was started as another user ends with the run; and so do cells. */
	{ "CAP_KILL", CAP_KILL, RECORD, false, NULL },
	/* A maker of cells, should the first one be gone (base/cells.h). */
	{ "CAP_SETUID", CAP_SETUID, RECORD | WRITE | FILES, false, NULL },
	{ "CAP_SETGID", CAP_SETGID, RECORD | WRITE | FILES, false, NULL },
	/* To be there in time where a kernel's buffer is short, and buffers beyond the limit of locked memory. */
	{ "CAP_SYS_NICE", CAP_SYS_NICE, RECORD, false, NULL },
	{ "CAP_IPC_LOCK", CAP_IPC_LOCK, RECORD, false, NULL },
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
		if (r->needed != needed || !r->without || rights_have(held, r->number))
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

int rights_keep(uint64_t kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	/* Ambient ones go with what they are in. */
	for (int i = 0; i < 2; i++) {
		uint32_t stay = (uint32_t)(kept >> 32 * i);

		data[i].permitted &= stay;
		data[i].effective &= stay;
		data[i].inheritable &= stay;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int rights_enter(enum rights_phase phase)
{
	uint64_t kept = 0;

	for (const struct right *r = rights; r->name; r++)
		if (r->phases & phase)
			kept |= 1ull << r->number;
	return phase == RIGHTS_ALL ? 0 : rights_keep(kept);
}

int rights_drop(void)
{
	/* An older kernel has none that are kept over execve(). */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return rights_keep(0);
}
