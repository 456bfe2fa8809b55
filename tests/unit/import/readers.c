#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/sink.h"
#include "base/strbuf.h"
#include "cell_fixture.h"
#include "import/readers.h"
#include "model/pprof.h"

static struct dict *d;
static struct err e;
static char path[64];

static int setup(void **state)
{
	int fd;

	d = dict_new();
	memset(&e, 0, sizeof(e));
	strcpy(path, "/tmp/memscope-import-XXXXXX");
	fd = mkstemp(path);
	close(fd);
	return fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	dict_free(d);
	unlink(path);
	return 0;
}

static void put(const void *data, size_t len, bool gzip)
{
	struct sink *s;

	assert_int_equal(sink_open_file(path, &s, NULL), 0);
	if (gzip)
		sink_gzip(s, NULL);
	sink_write(s, data, len);
	assert_int_equal(sink_commit(s, NULL), 0);
	sink_close(s);
}

static void put_pprof(bool gzip)
{
	const struct value_type t = { "cpu", "nanoseconds" };
	struct profile *p = profile_new(d, &t, 1);
	location_id at = dict_location(d, (module_id){ 0 }, 1);
	struct sink *s;

	profile_add(p, dict_stack(d, &at, 1), (labels_id){ 0 }, (int64_t[]){ 5 });
	assert_int_equal(sink_open_file(path, &s, NULL), 0);
	if (gzip)
		sink_gzip(s, NULL);
	assert_int_equal(pprof_write(p, (module_id){ 0 }, s, NULL), 0);
	assert_int_equal(sink_commit(s, NULL), 0);
	sink_close(s);
	profile_free(p);
}

static void expect(const char *format, int64_t total)
{
	struct import_info info = { 0 };
	struct profile *p;
	int r = import_read(d, path, NULL, &p, &info, &e);

	assert_string_equal(e.msg, "");
	assert_int_equal(r, 0);
	assert_string_equal(info.format, format);
	assert_int_equal(profile_total(p, 0), total);
	profile_free(p);
}

static void refused(int code, const char *why)
{
	struct profile *p = NULL;

	assert_int_equal(import_read(d, path, NULL, &p, NULL, &e), code);
	assert_null(p);
	assert_non_null(strstr(e.msg, why));
	assert_memory_equal(e.msg, path, strlen(path));
}

/* Else a log of gigabytes would be held in memory to see what it is. */
static void what_has_a_word_at_its_front_is_known_before_all_is_read(void **state)
{
	static const char *const by_their_front[] = { "heaptrack", "massif", "callgrind",
						      "eventlog", "hp" };
	uint32_t found = 0;

	for (const struct reader *r = readers; r->name && !r->by_all; r++)
		for (size_t i = 0; i < sizeof(by_their_front) / sizeof(*by_their_front); i++)
			found += strcmp(r->name, by_their_front[i]) == 0 && r->read_input;
	assert_int_equal(found, sizeof(by_their_front) / sizeof(*by_their_front));
}

static void format_is_known_by_content_gzipped_or_not(void **state)
{
	put_pprof(false);
	expect("pprof", 5);
	put_pprof(true);
	expect("pprof", 5);
	put("a;b 3\n", 6, false);
	expect("folded", 3);
	put("a;b 3\n", 6, true);
	expect("folded", 3);
}

static void what_is_no_profile_is_refused_with_the_known_formats(void **state)
{
	put("PERFILE2\0\0\0\0", 12, false);
	refused(-EBADMSG, "is a recording of perf; give what perf script -i prints of it");
	put("<?xml version=\"1.0\"?>\n<svg>", 27, false);
	refused(-EBADMSG, "is a picture or a page");
	put("\177ELF\0\0\0\0", 8, false);
	refused(-EBADMSG,
		"not a profile of a known format (heap, heaptrack, massif, callgrind, speedscope, dhat, firefox, eventlog, hp, pprof, perf, folded)");
	put("", 0, false);
	refused(-EBADMSG, "is empty");
	put("", 0, true);
	refused(-EBADMSG, "is empty");
	put("\x1f\x8b\x08garbage", 10, false);
	refused(-EBADMSG, "damaged gzip data");
}

static void gzip_bomb_is_refused(void **state)
{
	size_t len = 64 << 20;
	char *zeros = calloc(1, len);

	strcpy(zeros, "heap profile: 1: 2 [3: 4]\n");
	put(zeros, len, true);
	free(zeros);
	refused(-EFBIG, "unpacks to more than");
}

