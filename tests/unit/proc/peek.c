/* Memory of another process: of this one, which no test has to be root for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proc/peek.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void what_is_there_is_read(void **state)
{
	static const char text[] = "what is there";
	char got[sizeof(text)] = "";

	(void)state;
	assert_true(peek(getpid(), (uintptr_t)text, got, sizeof(got)));
	assert_string_equal(got, text);
	assert_true(peek_may(getpid(), (uintptr_t)text, sizeof(got)));
	assert_true(peek_may(getpid(), (uintptr_t)text, 0));
}

static void all_of_it_or_nothing(void **state)
{
	uint8_t *two =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t got[16];

	(void)state;
	assert_ptr_not_equal(two, MAP_FAILED);
	memset(two, 7, 2 * PAGE);
	assert_true(peek(getpid(), (uintptr_t)two + PAGE - 8, got, sizeof(got)));
	assert_int_equal(got[15], 7);
	munmap(two + PAGE, PAGE);
	assert_false(peek(getpid(), (uintptr_t)two + PAGE - 8, got, sizeof(got)));
	munmap(two, PAGE);
	assert_false(peek(getpid(), (uintptr_t)two, got, sizeof(got)));
	assert_false(peek(getpid(), UINT64_MAX - 3, got, sizeof(got)));
}

static void a_process_that_is_gone_has_none(void **state)
{
	uint8_t got[8];

	(void)state;
	assert_false(peek(0x7ffffff0, (uintptr_t)got, got, sizeof(got)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_read),
		cmocka_unit_test(all_of_it_or_nothing),
		cmocka_unit_test(a_process_that_is_gone_has_none),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
