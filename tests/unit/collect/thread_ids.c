/* Threads' numbers in another namespace, by a directory that looks like procfs. */
#include "collect/stream/thread_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PID 7000

static char proc[] = "/tmp/memscope-unit-XXXXXX";

static void shell(const char *what)
{
	char command[256];

	snprintf(command, sizeof(command), "cd %s && %s", proc, what);
	assert_int_equal(system(command), 0);
}

/* Thread `here`, which knows itself as `there`, two namespaces further in. */
static void thread_begins(unsigned here, unsigned there)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/task/%u", proc, PID, here);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/status");
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "Name:\tx\nNSpid:\t%u\t%u\t%u\nVmPeak:\t1 kB\n", here, here - 5000, there);
	fclose(f);
}

static int set_up(void **state)
{
	char path[64];

	strcpy(proc + strlen(proc) - 6, "XXXXXX");
	assert_non_null(mkdtemp(proc));
	snprintf(path, sizeof(path), "mkdir -p %d/task", PID);
	shell(path);
	*state = thread_ids_new(proc, PID);
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	thread_ids_free(*state);
	snprintf(command, sizeof(command), "rm -rf %s", proc);
	return system(command);
}

static void a_thread_is_asked_for_its_numbers_once(void **state)
{
	struct thread_ids *t = *state;

	for (unsigned i = 0; i < 1000; i++)
		thread_begins(PID + i, 1 + i);
	assert_int_equal(thread_ids_here(t, 1), PID);
	shell("rm -f 7000/task/*/status"); /* read no more */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(thread_ids_here(t, 1 + i), PID + i);
	/* Neither when another one comes. */
	thread_begins(9000, 2000);
	thread_ids_refresh(t);
	assert_int_equal(thread_ids_here(t, 2000), 9000);
	assert_int_equal(thread_ids_here(t, 1000), PID + 999);
}

static void the_list_is_read_once_between_refreshes(void **state)
{
	struct thread_ids *t = *state;

	thread_begins(PID, 1);
	assert_int_equal(thread_ids_here(t, 50), PID); /* it has ended */
	thread_begins(PID + 1, 2);
	assert_int_equal(thread_ids_here(t, 2), PID);
	thread_ids_refresh(t);
	assert_int_equal(thread_ids_here(t, 2), PID + 1);
}

static void a_number_that_comes_again_is_the_newest_threads(void **state)
{
	struct thread_ids *t = *state;

	thread_begins(PID, 1);
	thread_begins(PID + 1, 2);
	assert_int_equal(thread_ids_here(t, 2), PID + 1);
	shell("rm -r 7000/task/7001");
	assert_int_equal(thread_ids_here(t, 2), PID + 1); /* of one that has ended */
	thread_begins(PID + 2, 2);
	thread_begins(PID + 3, 3);
	thread_ids_refresh(t);
	assert_int_equal(thread_ids_here(t, 3), PID + 3);
	assert_int_equal(thread_ids_here(t, 2), PID + 2);
	/* A number here that comes again, too. */
	shell("rm -r 7000/task/7002");
	thread_ids_refresh(t);
	assert_int_equal(thread_ids_here(t, 77), PID);
	thread_begins(PID + 2, 8);
	thread_ids_refresh(t);
	assert_int_equal(thread_ids_here(t, 8), PID + 2);
}

static void a_process_that_is_not_there_has_one_thread(void **state)
{
	struct thread_ids *t = *state;

	shell("rm -r 7000");
	assert_int_equal(thread_ids_here(t, 5), PID);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_is_asked_for_its_numbers_once),
		TEST(the_list_is_read_once_between_refreshes),
		TEST(a_number_that_comes_again_is_the_newest_threads),
		TEST(a_process_that_is_not_there_has_one_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
