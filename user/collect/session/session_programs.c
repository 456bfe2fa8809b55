#include "collect/session/kernel_types.h"
#include "collect/session/session_parts.h"

/* A program that begins makes hundreds of calls before its libraries have tables: each of them has a stack. */
#define TRACE_DEFERRED_RATE (8 << 20)

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
	bpf_program__set_autoload(k->progs.see_call, false);
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
		if (!s->opts.alloc || !s->opts.sampled)
			continue;
		/* Where each call can be traced, most targets have no sampler. */
		if (s->opts.calls)
			uprobes_prepare(prog, UPROBE_ENTRY);
		else
			load_probe(prog, UPROBE_ENTRY);
	}
	if (uprobes_session() &&
	    (s->opts.event_programs & 1u << MS_EVENT_SITE || (s->opts.alloc && s->opts.calls)))
		load_probe(k->progs.trap_only, UPROBE_BOTH);
	if (!s->opts.alloc || !s->opts.calls)
		return;
	load_probe(k->progs.count_call, UPROBE_ENTRY);
	if (uprobes_session() && s->opts.results)
		load_probe(k->progs.see_call, UPROBE_ENTRY);
	for (int i = 0; i < MS_N_SHAPES; i++)
		for (int end = UPROBE_ENTRY; end <= UPROBE_BOTH; end++)
			load_probe(session_alloc_prog(s, (enum ms_shape)i, (enum uprobe_end)end),
				   (enum uprobe_end)end);
	/* Few programs have an operator new that does not call malloc. */
	s->of_new = s->opts.own_new ? SESSION_NEW_LOADED : SESSION_NEW_LATER;
	if (s->opts.own_new)
		return;
	bpf_program__set_autoload(k->progs.enter_new, false);
	bpf_program__set_autoload(k->progs.exit_new, false);
}

int session_want_new(struct session *s)
{
	struct bpf_program *const progs[] = { s->skel->progs.enter_new, s->skel->progs.exit_new };

	if (s->of_new != SESSION_NEW_LATER)
		return 0;
	s->of_new = SESSION_NEW_LOADED;
	return session_load_later(s, progs, 2);
}

int session_want_samples(struct session *s, uint32_t whats)
{
	struct bpf_program *progs[MS_N_SAMPLE_WHATS];
	uint32_t n = 0;

	for (int i = 0; i < MS_N_SAMPLE_WHATS; i++) {
		struct bpf_program *prog = session_sample_prog(s, (enum ms_sample_what)i);

		if (whats >> i & 1 && bpf_program__fd(prog) < 0)
			progs[n++] = prog;
	}
	return n ? session_load_later(s, progs, n) : 0;
}

void session_choose_programs(struct session *s, const struct btf *btf)
{
	struct memscope_bpf *k = s->skel;
	bool by_btf = btf_has_tracepoint(btf, "sched_switch");
	bool alloc = s->opts.alloc && s->opts.calls, off = s->opts.offcpu;
	bool account = by_btf && btf_has_sched_account(btf);
	bool busy = off && account && s->opts.wait_sampler && btf_has_task_regs(btf);

	s->skel->rodata->cfg_sched_account = account;
	s->skel->rodata->cfg_wait_sampler = busy;
	bpf_map__set_autocreate(k->maps.sampled_threads, busy);
	bpf_map__set_autocreate(k->maps.sampled_slots, busy);
	bpf_program__set_autoload(k->progs.find_sampled, busy);
	bpf_program__set_autoload(k->progs.list_sampled, busy);
	bpf_program__set_autoload(k->progs.resume_threads, busy);
	bpf_program__set_autoload(k->progs.on_sampled_exit, busy);
	bpf_program__set_autoload(k->progs.list_queued, off && account);
	load_either(k->progs.on_switch_btf, k->progs.on_switch_raw, by_btf, off);
	load_either(k->progs.on_wakeup_btf, k->progs.on_wakeup_raw, by_btf, off && !account);
	load_either(k->progs.on_wakeup_new_btf, k->progs.on_wakeup_new_raw, by_btf, off);
	load_either(k->progs.on_waking_btf, k->progs.on_waking_raw, by_btf, off && s->opts.wakers);
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
	bpf_program__set_autoload(k->progs.on_call_enter, s->opts.syscalls);
	bpf_program__set_autoload(k->progs.on_call_exit, s->opts.syscalls);
	bpf_program__set_autoload(k->progs.on_trace_enter, s->opts.trace);
	bpf_program__set_autoload(k->progs.on_trace_exit, s->opts.trace);
	k->rodata->cfg_trace_failed = s->opts.trace_failed;
	k->rodata->cfg_trace_stacks = s->opts.trace_stacks;
	if (s->opts.trace_stacks)
		k->rodata->cfg_deferred_rate = TRACE_DEFERRED_RATE;
	k->rodata->cfg_trace_min_ns = s->opts.trace_min_ns;
	k->rodata->cfg_trace_most = s->opts.trace_most;
	for (int i = 0; i < MS_N_EVENT_PROGRAMS; i++)
		bpf_program__set_autoload(session_event_program(s, (enum ms_event_program)i),
					  s->opts.event_programs >> i & 1);
	uprobes_prepare(k->progs.on_site, UPROBE_ENTRY);
	uprobes_prepare(k->progs.on_site_return, UPROBE_ENTRY);
	bpf_program__set_autoload(k->progs.on_mmap,
				  s->opts.unwind_bytes && btf_has_cheap_mmap_lock(btf));
	choose_probes(s);
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

struct bpf_program *session_event_program(const struct session *s, enum ms_event_program which)
{
	struct memscope_bpf *k = s->skel;
	struct bpf_program *progs[MS_N_EVENT_PROGRAMS] = {
		[MS_EVENT_PERF] = k->progs.on_event,
		[MS_EVENT_TRACEPOINT] = k->progs.on_tracepoint,
		[MS_EVENT_SITE] = k->progs.on_site,
		[MS_EVENT_RETURN] = k->progs.on_site_return,
	};

	return progs[which];
}

struct bpf_program *session_count_prog(struct session *s)
{
	return s->skel->progs.count_call;
}

struct bpf_program *session_call_prog(struct session *s)
{
	return s->opts.alloc && s->opts.calls && s->opts.results && uprobes_session()
		       ? s->skel->progs.see_call
		       : NULL;
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
	const struct bpf_object_skeleton *k = s->skel->skeleton;
	const struct bpf_program *prog = i < (uint32_t)k->prog_cnt ? *k->progs[i].prog : NULL;

	if (!prog || bpf_program__fd(prog) < 0)
		return -1;
	*ret_name = bpf_program__name(prog);
	return bpf_program__fd(prog);
}
