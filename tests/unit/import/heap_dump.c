#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "import/readers.h"

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

static const char maps[] = "\nMAPPED_LIBRARIES:\n"
			   "401000-402000 r-xp 00001000 fe:00 11 /nowhere/shop\n"
			   "500000-501000 r-xp 00000000 00:00 0 \n";

static int read_dump(const char *text, struct profile **ret_profile)
{
	char whole[4096];

	snprintf(whole, sizeof(whole), "%s%s", text, maps);
	return heap_dump_read(d, bytes_of(whole, strlen(whole)), "x", NULL, &info, ret_profile, &e);
}

static int64_t total(const struct profile *p, const char *name)
{
	int type = profile_find_type(p, name);

	return type < 0 ? -1 : profile_total(p, (uint32_t)type);
}

static void each_stack_is_scaled_by_its_own_mean_size(void **state)
{
	struct profile *p;
	/* Half small and half large: the mean of all would be wrong by far. */
	int64_t small = llround(1000 / (1 - exp(-0.1))), large = llround(15000 / (1 - exp(-5.0)));

	assert_int_equal(
		read_dump("heap_v2/1000\n  t*: 13: 16000 [0: 0]\n"
			  "@ 0x401010 0x401100\n  t*: 10: 1000 [0: 0]\n  t0: 10: 1000 [0: 0]\n"
			  "@ 0x401020 0x401100\n  t*: 3: 15000 [0: 0]\n",
			  &p),
		0);
	assert_int_equal(profile_n_samples(p), 2);
	assert_int_equal(profile_sample(p, 0).values[1], small);
	assert_int_equal(profile_sample(p, 1).values[1], large);
	assert_int_equal(profile_get_meta(p)->period, 1000);
	profile_free(p);
}

static void lines_of_one_stack_are_added_up_before_they_are_rounded(void **state)
{
	char text[2048] = "heap profile: 40: 40000 [0: 0] @ heap_v2/1000\n";
	struct profile *p;

	/* Each stands for 1.58 objects: 40 of them for 63, not for 80. */
	for (int i = 0; i < 40; i++)
		strcat(text, " 1: 1000 [0: 0] @ 0x401010\n");
	assert_int_equal(read_dump(text, &p), 0);
	assert_int_equal(total(p, "inuse_objects"), llround(40 / (1 - exp(-1))));
	profile_free(p);
}

static void totals_before_the_first_stack_are_nobodys(void **state)
{
	struct profile *p;

	assert_int_equal(
		read_dump("heap_v2/1\n  t*: 13: 16000 [0: 0]\n  t0: 13: 16000 [0: 0] worker\n"
			  "@ 0x401010\n  t*: 1: 64 [0: 0]\n",
			  &p),
		0);
	assert_int_equal(total(p, "inuse_space"), 64);
	assert_int_equal(info.skipped_lines, 0);
	profile_free(p);
}

static void what_was_ever_allocated_is_a_value_only_where_it_is_kept(void **state)
{
	struct profile *p;

	assert_int_equal(read_dump("heap_v2/1\n@ 0x401010\n  t*: 1: 64 [0: 0]\n", &p), 0);
	assert_int_equal(profile_n_types(p), 2);
	assert_int_equal(profile_get_meta(p)->default_type, 1);
	profile_free(p);
	assert_int_equal(read_dump("heap_v2/1\n@ 0x401010\n  t*: 1: 64 [5: 320]\n", &p), 0);
	assert_int_equal(profile_n_types(p), 4);
	assert_int_equal(total(p, "alloc_space"), 320);
	assert_int_equal(profile_get_meta(p)->default_type, 3);
	profile_free(p);
}

static void heapprofile_counts_everything_and_heap_halves_its_rate(void **state)
{
	struct profile *p;

	assert_int_equal(read_dump("heap profile: 1: 100 [1: 100] @ heapprofile\n"
				   " 1: 100 [ 2: 200] @ 0x401010\n",
				   &p),
			 0);
	assert_int_equal(total(p, "inuse_space"), 100);
	assert_int_equal(profile_get_meta(p)->period, 1);
	profile_free(p);
	assert_int_equal(
		read_dump("heap profile: 1: 100 [1: 100] @ heap/2000\n"
			  "  1: 100 [2: 200] @ 0x401010\n#\t0x401010\tmain.f+0x1\tx.go:1\n",
			  &p),
		0);
	assert_int_equal(total(p, "inuse_space"), llround(100 / (1 - exp(-0.1))));
	assert_int_equal(info.skipped_lines, 0);
	profile_free(p);
}

static void return_addresses_are_moved_back_into_their_calls_but_the_leaf_is_not(void **state)
{
	struct profile *p;
	stack_id s;

	assert_int_equal(read_dump("heap_v2/1\n@ 0x401010 0x401100\n  t*: 1: 64 [0: 0]\n", &p), 0);
	s = profile_sample(p, 0).stack;
	/* No file to ask: file offsets. */
	assert_int_equal(dict_location_get(d, dict_stack_leaf(d, s))->vaddr, 0x1010);
	s = dict_stack_parent(d, s);
	assert_int_equal(dict_location_get(d, dict_stack_leaf(d, s))->vaddr, 0x10ff);
	assert_true(info.addresses);
	assert_false(info.no_mappings);
	profile_free(p);
}

