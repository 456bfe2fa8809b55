/* Conditions on objects, asked of a small heap. */
#include "heap/snapshot/query.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "select_fixture.h"

static void assert_meant(const char *what, const char *want)
{
	_cleanup_(heap_fini) struct heap h;

	heap_init(&h);
	assert_selected(&h, what, want);
}

static void assert_refused(const char *what, int code, const char *sentence)
{
	_cleanup_(heap_fini) struct heap h;
	uint32_t *objects = NULL;
	struct err e = { 0 };
	uint64_t n;

	heap_init(&h);
	assert_int_equal(select_objects(&h.s, what, &objects, &n, &e), code);
	assert_null(objects);
	if (!strstr(e.msg, sentence))
		fail_msg("of %s it says %s", what, e.msg);
}

static void a_name_is_a_type_with_or_without_its_module(void **state)
{
	assert_meant("Session", "235");
	assert_meant("type:web.Session", "235");
	assert_meant("type = Session", "235");
	assert_meant("ession", "");
	assert_meant("type != Session", "0146");
	assert_meant("type ~ ^web[.]", "0235");
	assert_meant("type ~ \"^(str|dict)$\"", "146");
	assert_meant("type != std::map<int, Session> and size = 64", "0");
}

static void a_number_is_compared_in_its_unit(void **state)
{
	assert_meant("size:48", "25");
	assert_meant("size = 0x30", "25");
	assert_meant("size>48 and size<=64", "03");
	assert_meant("size != 48 and size < 1K", "01346");
	assert_meant("0x2008", "1");
	assert_meant("address >= 0x6000", "56");
	assert_meant("references = 0", "46");
	assert_meant("referrers > 1", "4");
}

static void references_lead_from_condition_to_condition(void **state)
{
	assert_meant("lost", "56");
	assert_meant("Session and not lost", "23");
	assert_meant("refers_to(str)", "235");
	assert_meant("referred_by(Session)", "46");
	assert_meant("referred_by(referred_by(dict))", "4");
	assert_meant("reachable(dict)", "1234");
	assert_meant("retained_by(size = 48)", "25");
	assert_meant("retained_by(dict)", "1234");
	/* 4 is reached through 2 as well as 3: neither retains it. */
	assert_meant("retained = 48", "2");
	assert_meant("retained >= 336", "01");
}

static void not_binds_closer_than_and_and_that_closer_than_or(void **state)
{
	assert_meant("str or Session and lost", "456");
	assert_meant("(str or Session) and lost", "56");
	assert_meant("not str and not Session", "01");
	assert_meant("not (str or Session)", "01");
}

static void what_cannot_be_read_is_refused_with_its_place(void **state)
{
	char deep[400];

	assert_refused("site:make_session", -ENODATA, "--trace SEC");
	assert_refused("size > x", -EINVAL, "not a number at");
	assert_refused("size > 99999999999999999999", -EINVAL, "not a number");
	assert_refused("size > 99999999999999999G", -EINVAL, "not a number");
	assert_refused("type > 3", -EINVAL, "neither larger nor smaller");
	assert_refused("size ~ 3", -EINVAL, "like nothing");
	assert_refused("(str", -EINVAL, "not closed");
	assert_refused("str dict", -EINVAL, "\"and\" or \"or\" is missing at \"dict\"");
	assert_refused("str and", -EINVAL, "a condition is missing at its end");
	assert_refused("size >", -EINVAL, "a number or a condition is missing at its end");
	assert_refused("size", -EINVAL, "a comparison is missing, as in size > 4K, at its end");
	assert_refused("str and and dict", -EINVAL, "a condition is missing at \"and dict\"");
	assert_refused("str or or", -EINVAL, "a condition is missing at \"or\"");
	assert_refused("\"str", -EINVAL, "a quote without its end");
	assert_refused("refers(str)", -EINVAL, "no such function");
	assert_refused("typ=Session", -EINVAL, "no such field");
	assert_refused("bytes > 3", -EINVAL, "no such field");
	assert_refused("type ~ \"(\"", -EINVAL, "no regular expression");
	assert_refused("0xdead0000", -ENOENT, "no block in use has the address");
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_refused(deep, -EINVAL, "too many in one another");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_a_type_with_or_without_its_module),
		cmocka_unit_test(a_number_is_compared_in_its_unit),
		cmocka_unit_test(references_lead_from_condition_to_condition),
		cmocka_unit_test(not_binds_closer_than_and_and_that_closer_than_or),
		cmocka_unit_test(what_cannot_be_read_is_refused_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
