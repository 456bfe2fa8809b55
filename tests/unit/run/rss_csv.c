#include "run/memory/rss_csv.h"
#include "run_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/memscope-unit-rss-csv-XXXXXX";
static struct run_config cfg = { .interval_s = 1, .quiet = true, .dir = dir };

static off_t bytes_of_file(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* A limit of the file's size ends inside the second row, as a full disk does. */
static void a_row_that_does_not_fit_is_not_there_in_part(void **state)
{
	struct rlimit before, limit;
	struct ledger ledger = { 0 };
	struct rss_csv csv = { .fd = -1 };
	off_t header, row;
	char path[128];
	struct run *r;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/rss_breakdown.csv", dir);
	r = bare_run(&cfg);
	rss_csv_open(&csv, r, path, false);
	header = bytes_of_file(path);
	rss_csv_row(&csv, &ledger, 7);
	row = bytes_of_file(path) - header;
	assert_true(header > 0 && row > 20);

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ (rlim_t)(header + row + 10), before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	rss_csv_row(&csv, &ledger, 7);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

	assert_int_equal(bytes_of_file(path), header + row);
	assert_int_equal(csv.fd, -1);
	assert_int_equal(r->notes.n, 1);
	assert_string_equal(r->notes.text[0], "rss_breakdown.csv is incomplete: File too large");
	rss_csv_row(&csv, &ledger, 7); /* nothing more comes behind it */
	assert_int_equal(bytes_of_file(path), header + row);
	bare_run_free(r);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_that_does_not_fit_is_not_there_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
