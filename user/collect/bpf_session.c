#include "collect/bpf_session.h"

#include "collect/kernel_types.h"
#include "collect/map_sizes.h"
#include "collect/uprobes.h"
#include "memscope.skel.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

#define N_TP_LINKS 16

struct session {
	struct session_opts opts;
	struct memscope_bpf *skel;
	struct bpf_link *links[N_TP_LINKS];
	uint32_t n_links;
	int *perf_fds;
	struct bpf_link **perf_links;
	uint32_t n_perf;
	const char *event;
	bool hardware;                 /* cycles can be counted here */
	const char *why[MS_N_SOURCES]; /* a source that could not be attached */
	char why_text[MS_N_SOURCES][256];
	struct bpf_link *mapping_links[2];
	uint64_t start_ns;
	struct ms_hash seed;
};

/* libbpf's own words: kept for the sentence of a failed load, never printed by themselves. */
static char last_words[1024];

static int keep_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_WARN && !strstr(fmt, "RLIMIT_MEMLOCK"))
		vsnprintf(last_words, sizeof(last_words), fmt, ap);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* One of a pair of programs: by BTF where the kernel can, else the raw tracepoint. */
static void load_either(struct bpf_program *btf_prog, struct bpf_program *raw_prog, bool by_btf,
			bool wanted)
{
	bpf_program__set_autoload(btf_prog, wanted && by_btf);
	bpf_program__set_autoload(raw_prog, wanted && !by_btf);
}

/* One for all shapes that have a return. */
static struct bpf_program *both_prog(struct memscope_bpf *k, enum ms_shape shape)
{
	switch (shape) {
	case MS_SHAPE_NEW:
	case MS_SHAPE_NEW_EXIT:
	case MS_SHAPE_FREE:
		return NULL;
	default:
		return k->progs.both_ends;
	}
}

static struct bpf_program *enter_prog(struct memscope_bpf *k, enum ms_shape shape)
{
	struct bpf_program *progs[MS_N_SHAPES] = {
		[MS_SHAPE_SIZE] = k->progs.enter_size,
		[MS_SHAPE_COUNT_SIZE] = k->progs.enter_count,
		[MS_SHAPE_ALIGN_SIZE] = k->progs.enter_align,
		[MS_SHAPE_OUT_PTR] = k->progs.enter_outptr,
		[MS_SHAPE_REALLOC] = k->progs.enter_realloc,
		[MS_SHAPE_REALLOC_N] = k->progs.enter_realloc_n,
		[MS_SHAPE_FREE] = k->progs.enter_free,
		[MS_SHAPE_XALLOC] = k->progs.enter_xalloc,
		[MS_SHAPE_NEW] = k->progs.enter_new,
		[MS_SHAPE_NEW_EXIT] = k->progs.exit_new,
	};

	return progs[shape];
}

static struct bpf_program *return_prog(struct memscope_bpf *k, enum ms_shape shape)
{
	switch (shape) {
	case MS_SHAPE_FREE:
	case MS_SHAPE_NEW:
	case MS_SHAPE_NEW_EXIT:
		return NULL;
	case MS_SHAPE_XALLOC:
		return k->progs.return_xalloc;
	case MS_SHAPE_OUT_PTR:
		return k->progs.return_outptr;
	case MS_SHAPE_REALLOC:
	case MS_SHAPE_REALLOC_N:
		return k->progs.return_realloc;
	default:
		return k->progs.return_ptr;
	}
}

static void load_probe(struct bpf_program *prog, enum uprobe_end end)
{
	if (!prog)
		return;
	bpf_program__set_autoload(prog, true);
	uprobes_prepare(prog, end);
}

