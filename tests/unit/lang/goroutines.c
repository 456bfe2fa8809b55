#include "lang/goroutines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <math.h>

#include <cmocka.h>

#include "goroutines_image.h"

static struct go_memory_image im;
static const struct go_memory mem = { go_image_read, &im };
static const struct go_tables tables = { go_image_place, NULL };
static struct go_program *program;
static struct go_process process;
static struct go_look *look;

static struct goroutine found[64];
static uint32_t n_found;

static void keep(void *ctx, const struct goroutine *g)
{
	(void)ctx;
	if (n_found < 64)
		found[n_found] = *g;
	n_found++;
}

static int setup(void **state)
{
	(void)state;
	go_image_fill(&im, 4);
	program = go_image_program();
	look = go_look_new();
	n_found = 0;
	return go_process_find(program, 0, &mem, &process, NULL);
}

static int teardown(void **state)
{
	(void)state;
	go_look_free(look);
	go_program_free(program);
	return 0;
}

static struct goroutines_stats take(void)
{
	struct goroutines_stats st;

	n_found = 0;
	assert_int_equal(go_look(look, &process, &mem, &tables, 0, 1, keep, NULL, &st), 0);
	return st;
}

static void each_has_its_stack_and_its_reason(void **state)
{
	struct goroutines_stats st;

	(void)state;
	go_image_goroutine(&im, 1, GOROUTINE_RUNNABLE | 0x1000, 0); /* the collector scans it */
	go_image_goroutine(&im, 2, GOROUTINE_RUNNING, 0);
	go_image_goroutine(&im, 3, GOROUTINE_DEAD, 0);
	st = take();
	assert_int_equal(st.looked, 4);
	assert_int_equal(st.dead, 1);
	assert_int_equal(n_found, 3);
	assert_int_equal(found[0].id, 1);
	assert_int_equal(found[0].state, GOROUTINE_WAITING);
	assert_string_equal(process.reasons[found[0].reason], "sleep");
	assert_int_equal(found[0].seq, 7);
	assert_false(found[0].system);
	assert_true(found[0].whole);
	assert_int_equal(found[0].n, 3);
	assert_int_equal(found[0].pcs[0], CODE_TEXT + 0xf);
	assert_int_equal(found[0].pcs[1], CODE_TEXT + 0x1f);
	assert_int_equal(found[0].pcs[2], CODE_TEXT + GO_FUNC_BYTES);
	assert_int_equal(found[1].state, GOROUTINE_RUNNABLE);
	assert_int_equal(found[1].n, 3);
	assert_int_equal(found[2].state, GOROUTINE_RUNNING);
	assert_int_equal(found[2].n, 0);
}

static void one_that_has_not_begun_is_at_its_functions_first_instruction(void **state)
{
	uint64_t g = AT_G + 0x200, sp = AT_STACKS + 0x400 + 0x3f8;

	(void)state;
	go_image_goroutine(&im, 1, GOROUTINE_RUNNABLE, 0);
	go_image_put(&im, g + 56, GO_BASE + sp);
	go_image_put(&im, g + 64, CODE_TEXT);
	go_image_put(&im, sp, CODE_TEXT + GO_FUNC_BYTES + 1);
	take();
	assert_int_equal(found[1].n, 2);
	assert_int_equal(found[1].pcs[0], CODE_TEXT);
	assert_true(found[1].whole);
}

static void a_system_call_is_where_it_was_made(void **state)
{
	uint64_t g = AT_G;

	(void)state;
	go_image_goroutine(&im, 0, GOROUTINE_SYSCALL, 0);
	go_image_put(&im, g + 112, GO_BASE + AT_STACKS + 0x320); /* main.main's caller's frame */
	go_image_put(&im, g + 120, CODE_TEXT + 0x20);
	take();
	assert_int_equal(found[0].n, 2);
	assert_int_equal(found[0].pcs[0], CODE_TEXT + 0x1f);
}

