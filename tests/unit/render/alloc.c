#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "summary_text_fixture.h"

static void declined_tier_gives_its_reason_instead_of_numbers(void **state)
{
	struct run_summary s = fixture_summary();

	s.alloc = (struct summary_alloc){
		.tier = ALLOC_TIER_DECLINED,
		.reason =
			"not traced: 900,000 calls a second would cost more than --max-overhead allows "
			"(5% of a CPU); --alloc=exact forces it",
	};
	assert_has(text_of(&s), "Allocations  not traced: 900,000 calls a second");
	assert_has_not(text_of(&s), "blocks");
}

static void exact_tier_shows_what_became_of_the_blocks(void **state)
{
	static const struct summary_sites more = {
		.peak = { { .function = "load", .module = "app", .value = 3 << 20, .count = 50 } },
		.calls = { { .function = "parse", .module = "app", .value = 700, .count = 7000 } },
		.temporary = { { .function = "format",
				 .module = "app",
				 .value = 25,
				 .count = 30 } },
		.threads = { { 7, 8, "io", 600, 3 << 20 }, { 7, 7, "app", 400, 1 << 20 } },
		.n_peak = 1,
		.n_calls = 1,
		.n_temporary = 1,
		.n_threads = 2,
		.seen_threads = 2,
	};
	struct run_summary s = fixture_summary();

	s.alloc = (struct summary_alloc){
		.tier = ALLOC_TIER_EXACT,
		.covered_to_ns = 2000000000,
		.objects = 1000,
		.bytes = 4 << 20,
		.freed_objects = 400,
		.temporary = 100,
		.cross_freed = 40,
		.lives = { 300, 0, 0, 90, 0, 0, 0, 10 },
		.sizes = { 500, 0, 0, 0, 0, 0, 0, 250, [31] = 250 },
		.peak = { 1, 4 << 20, 1500000000, 60, 4 << 20 },
		.more = &more,
	};
	assert_has(text_of(&s), "allocated       4.0 MiB         1,000 blocks, 500 a second\n");
	assert_has(text_of(&s),
		   "peak            4.0 MiB            60 blocks, 1.5 s into the run\n");
	assert_has(text_of(&s),
		   "temporary         10.0%           100 freed by their thread before its next");
	assert_has(text_of(&s),
		   "cross-thread      10.0%            40 of the freed: freed by another thread");
	assert_has(text_of(&s), "10 µs 75.0%, 10 ms 22.5%, more 2.5%\n");
	assert_has(text_of(&s), "8 B 50.0%, 1 KiB 25.0%, more 25.0%\n");
	assert_has(text_of(&s), "     3.0 MiB            50  75.0%  load");
	assert_has(text_of(&s), "         700       6.8 KiB  70.0%  parse");
	assert_has(text_of(&s), "          25            30  25.0%  format");
	assert_has(text_of(&s), "allocated by thread, of 2\n");
	assert_has_not(text_of(&s), "stacks add up");
	s.alloc.peak.on_stacks -= 512;
	assert_has(text_of(&s), "stacks add up to 512 B less than the peak");
	s.alloc.peak.images = 3;
	assert_has(text_of(&s), "over 3 process images, each at its own peak");
}

static void mappings_are_apart_from_allocations(void **state)
{
	static const struct site_row site = {
		.function = "start_threads", .module = "app", .value = 6 << 20, .count = 3
	};
	struct run_summary s = fixture_summary();

	s.alloc = (struct summary_alloc){ .tier = ALLOC_TIER_EXACT };
	assert_has_not(text_of(&s), "Mappings");
	s.alloc.mappings = (struct summary_mappings){
		.known = true,
		.by = { [MEMORY_ANON] = { 5, 8 << 20, 2 << 20, 3, 6 << 20 } },
		.failed = 2,
		.sites = &site,
		.n_sites = 1,
	};
	assert_has(text_of(&s), "Mappings     by mmap, mremap and brk outside the allocator");
	assert_has(text_of(&s),
		   "  anonymous       8.0 MiB     2.0 MiB     6.0 MiB  in 3 of 5 mappings");
	assert_has(text_of(&s), "     6.0 MiB             3  75.0%  start_threads");
	assert_has(text_of(&s), "  2 calls failed\n");
}

static struct summary_alloc sampled_alloc(void)
{
	static const struct site_row site = { .function = "load",
					      .module = "app",
					      .value = 3 << 20,
					      .count = 5000,
					      .low = 2 << 20,
					      .high = 4 << 20,
					      .samples = 6 };

	return (struct summary_alloc){
		.tier = ALLOC_TIER_SAMPLED,
		.sampler = "libmemscope-alloc (preload)",
		.rate = 512 << 10,
		.objects = 7000,
		.bytes = 4 << 20,
		.live_objects = 3,
		.live_bytes = 1 << 20,
		.bytes_interval = { 3 << 20, 5 << 20, 8 },
		.live_interval = { 1 << 20, 1 << 20, 1 },
		.untracked = 2,
		.sites = &site,
		.n_sites = 1,
	};
}

static void sampled_tier_says_who_sampled_and_how_sure_each_figure_is(void **state)
{
	struct run_summary s = fixture_summary();

	s.alloc = sampled_alloc();
	assert_has(text_of(&s),
		   "Allocations  sampled by libmemscope-alloc (preload), one per 512.0 KiB");
	assert_has(text_of(&s),
		   "allocated       4.0 MiB  ± 25.0%         7,000 blocks, by 8 samples");
	assert_has(text_of(&s),
		   "live            1.0 MiB    exact             3 blocks, by 1 samples");
	assert_has(text_of(&s), "     3.0 MiB   ± 33.3%        6  75.0%  load");
	assert_has(text_of(&s), "2 samples not tracked");
	assert_has_not(text_of(&s), "every call");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(declined_tier_gives_its_reason_instead_of_numbers),
		cmocka_unit_test(exact_tier_shows_what_became_of_the_blocks),
		cmocka_unit_test(mappings_are_apart_from_allocations),
		cmocka_unit_test(sampled_tier_says_who_sampled_and_how_sure_each_figure_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