/* All that this kernel wants; the other ones of each shape are for other kernels. */
static void choose_probes(struct session *s)
{
	struct memscope_bpf *k = s->skel;

	bpf_program__set_autoload(k->progs.count_call, false);
	bpf_program__set_autoload(k->progs.trap_only, false);
	for (int i = 0; i < MS_N_SHAPES; i++) {
		struct bpf_program *of_shape[] = { enter_prog(k, (enum ms_shape)i),
						   return_prog(k, (enum ms_shape)i),
						   both_prog(k, (enum ms_shape)i) };

		for (int j = 0; j < 3; j++)
			if (of_shape[j])
				bpf_program__set_autoload(of_shape[j], false);
	}
	for (int i = 0; i < MS_N_SAMPLE_WHATS; i++) {
		struct bpf_program *prog = session_sample_prog(s, (enum ms_sample_what)i);

		bpf_program__set_autoload(prog, false);
		if (s->opts.alloc && s->opts.sampled)
			load_probe(prog, UPROBE_ENTRY);
	}
	if (!s->opts.alloc || !s->opts.calls)
		return;
	load_probe(k->progs.count_call, UPROBE_ENTRY);
	if (uprobes_session())
		load_probe(k->progs.trap_only, UPROBE_BOTH);
	for (int i = 0; i < MS_N_SHAPES; i++)
		for (int end = UPROBE_ENTRY; end <= UPROBE_BOTH; end++)
			load_probe(session_alloc_prog(s, (enum ms_shape)i, (enum uprobe_end)end),
				   (enum uprobe_end)end);
}

static void choose_programs(struct session *s, const struct btf *btf)
{
	struct memscope_bpf *k = s->skel;
	bool by_btf = btf_has_tracepoint(btf, "sched_switch");
	bool alloc = s->opts.alloc && s->opts.calls, off = s->opts.offcpu;
	bool account = by_btf && btf_has_sched_account(btf);
	bool busy = off && account && s->opts.busy && btf_has_task_storage(btf);

	s->skel->rodata->cfg_sched_account = account;
	s->skel->rodata->cfg_busy = busy;
	bpf_map__set_autocreate(k->maps.busy, busy);
	bpf_program__set_autoload(k->progs.find_busy, busy);
	bpf_program__set_autoload(k->progs.list_busy, busy);
	bpf_program__set_autoload(k->progs.on_busy_exit, busy);
	load_either(k->progs.on_switch_btf, k->progs.on_switch_raw, by_btf, off);
	load_either(k->progs.on_wakeup_btf, k->progs.on_wakeup_raw, by_btf, off && !account);
	load_either(k->progs.on_wakeup_new_btf, k->progs.on_wakeup_new_raw, by_btf, off);
	load_either(k->progs.on_fork_btf, k->progs.on_fork_raw, by_btf,
		    s->opts.children || s->opts.all || s->opts.cgroups);
	load_either(k->progs.on_exec_btf, k->progs.on_exec_raw, by_btf, off);
	load_either(k->progs.on_exit_btf, k->progs.on_exit_raw, by_btf, alloc);
	load_either(k->progs.on_sys_exit_btf, k->progs.on_sys_exit_raw,
		    btf_has_tracepoint(btf, "sys_exit"), alloc);
	bpf_program__set_autoload(k->progs.on_sys_enter, alloc);
	bpf_program__set_autoload(k->progs.on_attach, s->opts.cgroups);
	bpf_program__set_autoload(k->progs.on_cgroup_mkdir, s->opts.cgroups || s->opts.all);
	bpf_program__set_autoload(k->progs.list_members, s->opts.cgroups);
	bpf_program__set_autoload(k->progs.on_cpu, s->opts.oncpu);
	bpf_program__set_autoload(k->progs.on_rss_stat, s->opts.growth);
	bpf_program__set_autoload(k->progs.list_memory, s->opts.growth);
	bpf_program__set_autoload(k->progs.on_mmap,
				  s->opts.unwind_bytes && btf_has_cheap_mmap_lock(btf));
	choose_probes(s);
}

static int perf_open(const struct session *s, uint32_t cpu, bool hardware)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = hardware ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES
				   : (uint64_t)PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = s->opts.hz,
		.exclude_idle = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* "0-3,5": CPUs that are online. Numbers may be sparse. */
static uint32_t online_cpus(uint32_t *cpus, uint32_t cap)
{
	_cleanup_(fclosep) FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	unsigned from, to;
	uint32_t n = 0;
	int c = ',';

	while (f && c == ',' && fscanf(f, "%u", &from) == 1) {
		to = from;
		c = fgetc(f);
		if (c == '-') {
			if (fscanf(f, "%u", &to) != 1)
				break;
			c = fgetc(f);
		}
		for (; from <= to && n < cap; from++)
			cpus[n++] = from;
	}
	return n;
}

