/* What is done after each answer of a store, when it is asked again, and who it is told that we are. */
#include "run/push/worker.h"
#include "run/push/backoff.h"
#include "run/push/protocol.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static void waits_double_up_to_five_minutes_and_half_of_each_is_chance(void **state)
{
	const uint64_t most[] = { 1000,  2000,   4000,   8000,   16000, 32000,
				  64000, 128000, 256000, 300000, 300000 };

	for (uint32_t chance = 0; chance < 100000; chance += 997) {
		struct backoff b = { 0 };

		for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
			uint64_t ms = backoff_next_ms(&b, chance * 2654435761u, 0);

			assert_in_range(ms, most[i] / 2, most[i]);
		}
	}
	assert_int_equal(backoff_next_ms(&(struct backoff){ 4000000000u }, 0, 0), 150000);
}

static void what_a_store_asks_for_is_waited_at_least_but_not_for_ever(void **state)
{
	struct backoff b = { 0 };

	assert_int_equal(backoff_next_ms(&b, 0, 90), 90000);
	b.failures = 20;
	assert_int_equal(backoff_next_ms(&b, 0, 1), 150000);
	assert_int_equal(backoff_next_ms(&b, 0, 1ull << 60), 3600000);
}

static void an_entry_at_which_a_store_fails_is_dropped_when_the_next_is_taken(void **state)
{
	struct push_attempts a = { 0 };
	const char *drop;

	for (int i = 0; i < PUSH_FAILURES; i++)
		assert_int_equal(push_attempt(&a, "1", PUSH_FAILED, &drop),
				 i + 1 < PUSH_FAILURES || i == 0 ? PUSH_NEXT_WAIT : PUSH_NEXT_SKIP);
	/* The store fails at all of them: nothing is dropped. */
	assert_int_equal(push_attempt(&a, "2", PUSH_FAILED, &drop), PUSH_NEXT_WAIT);
	assert_null(drop);
	assert_int_equal(push_attempt(&a, "1", PUSH_FAILED, &drop), PUSH_NEXT_SKIP);
	assert_int_equal(push_attempt(&a, "2", PUSH_TAKEN, &drop), PUSH_NEXT_ENTRY);
	assert_string_equal(drop, "1");
	assert_int_equal(push_attempt(&a, "3", PUSH_TAKEN, &drop), PUSH_NEXT_ENTRY);
	assert_null(drop);
}

static void one_that_is_refused_at_last_is_suspected_no_more(void **state)
{
	struct push_attempts a = { 0 };
	const char *drop;

	assert_int_equal(push_attempt(&a, "1", PUSH_FAILED, &drop), PUSH_NEXT_WAIT);
	assert_int_equal(push_attempt(&a, "1", PUSH_REFUSED, &drop), PUSH_NEXT_ENTRY);
	for (int i = 0; i < PUSH_FAILURES; i++)
		push_attempt(&a, "2", PUSH_FAILED, &drop);
	assert_int_equal(push_attempt(&a, "2", PUSH_FAILED, &drop), PUSH_NEXT_SKIP);
	assert_int_equal(push_attempt(&a, "3", PUSH_TAKEN, &drop), PUSH_NEXT_ENTRY);
	assert_string_equal(drop, "2");
}

static void a_store_that_cannot_now_is_nobodys_fault(void **state)
{
	struct push_attempts a = { 0 };
	const char *drop;

	for (int i = 0; i < 50; i++)
		assert_int_equal(push_attempt(&a, "1", PUSH_LATER, &drop), PUSH_NEXT_WAIT);
	assert_int_equal(push_attempt(&a, "1", PUSH_TAKEN, &drop), PUSH_NEXT_ENTRY);
	assert_null(drop);
}

static enum push_verdict by_status(const char *protocol, int status, const char *type,
				   const char *body, size_t len, uint64_t *rejected)
{
	struct http_answer a = { .status = status, .type = type, .body = bytes_of(body, len) };
	char why[300];

	for (const struct push_protocol *p = push_protocols; p->name; p++)
		if (strcmp(p->name, protocol) == 0)
			return p->verdict(&a, rejected, why, sizeof(why));
	return PUSH_REFUSED;
}

