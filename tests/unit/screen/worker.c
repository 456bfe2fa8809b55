#include "screen/worker.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The next message, waited for. False: it has ended. */
static bool next(struct worker *w, enum worker_message *kind, const char **data, size_t *bytes)
{
	while (!worker_next(w, kind, data, bytes)) {
		struct pollfd fd = { .fd = w->from, .events = POLLIN };

		assert_int_equal(poll(&fd, 1, 60000), 1);
		if (worker_read(w) < 0)
			return worker_next(w, kind, data, bytes);
	}
	return true;
}

static int sends(void *ctx, int in, int out)
{
	static char large[3 << 20];

	memset(large, 'x', sizeof(large));
	worker_say(out, WORKER_SAYS, "%s %d", "begun", *(int *)ctx);
	worker_send(out, WORKER_PROFILE, large, sizeof(large));
	worker_send(out, WORKER_ENDED, "", 0);
	return 0;
}

static void messages_come_whole_and_in_order(void **state)
{
	struct worker w;
	enum worker_message kind;
	const char *data;
	size_t bytes;
	int seven = 7;

	assert_int_equal(worker_start(&w, sends, &seven, NULL), 0);
	assert_true(next(&w, &kind, &data, &bytes));
	assert_int_equal(kind, WORKER_SAYS);
	assert_int_equal(bytes, 7);
	assert_memory_equal(data, "begun 7", 7);
	assert_true(next(&w, &kind, &data, &bytes));
	assert_int_equal(kind, WORKER_PROFILE);
	assert_int_equal(bytes, 3 << 20);
	assert_int_equal(data[(3 << 20) - 1], 'x');
	assert_true(next(&w, &kind, &data, &bytes));
	assert_int_equal(kind, WORKER_ENDED);
	assert_int_equal(bytes, 0);
	assert_false(next(&w, &kind, &data, &bytes));
	worker_stop(&w);
	workers_wait(60000);
}

static int answers(void *ctx, int in, int out)
{
	FILE *f = fdopen(in, "r");
	char line[64];

	while (fgets(line, sizeof(line), f))
		worker_say(out, WORKER_ANSWER, "to %.*s", (int)strcspn(line, "\n"), line);
	return 0;
}

static void it_answers_what_it_is_asked_until_it_is_stopped(void **state)
{
	struct worker w;
	enum worker_message kind;
	const char *data;
	size_t bytes;
	pid_t pid;

	assert_int_equal(worker_start(&w, answers, NULL, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(worker_ask(&w, "census"), 0);
		assert_true(next(&w, &kind, &data, &bytes));
		assert_int_equal(bytes, 9);
		assert_memory_equal(data, "to census", 9);
	}
	pid = w.pid;
	worker_stop(&w);
	workers_wait(60000);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static int damaged(void *ctx, int in, int out)
{
	(void)!write(out, "this is no message at all, but long enough to be one", 52);
	return 0;
}

static void what_is_no_message_is_dropped(void **state)
{
	struct worker w;
	enum worker_message kind;
	const char *data;
	size_t bytes;

	assert_int_equal(worker_start(&w, damaged, NULL, NULL), 0);
	assert_false(next(&w, &kind, &data, &bytes));
	worker_stop(&w);
	workers_wait(60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_whole_and_in_order),
		cmocka_unit_test(it_answers_what_it_is_asked_until_it_is_stopped),
		cmocka_unit_test(what_is_no_message_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
