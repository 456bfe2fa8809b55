#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "import/readers.h"
#include "model/sample_times.h"

static struct dict *d;
static struct err e;
static struct import_info info;

static int setup(void **state)
{
	d = dict_new();
	memset(&e, 0, sizeof(e));
	memset(&info, 0, sizeof(info));
	return 0;
}

static int teardown(void **state)
{
	dict_free(d);
	return 0;
}

static int read_text(const char *text, struct profile **ret_profile)
{
	assert_true(perf_script_recognise(bytes_of(text, strlen(text))));
	_cleanup_(input_freep) struct input *in = input_of_bytes(bytes_of(text, strlen(text)));

	return perf_script_read(d, in, "x", &info, ret_profile, &e);
}

/* Root first; inlined calls after /. */
static void expect_stack(struct profile_sample s, const char *want)
{
	struct strbuf got = { 0 };
	stack_id path[64];
	uint32_t n = 0;

	for (; s.stack.ix; s.stack = dict_stack_parent(d, s.stack))
		path[n++] = s.stack;
	while (n--) {
		const struct location *loc = dict_location_get(d, dict_stack_leaf(d, path[n]));

		strbuf_puts(&got, got.len ? ";" : "");
		for (uint32_t l = loc->n_lines; l--;)
			strbuf_printf(&got, "%s%s", dict_str(d, loc->lines[l].function),
				      l ? "/" : "");
	}
	assert_string_equal(got.s ? got.s : "", want);
	strbuf_free(&got);
}

static const char *comm(struct profile_sample s)
{
	return dict_str(d, dict_label_find(d, s.labels, "comm")->str);
}

#define FRAMES                                                                                     \
	"\t    401010 leaf(int (*)(char))+0x1f (/bin/a b (old))\n\t  401100 main+0x0 (/bin/a b (old))\n\n"

static void a_sample_is_counted_once_and_with_its_period(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("prog 12/13 [000] 1.000000: 2000 cpu-clock:ppp: \n" FRAMES
				   "prog 12/13 [000] 1.500000: 2000 cpu-clock:ppp: \n" FRAMES,
				   &p),
			 0);
	assert_int_equal(profile_n_samples(p), 1);
	assert_int_equal(profile_sample(p, 0).values[0], 2);
	assert_int_equal(profile_sample(p, 0).values[1], 4000);
	assert_string_equal(profile_type(p, 1)->name, "cpu");
	assert_int_equal(profile_get_meta(p)->duration_ns, 500000000);
	expect_stack(profile_sample(p, 0), "main;leaf(int (*)(char))");
	assert_int_equal(info.skipped_lines, 0);
	profile_free(p);
}

static void a_command_may_be_named_as_badly_as_it_likes(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("a 1/2 [b] 3: 77/78 [000] 1.0: 5 cycles:u: \n" FRAMES, &p), 0);
	assert_string_equal(comm(profile_sample(p, 0)), "a 1/2 [b] 3:");
	assert_int_equal(dict_label_find(d, profile_sample(p, 0).labels, "pid")->num, 77);
	assert_int_equal(dict_label_find(d, profile_sample(p, 0).labels, "tid")->num, 78);
	assert_string_equal(profile_type(p, 1)->name, "cycles");
	profile_free(p);
}

static void inlined_calls_belong_to_the_frame_below_them(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("p 1 1.0: cycles: \n"
				   "\t1 a (inlined)\n\t1 b (inlined)\n\t1 c+0x1 (/x)\n  c.c:7\n"
				   "\t2 d (/x)\n\n",
				   &p),
			 0);
	expect_stack(profile_sample(p, 0), "d;c/b/a");
	assert_int_equal(profile_n_types(p), 1); /* no period was printed */
	assert_int_equal(info.skipped_lines, 0);
	profile_free(p);
}

static void a_frame_without_a_symbol_goes_by_its_image(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("p 1 1.0: cycles: \n"
				   "\t1 [unknown] (/usr/lib/libx.so)\n\t2 [unknown] ([unknown])\n"
				   "\tffffffff81000000 [unknown] ([kernel.kallsyms])\n\n",
				   &p),
			 0);
	expect_stack(profile_sample(p, 0), "[kernel.kallsyms];[unknown];[libx.so]");
	profile_free(p);
}

static void other_events_are_left_out_and_counted(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("p 1 1.0: 5 cycles: \n" FRAMES "p 1 1.1: 1 sched:sched_switch: "
				   "prev_comm=p prev_pid=1\n" FRAMES,
				   &p),
			 0);
	assert_int_equal(profile_total(p, 0), 1);
	assert_int_equal(info.other_events, 1);
	profile_free(p);
}

static void recordings_without_stacks_have_their_frame_on_the_line(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("     cafe 4 [000] 1.0: 7 cycles:  401010 f+0x1 (/bin/a)\n"
				   "     cafe 4 [000] 2.0: 7 cycles:  401011 f+0x2 (/bin/a)\n",
				   &p),
			 0);
	assert_int_equal(profile_n_samples(p), 1);
	assert_int_equal(profile_sample(p, 0).values[0], 2);
	expect_stack(profile_sample(p, 0), "f");
	profile_free(p);
}

static void lines_that_are_nothing_are_counted(void **state)
{
	struct profile *p;

	assert_int_equal(read_text("p 1 1.0: 5 cycles: \n\tnot a frame\n" FRAMES
				   "Warning: lost 3 chunks\n"
				   "p 1 1.0: 99999999999999999999 cycles: \n",
				   &p),
			 0);
	assert_int_equal(profile_total(p, 0), 1);
	assert_int_equal(info.skipped_lines, 3);
	profile_free(p);
}