static void statuses_say_what_becomes_of_a_profile(void **state)
{
	static const struct {
		int status;
		enum push_verdict pyroscope, otlp;
	} rows[] = {
		{ 200, PUSH_TAKEN, PUSH_TAKEN },     { 301, PUSH_LATER, PUSH_LATER },
		{ 400, PUSH_REFUSED, PUSH_REFUSED }, { 401, PUSH_LATER, PUSH_LATER },
		{ 403, PUSH_LATER, PUSH_LATER },     { 404, PUSH_REFUSED, PUSH_REFUSED },
		{ 408, PUSH_LATER, PUSH_REFUSED },   { 413, PUSH_REFUSED, PUSH_REFUSED },
		{ 422, PUSH_REFUSED, PUSH_REFUSED }, { 429, PUSH_LATER, PUSH_LATER },
		{ 500, PUSH_FAILED, PUSH_REFUSED },  { 501, PUSH_FAILED, PUSH_REFUSED },
		{ 502, PUSH_LATER, PUSH_LATER },     { 503, PUSH_LATER, PUSH_LATER },
		{ 504, PUSH_LATER, PUSH_LATER },
	};
	uint64_t rejected;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(by_status("pyroscope", rows[i].status, "application/proto", "", 0,
					   &rejected),
				 rows[i].pyroscope);
		assert_int_equal(by_status("otlp", rows[i].status, "application/x-protobuf", "", 0,
					   &rejected),
				 rows[i].otlp);
		assert_int_equal(rejected, 0);
	}
}

static void a_page_of_somebody_else_is_no_answer(void **state)
{
	static const char page[] = "<html>log in</html>",
			  partial[] = "\x0a\x0b\x08\x07\x12\x07too old", cut[] = "\x0a\x7f\x08";
	uint64_t rejected;

	assert_int_equal(
		by_status("pyroscope", 200, "text/html", page, sizeof(page) - 1, &rejected),
		PUSH_LATER);
	assert_int_equal(by_status("pyroscope", 200, "", "", 0, &rejected), PUSH_LATER);
	assert_int_equal(by_status("otlp", 200, "text/html", page, sizeof(page) - 1, &rejected),
			 PUSH_LATER);
	assert_int_equal(by_status("otlp", 200, "", page, sizeof(page) - 1, &rejected), PUSH_LATER);
	assert_int_equal(by_status("otlp", 200, "", cut, sizeof(cut) - 1, &rejected), PUSH_LATER);
	assert_int_equal(by_status("otlp", 200, "application/x-protobuf", partial,
				   sizeof(partial) - 1, &rejected),
			 PUSH_TAKEN);
	assert_int_equal(rejected, 7);
}

static void a_token_is_a_bearers_or_a_name_with_a_password(void **state)
{
	static const struct {
		const char *text, *header;
	} rows[] = {
		{ "abc", "Authorization: Bearer abc" },
		{ "abc\r\nmore\n", "Authorization: Bearer abc" },
		{ "a:b", "Authorization: Basic YTpi" },
		{ "user:pass\n", "Authorization: Basic dXNlcjpwYXNz" },
		{ "user:passw\n", "Authorization: Basic dXNlcjpwYXNzdw==" },
		{ "user:passwo\n", "Authorization: Basic dXNlcjpwYXNzd28=" },
	};
	char path[] = "/tmp/memscope-token-XXXXXX", header[200];
	int fd = mkstemp(path);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, rows[i].text, strlen(rows[i].text), 0),
				 strlen(rows[i].text));
		assert_int_equal(push_authorization(path, header, sizeof(header), NULL), 0);
		assert_string_equal(header, rows[i].header);
	}
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(push_authorization(path, header, sizeof(header), NULL), -ENODATA);
	close(fd);
	unlink(path);
	assert_int_equal(push_authorization(path, header, sizeof(header), NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_double_up_to_five_minutes_and_half_of_each_is_chance),
		cmocka_unit_test(what_a_store_asks_for_is_waited_at_least_but_not_for_ever),
		cmocka_unit_test(an_entry_at_which_a_store_fails_is_dropped_when_the_next_is_taken),
		cmocka_unit_test(one_that_is_refused_at_last_is_suspected_no_more),
		cmocka_unit_test(a_store_that_cannot_now_is_nobodys_fault),
		cmocka_unit_test(statuses_say_what_becomes_of_a_profile),
		cmocka_unit_test(a_page_of_somebody_else_is_no_answer),
		cmocka_unit_test(a_token_is_a_bearers_or_a_name_with_a_password),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
