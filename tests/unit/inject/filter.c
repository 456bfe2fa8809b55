#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/filter.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RET(action) BPF_STMT(BPF_RET | BPF_K, action)
#define COUNT(a)    (uint32_t)(sizeof(a) / sizeof(*(a)))

static struct err e;

static uint32_t action_of(const struct sock_filter *insns, uint32_t n, int nr)
{
	struct seccomp_data data = { .nr = nr,
				     .arch = AUDIT_ARCH_X86_64,
				     .args = { 7, 0x1234567800000009 } };
	uint32_t action = 0xdead;

	assert_int_equal(filter_run(insns, n, &data, ~0ULL, &action), 0);
	return action;
}

static int status_of(const struct sock_filter *insns, uint32_t n, uint64_t known)
{
	struct seccomp_data data = { .nr = 1 };
	uint32_t action;

	return filter_run(insns, n, &data, known, &action);
}

static void jumps_go_where_the_comparison_says(void **state)
{
	const struct sock_filter f[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 10, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 100, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 3, 0),
		RET(SECCOMP_RET_ALLOW),
		RET(SECCOMP_RET_ERRNO | 1),
		RET(SECCOMP_RET_TRAP),
		RET(SECCOMP_RET_KILL_PROCESS),
	};

	(void)state;
	assert_int_equal(action_of(f, COUNT(f), 10), SECCOMP_RET_ERRNO | 1);
	assert_int_equal(action_of(f, COUNT(f), 100), SECCOMP_RET_TRAP);
	assert_int_equal(action_of(f, COUNT(f), 99), SECCOMP_RET_ALLOW);
	assert_int_equal(action_of(f, COUNT(f), 12), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(action_of(f, COUNT(f), 11), SECCOMP_RET_ALLOW);
}

static void arithmetic_and_memory_are_the_kernel_s(void **state)
{
	const struct sock_filter f[] = {
		LOAD(args[1]), /* 9 */
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 4), /* 144 */
		BPF_STMT(BPF_LDX | BPF_MEM, 3),
		BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0), /* 135 */
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		LOAD(args[0]),                          /* 7 */
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0), /* 945 */
		BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 1), /* 944 */
		BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0),
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), /* 944 / 64 */
		BPF_STMT(BPF_ALU | BPF_NEG, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff), /* 0xf2 */
		BPF_STMT(BPF_RET | BPF_A, 0),
	};

	(void)state;
	assert_int_equal(action_of(f, COUNT(f), 1), 0xf2);
}

static void a_division_by_zero_ends_the_thread(void **state)
{
	const struct sock_filter f[] = { BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
					 RET(SECCOMP_RET_ALLOW) };

	(void)state;
	assert_int_equal(action_of(f, COUNT(f), 1), SECCOMP_RET_KILL_THREAD);
}

static void a_byte_that_is_not_known_is_no_answer(void **state)
{
	const struct sock_filter f[] = { LOAD(args[2]), RET(SECCOMP_RET_ALLOW) };
	const uint64_t args2 = 0xffULL << offsetof(struct seccomp_data, args[2]);

	(void)state;
	assert_int_equal(status_of(f, COUNT(f), ~0ULL), 0);
	assert_int_equal(status_of(f, COUNT(f), args2), 0);
	assert_int_equal(status_of(f, COUNT(f), ~args2), -EDOM);
}

static void a_program_that_the_kernel_would_not_take_is_refused(void **state)
{
	const struct sock_filter endless[] = { BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff) };
	const struct sock_filter odd[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), RET(0) };
	const struct sock_filter behind[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), RET(0) };
	const struct sock_filter memory[] = { BPF_STMT(BPF_ST, BPF_MEMWORDS), RET(0) };
	const struct sock_filter bytes[] = { BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), RET(0) };

	(void)state;
	assert_int_equal(status_of(endless, 1, ~0ULL), -EBADMSG);
	assert_int_equal(status_of(odd, 2, ~0ULL), -EBADMSG);
	assert_int_equal(status_of(behind, 2, ~0ULL), -EBADMSG);
	assert_int_equal(status_of(memory, 2, ~0ULL), -EBADMSG);
	assert_int_equal(status_of(bytes, 2, ~0ULL), -EBADMSG);
	assert_int_equal(status_of(odd, 0, ~0ULL), -EBADMSG);
}

