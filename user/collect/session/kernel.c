#include "collect/session/kernel.h"

#include "base/cell.h"
#include "base/cleanup.h"
#include "base/rights.h"
#include "base/small_file.h"
#include "collect/probes/uprobes.h"
#include "collect/session/kernel_lockdown.h"
#include "collect/session/kernel_machine.h"
#include "collect/session/kernel_perf.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The number of the initial PID namespace: PROC_PID_INIT_INO of the kernel. */
#define INIT_PID_NAMESPACE 0xEFFFFFFCU

/* --- findings --- */

static void found(struct kernel_finding *f, enum kernel_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void found(struct kernel_finding *f, enum kernel_state state, const char *fmt, ...)
{
	va_list ap;

	f->state = state;
	va_start(ap, fmt);
	vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
}

static void todo(struct kernel_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void todo(struct kernel_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->todo, sizeof(f->todo), fmt, ap);
	va_end(ap);
}

/* --- small questions --- */

/* A number in a file, `fallback` when there is none. */
static long read_number(const char *path, long fallback)
{
	char text[64];

	return small_file_read(AT_FDCWD, path, text, sizeof(text)) > 0 ? strtol(text, NULL, 0)
								       : fallback;
}

static bool has_cap(int number)
{
	return rights_have(rights_held(), number);
}

static bool may_bpf(void)
{
	return has_cap(CAP_BPF) && has_cap(CAP_PERFMON);
}

/* True when the row can be asked; else it is KERNEL_UNKNOWN. */
static bool may_ask(struct kernel_finding *f)
{
	if (may_bpf())
		return true;
	found(f, KERNEL_UNKNOWN, "cannot be checked without root");
	return false;
}

static int open_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.sample_period = 1000000,
		.disabled = 1,
	};
	char online[64];
	int cpu = 0;

	/* CPU 0 may be offline: ask on the first that is not. */
	if (small_file_read(AT_FDCWD, "/sys/devices/system/cpu/online", online, sizeof(online)) > 0)
		cpu = atoi(online);
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Whether the kernel's type information has a type. */
static bool has_type(const char *name, uint32_t kind)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool there = btf && btf__find_by_name_kind(btf, name, kind) > 0;

	btf__free(btf);
	return there;
}

/* --- one probe per row --- */

/* What is lost for want of each, in the order in which they are named. */
static void todo_of_rights(struct kernel_finding *f, uint64_t held)
{
	size_t len = 0;

	for (const struct right *r = rights; r->name && len < sizeof(f->todo); r++)
		if (!r->needed && r->without && !rights_have(held, r->number))
			len += (size_t)snprintf(f->todo + len, sizeof(f->todo) - len, "%s%s",
						len ? "; " : "", r->without);
}

static void probe_rights(struct kernel_finding *f)
{
	char names[192];
	uint64_t held = rights_held();

	if (!rights_are_the_hosts()) {
		found(f, KERNEL_MISSING,
		      "a user namespace: its root has no rights for programs in the kernel");
		return todo(f, "run memscope outside of it");
	}
	if (rights_missing(held, true, names, sizeof(names))) {
		found(f, KERNEL_MISSING, geteuid() && !held ? "not root" : "without %s", names);
		return todo(
			f,
			geteuid()
				? "run it with sudo, or with the capabilities that memscope help kernels lists"
				: "run memscope on the host, or give the container these capabilities");
	}
	if (rights_missing(held, false, names, sizeof(names))) {
		found(f, KERNEL_LIMITED, "without %s", names);
		return todo_of_rights(f, held);
	}
	found(f, KERNEL_OK, "all that it needs");
}

static void probe_machine(struct kernel_finding *f)
{
	char text[1024];

	if (small_file_read(AT_FDCWD, "/proc/version", text, sizeof(text)) <= 0)
		return found(f, KERNEL_UNKNOWN, "/proc/version cannot be read");
	kernel_machine_find(text, access("/sys/kernel/btf/vmlinux", R_OK) == 0, f);
}

static void probe_processor(struct kernel_finding *f)
{
	kernel_processor_find(sysconf(_SC_PAGESIZE), f);
}

static void probe_lockdown(struct kernel_finding *f)
{
	enum kernel_lockdown lockdown = kernel_lockdown();

	if (lockdown != LOCKDOWN_CONFIDENTIALITY)
		return found(f, KERNEL_OK, "%s",
			     lockdown == LOCKDOWN_INTEGRITY ? "integrity" : "not in use");
	found(f, KERNEL_MISSING,
	      "the kernel is locked down (confidentiality): programs may not read memory");
	todo(f, "boot with lockdown=integrity");
}

