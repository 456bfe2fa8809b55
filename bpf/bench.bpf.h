/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In the build that `make bench` measures (-DMS_BENCH), and nowhere else: how long programs take,
 * by source. `bpf_stats` has only their mean, with the runs that find nobody of interest in it.
 */
#ifndef MEMSCOPE_BENCH_BPF_H
#define MEMSCOPE_BENCH_BPF_H

#include "common.bpf.h"

#ifdef MS_BENCH

/*
 * Counts of durations: of [2^e, 2^(e+1)) ns, 16 equal parts each, so that a part is at most 6 % of
 * what it holds. [source * BENCH_PARTS + 16 * e + part]; read by tests/bench/walk.py.
 */
#define BENCH_PARTS 512
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MS_N_SOURCES * BENCH_PARTS);
	__type(key, __u32);
	__type(value, __u64);
} bench_ns __weak SEC(".maps");

static __always_inline __u64 bench_begin(void)
{
	return bpf_ktime_get_ns();
}

static __always_inline void bench_end(enum ms_source source, __u64 since_ns)
{
	__u64 ns = bpf_ktime_get_ns() - since_ns, v = ns | 16;
	__u32 e = 0, key;
	__u64 *n;

	for (__u32 step = 16; step; step /= 2) {
		if (v >> (e + step))
			e += step;
	}
	key = source * BENCH_PARTS + (16 * e + (__u32)(v >> (e - 4) & 15)) % BENCH_PARTS;
	n = bpf_map_lookup_elem(&bench_ns, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
}

#else

static __always_inline __u64 bench_begin(void)
{
	return 0;
}

static __always_inline void bench_end(enum ms_source source, __u64 since_ns)
{
	(void)source;
	(void)since_ns;
}

#endif
#endif
