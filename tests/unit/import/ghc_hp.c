#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "import/readers.h"
#include "model/about.h"

#define HEAD                                                                                       \
	"JOB \"/opt/my work +RTS -hT\"\nDATE \"Tue Nov 24 02:56 2026\"\nSAMPLE_UNIT \"seconds\"\nVALUE_UNIT \"bytes\"\n"

static struct dict *d;
static struct profile *p;
static struct import_info info;
static struct err e;

static int setup(void **state)
{
	d = dict_new();
	p = NULL;
	memset(&info, 0, sizeof(info));
	memset(&e, 0, sizeof(e));
	return 0;
}

static int teardown(void **state)
{
	profile_free(p);
	dict_free(d);
	return 0;
}

static int read_text(const char *text)
{
	return import_bytes(d, bytes_of(text, strlen(text)), "x", NULL, &p, &info, &e);
}

static int64_t held(const char *name, const char *type)
{
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		const struct location *at =
			dict_location_get(d, dict_stack_leaf(d, profile_sample(p, i).stack));

		if (strcmp(dict_str(d, at->lines[0].function), name) == 0)
			return profile_sample(p, i).values[profile_find_type(p, type)];
	}
	return -1;
}

static void samples_are_censuses(void **state)
{
	assert_int_equal(
		read_text(
			HEAD
			"BEGIN_SAMPLE 0.000000\nEND_SAMPLE 0.000000\n"
			"BEGIN_SAMPLE 1.5\nbase:GHC.MVar.MVar\t16\n(12)a name with\ttab\t200\nEND_SAMPLE 1.5\n"
			"BEGIN_SAMPLE 2.500000\nbase:GHC.MVar.MVar\t32\nEND_SAMPLE 2.500000\n"
			"BEGIN_SAMPLE 3.5\nEND_SAMPLE 3.5\n"),
		0);
	assert_string_equal(info.format, "hp");
	assert_string_equal(info.damage, "");
	assert_int_equal(info.skipped_lines, 0);
	assert_int_equal(held("base:GHC.MVar.MVar", "inuse_space"), 32);
	assert_int_equal(held("base:GHC.MVar.MVar", "space_time"), (12 + 24 + 16) * 1000);
	assert_int_equal(held("(12)a name with\ttab", "peak_space"), 200);
	assert_int_equal(profile_get_meta(p)->duration_ns, 3500000000);
	assert_string_equal(profile_about(p, ABOUT_TARGET, 0), "my");
}

static void a_last_sample_without_its_end_is_left_out_and_said(void **state)
{
	assert_int_equal(
		read_text(HEAD
			  "BEGIN_SAMPLE 1\nA\t100\nEND_SAMPLE 1\nBEGIN_SAMPLE 2\nA\t900\nB\t5"),
		0);
	assert_int_equal(held("A", "inuse_space"), 100);
	assert_int_equal(held("A", "space_time"), 50 * 1000);
	assert_non_null(
		strstr(info.damage, "within a sample, which is left out; kept: 1 whole samples"));
}

static void lines_that_are_none_of_these_are_counted(void **state)
{
	assert_int_equal(
		read_text(HEAD "what\nBEGIN_SAMPLE 1\nA\t100\nA 100\nB\t-3\nEND_SAMPLE 1\n"), 0);
	assert_int_equal(info.skipped_lines, 3);
	assert_int_equal(held("A", "peak_space"), 100);
}

static void other_units_are_refused(void **state)
{
	assert_int_equal(
		read_text(
			"JOB \"x\"\nVALUE_UNIT \"objects\"\nBEGIN_SAMPLE 1\nA\t1\nEND_SAMPLE 1\n"),
		-EBADMSG);
	assert_string_equal(e.msg, "x: its samples are not of bytes at seconds");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_are_censuses, setup, teardown),
		cmocka_unit_test_setup_teardown(a_last_sample_without_its_end_is_left_out_and_said,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lines_that_are_none_of_these_are_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(other_units_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