/* One that answers `action` for `nr` and allows all else. */
#define ONE(nr_, action)                                                                           \
	{                                                                                          \
		LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr_, 0, 1), RET(action),             \
			RET(SECCOMP_RET_ALLOW)                                                     \
	}

static int check(struct sock_filter f[4])
{
	struct filter_program program = { f, 4 };
	struct filters filters = { &program, 1 };

	e = (struct err){ 0 };
	return filters_check(&filters, 1, true, true, &e);
}

static void the_most_severe_of_several_counts(void **state)
{
	struct sock_filter lenient[] = ONE(5, SECCOMP_RET_LOG),
			   errno_[] = ONE(5, SECCOMP_RET_ERRNO | 13),
			   killing[] = ONE(5, SECCOMP_RET_KILL_PROCESS),
			   trap[] = ONE(5, SECCOMP_RET_TRAP),
			   again[] = ONE(5, SECCOMP_RET_ERRNO | 2);
	struct filter_program programs[] = {
		{ errno_, 4 }, { lenient, 4 }, { trap, 4 }, { killing, 4 }
	};
	const struct seccomp_data data = { .nr = 5 };
	struct filters filters = { programs, 2 };
	uint32_t action;

	(void)state;
	assert_int_equal(filters_run(&filters, &data, ~0ULL, &action), 0);
	assert_int_equal(action, SECCOMP_RET_ERRNO | 13);
	/* Of equals, the newest. */
	errno_[2].k = SECCOMP_RET_ERRNO | 1;
	filters.programs = (struct filter_program[]){ { lenient, 4 }, { errno_, 4 }, { again, 4 } };
	filters.n = 3;
	assert_int_equal(filters_run(&filters, &data, ~0ULL, &action), 0);
	assert_int_equal(action, SECCOMP_RET_ERRNO | 2);
	filters.programs = programs;
	assert_int_equal(filters_run(&filters, &data, ~0ULL, &action), 0);
	assert_int_equal(action, SECCOMP_RET_TRAP);
	filters.n = 4;
	assert_int_equal(filters_run(&filters, &data, ~0ULL, &action), 0);
	assert_int_equal(action, SECCOMP_RET_KILL_PROCESS);
}

static void what_is_denied_is_named(void **state)
{
	static const struct {
		uint32_t action;
		const char *words;
	} rows[] = {
		{ SECCOMP_RET_ERRNO | EPERM,
		  "does not allow memfd_create, which loading the library takes: it would fail with EPERM" },
		{ SECCOMP_RET_KILL_PROCESS, "end the process" },
		{ SECCOMP_RET_KILL_THREAD, "end the thread" },
		{ SECCOMP_RET_TRAP, "raise SIGSYS" },
		{ SECCOMP_RET_TRACE, "handed to a tracer" },
		{ SECCOMP_RET_USER_NOTIF, "another process would be asked" },
	};

	(void)state;
	for (uint32_t i = 0; i < COUNT(rows); i++) {
		struct sock_filter f[] = ONE(SYS_memfd_create, rows[i].action);

		assert_int_equal(check(f), -EPERM);
		if (!strstr(e.msg, rows[i].words))
			fail_msg("\"%s\" is not in \"%s\"", rows[i].words, e.msg);
	}
	struct sock_filter log[] = ONE(SYS_memfd_create, SECCOMP_RET_LOG);

	assert_int_equal(check(log), 0);
}

