#include "collect/session/bpf_session.h"
#include "base/clock.h"
#include "base/hash.h"

#include "collect/session/dither.h"
#include "collect/session/kernel_lockdown.h"
#include "collect/session/kernel_perf.h"
#include "collect/session/kernel_types.h"
#include "collect/session/map_sizes.h"
#include "collect/session/session_parts.h"
#include "proc/blocked_call.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

/* libbpf's own words: kept for the sentence of a failed load, never printed by themselves. */
static char last_words[1024];
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER; /* programs are loaded by threads */

static int keep_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	pthread_mutex_lock(&words_lock);
	if (level == LIBBPF_WARN && !strstr(fmt, "RLIMIT_MEMLOCK"))
		vsnprintf(last_words, sizeof(last_words), fmt, ap);
	pthread_mutex_unlock(&words_lock);
	return 0;
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
		.exclude_idle =
			hardware, /* of time, what the idle CPU has counts, too: sample_weight.h */
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* "0-3,5" */
uint32_t session_online_cpus(uint32_t *cpus, uint32_t cap)
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
	int fd = session_online_cpus(&cpu, 1) ? perf_open(s, cpu, true) : -1;

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
	cfg->cfg_lang = s->opts.langs && s->opts.unwind_bytes != 0;
	cfg->cfg_kernel_stacks = s->opts.kernel_stacks;
	cfg->cfg_unwind_cache_check = s->opts.unwind_cache == SESSION_UNWIND_CACHE_CHECK;
	cfg->cfg_threads = s->opts.offcpu;
	cfg->cfg_objects = s->opts.offcpu && s->opts.objects;
	for (uint32_t i = 0; i < MS_FD_CALLS; i++)
		cfg->cfg_fd_calls[i / 64] |= (uint64_t)blocked_call_has_fd(i) << i % 64;
	cfg->cfg_run_delays = s->opts.offcpu && s->opts.run_delays;
	cfg->cfg_wakers = s->opts.offcpu && s->opts.wakers;
	cfg->cfg_wait_min_ns = s->opts.wait_min_ns;
	if (s->opts.wait_max_ns)
		cfg->cfg_wait_max_ns = s->opts.wait_max_ns;
	cfg->cfg_cookies = uprobes_cookies();
	memcpy((void *)cfg->cfg_event_alone, s->opts.event_alone, sizeof(s->opts.event_alone));
	cfg->cfg_burst_results = s->opts.results;
	/* Cycles are not time: a sample then stands for what the rate says. */
	s->hardware = s->opts.oncpu && has_cycles(s);
	if (s->opts.oncpu_slot_ns)
		cfg->cfg_oncpu_slot_ns = s->opts.oncpu_slot_ns;
	cfg->cfg_sample_dither = !s->hardware;
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

struct memscope_bpf *session_skeleton_open(const struct session *s)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);

	if (*s->types.path)
		opts.btf_custom_path = s->types.path;
	return memscope_bpf__open_opts(&opts);
}

/* The kernel's types, as far as programs need them; `*ret_all`: all, if it took these to find that out. */
static void find_types(struct session *s, struct btf **ret_all)
{
	struct memscope_bpf *k;
	uint64_t of;
	size_t size;
	const void *programs = memscope_bpf__elf_bytes(&size);

	of = content_hash(programs, size);
	if (kernel_subset_kept(of, &s->types) == 0)
		return;
	*ret_all = btf__load_vmlinux_btf();
	k = *ret_all ? memscope_bpf__open() : NULL;
	if (k)
		kernel_subset_make(of, *ret_all, bpf_object__btf(k->obj), &s->types);
	memscope_bpf__destroy(k);
}

/* `subset`: by those types alone that the programs refer to. */
static int open_and_load(struct session *s, bool subset, struct err *e)
{
	struct btf *all = NULL;
	const struct btf *btf;
	int r;

	if (subset)
		find_types(s, &all);
	else
		all = btf__load_vmlinux_btf();
	btf = s->types.btf ? s->types.btf : all;
	if (!btf)
		return err_set(
			e, -EOPNOTSUPP,
			"this kernel has no type information (BTF): /sys/kernel/btf/vmlinux is missing; "
			"use a kernel built with CONFIG_DEBUG_INFO_BTF");
	s->skel = session_skeleton_open(s);
	if (!s->skel) {
		r = -errno;
		btf__free(all);
		return err_set(e, r, "cannot open the BPF programs: %s", strerror(-r));
	}
	session_choose_programs(s, btf);
	set_knobs(s, btf);
	map_sizes_set(s->skel, &s->opts);
	/* Programs of uprobes may allocate map entries as needed since bpf_mem_alloc (6.1). */
	if (btf__find_by_name_kind(btf, "bpf_mem_alloc", BTF_KIND_STRUCT) < 0)
		bpf_map__set_map_flags(s->skel->maps.blocks, 0);
	btf__free(all);
	return session_load(s);
}