static void addresses_are_placed_by_the_mappings(void **state)
{
	struct profile *p;
	const struct location *loc;
	stack_id s;

	assert_int_equal(read_dump("heap_v2/1\n@ 0x401fff 0x402001 0x500010 0x400fff\n"
				   "  t*: 1: 64 [0: 0]\n",
				   &p),
			 0);
	s = profile_sample(p, 0).stack;
	loc = dict_location_get(d, dict_stack_leaf(d, s));
	assert_string_equal(dict_str(d, dict_module_get(d, loc->module)->path), "/nowhere/shop");
	s = dict_stack_parent(d, s);
	loc = dict_location_get(d, dict_stack_leaf(d, s));
	assert_int_equal(loc->module.ix, 0);
	s = dict_stack_parent(d, s);
	loc = dict_location_get(d, dict_stack_leaf(d, s));
	assert_int_equal(dict_module_get(d, loc->module)->kind, MODULE_ANON);
	s = dict_stack_parent(d, s);
	loc = dict_location_get(d, dict_stack_leaf(d, s));
	assert_int_equal(loc->module.ix, 0);
	profile_free(p);
}

static void a_dump_cut_short_says_so_and_keeps_what_is_whole(void **state)
{
	static const char text[] =
		"heap_v2/1\n@ 0x401010\n  t*: 1: 64 [0: 0]\n@ 0x401020\n  t*: 2: 1";
	struct profile *p;

	assert_int_equal(heap_dump_read(d, bytes_of(text, strlen(text)), "x", NULL, &info, &p, &e),
			 0);
	assert_int_equal(total(p, "inuse_space"), 64);
	assert_true(info.no_mappings);
	assert_int_equal(info.skipped_lines, 1);
	profile_free(p);
}

static void an_empty_heap_is_a_dump_without_samples(void **state)
{
	struct profile *p;

	assert_int_equal(read_dump("heap_v2/524288\n  t*: 0: 0 [0: 0]\n", &p), 0);
	assert_int_equal(profile_n_samples(p), 0);
	profile_free(p);
}

static void hostile_numbers_neither_wrap_nor_divide_by_nothing(void **state)
{
	struct profile *p;

	assert_int_equal(read_dump("heap_v2/9223372036854775807\n"
				   "@ 0x401010\n  t*: 9223372036854775807: 1 [0: 0]\n"
				   "@ 0x401020\n  t*: 0: 9223372036854775807 [1: 0]\n"
				   "@ 0x401030\n  t*: -9223372036854775807: 5 [1: 0]\n"
				   "@ 0xfffffffffffffffff\n  t*: 1: 1 [1: 1]\n"
				   "@ 0x0 0x0\n  t*: 99999999999999999999: 1 [1: 1]\n",
				   &p),
			 0);
	assert_int_equal(profile_n_samples(p), 3);
	assert_int_equal(profile_total(p, 3), INT64_MAX);
	assert_int_equal(info.skipped_lines, 2);
	profile_free(p);
}

static void what_is_no_heap_is_refused(void **state)
{
	static const char *const texts[] = {
		"heap profile: 1: 2 [3: 4] @ contention/5\n",
		"heap profile: 1: 2 [3: 4] @ heap_v2/x\n",
		"heap profile: 1: 2\n",
		"heap_v2/12x\n",
		"heap_v2/-5\n",
		"heap_v2/100\nnothing here\nat all\n",
	};
	struct profile *p = NULL;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		e.msg[0] = 0;
		assert_true(heap_dump_recognise(bytes_of(texts[i], strlen(texts[i]))));
		assert_int_equal(heap_dump_read(d, bytes_of(texts[i], strlen(texts[i])), "x", NULL,
						&info, &p, &e),
				 -EBADMSG);
		assert_non_null(strstr(e.msg, "x: "));
		assert_null(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		FACT(each_stack_is_scaled_by_its_own_mean_size),
		FACT(lines_of_one_stack_are_added_up_before_they_are_rounded),
		FACT(totals_before_the_first_stack_are_nobodys),
		FACT(what_was_ever_allocated_is_a_value_only_where_it_is_kept),
		FACT(heapprofile_counts_everything_and_heap_halves_its_rate),
		FACT(return_addresses_are_moved_back_into_their_calls_but_the_leaf_is_not),
		FACT(addresses_are_placed_by_the_mappings),
		FACT(a_dump_cut_short_says_so_and_keeps_what_is_whole),
		FACT(an_empty_heap_is_a_dump_without_samples),
		FACT(hostile_numbers_neither_wrap_nor_divide_by_nothing),
		FACT(what_is_no_heap_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
