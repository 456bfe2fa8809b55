/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: growth. The kernel reports whenever the resident pages of an address space change
 * (rss_stat), but not by how much: that is the difference of its counters before and after.
 *
 * Since 6.2 a counter is a sum and a part for each CPU, which is folded into the sum when it
 * reaches a batch (kernel commit f1a7941243c1). This CPU's part gives an event's pages exactly;
 * where an event has folded it, the sum does:
 *
 *   part not 0   pages = part - part as last seen
 *   part is 0    pages = sum - sum as last seen, less the part as last seen
 *
 * The values last seen are updated by the same differences, so all differences add up to the change
 * of the counter, whatever two CPUs see at one time. Where a CPU's part cannot be read, only the
 * sum is used. So it is before 6.2, where each thread keeps its own part and folds it at every 64th
 * page fault: the stack of that fault is charged with all pages since the last fold.
 *
 * Stacks: of every MS_GROWTH_PAGES pages that a CPU sees come (or go) in an address space, the last
 * has its stack captured, which represents all of them; an event of more pages represents itself.
 * The first page of a CPU is drawn at random, so every page is equally likely to be sampled.
 * MS_GROWTH_PAGES is a prime, because programs work in powers of two. All pages are in the counters
 * of stats.def, with a stack or without.
 *
 * In a duty cycle (slices.h) a page stands for 2^shift. What came and went between two slices is in the counters of an
 * address space when a CPU sees it first in a slice: how much of the difference is the event's own cannot be known. It is taken to
 * be one page in that direction, which it is but for huge pages: such a process's growth is too small by one event of each CPU and slice.
 *
 * An address space that no task runs in yet is being made, by fork or exec: pages that come then
 * are no growth, and pages taken down by an exit are not released by anyone.
 *
 * The program runs at the event, often with a page table's lock held and with preemption off.
 * Nothing here faults: user memory is read only where it is present.
 */
#include "common.bpf.h"
#include "emit.bpf.h"
#include "slices.h"
#include "stack.bpf.h"

#define CPUS_MAX 512 /* whose parts are read when a run begins */

#define PF_EXITING_BIT 0x00000004 /* linux/sched.h */
#define PF_KTHREAD_BIT 0x00200000

/* Member of rss_stat (linux/mm_types_task.h). Pages that are swapped out are not resident. */
enum {
	MEMBER_FILE,
	MEMBER_ANON,
	MEMBER_SWAP,
	MEMBER_SHARED,
	N_MEMBERS,
};

struct mm_struct___parts {
	struct percpu_counter rss_stat[N_MEMBERS];
} __attribute__((preserve_access_index));

struct mm_rss_stat___sums {
	atomic_long_t count[N_MEMBERS];
} __attribute__((preserve_access_index));

struct mm_struct___sums {
	struct mm_rss_stat___sums rss_stat;
} __attribute__((preserve_access_index));

struct mm_struct___owned {
	struct task_struct *owner; /* with CONFIG_MEMCG */
} __attribute__((preserve_access_index));

/*
 * Where each CPU's variables are, as an offset to a per-CPU pointer. The kernel's own list of
 * offsets is not always readable (without CONFIG_KALLSYMS_ALL), but this map is in per-CPU memory
 * itself: the offset is the address of a CPU's slot less the map's pointer. `scratch`: a pointer
 * becomes a number when it is written to a map and read again; one for on_rss, one for list_memory.
 */
struct cpu_offset {
	__u64 off;
	__u64 scratch[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_offset);
} cpu_offsets __weak SEC(".maps");

/* Fills in `of`; `here` is this CPU's. */
static __always_inline void cpu_offset_learn(struct cpu_offset *of, struct cpu_offset *here,
					     int user)
{
	volatile __u64 *number = &here->scratch[user];
	struct bpf_array *map;
	__u64 base = 0;

	*number = (__u64)&cpu_offsets;
	map = (struct bpf_array *)*number;
	if (bpf_probe_read_kernel(&base, sizeof(base),
				  __builtin_preserve_access_index(&map->pptrs[0])))
		return;
	*number = (__u64)of;
	of->off = *number - base;
}

