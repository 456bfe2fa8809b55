#include "render/render.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };
static const struct value_type blocked = { "blocked", "nanoseconds" };

static void assert_folded(struct fixture *f, const struct render_opts *opts, const char *want)
{
	_cleanup_(sink_closep) struct sink *s = NULL;
	struct err e = { 0 };
	size_t len;

	assert_int_equal(sink_open_memory(&s, &e), 0);
	assert_int_equal(format_find("folded")->write(f->p, opts, s, &e), 0);
	assert_string_equal(sink_memory(s, &len), want);
	fixture_free(f);
}

static const struct render_opts plain = { .value_type = -1 };

static void lines_are_sorted_stacks_with_marks_and_counts(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, "redis;main;loop;read;sys_read_[k]", 4);
	fixture_add1(&f, "redis;main;loop", 2);
	fixture_add1(&f, "redis;main;copy;inner_[i];more_[i]", 3);
	assert_folded(&f, &plain,
		      "redis;main;copy;inner_[i];more_[i] 3\n"
		      "redis;main;loop 2\n"
		      "redis;main;loop;read;sys_read_[k] 4\n");
}

static void the_process_name_can_be_left_out(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	fixture_add1(&f, "a;main", 1);
	fixture_add1(&f, "b;main", 1);
	assert_folded(&f, &(struct render_opts){ .value_type = -1, .no_comm = true }, "main 2\n");
}

static void nanoseconds_become_microseconds(void **state)
{
	struct fixture f = fixture_new(&blocked, 1);

	fixture_add1(&f, "p;main;wait", 1234567);
	fixture_add1(&f, "p;main;blink", 400);
	assert_folded(&f, &plain, "p;main;wait 1235\n");
}

static void hostile_names_stay_one_frame_on_one_line(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct label l = { .key = dict_string(f.d, "comm"), .str = dict_string(f.d, "a;b\n9") };
	labels_id labels = dict_labels(f.d, &l, 1);
	struct line line = { .function = dict_string(f.d, "x;y 7\nroot 99\xff") };
	location_id loc = dict_location(f.d, (module_id){ 0 }, 0x77);
	int64_t one = 1;

	dict_location_name(f.d, loc, &line, 1);
	profile_add(f.p, dict_stack(f.d, &loc, 1), labels, &one);
	assert_folded(&f, &plain,
		      "a:b\xef\xbf\xbd"
		      "9;x:y 7\xef\xbf\xbdroot 99\xef\xbf\xbd 1\n");
}

static void an_empty_profile_is_an_empty_text(void **state)
{
	struct fixture f = fixture_new(&samples, 1);

	assert_folded(&f, &plain, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_sorted_stacks_with_marks_and_counts),
		cmocka_unit_test(the_process_name_can_be_left_out),
		cmocka_unit_test(nanoseconds_become_microseconds),
		cmocka_unit_test(hostile_names_stay_one_frame_on_one_line),
		cmocka_unit_test(an_empty_profile_is_an_empty_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