int session_open(const struct session_opts *opts, struct session **ret_session, struct err *e)
{
	_cleanup_(session_freep) struct session *s = calloc(1, sizeof(*s));
	int r, fd;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->opts = *opts;
	libbpf_set_print(keep_words);
	r = open_and_load(s, true, e);
	if (r < 0 && r != -EPERM && *s->types.path) {
		/* Perhaps a type is missing from the subset on this kernel. */
		session_unload(s);
		kernel_subset_close(&s->types);
		memset(s, 0, sizeof(*s));
		s->opts = *opts;
		r = open_and_load(s, false, e);
	}
	if (r < 0 && !s->skel)
		return r;
	if (r < 0) {
		last_words[strcspn(last_words, "\n")] = '\0';
		if (kernel_lockdown() == LOCKDOWN_CONFIDENTIALITY)
			return err_set(
				e, -EPERM,
				"the kernel is locked down (confidentiality): its programs may read no memory; boot "
				"with lockdown=integrity");
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
	s->skel->bss->sample_ns = 1000000000 / s->opts.hz;
	session_slices_open(s);
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
	session_unload(s);
	kernel_subset_close(&s->types);
	free(s);
}

const char *session_perf_why(int code)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		return kernel_perf_refused();
	case -EMFILE:
		return "too many open files: raise the limit (ulimit -n)";
	default:
		return strerror(-code);
	}
}

static const char *oncpu_why(int code)
{
	return code == -EINVAL ? "the kernel refuses this sampling rate: see "
				 "kernel.perf_event_max_sample_rate, or lower -F"
			       : session_perf_why(code);
}

bool session_wants_cpu(const struct session *s, uint32_t cpu)
{
	return !s->opts.cpus || (cpu < s->opts.n_cpus && s->opts.cpus[cpu]);
}

static int attach_oncpu(struct session *s)
{
	static uint32_t cpus[4096];
	uint32_t n = session_online_cpus(cpus, 4096);
	int r = -ENODEV;

	s->perf_fds = calloc(n, sizeof(*s->perf_fds));
	s->perf_links = calloc(n, sizeof(*s->perf_links));
	if (!s->perf_fds || !s->perf_links)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		int fd;

		if (!session_wants_cpu(s, cpus[i]))
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
	/* Without a thread the period is fixed, and weights are right all the same. */
	if (!s->hardware)
		dither_start(s->perf_fds, s->n_perf, s->opts.hz, s->opts.dither_ns, &s->dither);
	return 0;
}

static void source_failed(struct session *s, enum source source, const char *why)
{
	snprintf(s->why_text[source], sizeof(s->why_text[source]), "%s", why);
	s->why[source] = s->why_text[source];
}