static void run_on(struct go_memory_image *m)
{
	if (m->reads % 2 == 0)
		m->bytes[AT_G + 189]++;
}

static void one_that_runs_on_while_it_is_read_has_no_stack(void **state)
{
	struct goroutines_stats st;

	(void)state;
	im.after = run_on;
	im.reads = 0;
	st = take();
	assert_int_equal(st.moved, 1);
	assert_int_equal(n_found, 4);
	assert_int_equal(found[0].n, 0);
	assert_int_equal(found[1].n, 3);
}

/* netpollblock() has the address of the word of its pollDesc that holds the goroutine. */
static void the_network_has_a_descriptor(void **state)
{
	uint64_t desc = 0x7000, second = AT_STACKS + 0x300 + 32;

	(void)state;
	go_image_goroutine(&im, 0, GOROUTINE_WAITING, REASON_IO);
	go_image_put(&im, desc + 8, 12);
	go_image_put(&im, desc + 24, GO_BASE + AT_G);
	go_image_put(&im, second + 8, GO_BASE + desc + 24);
	take();
	assert_int_equal(found[0].fds[0], 12);
	go_image_put(&im, desc + 24, 0); /* it writes */
	go_image_put(&im, desc + 32, GO_BASE + AT_G);
	go_image_put(&im, second + 8, GO_BASE + desc + 32);
	take();
	assert_int_equal(found[0].fds[1], 12);
	go_image_put(&im, desc + 32, 1); /* it is ready */
	take();
	assert_int_equal(found[0].fds[0], -1);
	assert_int_equal(found[0].fds[1], -1);
}

static void the_runtimes_own_are_known_by_where_they_began(void **state)
{
	(void)state;
	go_image_put(&im, AT_G + 0x200 + 312,
		     CODE_TEXT + 2 * GO_FUNC_BYTES); /* runtime.systemstack */
	take();
	assert_true(found[1].system);
	assert_false(found[2].system);
}

/* 512 places for the same goroutine: of one in 8, 5 sigma. */
static void a_part_has_its_probability_and_a_smaller_one_is_in_it(void **state)
{
	struct goroutines_stats all, part, same, less;
	static struct go_memory_image big;
	const uint32_t n = 0x1000 / 8;

	(void)state;
	big = im;
	go_image_put(&im, 8, n);
	go_image_put(&im, 16, n);
	for (uint32_t i = 0; i < n; i++)
		go_image_put(&im, AT_TABLE + 8 * (uint64_t)i, GO_BASE + AT_G);
	assert_int_equal(go_look(look, &process, &mem, &tables, 0, 5, keep, NULL, &all), 0);
	assert_int_equal(all.looked, n);
	for (uint64_t seed = 1; seed < 30; seed++) {
		assert_int_equal(go_look(look, &process, &mem, &tables, 3, seed, keep, NULL, &part),
				 0);
		assert_true(fabs(part.looked - n / 8.0) < 5 * sqrt(n / 8.0 * 7 / 8));
		assert_int_equal(go_look(look, &process, &mem, &tables, 3, seed, keep, NULL, &same),
				 0);
		assert_int_equal(same.looked, part.looked);
		assert_int_equal(go_look(look, &process, &mem, &tables, 4, seed, keep, NULL, &less),
				 0);
		assert_true(less.looked <= part.looked);
	}
	im = big;
}

static void a_position_independent_program_is_where_it_was_loaded(void **state)
{
	const uint64_t bias = 0x10000, sp = AT_STACKS + 0x300;

	(void)state;
	program->allgs[0] -= bias;
	program->reasons[0] -= bias;
	go_image_put(&im, AT_G + 312, CODE_TEXT + bias);
	go_image_put(&im, AT_G + 64, CODE_TEXT + bias + 0x10);
	go_image_put(&im, sp + 24, CODE_TEXT + bias + 0x20);
	go_image_put(&im, sp + 32 + 24, CODE_TEXT + bias + GO_FUNC_BYTES + 1);
	assert_int_equal(go_process_find(program, bias, &mem, &process, NULL), 0);
	take();
	assert_int_equal(found[0].n, 3);
	assert_int_equal(found[0].pcs[1], CODE_TEXT + bias + 0x1f);
	assert_true(found[0].whole);
}