/* Whether hardware cycles can be counted: the first CPU that is online is asked. */
static bool has_cycles(const struct session *s)
{
	uint32_t cpu;
	int fd = online_cpus(&cpu, 1) ? perf_open(s, cpu, true) : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void set_knobs(struct session *s, const struct btf *btf)
{
	struct memscope_bpf__rodata *cfg = s->skel->rodata;

	cfg->cfg_all = s->opts.all;
	cfg->cfg_children = s->opts.children || s->opts.cgroups;
	cfg->cfg_cgroups = (__u8)(s->opts.cgroups + s->opts.cgroups_v1);
	cfg->cfg_tid = (uint32_t)s->opts.tid;
	cfg->cfg_self = (uint32_t)getpid();
	cfg->cfg_user_stacks = s->opts.user_stacks;
	cfg->cfg_unwind = s->opts.unwind_bytes != 0;
	cfg->cfg_kernel_stacks = s->opts.kernel_stacks;
	cfg->cfg_recall_check = s->opts.recall == SESSION_RECALL_CHECK;
	cfg->cfg_threads = s->opts.offcpu;
	cfg->cfg_wait_min_ns = s->opts.wait_min_ns;
	if (s->opts.wait_max_ns)
		cfg->cfg_wait_max_ns = s->opts.wait_max_ns;
	cfg->cfg_places = uprobes_cookies();
	/* Cycles are not time: a sample then stands for what the rate says. */
	s->hardware = s->opts.oncpu && has_cycles(s);
	cfg->cfg_sample_ns = s->hardware ? 1000000000 / s->opts.hz : 0;
	/* (preempt, prev, next[, prev_state]) */
	cfg->cfg_switch_has_state = btf_tracepoint_args(btf, "sched_switch") >= 4;
	cfg->cfg_page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	cfg->cfg_cpus = (uint32_t)libbpf_num_possible_cpus();
	if (sysconf(_SC_NPROCESSORS_ONLN) > 16)
		cfg->cfg_rss_batch = 2 * sysconf(_SC_NPROCESSORS_ONLN);
	if (getrandom(&s->seed, sizeof(s->seed), 0) != sizeof(s->seed))
		s->seed = (struct ms_hash){ now_ns(), (uint64_t)getpid() };
	cfg->cfg_seed_lo = s->seed.lo;
	cfg->cfg_seed_hi = s->seed.hi;
}

/* Attaches whichever of the pair was loaded. */
static int attach_either(struct session *s, struct bpf_program *btf_prog,
			 struct bpf_program *raw_prog)
{
	struct bpf_program *prog = bpf_program__autoload(btf_prog) ? btf_prog : raw_prog;
	struct bpf_link *link;

	if (!bpf_program__autoload(prog))
		return 0;
	assert(s->n_links < N_TP_LINKS);
	link = bpf_program__attach(prog);
	if (!link)
		return -errno;
	s->links[s->n_links++] = link;
	return 0;
}

int session_open(const struct session_opts *opts, struct session **ret_session, struct err *e)
{
	_cleanup_(session_freep) struct session *s = calloc(1, sizeof(*s));
	struct btf *btf;
	int r, fd;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->opts = *opts;
	libbpf_set_print(keep_words);
	btf = btf__load_vmlinux_btf();
	if (!btf)
		return err_set(
			e, -EOPNOTSUPP,
			"this kernel has no type information (BTF): /sys/kernel/btf/vmlinux is missing; "
			"use a kernel built with CONFIG_DEBUG_INFO_BTF");
	s->skel = memscope_bpf__open();
	if (!s->skel) {
		r = -errno;
		btf__free(btf);
		return err_set(e, r, "cannot open the BPF programs: %s", strerror(-r));
	}
	choose_programs(s, btf);
	set_knobs(s, btf);
	map_sizes_set(s->skel, &s->opts);
	/* Programs of uprobes may allocate map entries as needed since bpf_mem_alloc (6.1). */
	if (btf__find_by_name_kind(btf, "bpf_mem_alloc", BTF_KIND_STRUCT) < 0)
		bpf_map__set_map_flags(s->skel->maps.blocks, 0);
	btf__free(btf);

	r = memscope_bpf__load(s->skel);
	if (r < 0) {
		last_words[strcspn(last_words, "\n")] = '\0';
		if (r == -EPERM)
			return err_set(
				e, r,
				"the kernel does not permit BPF programs here (%s): in a container, give it "
				"CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN, or run memscope on the host",
				last_words);
		return err_set(e, r, "the kernel refused the BPF programs: %s (%s)", strerror(-r),
			       last_words);
	}
	s->skel->bss->gate_open = 0;
	s->skel->bss->gate_alloc_open = 0;
	for (uint32_t lane = 0; lane < MS_N_LANES; lane++) {
		fd = session_map_fd(s,
				    lane == MS_LANE_IRQ ? SESSION_IRQ_TOTALS_A : SESSION_TOTALS_A);
		if (bpf_map_update_elem(session_map_fd(s, SESSION_TOTALS_LIVE), &lane, &fd,
					BPF_ANY) < 0)
			return err_set(e, -errno, "cannot set up the totals map: %s",
				       strerror(errno));
	}
	r = attach_either(s, s->skel->progs.on_fork_btf, s->skel->progs.on_fork_raw);
	if (r < 0)
		return err_set(e, r, "cannot follow forks: %s", strerror(-r));
	r = attach_either(s, s->skel->progs.on_attach, s->skel->progs.on_attach);
	if (r < 0)
		return err_set(e, r, "cannot follow who enters control groups: %s", strerror(-r));
	attach_either(s, s->skel->progs.on_cgroup_mkdir, s->skel->progs.on_cgroup_mkdir);
	/* Where one of these tracepoints is not there an end for want of memory looks like any
	 * other, and what was mapped in another's place is walked by the old table for a moment. */
	attach_either(s, s->skel->progs.on_oom, s->skel->progs.on_oom);
	attach_either(s, s->skel->progs.on_mmap, s->skel->progs.on_mmap);
	*ret_session = TAKE_PTR(s);
	return 0;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_detach(s);
	memscope_bpf__destroy(s->skel);
	free(s);
}

int session_target(struct session *s, pid_t pid, struct err *e)
{
	struct ms_target target = { .flags = MS_TARGET_ASKED };
	uint32_t key = (uint32_t)pid;

	/* One that a target forked just now is there already, and keeps what is known of it. */
	if (bpf_map_update_elem(session_map_fd(s, SESSION_TARGETS), &key, &target, BPF_NOEXIST) <
		    0 &&
	    errno != EEXIST)
		return err_set(e, -errno, "cannot watch process %d: %s", (int)pid, strerror(errno));
	return 0;
}

static void watch_hierarchy(struct session *s, uint32_t hierarchy)
{
	__atomic_fetch_or(&s->skel->bss->cgroup_hierarchies,
			  1ULL << (hierarchy < 63 ? hierarchy : 63), __ATOMIC_RELAXED);
}

int session_cgroup(struct session *s, uint32_t hierarchy, uint64_t id, struct err *e)
{
	struct ms_cgroup key = { .id = id, .hierarchy = hierarchy };
	uint8_t one = 1;

	if (bpf_map_update_elem(session_map_fd(s, SESSION_CGROUPS), &key, &one, BPF_ANY) < 0)
		return err_set(e, -errno, "cannot watch a control group: %s", strerror(errno));
	watch_hierarchy(s, hierarchy);
	return 0;
}

int session_cgroup_path(struct session *s, uint32_t hierarchy, const char *path)
{
	struct ms_cgroup_path key = { .hierarchy = hierarchy };
	size_t len = strlen(path);
	uint8_t one = 1;

	if (len >= sizeof(key.path))
		return -ENAMETOOLONG;
	memcpy(key.path, path, len);
	watch_hierarchy(s, hierarchy);
	return bpf_map_update_elem(session_map_fd(s, SESSION_CGROUP_PATHS), &key, &one, BPF_ANY) < 0
		       ? -errno
		       : 0;
}

void session_cgroup_gone(struct session *s, uint32_t hierarchy, uint64_t id)
{
	struct ms_cgroup key = { .id = id, .hierarchy = hierarchy };

	bpf_map_delete_elem(session_map_fd(s, SESSION_CGROUPS), &key);
}

bool session_is_target(const struct session *s, pid_t pid, pid_t *ret_ns_pid)
{
	struct ms_target target;
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(session_map_fd(s, SESSION_TARGETS), &key, &target) < 0)
		return false;
	*ret_ns_pid = (pid_t)target.ns_pid;
	return true;
}

