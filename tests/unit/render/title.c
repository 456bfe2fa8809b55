#include "render/formats/title.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define AT 1795377173000000000ll /* 2026-11-22 19:52:53 UTC */

static const struct value_type samples = { "samples", "count" };
static const struct value_type blocked = { "blocked", "nanoseconds" };

static void assert_title(struct fixture *f, const char *what, const char *want)
{
	struct render_opts opts = { .value_type = -1, .what = what };
	struct shown shown = shown_pick(f->p, -1);
	struct strbuf out = { 0 };

	title_add(&out, f->p, &opts, &shown, profile_total(f->p, 0));
	assert_string_equal(out.s, want);
	strbuf_free(&out);
}

static void set_meta(struct fixture *f, const char *const *comments)
{
	struct profile_meta meta = { .time_ns = AT,
				     .duration_ns = 10100000000,
				     .period_type = { "", "" },
				     .comments = comments };

	assert_int_equal(profile_set_meta(f->p, &meta), 0);
}

static void a_title_says_who_what_when_how_long_and_how_much(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, "redis-server;main", 3100);
	set_meta(&f, (const char *const[]){ "Target: redis-server (pid 5099)", NULL });
	assert_title(&f, "oncpu.pb.gz",
		     "redis-server (pid 5099), on-CPU, 2026-11-22 19:52:53, 10.1 s, 3,100 samples");
	fixture_free(&f);
}

static void a_total_of_time_is_called_that_beside_the_duration(void **state)
{
	struct fixture f = fixture_new(&blocked, 1);

	fixture_add1(&f, "redis-server;main", 2500000000);
	set_meta(&f, (const char *const[]){ "Target: host a", NULL });
	assert_title(&f, NULL,
		     "host a, off-CPU: blocked, 2026-11-22 19:52:53, 10.1 s, total 2.5 s");
	fixture_free(&f);
}

static void a_title_given_to_the_recording_stands_for_its_target(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, "redis-server;main", 1);
	set_meta(&f, (const char *const[]){ "Target: host a", "Title: before the fix", NULL });
	assert_title(&f, NULL, "before the fix, on-CPU, 2026-11-22 19:52:53, 10.1 s, 1 samples");
	fixture_free(&f);
}

static void many_targets_are_counted(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, "x;main", 1);
	set_meta(&f, (const char *const[]){ "Target: a", "Target: b", "Target: c", NULL });
	assert_title(&f, NULL, "a, b, c, on-CPU, 2026-11-22 19:52:53, 10.1 s, 1 samples");
	set_meta(&f,
		 (const char *const[]){ "Target: a", "Target: b", "Target: c", "Target: d", NULL });
	assert_title(&f, NULL, "a, b and 2 more, on-CPU, 2026-11-22 19:52:53, 10.1 s, 1 samples");
	fixture_free(&f);
}

static void without_a_target_the_process_of_all_samples_is_named_or_else_the_file(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, "redis-server;main", 1);
	assert_title(&f, "x.pb.gz", "redis-server, on-CPU, 1 samples");
	fixture_add1(&f, "other;main", 1);
	assert_title(&f, "x.pb.gz", "x.pb.gz, on-CPU, 2 samples");
	assert_title(&f, "", "On-CPU, 2 samples");
	fixture_free(&f);
}

static void assert_how(struct fixture *f, const struct value_type *period, int64_t each,
		       const char *const *comments, const char *expected)
{
	struct shown shown = shown_pick(f->p, -1);
	struct strbuf out = { 0 };

	assert_int_equal(profile_set_meta(f->p, &(struct profile_meta){ .period_type = *period,
									.period = each,
									.comments = comments }),
			 0);
	title_how_add(&out, f->p, &(struct render_opts){ 0 }, &shown);
	assert_string_equal(out.s ? out.s : "", expected);
	strbuf_free(&out);
}

static void how_it_was_sampled_follows_from_the_period_or_the_estimate(void **state)
{
	static const struct value_type cpu = { "cpu", "nanoseconds" }, space = { "space", "bytes" };
	static const struct value_type cycles = { "cycles", "count" }, unknown = { "", "" };
	static const char *const bursts[] = { "Estimate: every call in 57 bursts", NULL };
	struct fixture f = fixture_new(&samples, 1), wait = fixture_new(&blocked, 1);

	assert_how(&f, &cpu, 10101010, NULL, " · sampled at 99 Hz");
	assert_how(&f, &cycles, 1000003, NULL, " · one sample every 1,000,003 cycles");
	assert_how(&f, &space, 524288, NULL, " · one sample in 512.0 KiB");
	assert_how(&f, &space, 1, NULL, "");
	assert_how(&f, &unknown, 0, NULL, "");
	assert_how(&f, &space, 524288, bursts, " · estimated: every call in 57 bursts");
	assert_how(&wait, &cpu, 10101010, NULL, ""); /* not of what is shown */
	fixture_free(&f);
	fixture_free(&wait);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_title_says_who_what_when_how_long_and_how_much),
		cmocka_unit_test(a_total_of_time_is_called_that_beside_the_duration),
		cmocka_unit_test(a_title_given_to_the_recording_stands_for_its_target),
		cmocka_unit_test(many_targets_are_counted),
		cmocka_unit_test(how_it_was_sampled_follows_from_the_period_or_the_estimate),
		cmocka_unit_test(
			without_a_target_the_process_of_all_samples_is_named_or_else_the_file),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