static void probe_btf(struct kernel_finding *f)
{
	struct stat st;

	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0 &&
	    stat("/sys/kernel/btf/vmlinux", &st) == 0)
		return found(f, KERNEL_OK, "%.1f MiB of type information",
			     (double)st.st_size / 1048576);
	found(f, KERNEL_MISSING, "/sys/kernel/btf/vmlinux: %s", strerror(errno));
	todo(f, "use a kernel built with CONFIG_DEBUG_INFO_BTF (Debian's are)");
}

static void probe_bpf(struct kernel_finding *f)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd;

	if (!may_ask(f))
		return;
	fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "doctor", "GPL", insns, 2, NULL);
	if (fd >= 0) {
		close(fd);
		return found(f, KERNEL_OK, "a program was loaded");
	}
	found(f, KERNEL_MISSING, "loading a program failed: %s", strerror(errno));
	todo(f, errno == EPERM
			? "a container or security module forbids bpf(2): run memscope on the host"
			: "use a kernel built with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS");
}

static void probe_memory_limit(struct kernel_finding *f)
{
	struct rlimit limit = { 0 };
	int fd;

	if (!may_ask(f))
		return;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	/* 16 MiB: since 5.11 maps are charged to the cgroup, before to this limit. */
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "doctor", 4, 4096, 4096, NULL);
	if (fd >= 0) {
		close(fd);
		return found(f, KERNEL_OK, "a map of 16 MiB was made");
	}
	found(f, KERNEL_MISSING, "a map of 16 MiB was refused (%s; memlock limit %llu KiB)",
	      strerror(errno), (unsigned long long)limit.rlim_max / 1024);
	todo(f, "raise the limit (ulimit -l unlimited), or the memory limit of the cgroup");
}

static void probe_ring_buffer(struct kernel_finding *f)
{
	if (!may_ask(f))
		return;
	if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1)
		return found(f, KERNEL_OK, "there");
	found(f, KERNEL_MISSING, "this kernel has none");
	todo(f, "use Linux 5.10 or newer");
}

static void probe_map_of_maps(struct kernel_finding *f)
{
	if (!may_ask(f))
		return;
	if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_ARRAY_OF_MAPS, NULL) == 1)
		return found(f, KERNEL_OK, "there");
	found(f, KERNEL_MISSING, "this kernel has none");
	todo(f, "use Linux 5.10 or newer");
}

static void probe_perf_events(struct kernel_finding *f)
{
	long paranoid = kernel_perf_level();
	_cleanup_(closep) int fd = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);

	if (fd >= 0)
		return found(f, KERNEL_OK, "permitted (perf_event_paranoid is %ld)", paranoid);
	if (errno != EACCES && errno != EPERM) {
		found(f, KERNEL_MISSING, "perf_event_open: %s", strerror(errno));
		return todo(f, "use a kernel built with CONFIG_PERF_EVENTS");
	}
	found(f, KERNEL_MISSING, "not permitted (perf_event_paranoid is %ld)", paranoid);
	todo(f, "%s", kernel_perf_todo());
}

static void probe_cycles(struct kernel_finding *f)
{
	_cleanup_(closep) int fd = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);

	if (fd >= 0)
		return found(f, KERNEL_OK, "hardware cycles");
	if (errno == EACCES || errno == EPERM)
		return found(f, KERNEL_UNKNOWN, "cannot be checked without root");
	found(f, KERNEL_LIMITED, "no hardware counter here (%s): the cpu-clock timer is used",
	      strerror(errno));
	todo(f,
	     "nothing to do: shares are as good, but what runs with interrupts off is charged to where they are enabled again");
}

static void probe_sample_rate(struct kernel_finding *f)
{
	long rate = read_number("/proc/sys/kernel/perf_event_max_sample_rate", 0);

	if (rate >= 1000)
		return found(f, KERNEL_OK, "up to %ld Hz", rate);
	if (rate <= 0)
		return found(f, KERNEL_LIMITED, "the limit cannot be read");
	found(f, rate >= 99 ? KERNEL_LIMITED : KERNEL_MISSING, "the kernel allows %ld Hz at most",
	      rate);
	todo(f, "sysctl kernel.perf_event_max_sample_rate=100000");
}

