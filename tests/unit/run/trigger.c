#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/trigger.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SEC 1000000000ULL

static struct trigger parsed(const char *text)
{
	struct trigger t;
	struct err e = { 0 };

	if (trigger_parse(text, &t, &e) < 0)
		fail_msg("%s", e.msg);
	return t;
}

static void conditions_are_read_with_their_units(void **state)
{
	struct trigger t = parsed("rss>4G");

	assert_int_equal(t.what, TRIGGER_RSS);
	assert_false(t.each);
	assert_true(t.bound == 4.0 * (1 << 30));
	assert_string_equal(t.word, "rss_4G");
	t = parsed("rss > 1.5 GiB");
	assert_true(t.bound == 1.5 * (1 << 30));
	assert_string_equal(t.word, "rss_1_5GiB");
	t = parsed("growth>100M/min");
	assert_true(fabs(t.bound - 100.0 * (1 << 20) / 60) < 1 && t.span_s == 60);
	assert_string_equal(t.word, "growth_100M_min");
	assert_true(parsed("growth>1Mi/s").span_s == 10);
	assert_true(parsed("growth>1m/h").bound == (1 << 20) / 3600.0);
	t = parsed("allocated+=1G");
	assert_true(t.each && t.bound == 1 << 30);
	assert_string_equal(t.word, "allocated_1G");
	t = parsed("cpu>80%");
	assert_true(t.bound == 80 && t.span_s == 5);
	assert_string_equal(t.word, "cpu_80");
	assert_int_equal(parsed("oom").what, TRIGGER_OOM);
	assert_true(parsed("rss>1000").bound == 1000);
	(void)state;
}

static void what_cannot_be_read_is_refused_with_the_form_that_is_right(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "rss, growth, allocated, cpu or oom" },
		{ "RSS>4G", "rss, growth, allocated, cpu or oom" },
		{ "memory>4G", "not \"memory>4G\"" },
		{ "rss", "'rss>4G'" },
		{ "rss<4G", "'rss+=1G'" },
		{ "rss>", "bytes (K, M, G, T)" },
		{ "rss>G", "bytes (K, M, G, T)" },
		{ "rss>0", "bytes (K, M, G, T)" },
		{ "rss>-1", "bytes (K, M, G, T)" },
		{ "rss>1e9", "bytes (K, M, G, T)" },
		{ "rss>0x10", "bytes (K, M, G, T)" },
		{ "rss>nan", "bytes (K, M, G, T)" },
		{ "rss>1.2.3G", "bytes (K, M, G, T)" },
		{ "rss>4G/min", "bytes (K, M, G, T)" },
		{ "rss>4Gx", "bytes (K, M, G, T)" },
		{ "rss+=", "'+=1G'" },
		{ "growth>100M", "/s, /min, /h" },
		{ "growth>100M/day", "/s, /min, /h" },
		{ "growth>100M/minute", "/s, /min, /h" },
		{ "growth+=1M/s", "'growth>100M/min'" },
		{ "cpu>80", "percent of one CPU" },
		{ "cpu+=80%", "'cpu>80%'" },
		{ "oom>1", "takes no bound" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct trigger t = { .bound = 77 };
		struct err e = { 0 };

		if (trigger_parse(wrong[i].text, &t, &e) != -EINVAL)
			fail_msg("\"%s\" was taken", wrong[i].text);
		if (!strstr(e.msg, wrong[i].says) || strncmp(e.msg, "--when ", 7) != 0)
			fail_msg("\"%s\": %s", wrong[i].text, e.msg);
		assert_true(t.bound == 77);
	}
	(void)state;
}

