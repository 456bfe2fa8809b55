/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: events that were asked for (-e). Programs by how the kernel hands an event over:
 *
 *   on_event        a perf event, software or hardware: one for each CPU, which fires once in its period
 *   on_tracepoint   a tracepoint
 *   on_site         a uprobe: a function, or a site of USDT
 *   on_site_return  a uprobe: an instruction by which a function returns, whose calls are timed (--count)
 *
 * Each event of those who are watched is counted, whatever becomes of its stack; of stacks one in `one_in` is captured, by
 * chance, and stands for as many. `one_in` is raised by user space where all would cost more than --max-overhead.
 *
 * on_event and on_tracepoint share the scratch and the lane of on_cpu: the kernel lets no program of these kinds run within
 * another one on the same CPU (bpf_prog_active). What it leaves out for that is in the account of the program
 * (recursion_misses).
 */
#include "common.bpf.h"
#include "emit.bpf.h"
#include "histogram.bpf.h"
#include "stack.bpf.h"

/* Events, by number. Written by user space. Sizes set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ms_event);
} event_rows __weak SEC(".maps");

/* Written here, read by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ms_event_count);
} event_counts __weak SEC(".maps");

/* Calls that have not returned. Full: ms_call_total.lost. Those that never will are replaced by the next one at their place, and
 * removed by user space when their process has ended. Sizes set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ms_call_key);
	__type(value, struct ms_call);
} event_calls __weak SEC(".maps");

/* Full: a call counts as outermost. Those of threads that have ended are removed by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct ms_call_thread);
	__type(value, struct ms_call_outermost);
} event_outermost __weak SEC(".maps");

/* By number. Written here, read by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ms_call_total);
} event_call_totals __weak SEC(".maps");

static __always_inline __u32 event_number(void *ctx, enum ms_event_program program)
{
	return cfg_cookies ? (__u32)bpf_get_attach_cookie(ctx) : cfg_event_alone[program];
}

static __always_inline bool is_drawn(__u32 one_in)
{
	return one_in == 1 || (one_in && !((__u64)bpf_get_prandom_u32() * one_in >> 32));
}

/* w(w - 1), or as much as there is room for, some times over. */
static __always_inline __u64 variance_of(__u64 w)
{
	return w >> 31 ? 1ULL << 62 : w * (w - 1);
}

/* An event that stands for `period`. The rest of `of` says how its stack is captured. Returns whether it is one of those watched. */
static __always_inline bool event_add(void *ctx, __u32 number, __u64 period, struct stack_of *of)
{
	struct ms_event_count *n = bpf_map_lookup_elem(&event_counts, &number);
	const struct ms_event *event = bpf_map_lookup_elem(&event_rows, &number);
	struct ms_total_key key = { .source = MS_EVENTS, .bucket = number };
	__u64 id = bpf_get_current_pid_tgid(), w = period;
	struct ms_target *target;
	__u32 one_in;

	if (!n || !event)
		return false;
	/* Also while the gate is shut: user space compares it to what the kernel counts. */
	__sync_fetch_and_add(&n->fired, 1);
	if (!gate_open || !target_wants(NULL, id >> 32, (__u32)id, &target, &key.proc))
		return false;
	__sync_fetch_and_add(&n->count, period);
	__sync_fetch_and_add(&n->taken, 1);
	one_in = event->one_in;
	if (!is_drawn(one_in))
		return true;
	__sync_fetch_and_add(&n->stacks, 1);
	stat_inc(STAT_EVENT_STACKS);
	w *= one_in;
	key.tid = (__u32)id;
	key.as_gen = of->as_gen = target_as_gen(target);
	key.slot = slot_at(bpf_ktime_get_ns(), MS_SLOT_NS);
	of->source = MS_EVENTS;
	of->proc = &key.proc;
	if (of->flags & MS_STACK_AT_ENTRY && !event->at_entry)
		of->flags = 0;
	if (cfg_user_stacks)
		stack_capture(ctx, of, &key.user);
	of->flags = MS_STACK_KERNEL;
	if (cfg_kernel_stacks && of->slot == SCRATCH_CPU)
		stack_capture(ctx, of, &key.kernel);
	emit_add_all(stack_lane(of), &key, (void *)bpf_get_current_task(), 0, 1, w, variance_of(w));
	return true;
}

SEC("perf_event")
int on_event(struct bpf_perf_event_data *ctx)
{
	struct stack_of of = { .slot = SCRATCH_CPU, .may_trap = true, .once = true };

	event_add(ctx, event_number(ctx, MS_EVENT_PERF), ctx->sample_period, &of);
	return 0;
}