/* Of this CPU; 0: unknown. */
static __always_inline __u64 cpu_off(void)
{
	__u32 zero = 0;
	struct cpu_offset *here = bpf_map_lookup_elem(&cpu_offsets, &zero);

	if (!here)
		return 0;
	if (!here->off)
		cpu_offset_learn(here, here, 0);
	return here->off;
}

/* Of any CPU, for list_memory. */
static __always_inline __u64 cpu_off_of(__u32 cpu)
{
	__u32 zero = 0;
	struct cpu_offset *here = bpf_map_lookup_elem(&cpu_offsets, &zero);
	struct cpu_offset *there = bpf_map_lookup_percpu_elem(&cpu_offsets, &zero, cpu);

	if (!here || !there)
		return 0;
	if (!there->off)
		cpu_offset_learn(there, here, 1);
	return there->off;
}

/* Feature test: where counters have no parts, the sum is the tracepoint's third argument. */
static __always_inline bool has_parts(void)
{
	return bpf_core_field_exists(((struct mm_struct___parts *)0)->rss_stat[0].counters);
}

static __always_inline struct percpu_counter *mm_counter(__u64 mm, __u32 member)
{
	const char *first = (const char *)&((struct mm_struct___parts *)mm)->rss_stat;

	return (struct percpu_counter *)(first +
					 member * bpf_core_type_size(struct percpu_counter));
}

/* The sum of a counter, without the parts of CPUs. */
static __always_inline __s64 mm_sum(__u64 mm, __u32 member)
{
	struct mm_struct___sums *old = (void *)mm;
	__s64 sum = 0;

	if (has_parts())
		return BPF_CORE_READ(mm_counter(mm, member), count);
	bpf_probe_read_kernel(&sum, sizeof(sum),
			      (const char *)&old->rss_stat + member * sizeof(sum));
	return sum;
}

/* A CPU's part of a counter, at address `at`. 0 when the address is unknown: then only the sum is
 * used. */
static __always_inline __s32 part_read(__u64 at)
{
	__s32 part = 0;

	if (at)
		bpf_probe_read_kernel(&part, sizeof(part), (void *)at);
	return part;
}

/* The task that the memory is charged to; 0: none any more. Without memory cgroups the kernel does
 * not keep it. */
static __always_inline __u64 mm_owner(__u64 mm)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (bpf_core_field_exists(((struct mm_struct___owned *)0)->owner))
		return (__u64)BPF_CORE_READ((struct mm_struct___owned *)mm, owner);
	return (__u64)BPF_CORE_READ(task, mm) == mm ? (__u64)BPF_CORE_READ(task, group_leader) : 0;
}

/* The address space has no owner any more, or an unwatched one: it is taken down. Its first pages
 * have just gone, so what it had is what was last seen on this CPU, including the parts that other
 * CPUs have folded; only pages that came since it was first seen count. */
static __always_inline void memory_end(__u64 mm, const struct ms_memory *m)
{
	struct ms_memory_cpu *c = bpf_map_lookup_elem(&memory_cpus, &mm);
	__s64 pages = -m->base;

	for (int i = 0; i < N_MEMBERS; i++)
		if (i != MEMBER_SWAP)
			pages += m->sum[i] + (c && c->born_ns == m->born_ns ? c->part[i] : 0);
	stat_add(STAT_MEMORY_ENDED, pages);
}

static __always_inline void memory_forget(__u64 mm)
{
	bpf_map_delete_elem(&memories, &mm);
	bpf_map_delete_elem(&memory_cpus, &mm);
}