static void missing_file_and_directory_are_said(void **state)
{
	unlink(path);
	refused(-ENOENT, "cannot be opened: No such file or directory");
	strcpy(path, "/tmp");
	refused(-EISDIR, "is a directory; name a profile in it");
	strcpy(path, "/nonexistent"); /* for teardown */
}

static void dash_is_standard_input(void **state)
{
	int pipefd[2], saved = dup(STDIN_FILENO);
	struct profile *p;

	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(write(pipefd[1], "a 3\n?\n", 6), 6);
	close(pipefd[1]);
	dup2(pipefd[0], STDIN_FILENO);
	close(pipefd[0]);
	assert_int_equal(import_read(d, "-", NULL, &p, NULL, &e), 0);
	assert_int_equal(profile_total(p, 0), 3);
	profile_free(p);
	assert_int_equal(import_read(d, "-", NULL, &p, NULL, &e), -EBADMSG);
	assert_string_equal(e.msg, "standard input: is empty");
	dup2(saved, STDIN_FILENO);
	close(saved);
}

/* Each stack is one frame more than the one before it: in all their frames are the square of what the file has. */
static void stacks_that_deepen_without_end_are_refused(void **state)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	struct profile *p = NULL;

	strbuf_printf(&text, "v 10200 2\nX ./t\nI 1000 5\ns ./t\ns main\ni 401000 1 2\n");
	for (int i = 0; i < 30000; i++)
		strbuf_printf(&text, "t 1 %x\na 40 %x\n+ %x\n", i, i + 1, i);
	assert_false(strbuf_oom(&text));
	put(text.s, text.len, false);
	assert_int_equal(import_read(d, path, NULL, &p, NULL, &e), -EFBIG);
	assert_null(p);
	assert_non_null(strstr(e.msg, "its stacks are too deep"));
}

static void endless_line_is_not_blank(void **state)
{
	const size_t bytes = 64 << 20;
	char *line = malloc(bytes);
	struct profile *p = NULL;

	assert_non_null(line);
	memset(line, 'a', bytes);
	put(line, bytes, false);
	free(line);
	assert_true(import_read(d, path, NULL, &p, NULL, &e) < 0);
	assert_null(p);
	assert_non_null(strstr(e.msg, "a line is longer than any of a profile"));
}

static int kill_who_asks(void *ctx, const char *image)
{
	assert_string_equal(image, "/nowhere/shop");
	kill_the_cell();
	*(bool *)ctx = true;
	return -ENOENT;
}

/* As one does that its file breaks: here it is killed while it asks for a file that was mapped. */
static void a_reader_that_dies_costs_its_file(void **state)
{
	static const char dump[] =
		"heap_v2/1000\n  t*: 1: 16 [0: 0]\n@ 0x401010 0x401100\n  t*: 1: 16 [0: 0]\n"
		"\nMAPPED_LIBRARIES:\n401000-402000 r-xp 00001000 fe:00 11 /nowhere/shop\n";
	bool asked = false;
	struct import_opts opts = { .open_image = kill_who_asks, .ctx = &asked };
	struct profile *p = NULL;

	put(dump, sizeof(dump) - 1, false);
	assert_int_equal(import_read(d, path, &opts, &p, NULL, &e), -EBADMSG);
	assert_true(asked);
	assert_null(p);
	assert_non_null(strstr(e.msg, "breaks the process that reads it (SIGKILL)"));
	assert_int_equal(dict_stack_count(d), 1);
	/* The next one is read. */
	assert_int_equal(import_read(d, path, NULL, &p, NULL, &e), 0);
	assert_int_equal(profile_n_samples(p), 1);
	profile_free(p);
}

static void every_row_is_whole(void **state)
{
	assert_non_null(readers[0].name);
	for (const struct reader *r = readers; r->name; r++)
		assert_true(r->help && r->recognise && !r->read != !r->read_input);
}

#define test(fact) cmocka_unit_test_setup_teardown(fact, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(format_is_known_by_content_gzipped_or_not),
		test(what_has_a_word_at_its_front_is_known_before_all_is_read),
		test(what_is_no_profile_is_refused_with_the_known_formats),
		test(gzip_bomb_is_refused),
		test(missing_file_and_directory_are_said),
		test(dash_is_standard_input),
		test(stacks_that_deepen_without_end_are_refused),
		test(endless_line_is_not_blank),
		test(a_reader_that_dies_costs_its_file),
		test(every_row_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