void session_each_target(const struct session *s, void (*each)(void *ctx, pid_t pid), void *ctx)
{
	int fd = session_map_fd(s, SESSION_TARGETS);
	uint32_t key, *before = NULL;
	uint32_t n = 0;

	/* A key that goes meanwhile makes it begin again: bounded. */
	while (n++ < 4 * session_map_max(s, SESSION_TARGETS) &&
	       bpf_map_get_next_key(fd, before, &key) == 0) {
		each(ctx, (pid_t)key);
		before = &key;
	}
}

bool session_ran_out_of_memory(const struct session *s, pid_t pid)
{
	struct ms_target target;
	uint32_t key = (uint32_t)pid;

	return bpf_map_lookup_elem(session_map_fd(s, SESSION_TARGETS), &key, &target) == 0 &&
	       target.flags & MS_TARGET_OOM;
}

void session_untarget(struct session *s, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(session_map_fd(s, SESSION_TARGETS), &key);
}

bool session_name_of(const struct session *s, pid_t pid, uint64_t *ret_start_ns,
		     uint32_t *ret_exec_id)
{
	struct ms_target target;
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(session_map_fd(s, SESSION_TARGETS), &key, &target) < 0 ||
	    !(target.flags & (MS_TARGET_FORKED | MS_TARGET_JOINED)) || !target.start_ns)
		return false;
	*ret_start_ns = target.start_ns;
	*ret_exec_id = target.exec_id;
	return true;
}

