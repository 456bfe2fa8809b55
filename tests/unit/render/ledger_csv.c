#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "render/tables/ledger_csv.h"

static int fields(const char *line)
{
	int n = 1;

	for (; *line; line++)
		n += *line == ',';
	return n;
}

static void row_has_a_field_for_each_name_of_the_header(void **state)
{
	_cleanup_(strbuf_free) struct strbuf header = { 0 }, row = { 0 };
	struct ledger l = { .processes = 1, .rss = 1000 };
	char before[] = "1980-01-01 00:00:00.000";

	for (int i = LEDGER_LIVE; i < N_LEDGER_PARTS; i++)
		l.parts[i].resident = 100 + i;
	l.parts[LEDGER_LIVE].blocks = 7;
	l.parts[LEDGER_LIVE].bytes = 5000;
	ledger_csv_header(false, &header);
	ledger_csv_row(&l, 1700000000000000000, -1, &row);
	assert_int_equal(fields(header.s), fields(row.s));
	assert_int_equal(strcspn(row.s, ","), strlen(before));
	assert_non_null(strstr(row.s, ",1000,102,103,104,105,106,107,108,109,110,46,7,5000,\n"));
	strbuf_reset(&row);
	ledger_csv_row(&l, 1700000000042999999, 42, &row);
	assert_non_null(strstr(row.s, ".042,1000,"));
	assert_non_null(strstr(row.s, ",7,5000,42\n"));
}

static void of_a_container_the_pss_is_split_and_what_was_not_read_is_told(void **state)
{
	_cleanup_(strbuf_free) struct strbuf header = { 0 }, row = { 0 };
	struct ledger l = { .processes = 3,
			    .rss = 1000,
			    .pss = 700,
			    .by_pss = true,
			    .not_read = 2,
			    .not_read_rss = 99 };

	l.parts[LEDGER_FILE] = (struct ledger_row){ .resident = 500, .pss = 200 };
	ledger_csv_header(true, &header);
	ledger_csv_row(&l, 1700000000000000000, -1, &row);
	assert_int_equal(fields(header.s), fields(row.s));
	assert_int_equal(strncmp(header.s, "timestamp,pss,live,", 19), 0);
	assert_non_null(strstr(header.s, ",traced_bytes,processes,not_read,not_read_rss\n"));
	assert_non_null(strstr(row.s, ",700,0,0,0,0,0,0,0,200,0,500,0,0,,3,2,99\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(row_has_a_field_for_each_name_of_the_header),
		cmocka_unit_test(of_a_container_the_pss_is_split_and_what_was_not_read_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
