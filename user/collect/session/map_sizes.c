#include "collect/session/map_sizes.h"

#include "collect/session/unwind_maps.h"
#include "collect/stream/block_room.h"
#include "memscope.skel.h"

#include <bpf/libbpf.h>

uint64_t session_unwind_share(uint32_t mem_mb, bool alloc)
{
	uint64_t budget = (uint64_t)mem_mb << 20;

	return alloc ? budget / 4 : budget * 3 / 8;
}

/* Rules: libLLVM-14, 102 MiB of code, has 990 different ones, and files have most of them in
 * common. */
static void size_unwind_maps(struct memscope_bpf *k, const struct session_opts *opts,
			     uint64_t bytes)
{
	uint64_t pages = bytes / sizeof(struct ms_pool_page);

	bpf_map__set_max_entries(k->maps.unwind_pool, pages ? (uint32_t)pages : 1);
	bpf_map__set_max_entries(k->maps.unwind_tables, opts->all ? 4096 : 1024);
	bpf_map__set_max_entries(k->maps.unwind_rules, opts->all ? 32768 : 16384);
	bpf_map__set_max_entries(k->maps.spaces, opts->all ? 8192 : 2048);
	bpf_map__set_max_entries(k->maps.langs, !opts->langs ? 1 : opts->all ? 4096 : 512);
}

/* A 16th of the budget, or what is enough. */
static void size_growth_maps(struct memscope_bpf *k, const struct session_opts *opts,
			     uint64_t budget)
{
	uint64_t cpus = (uint64_t)libbpf_num_possible_cpus();
	uint64_t most = budget / 16 /
			(cpus * sizeof(struct ms_memory_cpu) + sizeof(struct ms_memory) + 2 * 56);
	uint64_t some = opts->all ? 4096 : 1024;

	if (!opts->growth)
		some = 1;
	if (some > most)
		some = most;
	bpf_map__set_max_entries(k->maps.memory_cpus, (uint32_t)some);
	bpf_map__set_max_entries(k->maps.memories, (uint32_t)some);
}

/* Threads, calls and errors of processes: a 32nd of the budget each at most, or what is enough. */
static void size_syscall_maps(struct memscope_bpf *k, const struct session_opts *opts,
			      uint64_t budget)
{
	uint64_t most[] = { budget / 32 / (sizeof(struct ms_syscall_now) + 56),
			    budget / 16 / (sizeof(struct ms_syscall_total) + 80),
			    budget / 64 / (sizeof(struct ms_syscall_key) + 56) };
	uint64_t enough[] = { opts->all ? 32768 : 4096, opts->all ? 16384 : 2048,
			      opts->all ? 8192 : 1024 };
	struct bpf_map *const maps[] = { k->maps.syscalls_now, k->maps.syscall_totals,
					 k->maps.syscall_errors };

	for (int i = 0; i < 3; i++) {
		uint64_t n = most[i] < enough[i] ? most[i] : enough[i];

		bpf_map__set_max_entries(maps[i], opts->syscalls ? (uint32_t)n : 1);
	}
}

/* The log of calls: a ring of a quarter of the budget, 8 to 64 MiB, and threads as they come. */
static void size_trace_maps(struct memscope_bpf *k, const struct session_opts *opts,
			    uint64_t budget)
{
	uint64_t ring = 8 << 20;

	while (ring * 8 <= budget && ring < (64 << 20))
		ring *= 2;
	bpf_map__set_max_entries(k->maps.trace_ring, opts->trace ? (uint32_t)ring : 4096);
	bpf_map__set_max_entries(k->maps.trace_now, opts->trace ? 8192 : 1);
	bpf_map__set_max_entries(k->maps.trace_files, opts->trace ? 16384 : 1);
	bpf_map__set_autocreate(k->maps.trace_room, opts->trace);
}

/* Calls that are timed: 1.3 MiB of those that have not returned, and of threads that are in one. */
static void size_event_maps(struct memscope_bpf *k, const struct session_opts *opts)
{
	uint32_t n = opts->n_events ? opts->n_events : 1;

	bpf_map__set_max_entries(k->maps.event_rows, n);
	bpf_map__set_max_entries(k->maps.event_counts, n);
	bpf_map__set_max_entries(k->maps.event_call_totals, opts->event_timed ? n : 1);
	bpf_map__set_max_entries(k->maps.event_calls, opts->event_timed ? 16384 : 1);
	bpf_map__set_max_entries(k->maps.event_outermost, opts->event_timed ? 16384 : 1);
}