/* As Docker's default profile answers for clone3, so that the C library makes do with clone. */
static void a_call_with_another_way_may_fail(void **state)
{
	struct sock_filter unknown[] = ONE(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	struct sock_filter denied[] = ONE(SYS_clone3, SECCOMP_RET_ERRNO | EPERM);
	struct sock_filter ended[] = ONE(SYS_clone3, SECCOMP_RET_KILL_PROCESS);
	struct sock_filter name[] = ONE(SYS_prctl, SECCOMP_RET_ERRNO | EPERM);

	(void)state;
	assert_int_equal(check(unknown), 0);
	assert_int_equal(check(denied), -EPERM);
	assert_int_equal(check(ended), -EPERM);
	assert_int_equal(check(name), 0);
}

static void arguments_that_are_known_decide(void **state)
{
	/* systemd's MemoryDenyWriteExecute: no memory becomes code. */
	struct sock_filter f[] = { LOAD(nr),
				   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
				   LOAD(args[2]),
				   BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1),
				   RET(SECCOMP_RET_ERRNO | EPERM),
				   RET(SECCOMP_RET_ALLOW) };
	struct filter_program program = { f, COUNT(f) };
	struct filters filters = { &program, 1 };

	(void)state;
	e = (struct err){ 0 };
	assert_int_equal(filters_check(&filters, 1, false, false, &e), -EPERM);
	assert_non_null(strstr(e.msg, "mprotect (executable)"));
	f[3].k = 8;
	assert_int_equal(filters_check(&filters, 1, false, false, &e), 0);
}

static void only_calls_that_are_made_are_asked_about(void **state)
{
	struct sock_filter f[] = ONE(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
	struct filter_program program = { f, 4 };
	struct filters filters = { &program, 1 };

	(void)state;
	assert_int_equal(filters_check(&filters, 1, false, false, NULL), 0);
	assert_int_equal(filters_check(&filters, 1, true, false, NULL), -EPERM);
	assert_int_equal(filters_check(&filters, 1, false, true, NULL), -EPERM);
}

static void skipping_is_asked_about(void **state)
{
	struct sock_filter f[] = { RET(SECCOMP_RET_ALLOW) };
	struct filter_program program = { f, 1 };
	struct filters filters = { &program, 1 };

	(void)state;
	assert_true(filters_allow_skipping(&filters));
	f[0].k = SECCOMP_RET_ERRNO | EPERM;
	assert_true(filters_allow_skipping(&filters));
	f[0].k = SECCOMP_RET_KILL_PROCESS;
	assert_false(filters_allow_skipping(&filters));
}

static void filters_of_a_process_are_read_as_they_were_set(void **state)
{
	struct sock_filter first[] = ONE(77, SECCOMP_RET_ERRNO | 5),
			   second[] = ONE(78, SECCOMP_RET_LOG);
	struct filters filters = { 0 };
	int r = 0, ready[2];
	pid_t child;
	char c;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){ 4, first }) ==
			    0 &&
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){ 4, second }) ==
			    0)
			(void)!write(ready[1], &r, 1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) == 1 && ptrace(PTRACE_SEIZE, child, 0, 0) == 0 &&
	    ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0 && waitpid(child, NULL, __WALL) == child)
		r = filters_read(child, &filters, &e);
	else
		r = -EPERM;
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	if (r == -EPERM)
		skip(); /* no CAP_SYS_ADMIN, no such kernel */
	assert_int_equal(r, 0);
	assert_int_equal(filters.n, 2);
	assert_int_equal(filters.programs[0].n, 4); /* the oldest first */
	assert_memory_equal(filters.programs[0].insns, first, sizeof(first));
	assert_memory_equal(filters.programs[1].insns, second, sizeof(second));
	filters_fini(&filters);
	assert_int_equal(filters.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jumps_go_where_the_comparison_says),
		cmocka_unit_test(arithmetic_and_memory_are_the_kernel_s),
		cmocka_unit_test(a_division_by_zero_ends_the_thread),
		cmocka_unit_test(a_byte_that_is_not_known_is_no_answer),
		cmocka_unit_test(a_program_that_the_kernel_would_not_take_is_refused),
		cmocka_unit_test(the_most_severe_of_several_counts),
		cmocka_unit_test(what_is_denied_is_named),
		cmocka_unit_test(a_call_with_another_way_may_fail),
		cmocka_unit_test(arguments_that_are_known_decide),
		cmocka_unit_test(only_calls_that_are_made_are_asked_about),
		cmocka_unit_test(skipping_is_asked_about),
		cmocka_unit_test(filters_of_a_process_are_read_as_they_were_set),
	};

#if !defined(__x86_64__)
	print_message("1..0 # SKIP a library can be injected on x86-64 only\n");
	return 0;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
