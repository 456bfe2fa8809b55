#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/overhead/realtime.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int policy(void)
{
	struct sched_param param;
	int now;

	assert_int_equal(pthread_getschedparam(pthread_self(), &now, &param), 0);
	return now;
}

static void the_thread_is_as_it_was_behind_the_end(void **state)
{
	int before = policy();
	struct realtime was = realtime_begin();

	(void)state;
	realtime_end(&was);
	assert_int_equal(policy(), before);
}

static void where_it_is_permitted_the_thread_runs_before_all_others(void **state)
{
	struct realtime was = realtime_begin();
	int during = policy();

	(void)state;
	realtime_end(&was);
	if (was.policy < 0) {
		print_message("needs CAP_SYS_NICE\n");
		skip();
	}
	assert_int_equal(during, SCHED_FIFO);
}

static void without_the_right_nothing_changes(void **state)
{
	struct realtime none = { .policy = -1, .priority = 2 };
	int before = policy();

	(void)state;
	realtime_end(&none);
	assert_int_equal(policy(), before);
}

static int niceness(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void *note_niceness(void *arg)
{
	*(int *)arg = niceness();
	return NULL;
}

/* Not those that it starts: they make tables, or are the user's command. */
static void a_prompt_thread_is_preferred_alone_and_until_its_end(void **state)
{
	int before = niceness(), during, other = 99, status;
	struct prompt was = prompt_begin();
	pthread_t thread;
	pid_t child;

	(void)state;
	during = niceness();
	assert_int_equal(pthread_create(&thread, NULL, note_niceness, &other), 0);
	pthread_join(thread, NULL);
	child = fork();
	if (!child)
		_exit(niceness() + 20);
	assert_int_equal(waitpid(child, &status, 0), child);
	prompt_end(&was);
	assert_int_equal(niceness(), before);
	assert_int_equal(policy(), SCHED_OTHER);
	if (was.policy < 0) {
		assert_int_equal(during, before);
		print_message("needs CAP_SYS_NICE\n");
		skip();
	}
	assert_int_equal(during, -10);
	assert_int_equal(other, 0);
	assert_int_equal(WEXITSTATUS(status), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_thread_is_as_it_was_behind_the_end),
		cmocka_unit_test(where_it_is_permitted_the_thread_runs_before_all_others),
		cmocka_unit_test(without_the_right_nothing_changes),
		cmocka_unit_test(a_prompt_thread_is_preferred_alone_and_until_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
