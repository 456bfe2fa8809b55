#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "render/tables/trend_csv.h"

#define HEADER                                                                                     \
	"timestamp,rss_kb,vsz_kb,cpu_percent,pss_kb,anonymous_kb,file_kb,swap_kb,threads,"         \
	"minor_faults,major_faults,live_bytes,shared_kb,private_kb,"                               \
	"gc_count,gc_major_count,gc_ms,gc_live_kb,gc_heap_kb,timestamp_ms\n"

static char dir[] = "/tmp/memscope-trend-XXXXXX";

static int make_dir(void **state)
{
	setenv("TZ", "XXX-2", 1); /* two hours east, so that local time differs from UTC */
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/trend.csv", dir);
	unlink(path);
	return rmdir(dir);
}

static struct trend_csv *open_trend(void)
{
	struct trend_csv *t = NULL;
	char path[64];

	snprintf(path, sizeof(path), "%s/trend.csv", dir);
	assert_int_equal(trend_csv_open(AT_FDCWD, path, &t, NULL), 0);
	return t;
}

static const char *content(void)
{
	static char text[4096];
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/trend.csv", dir);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static const struct mem_sample full = {
	.time_ns = 1000000000LL * 86400 + 7999999, /* 7 ms and a part */
	.interval_ns = 1000000000,
	.interval_cpu_ns = 1256000000,
	.rss_kb = 1,
	.vsz_kb = 2,
	.pss_kb = 3,
	.anonymous_kb = 4,
	.file_kb = 5,
	.swap_kb = 6,
	.threads = 7,
	.minor_faults = 8,
	.major_faults = 9,
	.shared_kb = 10,
	.private_kb = 11,
};

static void header_is_there_before_the_first_row(void **state)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = open_trend();

	assert_string_equal(content(), HEADER);
}

static void row_is_on_disk_at_once_in_the_order_scripts_read(void **state)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = open_trend();

	assert_int_equal(trend_csv_row(t, &full, 12, NULL, NULL, NULL), 0);
	assert_string_equal(content(),
			    HEADER "1970-01-02 02:00:00,1,2,125.6,3,4,5,6,7,8,9,12,10,11,,,,,,7\n");
}

static void unknown_is_an_empty_field(void **state)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = open_trend();
	struct mem_sample s = full;

	s.pss_kb = s.shared_kb = s.private_kb = MEM_UNKNOWN;
	s.interval_ns = 0;
	assert_int_equal(trend_csv_row(t, &s, MEM_UNKNOWN, NULL, NULL, NULL), 0);
	assert_string_equal(content(),
			    HEADER "1970-01-02 02:00:00,1,2,0.0,,4,5,6,7,8,9,,,,,,,,,7\n");
}

static void collections_of_garbage_are_its_last_columns(void **state)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = open_trend();
	struct gc_sample gc = { .known = true,
				.count = 21,
				.major = 3,
				.time_ns = 1234567,
				.live_bytes = 5 << 10,
				.heap_bytes = GC_UNKNOWN };

	(void)state;
	assert_int_equal(trend_csv_row(t, &full, 12, NULL, &gc, NULL), 0);
	assert_non_null(strstr(content(), ",12,10,11,21,3,1.2,5,,7\n"));
	gc.time_ns = GC_UNKNOWN;
	assert_int_equal(trend_csv_row(t, &full, 12, NULL, &gc, NULL), 0);
	assert_non_null(strstr(content(), ",12,10,11,21,3,,5,,7\n"));
}

static void log_of_groups_has_their_columns_at_the_end(void **state)
{
	static const struct mem_group group = { 20, 21, 22, MEM_UNKNOWN, 24, 25, 26 };
	struct trend_csv *t = NULL;
	struct err e = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "%s/trend.csv", dir);
	unlink(path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(trend_csv_append(path, true, &t, &e), 0);
		assert_int_equal(trend_csv_row(t, &full, 12, &group, NULL, NULL), 0);
		trend_csv_close(t);
	}
	assert_string_equal(
		content(),
		"timestamp,rss_kb,vsz_kb,cpu_percent,pss_kb,anonymous_kb,file_kb,swap_kb,threads,"
		"minor_faults,major_faults,live_bytes,shared_kb,private_kb,processes,group_kb,"
		"group_anonymous_kb,group_file_kb,group_kernel_kb\n"
		"1970-01-02 02:00:00,1,2,125.6,3,4,5,6,7,8,9,12,10,11,20,21,22,,24\n"
		"1970-01-02 02:00:00,1,2,125.6,3,4,5,6,7,8,9,12,10,11,20,21,22,,24\n");
	/* Neither kind is continued as the other. */
	t = NULL;
	assert_int_equal(trend_csv_append(path, false, &t, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "more columns"));
	trend_csv_close(open_trend());
	assert_int_equal(trend_csv_append(path, true, &t, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "more columns"));
	assert_null(t);
}

static void full_disk_leaves_whole_lines(void **state)
{
	_cleanup_(trend_csv_closep) struct trend_csv *t = open_trend();
	struct rlimit old, limit;
	struct err e = { 0 };

	/* A file size limit stands for the full disk: it cuts the second row in two. */
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	assert_int_equal(trend_csv_row(t, &full, 12, NULL, NULL, NULL), 0);
	limit.rlim_cur = strlen(content()) + 10;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(trend_csv_row(t, &full, 12, NULL, NULL, &e), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(e.msg, "trend.csv: "));
	assert_string_equal(content(),
			    HEADER "1970-01-02 02:00:00,1,2,125.6,3,4,5,6,7,8,9,12,10,11,,,,,,7\n");
	/* Room again: the next row follows. */
	assert_int_equal(trend_csv_row(t, &full, 13, NULL, NULL, NULL), 0);
	assert_non_null(strstr(content(), "12,10,11,,,,,,7\n1970-01-02 02:00:00,1,2,"));
}

static void symlink_is_not_followed(void **state)
{
	struct trend_csv *t = NULL;
	char path[64];

	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("/nowhere/else", path), 0);
	assert_int_equal(trend_csv_open(AT_FDCWD, path, &t, NULL), -ELOOP);
	assert_null(t);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_is_there_before_the_first_row),
		cmocka_unit_test(row_is_on_disk_at_once_in_the_order_scripts_read),
		cmocka_unit_test(unknown_is_an_empty_field),
		cmocka_unit_test(collections_of_garbage_are_its_last_columns),
		cmocka_unit_test(log_of_groups_has_their_columns_at_the_end),
		cmocka_unit_test(full_disk_leaves_whole_lines),
		cmocka_unit_test(symlink_is_not_followed),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