int session_set_gen(struct session *s, pid_t pid, uint32_t gen)
{
	int fd = session_map_fd(s, SESSION_TARGETS);
	struct ms_target target = {};
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(fd, &key, &target) < 0 && !s->opts.all)
		return -ENOENT;
	target.as_gen = gen;
	if (s->opts.all)
		target.start_ns = 0; /* the pid may have been another's; learned anew */
	return bpf_map_update_elem(fd, &key, &target, BPF_ANY) < 0 ? -errno : 0;
}

/* A list of tasks, made when it is read. Opening it takes a while, reading it does not. */
static int open_tasks(const struct bpf_program *prog, struct err *e)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	int fd;

	if (!link)
		return err_set(e, -errno, "cannot list tasks through a BPF iterator: %s",
			       strerror(errno));
	fd = bpf_iter_create(bpf_link__fd(link));
	bpf_link__destroy(link);
	return fd < 0 ? err_set(e, fd, "cannot list tasks through a BPF iterator") : fd;
}

static void read_tasks(int fd, session_task_fn each, void *ctx)
{
	struct ms_task tasks[64];
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, (char *)tasks + have, sizeof(tasks) - have)) > 0) {
		size_t whole = (have + (size_t)n) / sizeof(*tasks);

		for (size_t i = 0; i < whole; i++)
			each(ctx, &tasks[i]);
		have = (have + (size_t)n) % sizeof(*tasks);
		memmove(tasks, (char *)&tasks[whole], have);
	}
}

int session_members(struct session *s, session_task_fn each, void *ctx, struct err *e)
{
	_cleanup_(closep) int fd = open_tasks(s->skel->progs.list_members, e);

	if (fd < 0)
		return fd;
	read_tasks(fd, each, ctx);
	return 0;
}

int session_name_tasks(struct session *s, session_task_fn each, void *ctx, struct err *e)
{
	_cleanup_(closep) int fd = open_tasks(s->skel->progs.name_tasks, e);

	if (fd < 0)
		return fd;
	read_tasks(fd, each, ctx);
	return 0;
}

