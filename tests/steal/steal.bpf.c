// SPDX-License-Identifier: GPL-2.0
/*
 * Takes a CPU away from all that runs on it, as a hypervisor does: a timer's interrupt that does not
 * return for a while. No timer fires meanwhile, and the scheduler knows nothing of it.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h> /* uses the types of that one */

__u64 mean_ns; /* of one theft; each is 0 to twice that */
__u64 thefts;
__u64 stolen_ns;

static long is_over(__u32 i, void *ctx)
{
	__u64 *until = ctx;

	return bpf_ktime_get_ns() >= *until;
}

SEC("perf_event")
int steal(void *ctx)
{
	__u64 begin = bpf_ktime_get_ns(), until = begin + bpf_get_prandom_u32() % (2 * mean_ns + 1);

	bpf_loop(1 << 23, is_over, &until, 0);
	__sync_fetch_and_add(&thefts, 1);
	__sync_fetch_and_add(&stolen_ns, bpf_ktime_get_ns() - begin);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