static void a_bound_fires_when_it_is_passed_and_again_after_it_was_not(void **state)
{
	struct trigger t = parsed("rss>100");
	struct trigger_state s = { 0 };

	assert_false(trigger_step(&t, &s, NAN, 0, 0));
	assert_false(trigger_step(&t, &s, 100, 0, 0));
	assert_true(trigger_step(&t, &s, 101, 1, 0));
	assert_false(trigger_step(&t, &s, 200, 2, 0));
	assert_false(trigger_step(&t, &s, 99, 3, 0)); /* still met: it is not below 95 % */
	assert_false(trigger_step(&t, &s, 101, 4, 0));
	assert_false(trigger_step(&t, &s, 94, 5, 0));
	assert_true(trigger_step(&t, &s, 101, 6, 0));
	assert_int_equal(s.fired, 2);
	assert_int_equal(s.suppressed, 0);
	(void)state;
}

static void what_comes_too_soon_is_suppressed_and_counted(void **state)
{
	struct trigger t = parsed("rss>100");
	struct trigger_state s = { 0 };

	assert_true(trigger_step(&t, &s, 101, 1 * SEC, 60 * SEC));
	assert_false(trigger_step(&t, &s, 10, 2 * SEC, 60 * SEC));
	assert_false(trigger_step(&t, &s, 101, 3 * SEC, 60 * SEC));
	assert_int_equal(s.suppressed, 1);
	/* It stays true: that is no new event when the minute is over. */
	assert_false(trigger_step(&t, &s, 101, 100 * SEC, 60 * SEC));
	assert_false(trigger_step(&t, &s, 10, 101 * SEC, 60 * SEC));
	assert_true(trigger_step(&t, &s, 101, 102 * SEC, 60 * SEC));
	assert_int_equal(s.fired, 2);
	assert_int_equal(s.suppressed, 1);
	(void)state;
}

static void each_further_step_fires_once(void **state)
{
	struct trigger t = parsed("allocated+=1000"), r = parsed("rss+=1000");
	struct trigger_state s = { 0 };

	assert_false(trigger_step(&t, &s, 999, 0, 0));
	assert_true(trigger_step(&t, &s, 1000, 1, 0));
	assert_false(trigger_step(&t, &s, 1999, 2, 0));
	assert_true(trigger_step(&t, &s, 5500, 3, 0)); /* several at once are one */
	assert_false(trigger_step(&t, &s, 5999, 4, 0));
	assert_true(trigger_step(&t, &s, 6000, 5, 0));
	memset(&s, 0, sizeof(s));
	assert_false(trigger_step(&r, &s, 5300, 0, 0)); /* what there was counts from here */
	assert_false(trigger_step(&r, &s, 6299, 1, 0));
	assert_true(trigger_step(&r, &s, 6300, 2, 0));
	(void)state;
}

static void a_rise_is_by_the_whole_span_even_when_less_is_known(void **state)
{
	struct trigger_rise r = { 0 };
	double rate = 0;

	assert_true(isnan(trigger_rise(&r, NAN, 0, 10)));
	assert_true(trigger_rise(&r, 1000, 100 * SEC, 10) == 0);
	assert_true(trigger_rise(&r, 1500, 101 * SEC, 10) == 50); /* and not 500 */
	/* 100 a second, four looks a second, for a minute. */
	memset(&r, 0, sizeof(r));
	for (int i = 0; i < 240; i++)
		rate = trigger_rise(&r, i * 25, 100 * SEC + (uint64_t)i * SEC / 4, 10);
	assert_true(fabs(rate - 100) < 1);
	assert_true(r.n <= TRIGGER_POINTS);
	/* It rises no more: in the end nothing has risen within the span. */
	for (int i = 0; i < 80; i++)
		rate = trigger_rise(&r, 6000, 160 * SEC + (uint64_t)i * SEC / 4, 10);
	assert_true(fabs(rate) < 1);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_are_read_with_their_units),
		cmocka_unit_test(what_cannot_be_read_is_refused_with_the_form_that_is_right),
		cmocka_unit_test(a_bound_fires_when_it_is_passed_and_again_after_it_was_not),
		cmocka_unit_test(what_comes_too_soon_is_suppressed_and_counted),
		cmocka_unit_test(each_further_step_fires_once),
		cmocka_unit_test(a_rise_is_by_the_whole_span_even_when_less_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
