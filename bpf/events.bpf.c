/*
 * Source: events that were asked for (-e). Three programs, by how the kernel hands an event over:
 *
 *   on_event        a perf event, software or hardware: one for each CPU, which fires once in its period
 *   on_tracepoint   a tracepoint
 *   on_site         a uprobe: a function, or a site of USDT
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

static __always_inline __u32 event_number(void *ctx, enum ms_event_program program)
{
	return cfg_cookies ? (__u32)bpf_get_attach_cookie(ctx) : cfg_event_alone[program];
}

static __always_inline bool is_drawn(__u32 one_in)
{
	return one_in == 1 || (one_in && !((__u64)bpf_get_prandom_u32() * one_in >> 32));
}

/* An event that stands for `period`. The rest of `of` says how its stack is captured. */
static __always_inline int event_add(void *ctx, __u32 number, __u64 period, struct stack_of *of)
{
	struct ms_event_count *n = bpf_map_lookup_elem(&event_counts, &number);
	const struct ms_event *event = bpf_map_lookup_elem(&event_rows, &number);
	struct ms_total_key key = { .source = MS_EVENTS, .bucket = number };
	__u64 id = bpf_get_current_pid_tgid(), w = period;
	struct ms_target *target;
	__u32 one_in;

	if (!n || !event || !gate_open)
		return 0;
	__sync_fetch_and_add(&n->fired, 1);
	if (!target_wants(NULL, id >> 32, (__u32)id, &target, &key.proc))
		return 0;
	__sync_fetch_and_add(&n->count, period);
	__sync_fetch_and_add(&n->taken, 1);
	one_in = event->one_in;
	if (!is_drawn(one_in))
		return 0;
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
	emit_add_all(stack_lane(of), &key, (void *)bpf_get_current_task(), 0, 1, w, w * (w - 1));
	return 0;
}

SEC("perf_event")
int on_event(struct bpf_perf_event_data *ctx)
{
	struct stack_of of = { .slot = SCRATCH_CPU, .may_trap = true, .once = true };

	return event_add(ctx, event_number(ctx, MS_EVENT_PERF), ctx->sample_period, &of);
}

SEC("tracepoint")
int on_tracepoint(void *ctx)
{
	struct stack_of of = { .slot = SCRATCH_CPU, .may_trap = true, .once = true };

	return event_add(ctx, event_number(ctx, MS_EVENT_TRACEPOINT), 1, &of);
}

SEC("uprobe")
int on_site(struct pt_regs *ctx)
{
	struct stack_of of = { .slot = SCRATCH_ALLOC, .flags = MS_STACK_AT_ENTRY };

	return event_add(ctx, event_number(ctx, MS_EVENT_SITE), 1, &of);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
