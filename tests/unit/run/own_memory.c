#include "run/serve/serve_config.h"
#include "run_ends_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static uint64_t maps_mb;

uint64_t session_map_bytes(struct session *s)
{
	return maps_mb << 20;
}

static struct serve_config serve = { .own_memory_mb = 1000 };
static const struct run_config cfg = { .serve = &serve, .mem_mb = 48 };

static struct run *r;
static void *self;
static const struct component *c;

static int made(void **state)
{
	serve.past.level = SERVE_ALL;
	maps_mb = 1;
	ended[0] = '\0';
	r = bare_run(&cfg);
	self = alone(r, "own memory");
	c = component_named("own memory");
	return c->ready(self, NULL);
}

static int gone(void **state)
{
	bare_run_free(r);
	return 0;
}

/* So many seconds after the gate opened. */
static enum run_end at(uint64_t s)
{
	c->tick(self, fake.start_ns + s * 1000000000);
	return r->end.why;
}

static void a_run_below_its_limit_goes_on(void **state)
{
	assert_int_equal(at(100), RUN_END_UNKNOWN);
	assert_int_equal(at(10000), RUN_END_UNKNOWN);
}

static void a_run_that_passes_it_ends_for_another_one(void **state)
{
	maps_mb = 1200;
	assert_int_equal(at(11), RUN_END_UNKNOWN); /* too young */
	assert_int_equal(at(61), RUN_END_MEMORY);
	assert_non_null(strstr(ended, "GiB of memory, --own-memory 1000 MiB"));
}

static void twice_the_limit_ends_even_a_young_run(void **state)
{
	maps_mb = 2100;
	assert_int_equal(at(5), RUN_END_UNKNOWN); /* between two looks */
	assert_int_equal(at(11), RUN_END_MEMORY);
}

static void with_nothing_left_to_leave_out_ends_are_rare(void **state)
{
	serve.past.level = SERVE_LEVELS - 1;
	maps_mb = 2100;
	assert_int_equal(at(100), RUN_END_UNKNOWN);
	assert_int_equal(at(599), RUN_END_UNKNOWN);
	assert_int_equal(at(610), RUN_END_MEMORY);
}

/* One that takes 60 MiB for as long as it is there. */
static pid_t large_child(void)
{
	int ready[2];
	char word;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		char *much = malloc(60 << 20);

		memset(much, 1, 60 << 20);
		(void)!write(ready[1], much, 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_of(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_child_that_takes_much_for_a_moment_ends_no_run(void **state)
{
	pid_t child;

#if defined(__SANITIZE_ADDRESS__)
	skip(); /* which takes more itself than there is to the limit */
#endif
	child = large_child();
	maps_mb = 970;
	assert_int_equal(at(61), RUN_END_UNKNOWN);
	assert_int_equal(at(72), RUN_END_UNKNOWN);
	end_of(child);
	assert_int_equal(at(83), RUN_END_UNKNOWN);
	child = large_child();
	assert_int_equal(at(94), RUN_END_UNKNOWN);
	assert_int_equal(at(105), RUN_END_UNKNOWN);
	assert_int_equal(at(116), RUN_END_MEMORY);
	end_of(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_below_its_limit_goes_on, made, gone),
		cmocka_unit_test_setup_teardown(a_run_that_passes_it_ends_for_another_one, made,
						gone),
		cmocka_unit_test_setup_teardown(twice_the_limit_ends_even_a_young_run, made, gone),
		cmocka_unit_test_setup_teardown(with_nothing_left_to_leave_out_ends_are_rare, made,
						gone),
		cmocka_unit_test_setup_teardown(a_child_that_takes_much_for_a_moment_ends_no_run,
						made, gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
