/* Shares of --mem: the maps of a session, by what their entries cost. No rights: the maps are not made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/session/map_sizes.h"

#include "slices.h"

#include "memscope.skel.h"

#include <bpf/libbpf.h>
#include <stdbool.h>

#define MIB (1ULL << 20)

static struct session_opts everything(uint32_t mem_mb)
{
	return (struct session_opts){
		.oncpu = true,
		.offcpu = true,
		.alloc = true,
		.growth = true,
		.calls = true,
		.user_stacks = true,
		.mem_mb = mem_mb,
		.unwind_bytes = UINT64_MAX,
	};
}

static struct memscope_bpf *sized(const struct session_opts *opts)
{
	struct memscope_bpf *k = memscope_bpf__open();

	assert_non_null(k);
	map_sizes_set(k, opts);
	return k;
}

/* Keys and values alone: what the kernel adds to each is in the sizes of map_sizes.c. */
static uint64_t bytes_of(const struct bpf_map *map)
{
	uint64_t cpus = (uint64_t)libbpf_num_possible_cpus(), value = bpf_map__value_size(map);

	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_RINGBUF:
		return bpf_map__max_entries(map);
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
		value *= cpus;
		break;
	default:
		break;
	}
	return bpf_map__max_entries(map) * (bpf_map__key_size(map) + value);
}

static uint64_t bytes_of_all(struct memscope_bpf *k)
{
	const struct bpf_map *map;
	uint64_t sum = 0;

	bpf_object__for_each_map(map, k->obj) sum += bytes_of(map);
	return sum;
}

static void unwind_tables_have_less_where_allocations_need_the_room(void **state)
{
	(void)state;
	assert_int_equal(session_unwind_share(64, true), 16 * MIB);
	assert_int_equal(session_unwind_share(64, false), 24 * MIB);
}

static void all_maps_together_keep_to_the_budget(void **state)
{
	static const uint32_t budgets_mb[] = { 64, 128, 512, 2048 };

	(void)state;
	for (unsigned i = 0; i < sizeof(budgets_mb) / sizeof(*budgets_mb); i++) {
		struct session_opts opts = everything(budgets_mb[i]);
		struct memscope_bpf *k = sized(&opts);

		assert_in_range(bytes_of_all(k), 0, budgets_mb[i] * MIB);
		memscope_bpf__destroy(k);
	}
}

static void maps_of_a_source_that_is_off_have_one_entry(void **state)
{
	struct session_opts opts = { .oncpu = true, .mem_mb = 64 };
	struct memscope_bpf *k = sized(&opts);

	(void)state;
	assert_int_equal(bpf_map__max_entries(k->maps.threads), 1);
	assert_int_equal(bpf_map__max_entries(k->maps.blocks), 1);
	assert_int_equal(bpf_map__max_entries(k->maps.inflight), 1);
	assert_int_equal(bpf_map__max_entries(k->maps.mapping_calls), 1);
	assert_int_equal(bpf_map__max_entries(k->maps.memories), 1);
	assert_int_equal(bpf_map__max_entries(k->maps.unwind_pool), 1);
	memscope_bpf__destroy(k);
	opts = (struct session_opts){ .offcpu = true, .mem_mb = 64 };
	k = sized(&opts);
	assert_int_equal(bpf_map__max_entries(k->maps.irq_totals_a), 1);
	memscope_bpf__destroy(k);
}

static void more_memory_is_room_for_more_live_blocks(void **state)
{
	struct session_opts small = everything(64), large = everything(256);
	struct memscope_bpf *a = sized(&small), *b = sized(&large);

	(void)state;
	assert_true(bpf_map__max_entries(b->maps.blocks) >=
		    3 * bpf_map__max_entries(a->maps.blocks));
	memscope_bpf__destroy(a);
	memscope_bpf__destroy(b);
}

static void both_maps_of_totals_are_alike(void **state)
{
	struct session_opts opts = everything(64);
	struct memscope_bpf *k = sized(&opts);

	(void)state;
	assert_int_equal(bpf_map__max_entries(k->maps.totals_a),
			 bpf_map__max_entries(k->maps.totals_b));
	assert_int_equal(bpf_map__max_entries(k->maps.irq_totals_a),
			 bpf_map__max_entries(k->maps.irq_totals_b));
	assert_in_range(bpf_map__max_entries(k->maps.totals_a), 1024, 65536);
	memscope_bpf__destroy(k);
}

static void totals_of_samples_are_as_many_as_some_seconds_have(void **state)
{
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();
	struct session_opts opts = { .oncpu = true, .mem_mb = 4096, .hz = 199 };
	struct memscope_bpf *k = sized(&opts);
	uint32_t some = 199 * cpus * 16, totals = bpf_map__max_entries(k->maps.totals_a);

	(void)state;
	some = some < 1024 ? 1024 : some;
	assert_int_equal(bpf_map__max_entries(k->maps.irq_totals_a), some < totals ? some : totals);
	memscope_bpf__destroy(k);
	opts.hz = 1000000;
	k = sized(&opts);
	assert_int_equal(bpf_map__max_entries(k->maps.irq_totals_a), totals);
	memscope_bpf__destroy(k);
}

/* A ring's size must be a power of two of pages, or the kernel refuses it. */
static void the_ring_is_a_power_of_two_up_to_8_mib(void **state)
{
	(void)state;
	for (uint32_t mb = 8; mb <= 4096; mb = mb * 3 / 2) {
		struct session_opts opts = everything(mb);
		struct memscope_bpf *k = sized(&opts);
		uint32_t ring = bpf_map__max_entries(k->maps.events);

		assert_int_equal(ring & (ring - 1), 0);
		assert_in_range(ring, MIB, 8 * MIB);
		memscope_bpf__destroy(k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unwind_tables_have_less_where_allocations_need_the_room),
		cmocka_unit_test(all_maps_together_keep_to_the_budget),
		cmocka_unit_test(maps_of_a_source_that_is_off_have_one_entry),
		cmocka_unit_test(more_memory_is_room_for_more_live_blocks),
		cmocka_unit_test(both_maps_of_totals_are_alike),
		cmocka_unit_test(totals_of_samples_are_as_many_as_some_seconds_have),
		cmocka_unit_test(the_ring_is_a_power_of_two_up_to_8_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
