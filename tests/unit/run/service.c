#include "base/notify.h"
#include "run/serve/serve_config.h"
#include "run_fixture.h"

#include <errno.h>
#include <signal.h>

static char said[2048];
static uint64_t watchdog_ns;
static const char *ended;

int notify_send(const char *lines)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof(said) - n, "%s%s", n ? "; " : "", lines);
	return 1;
}
uint64_t notify_watchdog_ns(void)
{
	return watchdog_ns;
}
void run_ends(struct run *r, enum run_end why, const char *fmt, ...)
{
	r->end.why = why;
	ended = fmt;
}

/* This program itself, which ends with the status that its word says. */
static char *words[3] = { (char *)"service", (char *)"status-0", NULL };
static struct serve_config serve = { .config = "memscope.conf", .check = words };
static struct run_config cfg = {
	.all = true, .dir = "/archive/host", .every_s = 60, .serve = &serve, .quiet = true
};

static struct run *r;
static void *self;
static const struct component *c;

static int made(void **state)
{
	said[0] = '\0';
	ended = NULL;
	watchdog_ns = 0;
	r = bare_run(&cfg);
	self = alone(r, "service");
	c = component_named("service");
	assert_int_equal(c->prepare(self, NULL, NULL), 0);
	return 0;
}

static int gone(void **state)
{
	bare_run_free(r);
	return 0;
}

static int leave_loop(void *ctx, struct err *e)
{
	return -ECANCELED;
}

/* A round of the loop, in which the signal arrives, and turns until the check has ended. */
static void hup(void)
{
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	loop_each(r->loop, leave_loop, NULL);
	assert_int_equal(loop_run(r->loop, NULL), -ECANCELED);
}

static void turn_until(const char *what)
{
	for (int i = 0; i < 1000 && !strstr(said, what) && !ended; i++) {
		usleep(10000);
		c->tick(self, now_ns());
	}
}

static void it_is_ready_when_the_gate_has_opened(void **state)
{
	assert_string_equal(said, "");
	assert_int_equal(c->ready(self, NULL), 0);
	assert_string_equal(
		said,
		"READY=1\nWATCHDOG=1\nSTATUS=Profiling the whole host: a window of 60 s after "
		"the other, in /archive/host");
}

static void the_watchdog_hears_of_progress_alone(void **state)
{
	uint64_t now;

	watchdog_ns = 20000000000;
	assert_int_equal(c->ready(self, NULL), 0);
	now = now_ns();
	said[0] = '\0';
	c->tick(self, now + 11000000000);
	assert_string_equal(said, "");
	c->drained(self, now);
	c->tick(self, now + 9000000000);
	assert_string_equal(said, "");
	c->tick(self, now + 11000000000);
	assert_string_equal(said, "WATCHDOG=1");
	c->tick(self, now + 22000000000);
	assert_string_equal(said, "WATCHDOG=1");
}

static void a_good_configuration_ends_the_run_and_another_follows(void **state)
{
	words[1] = (char *)"status-0";
	hup();
	assert_non_null(strstr(said, "RELOADING=1\nMONOTONIC_USEC="));
	assert_null(ended);
	turn_until("READY=1");
	assert_string_equal(ended, "SIGHUP");
	assert_int_equal(r->end.why, RUN_END_AGAIN);
	said[0] = '\0';
	c->closing(self);
	assert_non_null(strstr(said, "RELOADING=1"));
	assert_null(strstr(said, "STOPPING=1"));
	assert_non_null(strstr(said, "EXTEND_TIMEOUT_USEC="));
}

static void a_mistake_leaves_the_run_as_it_was(void **state)
{
	words[1] = (char *)"status-2";
	hup();
	turn_until("READY=1");
	assert_non_null(strstr(said, "READY=1"));
	assert_null(ended);
}

static void what_changes_while_it_is_read_is_read_again(void **state)
{
	words[1] = (char *)"status-0";
	hup();
	hup();
	turn_until("nothing");
	assert_string_equal(ended, "SIGHUP");
	assert_non_null(strstr(strstr(said, "RELOADING=1") + 1, "RELOADING=1"));
}

static void without_a_file_there_is_nothing_to_read(void **state)
{
	serve.config = NULL;
	hup();
	serve.config = "memscope.conf";
	assert_string_equal(said, "");
	assert_null(ended);
}

static void an_end_says_so_and_asks_for_time(void **state)
{
	watchdog_ns = 20000000000;
	assert_int_equal(c->ready(self, NULL), 0);
	said[0] = '\0';
	r->end.why = RUN_END_SIGNAL;
	c->closing(self);
	assert_string_equal(said,
			    "STOPPING=1; STATUS=Writing the last window; "
			    "WATCHDOG_USEC=120000000\nWATCHDOG=1; EXTEND_TIMEOUT_USEC=120000000");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_ready_when_the_gate_has_opened, made, gone),
		cmocka_unit_test_setup_teardown(the_watchdog_hears_of_progress_alone, made, gone),
		cmocka_unit_test_setup_teardown(
			a_good_configuration_ends_the_run_and_another_follows, made, gone),
		cmocka_unit_test_setup_teardown(a_mistake_leaves_the_run_as_it_was, made, gone),
		cmocka_unit_test_setup_teardown(what_changes_while_it_is_read_is_read_again, made,
						gone),
		cmocka_unit_test_setup_teardown(without_a_file_there_is_nothing_to_read, made,
						gone),
		cmocka_unit_test_setup_teardown(an_end_says_so_and_asks_for_time, made, gone),
	};

	if (argc > 1 && strncmp(argv[1], "status-", 7) == 0)
		return atoi(argv[1] + 7);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
