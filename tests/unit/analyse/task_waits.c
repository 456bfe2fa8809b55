#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/task_waits.h"

struct coroutine {
	const char *function, *file;
	uint32_t line;
};

static const struct coroutine handle = { "handle (app.py)", "/srv/app.py", 40 };
static const struct coroutine fetch = { "fetch_price (app.py)", "/srv/app.py", 33 };
static const struct coroutine get = { "ClientSession._request (client.py)",
				      "/usr/lib/python3/dist-packages/aiohttp/client.py", 500 };
static const struct coroutine read_data = { "StreamReader.read (streams.py)",
					    "/usr/lib/python3.11/asyncio/streams.py", 694 };
static const struct coroutine wait_data = { "StreamReader._wait_for_data (streams.py)",
					    "/usr/lib/python3.11/asyncio/streams.py", 543 };
static const struct coroutine lock = {
	"Lock.acquire (locks.py)", "/root/.pyenv/versions/3.8.18/lib/python3.8/asyncio/locks.py",
	110
};

static stack_id stack_of(struct dict *d, const struct coroutine *const *root_first)
{
	stack_id s = { 0 };

	for (; *root_first; root_first++) {
		const struct line line = { .function = dict_string(d, (*root_first)->function),
					   .file = dict_string(d, (*root_first)->file),
					   .line = (*root_first)->line };

		s = dict_stack_push(d, s, dict_location_lines(d, (module_id){ 0 }, 0, &line, 1));
	}
	return s;
}

#define STACK(d, ...) stack_of(d, (const struct coroutine *const[]){ __VA_ARGS__, NULL })

static void programs_own_coroutine_awaits_what_asyncio_does_for_it(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	const struct task_use uses[] = {
		{ STACK(d, &handle, &fetch, &get, &read_data, &wait_data), false, 30, 10, 7, 500 },
		{ STACK(d, &handle, &fetch, &read_data, &wait_data), false, 5, 5, 7, 900 },
		{ STACK(d, &handle, &lock), false, 20, 10, 7, 100 },
		{ STACK(d, &get), true, 1, 1, 7, 1 },
	};
	struct task_row rows[4];

	assert_int_equal(tasks_rank(d, uses, 4, 12, rows, 4), 3);
	assert_string_equal(rows[0].function, "fetch_price (app.py)");
	assert_int_equal(rows[0].line, 33);
	assert_string_equal(rows[0].awaits, "StreamReader._wait_for_data (streams.py)");
	assert_int_equal(rows[0].wait, TASK_WAIT_SOCKET);
	assert_int_equal(rows[0].seen, 35);  /* of two ways there */
	assert_int_equal(rows[0].looks, 12); /* no more than there were */
	assert_int_equal(rows[0].longest_ns, 900);
	assert_int_equal(rows[0].left, 14);
	assert_string_equal(rows[1].function, "handle (app.py)");
	assert_int_equal(rows[1].wait, TASK_WAIT_LOCK);
	/* A package's alone: its own function; and what it waits for is another task. */
	assert_string_equal(rows[2].function, get.function);
	assert_int_equal(rows[2].wait, TASK_WAIT_TASK);
	assert_string_equal(task_wait_name(rows[2].wait), "task");
	assert_int_equal(tasks_rank(d, uses, 4, 12, rows, 1), 1);
	assert_int_equal(tasks_rank(d, uses, 0, 12, rows, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_own_coroutine_awaits_what_asyncio_does_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
