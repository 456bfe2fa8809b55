#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "base/input.h"

/* 40,000 lines of growing length: many pieces, and lines that lie across their edges. */
enum { LINES = 40000 };

static char *text, *packed[3];
static size_t text_len, packed_len[3];

static int make(void **state)
{
	z_stream z = { 0 };

	text = malloc(16 << 20);
	for (int i = 0; i < LINES; i++)
		text_len += (size_t)sprintf(
			text + text_len, "%d %.*s%s\n", i, i % 190,
			"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
			"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
			i % 7 ? "" : "\r");
	packed[0] = text;
	packed_len[0] = text_len;
	packed[1] = malloc(compressBound(text_len) + 64);
	deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
	z.next_in = (Bytef *)text;
	z.avail_in = (uInt)text_len;
	z.next_out = (Bytef *)packed[1];
	z.avail_out = (uInt)compressBound(text_len) + 64;
	deflate(&z, Z_FINISH);
	packed_len[1] = z.total_out;
	deflateEnd(&z);
	packed[2] = malloc(ZSTD_compressBound(text_len));
	packed_len[2] = ZSTD_compress(packed[2], ZSTD_compressBound(text_len), text, text_len, 3);
	return 0;
}

static int drop(void **state)
{
	for (int i = 0; i < 3; i++)
		free(packed[i]);
	return 0;
}

/* The number of lines that come as they were written. */
static int good_lines(struct input *in)
{
	struct bytes line, want = bytes_of(text, text_len), expected;
	int n = 0;

	while (input_line(in, &line)) {
		assert_true(bytes_line(&want, &expected));
		assert_int_equal(line.len, expected.len);
		assert_memory_equal(line.data, expected.data, line.len);
		assert_int_equal(input_n_lines(in), ++n);
	}
	return n;
}

static void all_lines_come_packed_or_not_from_memory_and_files(void **state)
{
	for (int k = 0; k < 3; k++) {
		struct input *in = input_of_bytes(bytes_of(packed[k], packed_len[k]));
		FILE *f = tmpfile();

		assert_int_equal(input_peek(in, 1 << 16).len, 1 << 16);
		assert_int_equal(good_lines(in), LINES);
		assert_int_equal(input_fault(in, NULL), 0);
		assert_int_equal(input_offset(in), text_len);
		assert_int_equal(input_is_packed(in), k > 0);
		input_free(in);
		fwrite(packed[k], 1, packed_len[k], f);
		fflush(f);
		lseek(fileno(f), 0, SEEK_SET);
		in = input_of_fd(fileno(f));
		assert_int_equal(good_lines(in), LINES);
		assert_int_equal(input_fault(in, NULL), 0);
		input_free(in);
		fclose(f);
	}
}

static void members_follow_each_other(void **state)
{
	for (int k = 1; k < 3; k++) {
		char *twice = malloc(packed_len[k] * 2);
		struct input *in;
		struct bytes line;
		int n = 0;

		memcpy(twice, packed[k], packed_len[k]);
		memcpy(twice + packed_len[k], packed[k], packed_len[k]);
		in = input_of_bytes(bytes_of(twice, packed_len[k] * 2));
		while (input_line(in, &line))
			n++;
		assert_int_equal(n, 2 * LINES);
		assert_int_equal(input_fault(in, NULL), 0);
		input_free(in);
		free(twice);
	}
}

static void what_is_cut_or_damaged_is_good_up_to_there(void **state)
{
	for (int k = 1; k < 3; k++) {
		struct input *in = input_of_bytes(bytes_of(packed[k], packed_len[k] / 2));
		char *damaged = malloc(packed_len[k]);
		const char *what;
		int n = good_lines(in);

		assert_in_range(n, LINES / 4, LINES - 1);
		assert_int_equal(input_fault(in, &what), -EBADMSG);
		assert_non_null(strstr(what, "truncated"));
		input_free(in);

		memcpy(damaged, packed[k], packed_len[k]);
		memset(damaged + packed_len[k] / 2, 0xff, 64);
		in = input_of_bytes(bytes_of(damaged, packed_len[k]));
		/* The packing's checksum is at the end only: some garbage may come before the fault. */
		while (input_piece(in, &(struct bytes){ 0 }))
			;
		assert_int_equal(input_fault(in, &what), -EBADMSG);
		assert_non_null(strstr(what, "damaged"));
		assert_non_null(strstr(what, "bytes of the file"));
		input_free(in);
		free(damaged);
	}
}

static void the_last_line_may_have_no_newline(void **state)
{
	struct input *in = input_of_bytes(bytes_of("a\nb", 3));
	struct bytes line;

	assert_true(input_line(in, &line) && input_line_whole(in));
	assert_true(input_line(in, &line) && line.len == 1 && line.data[0] == 'b');
	assert_false(input_line_whole(in));
	assert_false(input_line(in, &line));
	input_free(in);
}

static void a_line_that_is_too_long_is_a_fault(void **state)
{
	FILE *f = tmpfile();
	struct input *in;
	struct bytes line;

	fputs("short\n", f);
	for (int i = 0; i < INPUT_LINE_MAX + 10; i++)
		fputc('x', f);
	fflush(f);
	lseek(fileno(f), 0, SEEK_SET);
	in = input_of_fd(fileno(f));
	assert_true(input_line(in, &line));
	assert_false(input_line(in, &line));
	assert_int_equal(input_fault(in, NULL), -EFBIG);
	assert_int_equal(input_n_lines(in), 1);
	input_free(in);
	fclose(f);
}

static void what_cannot_be_read_is_a_fault(void **state)
{
	struct input *in = input_of_fd(-1);
	const char *what;

	assert_int_equal(input_peek(in, 1).len, 0);
	assert_int_equal(input_fault(in, &what), -EBADF);
	assert_non_null(strstr(what, "cannot be read"));
	input_free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lines_come_packed_or_not_from_memory_and_files),
		cmocka_unit_test(members_follow_each_other),
		cmocka_unit_test(what_is_cut_or_damaged_is_good_up_to_there),
		cmocka_unit_test(the_last_line_may_have_no_newline),
		cmocka_unit_test(a_line_that_is_too_long_is_a_fault),
		cmocka_unit_test(what_cannot_be_read_is_a_fault),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