static const char *oncpu_why(int code)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		return "perf events are not permitted: run as root, or set kernel.perf_event_paranoid lower";
	case -EINVAL:
		return "the kernel refuses this sampling rate: see kernel.perf_event_max_sample_rate, or lower -F";
	case -EMFILE:
		return "too many open files: raise the limit (ulimit -n)";
	default:
		return strerror(-code);
	}
}

static int attach_oncpu(struct session *s)
{
	static uint32_t cpus[4096];
	uint32_t n = online_cpus(cpus, 4096);
	int r = -ENODEV;

	s->perf_fds = calloc(n, sizeof(*s->perf_fds));
	s->perf_links = calloc(n, sizeof(*s->perf_links));
	if (!s->perf_fds || !s->perf_links)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		int fd;

		if (s->opts.cpus && (cpus[i] >= s->opts.n_cpus || !s->opts.cpus[cpus[i]]))
			continue;
		fd = perf_open(s, cpus[i], s->hardware);
		if (fd < 0) {
			r = -errno;
			if (r == -ENODEV) /* went offline between the list and here */
				continue;
			return r;
		}
		s->perf_links[s->n_perf] =
			bpf_program__attach_perf_event(s->skel->progs.on_cpu, fd);
		if (!s->perf_links[s->n_perf]) {
			r = -errno;
			close(fd);
			return r;
		}
		s->perf_fds[s->n_perf++] = fd;
	}
	if (!s->n_perf)
		return r;
	s->event = s->hardware ? "cycles" : "cpu-clock";
	return 0;
}

static void source_failed(struct session *s, enum ms_source source, const char *why)
{
	snprintf(s->why_text[source], sizeof(s->why_text[source]), "%s", why);
	s->why[source] = s->why_text[source];
}

static int attach_growth(struct session *s)
{
	struct bpf_link *link;

	if (!s->opts.growth)
		return 0;
	link = bpf_program__attach(s->skel->progs.on_rss_stat);
	if (!link)
		return -errno;
	s->links[s->n_links++] = link;
	return 0;
}

int session_attach(struct session *s, session_task_fn each, void *ctx, struct err *e)
{
	struct memscope_bpf *k = s->skel;
	_cleanup_(closep) int tasks = open_tasks(k->progs.list_tasks, e), memory = -1;
	int r;

	if (tasks < 0)
		return tasks;
	if (s->opts.growth && !s->opts.all) {
		memory = open_tasks(k->progs.list_memory, e);
		if (memory < 0)
			return memory;
	}
	r = attach_either(s, k->progs.on_exit_btf, k->progs.on_exit_raw);
	if (r < 0)
		return err_set(e, r, "cannot attach to process events: %s", strerror(-r));
	r = attach_either(s, k->progs.on_wakeup_btf, k->progs.on_wakeup_raw);
	if (r == 0)
		r = attach_either(s, k->progs.on_wakeup_new_btf, k->progs.on_wakeup_new_raw);
	if (r == 0)
		r = attach_either(s, k->progs.on_exec_btf, k->progs.on_exec_raw);
	if (r == 0)
		r = attach_either(s, k->progs.on_busy_exit, k->progs.on_busy_exit);
	if (r == 0)
		r = attach_either(s, k->progs.on_switch_btf, k->progs.on_switch_raw);
	if (r < 0)
		source_failed(s, MS_OFFCPU, strerror(-r));
	r = attach_growth(s);
	if (r == -ENOENT)
		source_failed(s, MS_GROWTH, "this kernel has no tracepoint kmem:rss_stat");
	else if (r < 0)
		source_failed(s, MS_GROWTH, strerror(-r));
	if (s->opts.oncpu) {
		r = attach_oncpu(s);
		if (r < 0)
			source_failed(s, MS_ONCPU, oncpu_why(r));
	}
	session_gate(s, true);
	if (memory >= 0)
		read_tasks(memory, NULL, NULL); /* it writes nothing */
	read_tasks(tasks, each, ctx);
	return 0;
}

const char *session_oncpu_event(const struct session *s)
{
	return s->event;
}

bool session_has(const struct session *s, enum ms_source source, const char **ret_why)
{
	bool asked[MS_N_SOURCES] = { s->opts.oncpu, s->opts.offcpu, s->opts.alloc, s->opts.growth };

	*ret_why = s->why[source];
	return asked[source] && !s->why[source];
}