static __always_inline void memory_add(__u64 mm, __u64 owner, const struct ms_proc *proc,
				       bool from_birth)
{
	struct ms_memory fresh = { .owner = owner, .born_ns = bpf_ktime_get_ns() };

	bpf_map_delete_elem(&memory_cpus, &mm);
	fresh.proc = *proc;
	fresh.slice = growth_slice_no;
	if (from_birth)
		fresh.flags = MS_MEMORY_WHOLE | MS_MEMORY_MADE;
	for (__u32 i = 0; i < N_MEMBERS && !from_birth; i++) {
		fresh.sum[i] = mm_sum(mm, i);
		if (i != MEMBER_SWAP)
			fresh.base += fresh.sum[i];
	}
	if (bpf_map_update_elem(&memories, &mm, &fresh, BPF_ANY))
		stat_inc(STAT_MEMORY_FULL);
}

/*
 * An address space that is not known, or has another owner than recorded: returns 1 when it is
 * watched, and then it is in `memories`.
 */
__noinline int memory_meet(__u64 mm)
{
	__u64 owner = mm_owner(mm);
	struct task_struct *task = (void *)owner;
	struct ms_memory *m = bpf_map_lookup_elem(&memories, &mm);
	struct ms_target *target;
	struct ms_proc proc = {};
	bool made;

	if (!owner || !target_wants(task, BPF_CORE_READ(task, tgid),
				    cfg_tid ?: BPF_CORE_READ(task, pid), &target, &proc)) {
		if (!m)
			return 0;
		if (!owner)
			memory_end(mm, m);
		memory_forget(mm);
		return 0;
	}
	made = (__u64)BPF_CORE_READ(task, mm) != mm &&
	       !(BPF_CORE_READ(task, flags) & PF_EXITING_BIT);
	if (m && m->owner == owner) {
		if (m->flags & MS_MEMORY_MADE && !made) {
			m->flags &= ~MS_MEMORY_MADE;
			m->proc = proc;
		}
		return 1;
	}
	if (m && !made && m->proc.tgid == proc.tgid && m->proc.start_ns == proc.start_ns) {
		m->owner = owner; /* the thread that was the owner has ended */
		return 1;
	}
	memory_add(mm, owner, &proc, made);
	return 1;
}

/* Brings a CPU's record of an address space, with its variables at `off`, up to date with the
 * record for all CPUs. 1: what that CPU kept of the counters before now is unknown. */
static __always_inline int memory_cpu_set(struct ms_memory_cpu *c, const struct ms_memory *m,
					  __u64 mm, __u64 off)
{
	c->owner = m->owner;
	c->flags = m->flags;
	if (c->born_ns == m->born_ns)
		return 0;
	c->born_ns = m->born_ns;
	c->slice = growth_slice_no;
	c->waiting[0] = bpf_get_prandom_u32() % MS_GROWTH_PAGES;
	c->waiting[1] = bpf_get_prandom_u32() % MS_GROWTH_PAGES;
	if (!has_parts() || !off)
		return 0;
	for (__u32 i = 0; i < N_MEMBERS; i++) {
		c->part_at[i] = (__u64)BPF_CORE_READ(mm_counter(mm, i), counters) + off;
		if (!(m->flags & MS_MEMORY_WHOLE))
			c->part[i] = part_read(c->part_at[i]);
	}
	return !(m->flags & MS_MEMORY_WHOLE);
}

/* The same for this CPU, in the table. */
__noinline int memory_meet_here(__u64 mm)
{
	struct ms_memory *m = bpf_map_lookup_elem(&memories, &mm);
	struct ms_memory_cpu *c = bpf_map_lookup_elem(&memory_cpus, &mm), fresh = {};

	if (!m)
		return 0;
	if (!c) {
		if (bpf_map_update_elem(&memory_cpus, &mm, &fresh, BPF_NOEXIST))
			stat_inc(STAT_MEMORY_FULL);
		c = bpf_map_lookup_elem(&memory_cpus, &mm);
	}
	return c ? memory_cpu_set(c, m, mm, has_parts() ? cpu_off() : 0) : 0;
}

