#include "collect/session/kernel_machine.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *mark; /* in /proc/version */
	enum kernel_state state;
	const char *why;
	const char *todo;       /* in any case …                             */
	const char *want_types; /* … and where there is no type information */
} machines[] = {
	/* microsoft/WSL issue 9270: both kernels' names, and the first with CONFIG_DEBUG_INFO_BTF. */
	{ "microsoft-standard-WSL2", KERNEL_OK,
	  "WSL 2: a virtual machine; what runs in Windows is not seen", NULL,
	  "wsl --update (its kernels have type information from 5.15.74 on)" },
	{ "-Microsoft", KERNEL_MISSING, "WSL 1: no Linux kernel, and no BPF",
	  "wsl --set-version DISTRIBUTION 2", NULL },
	/* docker/for-mac issue 6800: since 4.30 with type information. */
	{ "linuxkit", KERNEL_OK,
	  "a virtual machine of Docker Desktop: its containers are seen, and nothing of macOS or Windows",
	  NULL, "update Docker Desktop to 4.30 or newer, whose kernel has type information" },
	/* gVisor's pkg/sentry/syscalls/linux: the time in its version is always the same, newer ones have the name. */
	{ "gvisor", KERNEL_MISSING, "gVisor: a kernel in user space, without BPF",
	  "run memscope on the host", NULL },
	{ "#1 SMP Sun Jan 10 15:06:54 PST 2016", KERNEL_MISSING,
	  "gVisor: a kernel in user space, without BPF", "run memscope on the host", NULL },
};

void kernel_machine_find(const char *version, bool types, struct kernel_finding *f)
{
	snprintf(f->why, sizeof(f->why), "a Linux kernel of which nothing else is known");
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
		const char *todo = types ? NULL : machines[i].want_types;

		if (!strstr(version, machines[i].mark))
			continue;
		f->state = machines[i].state;
		snprintf(f->why, sizeof(f->why), "%s", machines[i].why);
		if (machines[i].todo)
			todo = machines[i].todo;
		snprintf(f->todo, sizeof(f->todo), "%s", todo ? todo : "");
		return;
	}
}

void kernel_processor_find(long page_bytes, struct kernel_finding *f)
{
#if defined(__x86_64__)
	snprintf(f->why, sizeof(f->why), "x86-64, pages of %ld KiB", page_bytes / 1024);
#else
	f->state = KERNEL_LIMITED;
	snprintf(
		f->why, sizeof(f->why), "arm64, pages of %ld KiB: %s%s", page_bytes / 1024,
		page_bytes == 4096 ? "" : "heaps and what RSS consists of are not read; ",
		"no library is put into running processes, no twins, calls are not timed, no goroutines, no frames of Java, Node.js and Haskell; those of Perl, PHP and Ruby were not tried");
#endif
}