void session_gate(struct session *s, bool open)
{
	if (open && !s->start_ns)
		s->start_ns = now_ns();
	__atomic_store_n(&s->skel->bss->gate_open, open, __ATOMIC_SEQ_CST);
}

void session_gate_alloc(struct session *s, bool open)
{
	__atomic_store_n(&s->skel->bss->gate_alloc_open, open, __ATOMIC_SEQ_CST);
}

bool session_slices(const struct session *s)
{
	return s->opts.alloc && s->opts.calls && uprobes_session();
}

void session_slice_open(struct session *s, uint32_t no, int64_t calls)
{
	__atomic_store_n(&s->skel->bss->slice_left, calls, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->skel->bss->slice_closed_ns, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->skel->bss->slice_no, no, __ATOMIC_SEQ_CST);
	session_gate_alloc(s, true);
}

void session_trace_open(struct session *s, int64_t hits)
{
	session_slice_open(s, 0, hits);
}

void session_trace_refill(struct session *s, int64_t hits)
{
	__atomic_store_n(&s->skel->bss->slice_left, hits, __ATOMIC_SEQ_CST);
}

int64_t session_slice_left(const struct session *s)
{
	int64_t left = __atomic_load_n(&s->skel->bss->slice_left, __ATOMIC_SEQ_CST);

	if (__atomic_load_n(&s->skel->bss->slice_closed_ns, __ATOMIC_SEQ_CST))
		return 0; /* whatever it was refilled with meanwhile */
	return left > 0 ? left : 0;
}

uint64_t session_slice_close(struct session *s)
{
	uint64_t ns;

	session_gate_alloc(s, false);
	ns = __atomic_load_n(&s->skel->bss->slice_closed_ns, __ATOMIC_SEQ_CST);
	return ns ? ns : now_ns();
}

int session_mappings(struct session *s, bool on)
{
	struct memscope_bpf *k = s->skel;
	struct bpf_program *exit = bpf_program__autoload(k->progs.on_sys_exit_btf)
					   ? k->progs.on_sys_exit_btf
					   : k->progs.on_sys_exit_raw;
	struct bpf_program *progs[2] = { exit, k->progs.on_sys_enter };
	int r = 0;

	for (int i = 0; i < 2; i++) {
		if (s->mapping_links[i])
			bpf_link__destroy(TAKE_PTR(s->mapping_links[i]));
		if (!on || r < 0)
			continue;
		s->mapping_links[i] = bpf_program__attach(progs[i]);
		if (!s->mapping_links[i])
			r = -errno;
	}
	return r;
}

void session_thin(struct session *s, uint32_t shift)
{
	__atomic_store_n(&s->skel->bss->sample_shift, shift, __ATOMIC_RELAXED);
}

void session_clock(struct session *s, uint64_t ns)
{
	__atomic_store_n(&s->skel->bss->clock_s, (uint32_t)(ns / 1000000000), __ATOMIC_RELAXED);
}

void session_mappings_known(struct session *s, uint64_t ns)
{
	__atomic_store_n(&s->skel->bss->mappings_known_ns, ns, __ATOMIC_RELEASE);
}

void session_detach(struct session *s)
{
	for (uint32_t i = 0; i < s->n_perf; i++) {
		ioctl(s->perf_fds[i], PERF_EVENT_IOC_DISABLE, 0);
		bpf_link__destroy(s->perf_links[i]); /* closes the event */
	}
	free(s->perf_fds);
	free(s->perf_links);
	s->perf_fds = NULL;
	s->perf_links = NULL;
	s->n_perf = 0;
	session_mappings(s, false);
	while (s->n_links)
		bpf_link__destroy(s->links[--s->n_links]);
}