/* The same for any CPU, once it is in the table. */
__noinline int memory_meet_there(__u64 mm, __u32 cpu)
{
	struct ms_memory *m = bpf_map_lookup_elem(&memories, &mm);
	struct ms_memory_cpu *c;

	if (!has_parts())
		return 0; /* some such kernels lack the helper below */
	c = bpf_map_lookup_percpu_elem(&memory_cpus, &mm, cpu);
	if (m && c && c->born_ns != m->born_ns)
		memory_cpu_set(c, m, mm, cpu_off_of(cpu));
	return 0;
}

/*
 * The pages of this event. `fresh`: the CPU's previous part is unknown; then a fold only shows that
 * it was less than a batch.
 */
static __always_inline __s64 memory_pages(struct ms_memory_cpu *c, __u64 mm, __u32 member,
					  __s64 sum, bool fresh)
{
	struct ms_memory *m;
	__s64 pages = 0, moved;
	__s32 part;

	if (has_parts()) {
		part = part_read(c->part_at[member]);
		pages = part - c->part[member];
		c->part[member] = part;
		if (part)
			return pages;
		sum = BPF_CORE_READ(mm_counter(mm, member), count);
	}
	m = bpf_map_lookup_elem(&memories, &mm);
	if (!m)
		return pages;
	moved = sum - m->sum[member];
	__sync_fetch_and_add(&m->sum[member], moved);
	if (fresh && moved < 2 * cfg_rss_batch && moved > -2 * cfg_rss_batch)
		moved = 0;
	return pages + moved;
}

/*
 * This CPU sees an address space for the first time in this slice, at a change of `member`: all that is last seen is from before.
 * The pages of the event.
 */
static __noinline int memory_resume(struct ms_memory_cpu *c, __u64 mm, __u32 member)
{
	struct ms_memory *m = bpf_map_lookup_elem(&memories, &mm);
	bool stale = m && m->slice != growth_slice_no;
	__s64 change = 0;

	if (!c || !m)
		return 0;
	c->slice = m->slice = growth_slice_no;
	for (__u32 i = 0; i < N_MEMBERS; i++) {
		__s32 part = has_parts() ? part_read(c->part_at[i]) : 0;
		__s64 sum = stale ? mm_sum(mm, i) : m->sum[i];

		if (i == member)
			change = part - c->part[i] + (sum - m->sum[i]);
		c->part[i] = part;
		m->sum[i] = sum;
	}
	return change > 0 ? 1 : change < 0 ? -1 : 0;
}

/* Without an atomic operation: only this program counts these, and it does not nest on a CPU. */
static __always_inline void pages_add(enum stat_id id, __u64 n)
{
	__u32 key = id;
	__u64 *slot = bpf_map_lookup_elem(&stats, &key);

	if (slot)
		*slot += n;
}

/* `what`: enum ms_state, and enum ms_memory_kind above it. */
#define WHAT_MEMORY_SHIFT 8

static __noinline int growth_add(void *ctx, __u64 mm, __u64 owner, __u32 what, __u64 pages)
{
	struct task_struct *task = (void *)bpf_get_current_task(), *whose = (void *)owner;
	struct ms_total_key key = { .source = MS_GROWTH };
	struct stack_of of = {
		.source = MS_GROWTH, .slot = SCRATCH_GROWTH, .may_trap = true, .once = true
	};
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct ms_target *target;

	if (!target_wants(whose, BPF_CORE_READ(whose, tgid), cfg_tid ?: BPF_CORE_READ(whose, pid),
			  &target, &key.proc))
		return 0;
	key.state = (__u8)what;
	key.memory = (__u8)(what >> WHAT_MEMORY_SHIFT);
	key.tid = key.proc.tgid == pid_tgid >> 32 ? (__u32)pid_tgid : key.proc.tgid;
	key.as_gen = target_as_gen(target);
	key.slot = slot_at(bpf_ktime_get_ns(), MS_SLOT_NS);
	of.proc = &key.proc;
	of.as_gen = key.as_gen;
	/* Not by reclaim, a debugger or another process's system call: they have no user stack of
	 * this one. */
	if (cfg_user_stacks && (__u64)BPF_CORE_READ(task, mm) == mm &&
	    !(BPF_CORE_READ(task, flags) & PF_KTHREAD_BIT))
		stack_capture(ctx, &of, &key.user);
	of.flags = MS_STACK_KERNEL | MS_STACK_AT_RSS;
	if (cfg_kernel_stacks)
		stack_capture(ctx, &of, &key.kernel);
	stat_inc(STAT_GROWTH_SAMPLES);
	emit_add(MS_LANE_TASK, &key, whose, 1, pages * cfg_page_bytes);
	return 0;
}