static void probe_kernel_depth(struct kernel_finding *f)
{
	long depth = read_number("/proc/sys/kernel/perf_event_max_stack", 127);

	if (depth >= 127)
		return found(f, KERNEL_OK, "%ld frames", depth);
	found(f, KERNEL_LIMITED, "stacks end after %ld frames", depth);
	todo(f, "sysctl kernel.perf_event_max_stack=127");
}

static void probe_btf_tracing(struct kernel_finding *f)
{
	/* What libbpf's probe of the program type looks for in the log has changed with the kernels
	 * (it says no on 6.18); the type of the tracepoint itself is what loading needs. */
	if (has_type("btf_trace_sched_switch", BTF_KIND_TYPEDEF))
		return found(f, KERNEL_OK, "there");
	found(f, KERNEL_LIMITED, "not there: raw tracepoints are used");
}

static void probe_raw_tracepoint(struct kernel_finding *f)
{
	if (!may_ask(f))
		return;
	if (libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL) == 1)
		return found(f, KERNEL_OK, "there");
	found(f, KERNEL_MISSING, "this kernel has none");
	todo(f, "use Linux 5.10 or newer");
}

static void probe_rss_stat(struct kernel_finding *f)
{
	if (!has_type("btf_trace_rss_stat", BTF_KIND_TYPEDEF)) {
		found(f, KERNEL_MISSING, "this kernel has no tracepoint kmem:rss_stat");
		return todo(f, "use a kernel with CONFIG_TRACEPOINTS, Linux 5.10 or newer");
	}
	found(f, KERNEL_OK, "there");
}

static void probe_task_iterator(struct kernel_finding *f)
{
	if (has_type("bpf_iter__task", BTF_KIND_STRUCT))
		return found(f, KERNEL_OK, "there");
	found(f, KERNEL_MISSING, "this kernel has none");
	todo(f, "use Linux 5.10 or newer, with BTF");
}

static void probe_uprobes(struct kernel_finding *f)
{
	long type = read_number("/sys/bus/event_source/devices/uprobe/type", -1);

	if (type >= 0)
		return found(f, KERNEL_OK, "perf event type %ld", type);
	found(f, KERNEL_MISSING, "no /sys/bus/event_source/devices/uprobe");
	todo(f, "use a kernel built with CONFIG_UPROBE_EVENTS; in a container, mount /sys");
}

/* sample_probes.c: what such a nop becomes is not in a child. */
static void probe_usdt(struct kernel_finding *f)
{
	if (uprobes_nop5())
		return found(
			f, KERNEL_LIMITED,
			"this kernel ends forked children of a process in which a nop of five bytes is "
			"probed: samplers of allocations with such sites are not used");
	found(f, KERNEL_OK, "probed like functions");
}

static void probe_kernel_names(struct kernel_finding *f)
{
	_cleanup_(fclosep) FILE *list = fopen("/proc/kallsyms", "re");
	long restricted = read_number("/proc/sys/kernel/kptr_restrict", -1);
	unsigned long long addr = 0;

	if (!list) {
		found(f, KERNEL_LIMITED, "/proc/kallsyms: %s", strerror(errno));
		return todo(
			f,
			"kernel frames show as addresses; use a kernel built with CONFIG_KALLSYMS");
	}
	/* The first symbol of x86 is per-CPU and really at 0: ask until one is not. */
	for (int i = 0; i < 20000 && addr == 0; i++)
		if (fscanf(list, "%llx %*[^\n]", &addr) != 1)
			break;
	if (addr)
		return found(
			f, KERNEL_OK,
			"kernel functions have names: /proc/kallsyms shows their addresses (kptr_restrict is %ld)",
			restricted);
	found(f, KERNEL_LIMITED,
	      "kernel functions have no names: /proc/kallsyms hides their addresses (kptr_restrict is %ld)",
	      restricted);
	todo(f, geteuid() ? "run it as root" : "sysctl kernel.kptr_restrict=1");
}

static void probe_other_processes(struct kernel_finding *f)
{
	char text[64];
	int r = small_file_read(AT_FDCWD, "/proc/1/maps", text, sizeof(text));

	if (r > 0)
		return found(f, KERNEL_OK, "/proc shows other users' processes");
	if (r == -ENOENT) {
		found(f, KERNEL_MISSING, "/proc hides other processes, or is not mounted");
		return todo(f, "mount /proc without hidepid, or run as root");
	}
	/* With CAP_SYS_PTRACE that leaves those with capabilities that we lack. */
	if ((r == -EACCES || r == -EPERM) && has_cap(CAP_SYS_PTRACE))
		return found(f, KERNEL_OK,
			     "all but those with more capabilities than ours (pid 1 is one)");
	if (r == 0 || r == -EACCES || r == -EPERM) {
		found(f, KERNEL_LIMITED, "only this user's processes can be read");
		return todo(f, "run it as root");
	}
	found(f, KERNEL_LIMITED, "/proc/1/maps: %s", strerror(-r));
}