static struct bpf_map *session_map(const struct session *s, enum session_map m)
{
	struct memscope_bpf *k = s->skel;
	struct bpf_map *maps[SESSION_N_MAPS] = {
		[SESSION_STATS] = k->maps.stats,
		[SESSION_VERDICTS] = k->maps.verdicts,
		[SESSION_TARGETS] = k->maps.targets,
		[SESSION_CGROUPS] = k->maps.cgroups,
		[SESSION_CGROUP_PATHS] = k->maps.cgroup_paths,
		[SESSION_TOTALS_LIVE] = k->maps.totals_live,
		[SESSION_TOTALS_A] = k->maps.totals_a,
		[SESSION_TOTALS_B] = k->maps.totals_b,
		[SESSION_IRQ_TOTALS_A] = k->maps.irq_totals_a,
		[SESSION_IRQ_TOTALS_B] = k->maps.irq_totals_b,
		[SESSION_EVENTS] = k->maps.events,
		[SESSION_THREADS] = k->maps.threads,
		[SESSION_BLOCKS] = k->maps.blocks,
		[SESSION_INFLIGHT] = k->maps.inflight,
		[SESSION_UNWIND_POOL] = k->maps.unwind_pool,
		[SESSION_UNWIND_TABLES] = k->maps.unwind_tables,
		[SESSION_UNWIND_RULES] = k->maps.unwind_rules,
		[SESSION_SPACES] = k->maps.spaces,
		[SESSION_SITES] = k->maps.sites,
		[SESSION_MEMORIES] = k->maps.memories,
		[SESSION_MEMORY_CPUS] = k->maps.memory_cpus,
		[SESSION_ALLOC_SITES] = k->maps.alloc_sites,
		[SESSION_ALLOC_INDEX] = k->maps.alloc_index,
		[SESSION_ALLOC_FREE] = k->maps.alloc_free,
		[SESSION_ALLOC_SIZES] = k->maps.alloc_sizes,
	};

	return maps[m];
}

int session_map_fd(const struct session *s, enum session_map m)
{
	return bpf_map__fd(session_map(s, m));
}

uint32_t session_map_max(const struct session *s, enum session_map m)
{
	return bpf_map__max_entries(session_map(s, m));
}

static uint64_t map_memlock(int fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	_cleanup_(fclosep) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	return bytes;
}

uint64_t session_map_bytes(const struct session *s)
{
	struct bpf_map *map;
	uint64_t sum = 0;

	bpf_object__for_each_map(map, s->skel->obj) sum += map_memlock(bpf_map__fd(map));
	return sum;
}

void session_seed(const struct session *s, struct ms_hash *ret_seed)
{
	*ret_seed = s->seed;
}

struct bpf_program *session_alloc_prog(struct session *s, enum ms_shape shape, enum uprobe_end end)
{
	struct memscope_bpf *k = s->skel;
	bool both = uprobes_session() && both_prog(k, shape);

	if (end == UPROBE_BOTH)
		return both ? both_prog(k, shape) : NULL;
	if (both)
		return NULL;
	return end == UPROBE_ENTRY ? enter_prog(k, shape) : return_prog(k, shape);
}

struct bpf_program *session_count_prog(struct session *s)
{
	return s->skel->progs.count_call;
}

struct bpf_program *session_trap_prog(struct session *s)
{
	return uprobes_session() ? s->skel->progs.trap_only : NULL;
}

struct bpf_program *session_sample_prog(struct session *s, enum ms_sample_what what)
{
	struct memscope_bpf *k = s->skel;
	struct bpf_program *progs[MS_N_SAMPLE_WHATS] = {
		[MS_SAMPLE_ALLOC] = k->progs.sampled_alloc,
		[MS_SAMPLE_UNTRACKED] = k->progs.sampled_untrack,
		[MS_SAMPLE_FREE] = k->progs.sampled_free,
	};

	return progs[what];
}

int session_program(const struct session *s, uint32_t i, const char **ret_name)
{
	struct bpf_program *prog = bpf_object__next_program(s->skel->obj, NULL);

	while (prog && i--)
		prog = bpf_object__next_program(s->skel->obj, prog);
	if (!prog || bpf_program__fd(prog) < 0)
		return -1;
	*ret_name = bpf_program__name(prog);
	return bpf_program__fd(prog);
}

struct memscope_bpf *session_skeleton(const struct session *s)
{
	return s->skel;
}

bool session_gate_is_open(const struct session *s)
{
	return __atomic_load_n(&s->skel->bss->gate_open, __ATOMIC_SEQ_CST);
}

uint64_t session_start_ns(const struct session *s)
{
	return s->start_ns;
}