static void what_is_not_as_go_has_it_is_refused(void **state)
{
	struct go_process other;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(process.n_reasons, 4);
	go_image_put(&im, AT_G + 152, 2); /* the first is no goroutine 1 */
	assert_int_equal(go_process_find(program, 0, &mem, &other, &e), -EOPNOTSUPP);
	assert_true(*e.msg);
	go_image_put(&im, AT_G + 152, 1);
	im.bytes[AT_REASONS + 0x200 + 64] = 'X'; /* no "GC assist marking" */
	assert_int_equal(go_process_find(program, 0, &mem, &other, &e), -EOPNOTSUPP);
	memset(im.bytes, 0, 24);
	assert_int_equal(go_process_find(program, 0, &mem, &other, &e), -EAGAIN);
}

static void a_program_that_has_gone_is_not_read(void **state)
{
	uint64_t n;

	(void)state;
	assert_true(go_process_size(&process, &mem, &n));
	assert_int_equal(n, 4);
	go_image_put(&im, AT_G + 312, 0);
	assert_false(go_process_size(&process, &mem, &n));
}

static void damage_ends(void **state)
{
	struct goroutines_stats st;
	uint64_t stack = AT_STACKS + 0x400;

	(void)state;
	/* A stack whose return addresses lead into the same function for ever, and one that lies elsewhere. */
	for (uint64_t at = stack; at < stack + 0x400; at += 8)
		go_image_put(&im, at, CODE_TEXT + 0x20);
	go_image_put(&im, AT_G + 0x200 + 56, GO_BASE + stack);
	go_image_put(&im, AT_G + 0x400 + 56, GO_BASE + 0x10);
	go_image_put(&im, AT_TABLE + 24, 0x1234);
	st = take();
	assert_int_equal(n_found, 3);
	assert_int_equal(st.unreadable, 1);
	assert_false(found[1].whole);
	assert_int_equal(found[1].n, 0x400 / 32 + 1);
	assert_int_equal(found[2].n, 0);
	go_image_put(&im, 8, 1 << 30);
	assert_int_equal(go_look(look, &process, &mem, &tables, 0, 1, keep, NULL, &st), -EIO);
}

static bool no_place(void *ctx, uint64_t vaddr, struct go_place *ret)
{
	(void)ctx;
	(void)vaddr;
	(void)ret;
	return false;
}

static void without_its_programs_table_a_stack_is_not_readable(void **state)
{
	const struct go_tables none = { no_place, NULL };
	struct goroutines_stats st;

	(void)state;
	go_image_goroutine(&im, 2, GOROUTINE_RUNNING, 0);
	assert_int_equal(go_look(look, &process, &mem, &none, 0, 1, keep, NULL, &st), 0);
	assert_int_equal(n_found, 4);
	assert_int_equal(st.unreadable, 3); /* one runs */
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(found[i].n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		FACT(each_has_its_stack_and_its_reason),
		FACT(one_that_has_not_begun_is_at_its_functions_first_instruction),
		FACT(a_system_call_is_where_it_was_made),
		FACT(one_that_runs_on_while_it_is_read_has_no_stack),
		FACT(the_network_has_a_descriptor),
		FACT(the_runtimes_own_are_known_by_where_they_began),
		FACT(a_part_has_its_probability_and_a_smaller_one_is_in_it),
		FACT(a_position_independent_program_is_where_it_was_loaded),
		FACT(what_is_not_as_go_has_it_is_refused),
		FACT(a_program_that_has_gone_is_not_read),
		FACT(damage_ends),
		FACT(without_its_programs_table_a_stack_is_not_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