static void probe_pid_namespace(struct kernel_finding *f)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		return found(f, KERNEL_UNKNOWN, "/proc/self/ns/pid: %s", strerror(errno));
	if (st.st_ino == INIT_PID_NAMESPACE)
		return found(f, KERNEL_OK, "the host's");
	found(f, KERNEL_MISSING, "this is a container: its pids are not those the kernel reports");
	todo(f,
	     "run memscope on the host, or start the container with the host's pids (--pid=host)");
}

static void probe_deleted_files(struct kernel_finding *f)
{
	char line[512], path[64];
	_cleanup_(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_(closep) int fd = -1;
	unsigned long long start = 0, end = 0;

	while (maps && fgets(line, sizeof(line), maps)) /* the first mapping of a file */
		if (strchr(line, '/') && sscanf(line, "%llx-%llx", &start, &end) == 2)
			break;
	if (!end)
		return found(f, KERNEL_UNKNOWN, "/proc/self/maps cannot be read");
	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx", start, end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return found(f, KERNEL_OK, "map_files can be opened");
	if (errno == ENOENT)
		found(f, KERNEL_LIMITED,
		      "no /proc/PID/map_files: files replaced while they run have no names");
	else
		found(f, KERNEL_LIMITED,
		      "map_files: %s: files replaced while they run have no names",
		      strerror(errno));
	todo(f, geteuid() ? "run it as root" : "give it CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
}

static void probe_cells(struct kernel_finding *f)
{
	uint32_t walls = cell_walls(), all = CELL_USER | CELL_FILES | CELL_CALLS;

	found(f, walls == all ? KERNEL_OK : KERNEL_LIMITED,
	      "others' files are read by processes with limits, no rights%s%s%s",
	      walls & CELL_USER ? ", users of their own" : "",
	      walls & CELL_FILES ? ", no files (Landlock)" : "",
	      walls & CELL_CALLS ? ", few system calls (seccomp)" : "");
	if (walls != all)
		todo(f, "%s",
		     walls & CELL_USER
			     ? "use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK and CONFIG_SECCOMP_FILTER"
			     : "nothing to do: they are this user, without rights");
}

static void probe_open_files(struct kernel_finding *f)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= 4096)
		return found(f, KERNEL_OK, "up to %llu", (unsigned long long)limit.rlim_max);
	found(f, KERNEL_LIMITED, "%llu at most: too few for allocation probes in many processes",
	      (unsigned long long)limit.rlim_max);
	todo(f, "ulimit -n 65536");
}

static void probe_cpus(struct kernel_finding *f)
{
	char online[128] = "?", possible[128] = "?";

	small_file_read(AT_FDCWD, "/sys/devices/system/cpu/online", online, sizeof(online));
	small_file_read(AT_FDCWD, "/sys/devices/system/cpu/possible", possible, sizeof(possible));
	found(f, KERNEL_OK, "%s online (possible: %s)", online, possible);
}

static void probe_cgroups(struct kernel_finding *f)
{
	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0)
		return found(f, KERNEL_OK, "version 2");
	if (access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0)
		return found(f, KERNEL_OK, "versions 1 and 2 (hybrid)");
	if (access("/sys/fs/cgroup", F_OK) == 0)
		return found(f, KERNEL_OK, "version 1");
	found(f, KERNEL_OK, "not mounted");
}

/* --- the table --- */

#define ALL_SOURCES (KERNEL_BPF_SOURCES | KERNEL_NAMES | KERNEL_TREND)

