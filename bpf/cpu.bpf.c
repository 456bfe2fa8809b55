/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source: on-CPU. One perf event per CPU; each sample of a watched task adds its weight
 * (sample_weight.h) to the total of its stacks. It is an NMI where the event counts hardware
 * cycles: it shares no map that takes a lock with any other program (abi.h: enum ms_lane).
 */
#include "bench.bpf.h"
#include "common.bpf.h"
#include "emit.bpf.h"
#include "labels.bpf.h"
#include "locks.bpf.h"
#include "sample_weight.h"
#include "stack.bpf.h"

#if defined(__TARGET_ARCH_x86)
/* Contexts can only be read in whole words, and without CO-RE relocation: since FRED, cs is a bit
 * field of 2 bytes, at the same offset. */
static __always_inline __u64 read_cs(struct bpf_perf_event_data *ctx)
{
	__u64 cs;

	asm volatile("%0 = *(u64 *)(%1 + %2)"
		     : "=r"(cs)
		     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, cs)));
	return cs;
}
#endif

/* Of every firing, whoever it finds. */
static __always_inline __u64 weight_ns(__u64 now_ns)
{
	__u32 key = 0;
	__u64 *last_ns = cfg_sample_dither ? bpf_map_lookup_elem(&oncpu_fired, &key) : NULL;

	return last_ns ? sample_weight_ns(last_ns, now_ns, sample_ns) : sample_ns;
}

SEC("perf_event")
int on_cpu(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 id = bpf_get_current_pid_tgid();
	struct ms_total_key key = { .source = MS_ONCPU };
	struct stack_of of = { .source = MS_ONCPU, .slot = SCRATCH_CPU, .proc = &key.proc };
	struct ms_target *target;
	__u64 begin = bench_begin(), now_ns = bpf_ktime_get_ns(), value = weight_ns(now_ns);

	if (!target_wants(task, id >> 32, (__u32)id, &target, &key.proc))
		return 0;
	key.as_gen = of.as_gen = target_as_gen(target);
#if defined(__TARGET_ARCH_x86)
	of.may_trap = !(read_cs(ctx) & 3); /* the kernel was interrupted */
#endif
	stat_inc(STAT_ONCPU_SAMPLES);
	key.tid = (__u32)id;
	key.slot = slot_at(now_ns, cfg_oncpu_slot_ns);
	key.bucket = labels_now(&key.proc, SCRATCH_CPU);
	if (cfg_user_stacks)
		stack_capture(ctx, &of, &key.user);
	of.flags = MS_STACK_KERNEL;
	if (cfg_kernel_stacks)
		stack_capture(ctx, &of, &key.kernel);
	emit_add(MS_LANE_IRQ, &key, task, 1, value);
	if (cfg_threads)
		lock_on_cpu(&key, task, value);
	bench_end(MS_ONCPU, begin);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
