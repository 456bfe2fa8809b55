#include "render/tables/sites_csv.h"

#include "model/alloc_site.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define HEADER                                                                                     \
	"pid,comm,function,module,allocs,alloc_bytes,frees,freed_bytes,temporary,"                 \
	"cross_thread_frees,mean_lifetime_ns,under_10us,under_100us,under_1ms,under_10ms,"         \
	"under_100ms,under_1s,under_10s,longer,peak_blocks,peak_bytes,live_blocks,live_bytes,stack\n"

static void a_row_is_a_stack_and_most_bytes_come_first(void **state)
{
	struct fixture f = fixture_new(alloc_site_types, N_SITE_VALUES);
	int64_t small[N_SITE_VALUES] = { [SITE_OBJECTS] = 1, [SITE_BYTES] = 8 };
	int64_t large[N_SITE_VALUES] = {
		[SITE_OBJECTS] = 5,       [SITE_BYTES] = 500,      [SITE_FREED] = 4,
		[SITE_FREED_BYTES] = 400, [SITE_TEMPORARY] = 3,    [SITE_CROSS] = 1,
		[SITE_LIFE_NS] = 1003,    [SITE_LIVES] = 3,        [SITE_LIVES + 7] = 1,
		[SITE_PEAK_OBJECTS] = 2,  [SITE_PEAK_BYTES] = 200, [SITE_LIVE_OBJECTS] = 1,
		[SITE_LIVE_BYTES] = 100
	};
	struct sink *out = NULL;
	size_t len;

	fixture_add(&f, "a\"b;main;init;malloc", small);
	fixture_add(&f, "a\"b;main;load;malloc", large);
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(sites_csv_write(f.p, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	/* The row without frees has no mean lifetime. */
	assert_string_equal(
		sink_memory(out, &len), HEADER
		"0,\"a\"\"b\",\"load\",\"prog\",5,500,4,400,3,1,250,3,0,0,0,0,0,0,1,2,200,1,100,"
		"\"main;load;malloc\"\n"
		"0,\"a\"\"b\",\"init\",\"prog\",1,8,0,0,0,0,,0,0,0,0,0,0,0,0,0,0,0,0,"
		"\"main;init;malloc\"\n");
	sink_close(out);
	fixture_free(&f);
}

static void names_break_no_row(void **state)
{
	struct fixture f = fixture_new(alloc_site_types, N_SITE_VALUES);
	int64_t one[N_SITE_VALUES] = { [SITE_OBJECTS] = 1, [SITE_BYTES] = 8 };
	struct sink *out = NULL;
	size_t len;

	fixture_add(&f, "x\ny;ma,\"in\r;malloc", one);
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(sites_csv_write(f.p, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	assert_string_equal(sink_memory(out, &len),
			    HEADER "0,\"x?y\",\"ma,\"\"in?\",\"prog\",1,8,0,0,0,0,,0,0,0,0,0,0,0,0,"
				   "0,0,0,0,\"ma,\"\"in?;malloc\"\n");
	sink_close(out);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_a_stack_and_most_bytes_come_first),
		cmocka_unit_test(names_break_no_row),
	};

	return cmocka_run_group_tests_name("render/sites_csv", tests, NULL, NULL);
}