static __always_inline void on_rss(void *ctx, __u64 mm, __u32 member, __s64 sum)
{
	const volatile struct ms_slice *slice = &growth_slices[growth_slice_no & 1];
	__u32 shift = slice->shift % 32;
	__u64 owner, pages;
	struct ms_memory_cpu *c;
	bool fresh = false;
	__s64 change;
	__u32 gone;
	__u32 memory;

	if (!gate_open || growth_rest || member == MEMBER_SWAP || member >= N_MEMBERS ||
	    (shift && !slice_has(slice, bpf_ktime_get_ns())))
		return;
	pages_add(STAT_GROWTH_EVENTS, 1);
	owner = mm_owner(mm);
	c = bpf_map_lookup_elem(&memory_cpus, &mm);
	/* On a CPU that has not seen it, it has no owner either. */
	if (!c || !owner || c->owner != owner || c->flags & MS_MEMORY_MADE) {
		if (!memory_meet(mm))
			return;
		fresh = memory_meet_here(mm);
		c = bpf_map_lookup_elem(&memory_cpus, &mm);
		if (!c)
			return;
	}
	change = c->slice != growth_slice_no ? memory_resume(c, mm, member)
					     : memory_pages(c, mm, member, sum, fresh);
	if (!change || (cfg_tid && (__u32)bpf_get_current_pid_tgid() != cfg_tid))
		return;
	if (c->flags & MS_MEMORY_MADE) {
		stat_add(STAT_MEMORY_MADE, (__u64)change << shift);
		return;
	}
	c->net += change;
	gone = change < 0;
	pages = gone ? -change : change;
	memory = member == MEMBER_SHARED ? MS_MEMORY_SHARED : member;
	pages_add((gone ? STAT_RETURNED_FILE : STAT_RESIDENT_FILE) + memory, pages << shift);
	if (pages < MS_GROWTH_PAGES) {
		pages += c->waiting[gone];
		c->waiting[gone] = pages;
		if (pages < MS_GROWTH_PAGES)
			return;
		c->waiting[gone] = pages - MS_GROWTH_PAGES;
		pages = MS_GROWTH_PAGES;
	}
	growth_add(ctx, mm, owner, (gone ? MS_RETURNED : MS_RESIDENT) | memory << WHAT_MEMORY_SHIFT,
		   pages << shift);
}

/* Raw on all kernels: typed arguments would help little here. */
SEC("raw_tp/rss_stat")
int on_rss_stat(struct bpf_raw_tracepoint_args *ctx)
{
	on_rss(ctx, ctx->args[0], (__u32)ctx->args[1], has_parts() ? 0 : (__s64)ctx->args[2]);
	return 0;
}

/* The counters on all CPUs when a run begins, for the processes it names. */
SEC("iter/task")
int list_memory(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 mm = task ? (__u64)BPF_CORE_READ(task, mm) : 0;

	if (!mm || !memory_meet(mm))
		return 0;
	memory_meet_here(mm);
	if (!has_parts())
		return 0;
	for (__u32 cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (cpu >= cfg_cpus)
			break;
		memory_meet_there(mm, cpu);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
