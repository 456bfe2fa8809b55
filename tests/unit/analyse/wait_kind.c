#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/wait_kind.h"

static void kernel_functions_show_what_is_waited_for(void **state)
{
	static const struct {
		const char *function;
		enum wait_kind kind;
	} cases[] = {
		{ "do_nanosleep", WAIT_TIMER },
		{ "ep_poll", WAIT_EVENTS },
		{ "poll_schedule_timeout", WAIT_EVENTS },
		{ "futex_wait_queue", WAIT_LOCK },
		{ "futex_wait_queue_me", WAIT_LOCK },
		{ "__futex_wait", WAIT_LOCK },
		{ "pipe_read", WAIT_PIPE },
		{ "anon_pipe_read", WAIT_PIPE },
		{ "unix_stream_data_wait", WAIT_SOCKET },
		{ "inet_csk_accept", WAIT_SOCKET },
		{ "io_schedule", WAIT_DISK },
		{ "folio_wait_bit_common", WAIT_DISK },
		{ "rwsem_down_write_slowpath", WAIT_KERNEL_LOCK },
		{ "do_wait", WAIT_CHILD },
		{ "timerfd_read_iter", WAIT_TIMER },
		{ "n_tty_read", WAIT_TERMINAL },
		{ "do_sigtimedwait", WAIT_SIGNAL },
		{ "do_signal_stop", WAIT_STOPPED },
		{ "ptrace_stop", WAIT_STOPPED },
		{ "locks_lock_inode_wait", WAIT_FILE_LOCK },
		{ "do_swap_page", WAIT_MEMORY },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (wait_kind_of(cases[i].function) != cases[i].kind)
			fail_msg("%s: %s", cases[i].function,
				 wait_kind_name(wait_kind_of(cases[i].function)));
}

static void the_way_into_the_scheduler_is_no_reason(void **state)
{
	static const char *const quiet[] = {
		"__schedule",
		"schedule",
		"schedule_timeout",
		"do_syscall_64",
		"vfs_read",
		"ksys_read",
		"schedule_hrtimeout_range",
		"do_wait_intr", /* of whatever calls it: timerfd, eventfd */
		"do_wait_intr_irq",
		"x64_sys_call",
		""
	};

	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
		assert_int_equal(wait_kind_of(quiet[i]), WAIT_OTHER);
}

static void every_kind_has_a_word_and_a_text(void **state)
{
	for (int k = 0; k < N_WAIT_KINDS; k++) {
		assert_non_null(wait_kind_name((enum wait_kind)k));
		assert_non_null(wait_kind_text((enum wait_kind)k));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_functions_show_what_is_waited_for),
		cmocka_unit_test(the_way_into_the_scheduler_is_no_reason),
		cmocka_unit_test(every_kind_has_a_word_and_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
