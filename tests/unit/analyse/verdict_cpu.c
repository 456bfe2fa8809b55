#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "unit/run_fixture.h"

static void own_function_is_named_beside_the_librarys(void **state)
{
	struct run_summary s = run(0.98);
	int64_t n = (int64_t)s.oncpu.samples;
	const struct top_row top = { .name = "memmove", .self = n / 2 };
	struct top_row python = { .name = "parse (app.py)", .self = n / 4 * 3 };
	const struct site_row site = { .function = "copy_rows", .value = n / 4 * 3 };

	s.oncpu.by_self = &top;
	s.oncpu.n_self = 1;
	s.oncpu.sites = &site;
	s.oncpu.n_sites = 1;
	assert_says(verdict_of(&s).sentence,
		    "50.0% of it in memmove itself, 75.0% in or for copy_rows.");
	s.oncpu.interpreted = &python;
	s.oncpu.n_interpreted = 1;
	assert_says(verdict_of(&s).sentence, "75.0% in or for parse (app.py).");
	s.oncpu.by_self = &(struct top_row){ .name = "parse (app.py)", .self = n / 5 };
	assert_says(verdict_of(&s).sentence, "CPU, 75.0% of it in or for parse (app.py).");
	/* A function of the interpreter without a name is nobody's answer. */
	python.self = n / 16;
	s.oncpu.by_self = &(struct top_row){ .name = "[python3.11+0x50a500]", .self = n / 5 };
	assert_says(verdict_of(&s).sentence,
		    "CPU, spread over many functions (the first, parse (app.py), has 6.");
	/* A program that has just begun is being compiled. */
	s.oncpu.jit_samples = s.oncpu.samples / 2;
	assert_says(
		verdict_of(&s).sentence,
		"CPU, 50.0% of it in the compilers (JIT) of its virtual machine, the rest spread over many functions "
		"(the first, parse (app.py), has 6.");
}

static void flat_profile_names_no_culprit(void **state)
{
	struct run_summary s = run(0.98);
	const struct top_row top = { .name = "f", .self = (int64_t)s.oncpu.samples / 50 };

	s.oncpu.by_self = &top;
	s.oncpu.n_self = 1;
	assert_says(verdict_of(&s).sentence, "spread over many functions");
	assert_says(verdict_of(&s).next, "from the root");
}

static void where_interrupts_come_on_is_no_culprit(void **state)
{
	struct run_summary s = run(0.98);
	int64_t n = (int64_t)s.oncpu.samples;
	const struct top_row top[] = {
		{ .name = "_raw_spin_unlock_irqrestore", .kind = FRAME_KERNEL, .self = n / 2 },
		{ .name = "[unknown]", .kind = FRAME_UNKNOWN, .self = n / 3 },
		{ .name = "dictFind", .self = n / 8 },
	};

	s.oncpu.by_self = top;
	s.oncpu.n_self = 3;
	s.oncpu.kernel_samples = (uint64_t)n / 2;
	assert_string_equal(
		verdict_of(&s).sentence,
		"redis-server is CPU-bound: it used 98% of one CPU, 50.0% of it in the kernel, "
		"12.5% of it in dictFind itself.");
}

static void profile_of_our_own_probes_is_called_that(void **state)
{
	struct run_summary s = run(0.98);

	s.oncpu.probe_samples = s.oncpu.samples / 2;
	assert_int_equal(verdict_of(&s).kind, VERDICT_CPU);
	assert_says(verdict_of(&s).sentence, "50.0% of it in the traps of memscope's own");
	assert_says(verdict_of(&s).next, "--only oncpu");
}

static void code_without_names_is_named_after_its_image_and_caller(void **state)
{
	struct run_summary s = run(0.98);
	int64_t n = (int64_t)s.oncpu.samples;
	struct top_row top = { .name = "[libcrypto.so.3+0x4a210]", .self = n / 4 };
	struct nameless_row nameless = { .module = "libcrypto.so.3", .value = n / 2, .caller = "" };
	struct top_row trunk = { .name = "md5_text", .total = n * 3 / 4 };
	const struct top_row python = { .name = "sign (app.py)", .self = n };

	s.oncpu.by_self = &top;
	s.oncpu.n_self = 1;
	s.oncpu.nameless = &nameless;
	assert_says(verdict_of(&s).sentence, "CPU, 50.0% of it in libcrypto.so.3 (no names).");
	nameless.caller = "pg_md5_hash";
	assert_says(verdict_of(&s).sentence,
		    "CPU, 50.0% of it in libcrypto.so.3 (no names), called by pg_md5_hash.");
	assert_says(verdict_of(&s).next, "pg_md5_hash");
	s.symbols.worst[0].module = "libcrypto.so.3";
	s.symbols.worst[0].package = "libssl3-dbgsym";
	s.symbols.n_worst = 1;
	assert_says(verdict_of(&s).next, "Install libssl3-dbgsym for the names in libcrypto.so.3");
	s.symbols.n_worst = 0;
	s.oncpu.trunk = &trunk;
	assert_says(
		verdict_of(&s).sentence,
		"CPU, 75.0% of it in or for md5_text, 50.0% in libcrypto.so.3 (no names), called by pg_md5_hash.");
	trunk.name = "pg_md5_hash";
	assert_says(verdict_of(&s).sentence,
		    "CPU, 75.0% of it in or for pg_md5_hash, 50.0% in libcrypto.so.3 (no names).");
	/* A function with more of it; a language's function for which it is. */
	top = (struct top_row){ .name = "hash_any", .self = n * 3 / 4 };
	assert_says(verdict_of(&s).sentence, "in hash_any itself");
	top.self = n / 4;
	s.oncpu.interpreted = &python;
	s.oncpu.n_interpreted = 1;
	assert_null(strstr(verdict_of(&s).sentence, "libcrypto"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_function_is_named_beside_the_librarys),
		cmocka_unit_test(flat_profile_names_no_culprit),
		cmocka_unit_test(where_interrupts_come_on_is_no_culprit),
		cmocka_unit_test(profile_of_our_own_probes_is_called_that),
		cmocka_unit_test(code_without_names_is_named_after_its_image_and_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