int session_attach(struct session *s, session_task_fn each, void *ctx, struct err *e)
{
	struct memscope_bpf *k = s->skel;
	_cleanup_(closep) int tasks = session_open_tasks(k->progs.list_tasks, e), memory = -1;
	int r;

	if (tasks < 0)
		return tasks;
	if (s->opts.growth && !s->opts.all) {
		memory = session_open_tasks(k->progs.list_memory, e);
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
		r = attach_either(s, k->progs.on_sampled_exit, k->progs.on_sampled_exit);
	if (r == 0)
		r = session_attach_slice(s, SOURCE_OFFCPU);
	if (r < 0)
		source_failed(s, SOURCE_OFFCPU, strerror(-r));
	r = session_attach_slice(s, SOURCE_GROWTH);
	if (r == -ENOENT)
		source_failed(s, SOURCE_GROWTH, "this kernel has no tracepoint kmem:rss_stat");
	else if (r < 0)
		source_failed(s, SOURCE_GROWTH, strerror(-r));
	/* The ends first: no call is seen to begin whose end is not. */
	r = attach_either(s, k->progs.on_call_exit, k->progs.on_call_exit);
	if (r == 0)
		r = attach_either(s, k->progs.on_call_enter, k->progs.on_call_enter);
	if (r < 0)
		source_failed(s, SOURCE_SYSCALLS, strerror(-r));
	r = attach_either(s, k->progs.on_trace_exit, k->progs.on_trace_exit);
	if (r == 0)
		r = attach_either(s, k->progs.on_trace_enter, k->progs.on_trace_enter);
	if (r < 0)
		return err_set(e, r, "cannot attach to system calls: %s", strerror(-r));
	if (s->opts.oncpu) {
		r = attach_oncpu(s);
		if (r < 0)
			source_failed(s, SOURCE_ONCPU, oncpu_why(r));
	}
	session_gate(s, true);
	if (memory >= 0)
		session_read_tasks(memory, NULL, NULL); /* it writes nothing */
	session_read_tasks(tasks, each, ctx);
	return 0;
}

const char *session_oncpu_event(const struct session *s)
{
	return s->event;
}

bool session_has(const struct session *s, enum source source, const char **ret_why)
{
	bool asked[MS_N_SOURCES] = {
		s->opts.oncpu,  s->opts.offcpu,   s->opts.alloc,
		s->opts.growth, s->opts.syscalls, s->opts.event_programs != 0
	};

	*ret_why = s->why[source];
	return asked[source] && !s->why[source];
}

void session_gate(struct session *s, bool open)
{
	if (open && !s->start_ns)
		s->start_ns = s->skel->bss->slots_from_ns = now_ns();
	__atomic_store_n(&s->skel->bss->gate_open, open, __ATOMIC_SEQ_CST);
}

void session_results_end(struct session *s)
{
	__atomic_store_n(&s->results_ended, true, __ATOMIC_SEQ_CST);
	session_results(s, false);
}

bool session_results(struct session *s, bool on)
{
	on &= s->opts.results && !__atomic_load_n(&s->results_ended, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->skel->bss->burst_results_off, !on, __ATOMIC_SEQ_CST);
	return on;
}

void session_gate_alloc(struct session *s, bool open)
{
	__atomic_store_n(&s->skel->bss->gate_alloc_open, open, __ATOMIC_SEQ_CST);
}

bool session_bursts(const struct session *s)
{
	return s->opts.alloc && s->opts.calls && uprobes_session();
}

void session_syscalls(struct session *s, uint32_t calls, uint32_t stacks)
{
	__atomic_store_n(&s->skel->bss->syscall_shift, calls, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->skel->bss->syscall_stack_shift, stacks, __ATOMIC_SEQ_CST);
}

void session_calls_map(struct session *s, uint64_t root, uint64_t bits)
{
	__atomic_store_n(&s->skel->bss->calls_root, root, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->skel->bss->calls_edata, bits, __ATOMIC_SEQ_CST);
}

void session_calls_open(struct session *s, int64_t calls)
{
	__atomic_store_n(&s->skel->bss->calls_left, calls, __ATOMIC_SEQ_CST);
}

int64_t session_calls_left(const struct session *s)
{
	int64_t left = __atomic_load_n(&s->skel->bss->calls_left, __ATOMIC_SEQ_CST);

	return left > 0 ? left : 0;
}

void session_burst_open(struct session *s, uint32_t no, int64_t calls)
{
	__atomic_store_n(&s->skel->bss->burst_left, calls, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->skel->bss->burst_closed_ns, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->skel->bss->burst_no, no, __ATOMIC_SEQ_CST);
	session_gate_alloc(s, true);
}

void session_trace_open(struct session *s, int64_t hits)
{
	session_burst_open(s, 0, hits);
}

void session_trace_refill(struct session *s, int64_t hits)
{
	__atomic_store_n(&s->skel->bss->burst_left, hits, __ATOMIC_SEQ_CST);
}

int64_t session_burst_left(const struct session *s)
{
	int64_t left = __atomic_load_n(&s->skel->bss->burst_left, __ATOMIC_SEQ_CST);

	if (__atomic_load_n(&s->skel->bss->burst_closed_ns, __ATOMIC_SEQ_CST))
		return 0; /* whatever it was refilled with meanwhile */
	return left > 0 ? left : 0;
}

uint64_t session_burst_close(struct session *s)
{
	uint64_t ns;

	session_gate_alloc(s, false);
	ns = __atomic_load_n(&s->skel->bss->burst_closed_ns, __ATOMIC_SEQ_CST);
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

void session_oncpu_hz(struct session *s, double hz)
{
	uint64_t freq = hz > 1 ? (uint64_t)hz : 1;

	/* An event's own frequency is a whole number: what a sample stands for goes by that. */
	__atomic_store_n(&s->skel->bss->sample_ns,
			 s->hardware ? 1000000000 / freq : (uint64_t)(1e9 / hz), __ATOMIC_RELAXED);
	dither_hz(s->dither, hz);
	for (uint32_t i = 0; i < s->n_perf && s->hardware; i++)
		(void)!ioctl(s->perf_fds[i], PERF_EVENT_IOC_PERIOD, &freq);
}

void session_clock(struct session *s, uint64_t ns)
{
	__atomic_store_n(&s->skel->bss->clock_s, (uint32_t)(ns / 1000000000), __ATOMIC_RELAXED);
}

void session_label_sources(struct session *s)
{
	__atomic_store_n(&s->skel->bss->has_label_sources, 1, __ATOMIC_RELEASE);
}

void session_interrupts(struct session *s, uint64_t from, uint64_t to)
{
	s->skel->bss->interrupts_from = from;
	s->skel->bss->interrupts_to = to;
}

bool session_has_wakers(const struct session *s)
{
	return s->skel->rodata->cfg_wakers && s->skel->bss->interrupts_to;
}

void session_mappings_known(struct session *s, uint64_t ns)
{
	__atomic_store_n(&s->skel->bss->mappings_known_ns, ns, __ATOMIC_RELEASE);
}

void session_detach(struct session *s)
{
	dither_stop(TAKE_PTR(s->dither));
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
	session_detach_slice(s, SOURCE_OFFCPU);
	session_detach_slice(s, SOURCE_GROWTH);
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
		[SESSION_SEEN] = k->maps.seen,
		[SESSION_IRQ_SEEN] = k->maps.irq_seen,
		[SESSION_THREADS] = k->maps.threads,
		[SESSION_BLOCKS] = k->maps.blocks,
		[SESSION_INFLIGHT] = k->maps.inflight,
		[SESSION_UNWIND_POOL] = k->maps.unwind_pool,
		[SESSION_UNWIND_TABLES] = k->maps.unwind_tables,
		[SESSION_UNWIND_RULES] = k->maps.unwind_rules,
		[SESSION_SPACES] = k->maps.spaces,
		[SESSION_LANGS] = k->maps.langs,
		[SESSION_LABEL_SOURCES] = k->maps.label_sources,
		[SESSION_SITES] = k->maps.sites,
		[SESSION_MEMORIES] = k->maps.memories,
		[SESSION_SYSCALLS_NOW] = k->maps.syscalls_now,
		[SESSION_SYSCALL_TOTALS] = k->maps.syscall_totals,
		[SESSION_SYSCALL_ERRORS] = k->maps.syscall_errors,
		[SESSION_TRACE_CALLS] = k->maps.trace_calls,
		[SESSION_TRACE_NOW] = k->maps.trace_now,
		[SESSION_TRACE_RING] = k->maps.trace_ring,
		[SESSION_EVENT_ROWS] = k->maps.event_rows,
		[SESSION_EVENT_COUNTS] = k->maps.event_counts,
		[SESSION_EVENT_CALLS] = k->maps.event_calls,
		[SESSION_EVENT_OUTERMOST] = k->maps.event_outermost,
		[SESSION_EVENT_CALL_TOTALS] = k->maps.event_call_totals,
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

#define MAP_BYTES_NS 10000000000ULL

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

uint64_t session_map_bytes(struct session *s)
{
	uint64_t now = now_ns();
	struct bpf_map *map;

	if (s->map_bytes_ns && now - s->map_bytes_ns < MAP_BYTES_NS)
		return s->map_bytes;
	s->map_bytes = 0;
	s->map_bytes_ns = now;
	bpf_object__for_each_map(map, s->skel->obj) s->map_bytes += map_memlock(bpf_map__fd(map));
	return s->map_bytes;
}

void session_seed(const struct session *s, struct ms_hash *ret_seed)
{
	*ret_seed = s->seed;
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