const struct kernel_check kernel_checks[] = {
	{ "privileges", "loads BPF programs, reads other processes", KERNEL_BPF_SOURCES,
	  probe_rights },
	{ "pid-namespace", "identifies processes by the pids the kernel reports",
	  KERNEL_BPF_SOURCES, probe_pid_namespace },
	{ "machine", "what is known of its kind", KERNEL_BPF_SOURCES, probe_machine },
	{ "processor", "walks stacks, reads code and runtimes", 0, probe_processor },
	{ "lockdown", "BPF programs read stacks", KERNEL_BPF_SOURCES, probe_lockdown },
	{ "btf", "fits its programs to this kernel's types", KERNEL_BPF_SOURCES, probe_btf },
	{ "bpf", "runs programs in the kernel", KERNEL_BPF_SOURCES, probe_bpf },
	{ "map-memory", "keeps totals in the kernel", KERNEL_BPF_SOURCES, probe_memory_limit },
	{ "ring-buffer", "sends each stack once", KERNEL_BPF_SOURCES, probe_ring_buffer },
	{ "map-of-maps", "drains totals without losing any", KERNEL_BPF_SOURCES,
	  probe_map_of_maps },
	{ "task-iterator", "knows the threads that were there before", KERNEL_BPF_SOURCES,
	  probe_task_iterator },
	{ "perf-events", "samples each CPU; follows mmap, exec and fork",
	  ALL_SOURCES & ~KERNEL_TREND, probe_perf_events },
	{ "cycles", "samples by cycles rather than by a timer", 0, probe_cycles },
	{ "sample-rate", "99 Hz by default, -F for more", KERNEL_ONCPU, probe_sample_rate },
	{ "kernel-depth", "frames of a stack the kernel walks", 0, probe_kernel_depth },
	{ "btf-tracing", "off-CPU time at the lowest cost", 0, probe_btf_tracing },
	{ "raw-tracepoint", "off-CPU time; changes of resident memory",
	  KERNEL_OFFCPU | KERNEL_GROWTH, probe_raw_tracepoint },
	{ "rss-stat", "sees pages become resident, and go", KERNEL_GROWTH, probe_rss_stat },
	{ "uprobes", "sees calls of malloc and free", KERNEL_ALLOC, probe_uprobes },
	{ "usdt-sites", "listens to samplers of allocations", 0, probe_usdt },
	{ "cells", "reads debug info that others wrote", 0, probe_cells },
	{ "open-files", "one descriptor for each probe and CPU", 0, probe_open_files },
	{ "kernel-names", "names kernel functions", 0, probe_kernel_names },
	{ "other-processes", "reads maps and memory of the target", KERNEL_NAMES | KERNEL_TREND,
	  probe_other_processes },
	{ "deleted-files", "names code whose file was replaced", 0, probe_deleted_files },
	{ "cpus", "one sampling event each", 0, probe_cpus },
	{ "cgroups", "identifies containers", 0, probe_cgroups },
	{ 0 },
};

const char *kernel_source_name(uint32_t i)
{
	static const char *const source_names[KERNEL_N_SOURCES] = { "oncpu", "offcpu", "alloc",
								    "names", "trend",  "growth" };

	return source_names[i];
}

const char *kernel_state_name(enum kernel_state s)
{
	static const char *const state_names[] = {
		[KERNEL_OK] = "ok",
		[KERNEL_LIMITED] = "limited",
		[KERNEL_MISSING] = "missing",
		[KERNEL_UNKNOWN] = "unknown",
	};

	return state_names[s];
}

uint32_t kernel_n_checks(void)
{
	return sizeof(kernel_checks) / sizeof(kernel_checks[0]) - 1;
}

static int keep_quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

void kernel_probe_all(struct kernel_finding *out)
{
	/* What libbpf says about a probe that fails is the finding, not a message. */
	libbpf_print_fn_t before = libbpf_set_print(keep_quiet);

	for (uint32_t i = 0; i < kernel_n_checks(); i++) {
		out[i] = (struct kernel_finding){ .state = KERNEL_OK };
		kernel_checks[i].probe(&out[i]);
	}
	libbpf_set_print(before);
}

/* How much a state weighs against a source that needs it. */
static int weight(enum kernel_state s)
{
	static const int weights[] = {
		[KERNEL_OK] = 0,
		[KERNEL_LIMITED] = 1,
		[KERNEL_UNKNOWN] = 2,
		[KERNEL_MISSING] = 3,
	};

	return weights[s];
}

enum kernel_state kernel_source_state(const struct kernel_finding *findings, uint32_t i,
				      int *ret_row)
{
	enum kernel_state worst = KERNEL_OK;
	int row = -1;

	for (uint32_t c = 0; c < kernel_n_checks(); c++) {
		if (!(kernel_checks[c].needed_by & 1U << i))
			continue;
		if (weight(findings[c].state) > weight(worst)) {
			worst = findings[c].state;
			row = (int)c;
		}
	}
	*ret_row = row;
	return worst;
}