/* 0 would keep the tracepoint from everyone else who has a perf event of it (trace_call_bpf() in perf_trace_run_bpf_submit()): another
 * profiler would count none while we run. */
SEC("tracepoint")
int on_tracepoint(void *ctx)
{
	struct stack_of of = { .slot = SCRATCH_CPU, .may_trap = true, .once = true };

	event_add(ctx, event_number(ctx, MS_EVENT_TRACEPOINT), 1, &of);
	return 1;
}

/*
 * Is this call, whose return address is at `sp`, within another one? The stack grows downwards. An exception or longjmp() may have
 * ended that one: then the place of its return address soon has something else.
 */
static __always_inline bool call_is_nested(__u64 id, __u32 number, __u64 sp)
{
	struct ms_call_thread thread = { .id = id, .number = number };
	struct ms_call_outermost *outermost = bpf_map_lookup_elem(&event_outermost, &thread), this;
	__u64 back = 0;

	if (outermost && outermost->sp > sp &&
	    bpf_probe_read_user(&back, sizeof(back), (void *)outermost->sp) == 0 &&
	    back == outermost->back)
		return true;
	this.sp = sp;
	if (bpf_probe_read_user(&this.back, sizeof(this.back), (void *)sp))
		this.back = 0;
	bpf_map_update_elem(&event_outermost, &thread, &this, BPF_ANY);
	return false;
}

static __always_inline void call_begin(struct pt_regs *ctx, __u32 number)
{
	struct ms_call_total *total = bpf_map_lookup_elem(&event_call_totals, &number);
	__u64 id = bpf_get_current_pid_tgid();
	struct ms_call_key key = { .sp = PT_REGS_SP(ctx), .pid = id >> 32, .number = number };
	struct ms_call call = { .tid = (__u32)id };

	if (!total)
		return;
	call.nested = call_is_nested(id, number, key.sp);
	if (bpf_map_lookup_elem(&event_calls, &key))
		__sync_fetch_and_add(&total->left, 1);
	/* Last: what all that took is not the function's. */
	call.begin_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&event_calls, &key, &call, BPF_ANY))
		__sync_fetch_and_add(&total->lost, 1);
}

static __always_inline void call_outermost_ends(const struct ms_call_key *key,
						const struct ms_call *call)
{
	struct ms_call_thread thread = { .id = (__u64)key->pid << 32 | call->tid,
					 .number = key->number };
	struct ms_call_outermost *outermost = bpf_map_lookup_elem(&event_outermost, &thread);

	if (outermost && outermost->sp == key->sp)
		bpf_map_delete_elem(&event_outermost, &thread);
}

SEC("uprobe")
int on_site(struct pt_regs *ctx)
{
	struct stack_of of = { .slot = SCRATCH_ALLOC, .flags = MS_STACK_AT_ENTRY };
	__u32 number = event_number(ctx, MS_EVENT_SITE);
	const struct ms_event *event;

	if (!event_add(ctx, number, 1, &of))
		return 0;
	event = bpf_map_lookup_elem(&event_rows, &number);
	if (event && event->timed)
		call_begin(ctx, number);
	return 0;
}

/* The return address is on top of the stack, as it was when the function began. A call that began before has no row. */
SEC("uprobe")
int on_site_return(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns(), ns;
	__u32 number = event_number(ctx, MS_EVENT_RETURN), part;
	struct ms_call_key key = { .sp = PT_REGS_SP(ctx),
				   .pid = bpf_get_current_pid_tgid() >> 32,
				   .number = number };
	struct ms_event_count *n = bpf_map_lookup_elem(&event_counts, &number);
	struct ms_call_total *total = bpf_map_lookup_elem(&event_call_totals, &number);
	struct ms_call *found = bpf_map_lookup_elem(&event_calls, &key), call;

	if (!n || !total)
		return 0;
	__sync_fetch_and_add(&n->returns, 1);
	if (!found || !gate_open)
		return 0;
	call = *found;
	bpf_map_delete_elem(&event_calls, &key);
	ns = now_ns > call.begin_ns ? now_ns - call.begin_ns : 0;
	__sync_fetch_and_add(&total->returned, 1);
	__sync_fetch_and_add(&total->ns, ns);
	part = histogram_part(ns);
	if (part < MS_SYSCALL_PARTS)
		__sync_fetch_and_add(&total->parts[part], 1);
	if (ns > n->longest_ns)
		n->longest_ns = ns;
	if (!n->shortest_ns || ns < n->shortest_ns)
		n->shortest_ns = ns;
	if (call.nested)
		return 0;
	__sync_fetch_and_add(&total->outer, 1);
	__sync_fetch_and_add(&total->outer_ns, ns);
	call_outermost_ends(&key, &call);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