/* Record 0 is none. */
static void size_alloc_sites(struct memscope_bpf *k, uint64_t bytes)
{
	uint32_t n =
		2 + (uint32_t)(bytes / (sizeof(struct ms_alloc_site) + sizeof(struct ms_alloc_key) +
					2 * sizeof(uint32_t) + 48 + sizeof(uint32_t)));

	bpf_map__set_max_entries(k->maps.alloc_sites, n);
	bpf_map__set_max_entries(k->maps.alloc_index, n);
	bpf_map__set_max_entries(k->maps.alloc_free, n);
}

/* Samples of a CPU have two totals at most, and are drained every second: 8 seconds of them, if that is fewer. Events that
 * were asked for have any number. As many stacks are known to have been sent. */
static uint32_t irq_totals(const struct session_opts *opts, uint32_t totals)
{
	uint64_t some = (uint64_t)opts->hz * (uint64_t)libbpf_num_possible_cpus() * 2 * 8;

	if (opts->event_programs & (1u << MS_EVENT_PERF | 1u << MS_EVENT_TRACEPOINT))
		return totals;
	if (!opts->oncpu)
		return 1;
	if (some < 1024)
		some = 1024;
	return opts->hz && some < totals ? (uint32_t)some : totals;
}

/*
 * Shares of the budget, by what an entry costs in the kernel (key, value, and 48 bytes of hash
 * bucket and element for preallocated maps, about 64 for those allocated as needed).
 */
void map_sizes_set(struct memscope_bpf *k, const struct session_opts *opts)
{
	uint64_t budget = (uint64_t)opts->mem_mb << 20;
	/* One program has fewer stacks than a host; what does not fit is drained sooner. */
	uint32_t totals = (uint32_t)(budget / (opts->all ? 16 : 44) /
				     (sizeof(struct ms_total_key) + sizeof(struct ms_total) + 48));
	uint32_t threads = opts->all ? 32768 : 4096;
	uint64_t ring = 1 << 20, share = session_unwind_share(opts->mem_mb, opts->alloc);
	uint64_t unwind = opts->unwind_bytes < share ? opts->unwind_bytes : share;
	bool calls = opts->alloc && opts->calls;
	uint32_t small = 1, unwind_caches = 0;
	uint32_t sampled = budget < (32 << 20) ? 256 : opts->all ? 2048 : 512;

	if (totals > 65536)
		totals = 65536;
	if (totals < 1024)
		totals = 1024;
	while (ring * 16 < budget && ring < (8 << 20))
		ring *= 2;
	if (!opts->all && !opts->cgroups)
		bpf_map__set_max_entries(k->maps.targets, 4096);
	bpf_map__set_max_entries(k->maps.totals_a, totals);
	bpf_map__set_max_entries(k->maps.totals_b, totals);
	bpf_map__set_max_entries(k->maps.irq_totals_a, irq_totals(opts, totals));
	bpf_map__set_max_entries(k->maps.irq_totals_b, irq_totals(opts, totals));
	bpf_map__set_max_entries(k->maps.seen, totals);
	bpf_map__set_max_entries(k->maps.irq_seen, irq_totals(opts, totals));
	bpf_map__set_max_entries(k->maps.events, (uint32_t)ring);
	bpf_map__set_max_entries(k->maps.threads, opts->offcpu ? threads : small);
	bpf_map__set_max_entries(k->maps.sampled_threads, sampled);
	bpf_map__set_max_entries(k->maps.sampled_slots, sampled);
	k->rodata->cfg_sampled_slots = sampled;
	bpf_map__set_max_entries(k->maps.inflight, calls ? threads : small);
	bpf_map__set_max_entries(k->maps.mapping_calls, calls ? threads / 8 : small);
	bpf_map__set_max_entries(k->maps.blocks,
				 calls ? block_room(budget - budget / 2 - unwind) : small);
	size_alloc_sites(k, calls ? budget / 9 : 0);
	if (opts->unwind_cache != SESSION_UNWIND_CACHE_OFF &&
	    (opts->offcpu || opts->alloc || opts->trace_stacks))
		unwind_caches =
			unwind_maps_caches(budget, bpf_map__value_size(k->maps.unwind_caches));
	k->rodata->cfg_unwind_caches = unwind_caches / UNWIND_MAPS_CACHES;
	bpf_map__set_max_entries(k->maps.unwind_caches, unwind_caches ? unwind_caches : 1);
	size_growth_maps(k, opts, budget);
	size_syscall_maps(k, opts, budget);
	size_trace_maps(k, opts, budget);
	size_event_maps(k, opts);
	size_unwind_maps(k, opts, unwind);
}
