/*
 * CPython in a process made of bytes: found where all holds together, and nothing else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "python_fixture.h"

static struct python_process p;
static struct lang_runtime rt;
static struct err e;

static int fresh(void **state)
{
	(void)state;
	pyf_init(&p);
	memset(&rt, 0, sizeof(rt));
	return 0;
}

static int find(void)
{
	e = (struct err){ 0 };
	return lang_runtime_find(&p.runtime_at, &p.libc_at, &p.memory.mem, &rt, &e);
}

static void assert_fails(int code, const char *words)
{
	assert_int_equal(find(), code);
	if (!strstr(e.msg, words))
		fail_msg("\"%s\" does not say \"%s\"", e.msg, words);
}

static void a_runtime_is_found_by_what_it_says_of_itself(void **state)
{
	assert_int_equal(find(), 0);
	assert_string_equal(rt.name, "CPython 3.14.1");
	assert_int_equal(rt.version, 0x030e01);
	assert_true(rt.untested);
	assert_int_equal(rt.row.lang, MS_LANG_PYTHON);
	assert_int_equal(rt.row.thread, MS_THREAD_TLS);
	assert_int_equal(rt.row.off, (uint64_t)(-1584 + 16 * 5 + 8));
	assert_int_equal(rt.row.n_ranges, 1);
	assert_int_equal(rt.row.range[0].start, PYF_BIAS + 0x11000);
	assert_int_equal(rt.row.range[0].end, PYF_BIAS + 0x12000);
	assert_int_equal(rt.row.python.tstate_frame, 72);
	assert_int_equal(rt.row.python.cframe_frame, 0xffff);
	assert_int_equal(rt.row.python.frame_boundary, 74);
	assert_int_equal(rt.row.python.boundary, 3);
	assert_int_equal(rt.row.python.code_mask, 3);
	assert_int_equal(rt.row.python.frame_bytes, 80);
	assert_int_equal(rt.code_type, pyf_addr(PYF_TYPE));
}

static void what_is_not_initialized_is_asked_again(void **state)
{
	pyf_put(&p, PYF_KEY, 0, 8);
	assert_fails(-EAGAIN, "not been initialized");
	fresh(state);
	/* While it is being mapped, what is there is anything. */
	pyf_put(&p, PYF_KEY, 1 | 5000ULL << 32, 8);
	assert_fails(-EAGAIN, "not been initialized");
	fresh(state);
	pyf_put(&p, 0, 0, 8);
	assert_fails(-EAGAIN, "does not say its layout");
	fresh(state);
	p.memory.hole_len = 0x700;
	assert_fails(-EAGAIN, "does not say its layout");
	fresh(state);
	pyf_put(&p, PYF_HEAD, 0, 8);
	assert_fails(-EAGAIN, "no thread");
	fresh(state);
	/* It is in the list before it has its slot. */
	pyf_put(&p, PYF_SLOT, 0, 8);
	assert_fails(-EAGAIN, "no thread");
}

static void a_slot_that_has_no_threads_state_is_not_believed(void **state)
{
	pyf_put(&p, PYF_SLOT, pyf_addr(PYF_TSTATE) + 8, 8);
	assert_fails(-EAGAIN, "none of its threads has its state");
}

static void one_thread_that_has_its_state_there_is_enough(void **state)
{
	/* The first of two threads runs another interpreter. */
	pyf_put(&p, PYF_INTERP + 0x20, pyf_addr(0x2800), 8);
	pyf_put(&p, 0x2800 + 16, pyf_addr(PYF_TSTATE), 8);
	pyf_put(&p, 0x2800 + 152, pyf_addr(PYF_TP) - 1856, 8);
	assert_int_equal(find(), 0);
	/* The second interpreter has the thread. */
	fresh(state);
	pyf_put(&p, PYF_HEAD, pyf_addr(0x1800), 8);
	pyf_put(&p, 0x1800 + 0x10, pyf_addr(PYF_INTERP), 8);
	assert_int_equal(find(), 0);
}

static void lists_that_never_end_are_left(void **state)
{
	pyf_put(&p, PYF_SLOT, 0, 8);
	pyf_put(&p, PYF_TSTATE + 16, pyf_addr(PYF_TSTATE), 8);
	pyf_put(&p, PYF_INTERP + 0x10, pyf_addr(PYF_INTERP), 8);
	assert_int_equal(find(), -EAGAIN);
	assert_in_range(p.memory.reads, 1, 100000);
}

static void a_key_of_the_second_level_is_behind_a_pointer(void **state)
{
	uint64_t level = (uint64_t)(-1088 + 16 + 8); /* of keys 32 to 63 */

	pyf_put(&p, PYF_KEY, 1 | 40ULL << 32, 8);
	pyf_put(&p, (uint32_t)(PYF_TP + level), pyf_addr(0x8000), 8);
	pyf_put(&p, 0x8000 + 16 * 8 + 8, pyf_addr(PYF_TSTATE), 8);
	assert_int_equal(find(), 0);
	assert_int_equal(rt.row.thread, MS_THREAD_TABLE);
	assert_int_equal(rt.row.module, level);
	assert_int_equal(rt.row.off, 16 * 8 + 8);
}

static void what_is_not_known_is_refused_by_name(void **state)
{
	p.libc_at.image = NULL;
	assert_fails(-EAGAIN, "C library");
	assert_int_equal(lang_runtime_find(&p.runtime_at, NULL, &p.memory.mem, &rt, &e), -EAGAIN);
	fresh(state);
	p.libc.getspecific.len = 8;
	assert_fails(-EOPNOTSUPP, "pthread_getspecific()");
	fresh(state);
	p.python.python.tstate.len = 8;
	assert_fails(-EOPNOTSUPP, "PyGILState_GetThisThreadState()");
	fresh(state);
	pyf_put(&p, 16, 1, 8);
	assert_fails(-EOPNOTSUPP, "free-threaded");
	fresh(state);
	p.python.python.version = 0x030e02;
	assert_fails(-EOPNOTSUPP, "3.14.2 in one place and 3.14.1 in another");
	fresh(state);
	pyf_put(&p, 8, 0x030f00f0, 8);
	p.python.python.version = 0;
	assert_fails(-EOPNOTSUPP, "CPython 3.15.0");
	fresh(state);
	memset(p.bytes, 0, 768);
	p.python.python.version = 0;
	assert_fails(-EOPNOTSUPP, "version is not known");
	/* It is nowhere that it could be said. */
	p.python.python.version = 0x030e01;
	p.python.python.runtime = 0;
	assert_fails(-EOPNOTSUPP, "does not say its layout");
}

static void a_type_that_is_a_copy_is_not_relied_on(void **state)
{
	pyf_put(&p, PYF_TYPE + 168, 0, 8);
	assert_int_equal(find(), 0);
	assert_int_equal(rt.code_type, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_runtime_is_found_by_what_it_says_of_itself, fresh),
		cmocka_unit_test_setup(what_is_not_initialized_is_asked_again, fresh),
		cmocka_unit_test_setup(a_slot_that_has_no_threads_state_is_not_believed, fresh),
		cmocka_unit_test_setup(one_thread_that_has_its_state_there_is_enough, fresh),
		cmocka_unit_test_setup(lists_that_never_end_are_left, fresh),
		cmocka_unit_test_setup(a_key_of_the_second_level_is_behind_a_pointer, fresh),
		cmocka_unit_test_setup(what_is_not_known_is_refused_by_name, fresh),
		cmocka_unit_test_setup(a_type_that_is_a_copy_is_not_relied_on, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