static void text_cut_in_a_sample_has_those_before_it(void **state)
{
	static const char *const ends[] = {
		"p 1 1.5: 5 cycles: \n",
		"p 1 1.5: 5 cycles: \n\t 401010 leaf (/bin/a)\n",
		"p 1 1.5: 5 cycles: \n\t 401010 leaf (/bin/a)\n\t 401100 ma",
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		char text[512];

		snprintf(text, sizeof(text), "p 1 1.0: 5 cycles: \n" FRAMES "%s", ends[i]);
		assert_int_equal(read_text(text, &p), 0);
		assert_true(info.cut);
		assert_int_equal(profile_total(p, 0), 1);
		expect_stack(profile_sample(p, 0), "main;leaf(int (*)(char))");
	}
}

static void values_have_the_times_of_their_samples(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int64_t sums[SAMPLE_TIMES_TYPES];

	assert_int_equal(
		read_text("p 1 1.0: 5 cycles: \np 1 1.5: 7 cycles: \np 1 3.25: 9 cycles: \n", &p),
		0);
	assert_non_null(profile_times(p));
	assert_int_equal(sample_times_type(profile_times(p), 0), 1);
	sample_times_sum(profile_times(p), 0, 0, 64, sums);
	assert_int_equal(sums[0], 5);
	sample_times_sum(profile_times(p), 0, 64, 1000, sums);
	assert_int_equal(sums[0], 16);
	assert_int_equal(sums[1], 2);
	profile_free(p);
	/* One without a time: then none has one. */
	assert_int_equal(read_text("p 1 1.0: 5 cycles: \np 1 7 cycles: \n", &p), 0);
	assert_null(profile_times(p));
}

static void samples_that_have_no_stacks_are_not_cut(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;

	assert_int_equal(read_text("p 1 1.0: 5 cycles: \np 1 1.5: 5 cycles: \n", &p), 0);
	assert_false(info.cut);
	assert_int_equal(profile_total(p, 0), 2);
}

static void records_between_samples_are_no_samples(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;

	assert_int_equal(
		read_text(
			"swapper     0     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x12090c8) "
			"@ 0xffffffff81000000]: x [kernel.kallsyms]_text\n"
			"perf-exec     0     0.000000: PERF_RECORD_COMM: perf-exec:8194/8194\n"
			"prog  8194 48105.708408: PERF_RECORD_FORK(8195:8195):(8194:8194)\n"
			"prog  8194 48105.710510:    2004008 cpu-clock: \n"
			"\t 1219 hot (/bin/prog)\n"
			"\n"
			"prog  8194 48105.710520: PERF_RECORD_EXIT(8195:8195):(8194:8194)\n"
			"prog  8194 48105.710610:    2004008 cpu-clock: \n"
			"\t 1219 hot (/bin/prog)\n"
			"\n",
			&p),
		0);
	assert_int_equal(profile_total(p, 0), 2);
	assert_int_equal(info.other_events, 0);
	assert_int_equal(info.skipped_lines, 0);
}

static void an_inlined_call_may_be_told_of_behind_its_source(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;

	assert_int_equal(read_text("prog 1/1 2.0: 7 cpu-clock: \n"
				   "\t 1219 inner+0x19\n"
				   "  a.c:18 (inlined)\n"
				   "\t 1219 outer+0x21 (/bin/prog)\r\n"
				   "  a.c:33\n"
				   "\t 1084 main+0x34 (/bin/prog)\n"
				   "  a.c:59\n"
				   "\n",
				   &p),
			 0);
	assert_int_equal(info.skipped_lines, 0);
	expect_stack(profile_sample(p, 0), "main;outer/inner");
}

static void samples_without_their_event_are_refused_with_the_reason(void **state)
{
	static const char *const texts[] = {
		"cpu_mix \n\t            1219 mix_3\n\t            1085 main\n\n",
		"\n\t            1219 mix_3 (/bin/x)\n\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct profile *p = NULL;

		assert_int_equal(read_text(texts[i], &p), -EBADMSG);
		assert_non_null(strstr(e.msg, "-F comm,pid,tid,time,event,ip,sym,dso"));
	}
}

static void folded_text_is_not_taken_for_it(void **state)
{
	static const char *const texts[] = {
		"main;read 3\n", "a 12 13\n", "p 1 2: 3\n", "", "\n\n", "f:1 2:3 4\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(perf_script_recognise(bytes_of(texts[i], strlen(texts[i]))));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		FACT(a_sample_is_counted_once_and_with_its_period),
		FACT(a_command_may_be_named_as_badly_as_it_likes),
		FACT(inlined_calls_belong_to_the_frame_below_them),
		FACT(a_frame_without_a_symbol_goes_by_its_image),
		FACT(other_events_are_left_out_and_counted),
		FACT(recordings_without_stacks_have_their_frame_on_the_line),
		FACT(lines_that_are_nothing_are_counted),
		FACT(text_cut_in_a_sample_has_those_before_it),
		FACT(values_have_the_times_of_their_samples),
		FACT(samples_that_have_no_stacks_are_not_cut),
		FACT(records_between_samples_are_no_samples),
		FACT(an_inlined_call_may_be_told_of_behind_its_source),
		FACT(samples_without_their_event_are_refused_with_the_reason),
		FACT(folded_text_is_not_taken_for_it),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
