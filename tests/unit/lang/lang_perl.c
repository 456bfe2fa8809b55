/*
 * Perl: in files, in a process made of bytes, and its frames to functions, files and lines. What has gone, or is not what
 * it was, has no name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "perl_fixture.h"

static struct perl_process p;
static struct lang_runtime rt;
static struct lang_frame frame;
static struct err e;

static int fresh(void **state)
{
	(void)state;
	plf_init(&p);
	memset(&rt, 0, sizeof(rt));
	return 0;
}

static int find(void)
{
	e = (struct err){ 0 };
	return lang_runtime_find(&p.runtime_at, &p.libc_at, &p.memory.mem, &rt, &e);
}

static void assert_fails(int code, const char *words)
{
	assert_int_equal(find(), code);
	if (!strstr(e.msg, words))
		fail_msg("\"%s\" does not say \"%s\"", e.msg, words);
}

static int read_image(const char *path, struct lang_image **ret_image)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		skip();
	assert_int_equal(elf_file_open(fd, path, &elf, &e), 0);
	return lang_image_read(elf, ret_image, &e);
}

static void a_stripped_perl_has_its_loops_and_the_two_functions_around_them(void **state)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	const struct perl_image *perl;

	assert_int_equal(read_image("/usr/bin/perl", &image), 0);
	assert_int_equal(lang_image_lang(image), MS_LANG_PERL);
	perl = &image->perl;
	assert_int_equal(perl->version >> 16, 5);
	assert_true(perl->thread_key && perl->interpreter && perl->entersub && !perl->curcop);
	assert_int_equal(image->n_ranges, 2);
	assert_true(perl->main.end > perl->main.start + 64);
	assert_true(perl->catch.end > perl->catch.start + 64 &&
		    perl->catch.end - perl->catch.start < 4096);
	assert_true(perl->catch.start >= perl->main.end || perl->catch.end <= perl->main.start);
}

static void an_interpreter_of_a_thread_is_found_by_its_key(void **state)
{
	assert_int_equal(find(), 0);
	assert_string_equal(rt.name, "Perl 5.36.0");
	assert_int_equal(rt.version, 0x052400);
	assert_false(rt.untested);
	assert_int_equal(rt.row.lang, MS_LANG_PERL);
	assert_int_equal(rt.row.thread, MS_THREAD_TLS);
	assert_int_equal(rt.row.off, (uint64_t)(-1584 + 16 * 5 + 8));
	assert_int_equal(rt.row.n_ranges, 1);
	assert_int_equal(rt.row.range[0].start, PLF_BIAS + PLF_TEXT);
	assert_int_equal(rt.row.perl.main_start, PLF_BIAS + PLF_TEXT + 0x1000);
	assert_int_equal(rt.row.perl.catch_end, PLF_BIAS + PLF_TEXT + 0x3000);
	assert_int_equal(rt.row.perl.curcop, 0xd0);
	assert_int_equal(rt.row.perl.global, 0);
}

static void without_threads_its_variables_are_the_programs(void **state)
{
	struct perl_image *image = &p.perl.perl;

	image->thread_key = image->interpreter = 0;
	image->op = PLF_DATA + PLF_INTERP + 0x8;
	image->curcop = PLF_DATA + PLF_INTERP + 0xd0;
	image->stackinfo = PLF_DATA + PLF_INTERP + 0xe0;
	assert_int_equal(find(), 0);
	assert_int_equal(rt.row.thread, MS_THREAD_GLOBAL);
	assert_int_equal(rt.row.perl.global, 1);
	assert_int_equal(rt.row.perl.curcop, plf_addr(PLF_INTERP + 0xd0));
	/* One struct, that no thread owns. */
	fresh(state);
	image->thread_key = 0;
	assert_int_equal(find(), 0);
	assert_int_equal(rt.row.thread, MS_THREAD_GLOBAL);
	assert_int_equal(rt.row.off, plf_addr(PLF_FIRST));
	assert_int_equal(rt.row.perl.global, 0);
}

static void what_is_not_ready_is_asked_again_and_what_is_not_known_is_refused_by_name(void **state)
{
	plf_put(&p, PLF_FIRST, 0, 8);
	assert_fails(-EAGAIN, "not been initialized");
	fresh(state);
	plf_at(&p, 0, 0, 0);
	plf_put(&p, PLF_INTERP + 0xe0, 0, 8);
	assert_fails(-EAGAIN, "not been initialized");
	fresh(state);
	plf_put(&p, PLF_KEY, 5000, 4);
	assert_fails(-EAGAIN, "not been initialized");
	fresh(state);
	p.libc_at.image = NULL;
	assert_fails(-EAGAIN, "C library");
	fresh(state);
	p.perl.perl.interpreter = 0;
	assert_fails(-EOPNOTSUPP, "not known");
	for (uint32_t version = 0x051d00; version < 0x053000; version += 0x100) {
		uint32_t minor = version >> 8 & 0xff;

		fresh(state);
		p.perl.perl.version = version;
		if (minor % 2 || minor < 30 || minor > 40)
			assert_fails(-EOPNOTSUPP,
				     "its layout is not known, as that of 5.30 to 5.40 is");
	}
}

static void memory_that_looks_otherwise_is_not_that_version(void **state)
{
	static const struct {
		uint32_t at, bytes;
		uint64_t value;
	} wrong[] = {
		{ PLF_SI + 0x20, 4, 17 }, /* more contexts than there is room for */
		{ PLF_SI + 0x20, 4, (uint32_t)-2 },
		{ PLF_SI + 0x24, 4, 1 << 28 },
		{ PLF_SI + 0x2c, 4, 2 }, /* the outermost is not the program's */
		{ PLF_SI + 0x10, 8, 0x1234 },
		{ PLF_INTERP + 0xd0, 8, 0x7f0000000003 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fresh(state);
		plf_put(&p, wrong[i].at, wrong[i].value, wrong[i].bytes);
		assert_fails(-EAGAIN, "does not look like");
	}
	/* Stacks in a circle. */
	fresh(state);
	plf_stack(&p, 0, 0, 0);
	find();
	assert_in_range(p.memory.reads, 1, 1000);
}

/* --- frames --- */

static enum lang_decoded decode(enum ms_perl_kind kind, uint32_t cop, uint32_t i)
{
	uint64_t words[2];

	plf_words(kind, cop, i, words);
	memset(&frame, 'x', sizeof(frame));
	p.memory.reads = 0;
	return lang_decode(&rt, &p.memory.mem, words, &frame);
}

static int found(void **state)
{
	fresh(state);
	return find();
}

static void assert_is(const char *function, const char *file, uint32_t line)
{
	assert_string_equal(frame.function, function);
	assert_string_equal(frame.file, file);
	assert_int_equal(frame.line, line);
}

static void a_frame_is_function_file_and_line(void **state)
{
	assert_int_equal(decode(MS_PERL_SUB, 2, 1), LANG_DECODED);
	assert_is("My::Class::method", "/a/b.pl", 12);
	assert_int_equal(decode(MS_PERL_SUB, 3, 3), LANG_DECODED);
	assert_is("My::Class::__ANON__", "/a/b.pl", 13);
	assert_int_equal(decode(MS_PERL_MAIN, 0, 0), LANG_DECODED);
	assert_is("(main)", "/a/b.pl", 10);
	assert_int_equal(decode(MS_PERL_REQUIRE, 1, 0), LANG_DECODED);
	assert_is("(require)", "/a/b.pl", 11);
	assert_int_equal(decode(MS_PERL_FORMAT, 1, 0), LANG_DECODED);
	assert_is("format My::Class::method", "/a/b.pl", 11);
}

static void a_sub_may_have_its_name_itself_and_a_lexical_one_no_package(void **state)
{
	plf_cv(&p, 1, 0x8000, 1);
	assert_int_equal(decode(MS_PERL_CV, 2, 1), LANG_DECODED);
	assert_is("My::Class::method", "/a/b.pl", 12);
	plf_cv(&p, 1, 0x18000, 1);
	assert_int_equal(decode(MS_PERL_CV, 2, 1), LANG_DECODED);
	assert_is("method", "/a/b.pl", 12);
	plf_cv(&p, 1, 0, 1); /* it has a glob now */
	assert_int_equal(decode(MS_PERL_CV, 2, 1), LANG_GONE);
}

static void strings_that_are_evaluated_are_one_and_keep_their_line_when_they_are_gone(void **state)
{
	strcpy((char *)p.bytes + PLF_FILE, "(eval 4711)");
	assert_int_equal(decode(MS_PERL_EVAL, 4, 0), LANG_DECODED);
	assert_is("(eval)", "(eval)", 14);
	plf_put(&p, PLF_COP + 4 * 0x80 + 0x3c, 7, 4);
	assert_int_equal(decode(MS_PERL_EVAL, 4, 0), LANG_DECODED);
	assert_is("(eval)", "(eval)", 14);
}

static void names_are_text(void **state)
{
	plf_hek(&p, PLF_STASH_NAME, "\xe4\x01", 0);
	plf_hek(&p, PLF_GV + 0x60, "\xc3\xa4", 1);
	strcpy((char *)p.bytes + PLF_FILE, "a\xff\nb");
	assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DECODED);
	assert_is("\xc3\xa4\\x01::\xc3\xa4",
		  "a\xc3\xbf\\x0a"
		  "b",
		  10);
	/* It says that it is UTF-8, but is not. */
	plf_hek(&p, PLF_GV + 0x60, "\xe4", 1);
	assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DECODED);
	assert_is("\xc3\xa4\\x01::\xc3\xa4",
		  "a\xc3\xbf\\x0a"
		  "b",
		  10);
}

static void a_stash_may_have_several_names_or_lie_behind_its_buckets(void **state)
{
	/* The first of two. */
	plf_put(&p, PLF_STASH + 0x5c, 2, 4);
	plf_put(&p, PLF_STASH + 0x40, plf_addr(0x700), 8);
	plf_put(&p, 0x700, plf_addr(PLF_STASH_NAME), 8);
	assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DECODED);
	assert_is("My::Class::method", "/a/b.pl", 10);
	/* Up to 5.34. */
	found(state);
	p.perl.perl.version = 0x052203;
	assert_int_equal(find(), 0);
	assert_false(rt.perl_hv_aux);
	plf_put(&p, PLF_STASH + 0x10, plf_addr(0x800), 8);
	plf_put(&p, PLF_STASH + 0x20 + 0x18, 7, 8);
	plf_put(&p, PLF_STASH + 0x40, 0, 8);
	plf_put(&p, 0x800 + 8 * 8, plf_addr(PLF_STASH_NAME), 8);
	assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DECODED);
	assert_is("My::Class::method", "/a/b.pl", 10);
}

static void without_threads_a_file_is_a_glob(void **state)
{
	rt.perl_threads = false;
	plf_glob(&p, 2, "_</c/d.pl");
	plf_put(&p, PLF_COP + 0x30, plf_addr(PLF_GV + 2 * 0x100), 8);
	{
		uint64_t words[2], cookie = ms_perl_cookie(100, 10, plf_addr(PLF_GV + 2 * 0x100));

		plf_words(MS_PERL_SUB, 0, 0, words);
		words[0] = (words[0] & ~(0xffULL << 48)) | (cookie >> 3) << 48;
		words[1] = (words[1] & ~7ULL) | (cookie & 7);
		assert_int_equal(lang_decode(&rt, &p.memory.mem, words, &frame), LANG_DECODED);
	}
	assert_is("My::Class::method", "/c/d.pl", 10);
}

static void what_has_become_another_has_no_name(void **state)
{
	static const struct {
		uint32_t at, bytes;
	} statement[] = { { PLF_COP + 0x24, 4 }, { PLF_COP + 0x30, 8 }, { PLF_COP + 0x3c, 4 } },
	  function[] = {
		  { PLF_GV, 8 }, { PLF_GV + 12, 1 }, { PLF_GV + 0x40, 8 }, { PLF_GV + 0x48, 8 }
	  };

	for (size_t i = 0; i < sizeof(function) / sizeof(function[0]); i++) {
		found(state);
		plf_put(&p, function[i].at, 0x4444, function[i].bytes);
		assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_GONE);
	}
	/* A statement that has been freed leaves the name. */
	for (size_t i = 0; i < sizeof(statement) / sizeof(statement[0]); i++) {
		found(state);
		plf_put(&p, statement[i].at, 0x4444, statement[i].bytes);
		assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DECODED);
		assert_is("My::Class::method", "", 0);
		assert_int_equal(decode(MS_PERL_REQUIRE, 0, 0), LANG_DECODED);
		assert_is("(require)", "", 0);
	}
	/* While it is read: the statement, then the name. */
	for (uint32_t read = 2; read < 16; read++) {
		found(state);
		p.memory.reads = 0;
		p.memory.change = read;
		p.memory.change_at = PLF_COP + 0x3c;
		assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DECODED);
		if (p.memory.reads >= read)
			assert_is("My::Class::method", "", 0);
		found(state);
		p.memory.change = read;
		p.memory.change_at = PLF_GV + 0x40;
		if (decode(MS_PERL_SUB, 0, 0) == LANG_DECODED)
			assert_true(p.memory.reads < read);
	}
	/* A sub that has no name at all. */
	found(state);
	plf_put(&p, PLF_COP + 0x3c, 0x4444, 4);
	{
		uint64_t words[2];

		plf_words(MS_PERL_CV, 0, 0, words);
		words[1] &= ~MS_PERL_ADDR;
		words[1] = (words[1] & ~(0xffULL << 48)) | ms_perl_name_cookie(0, 0) << 48;
		assert_int_equal(lang_decode(&rt, &p.memory.mem, words, &frame), LANG_GONE);
	}
	found(state);
	/* Names that are none. */
	found(state);
	plf_put(&p, PLF_GV + 0x64, 1 << 30, 4);
	assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DAMAGED);
	plf_put(&p, PLF_STASH + 12, 12, 4);
	assert_int_equal(decode(MS_PERL_SUB, 0, 0), LANG_DAMAGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stripped_perl_has_its_loops_and_the_two_functions_around_them),
		cmocka_unit_test_setup(an_interpreter_of_a_thread_is_found_by_its_key, fresh),
		cmocka_unit_test_setup(without_threads_its_variables_are_the_programs, fresh),
		cmocka_unit_test_setup(
			what_is_not_ready_is_asked_again_and_what_is_not_known_is_refused_by_name,
			fresh),
		cmocka_unit_test_setup(memory_that_looks_otherwise_is_not_that_version, fresh),
		cmocka_unit_test_setup(a_frame_is_function_file_and_line, found),
		cmocka_unit_test_setup(a_sub_may_have_its_name_itself_and_a_lexical_one_no_package,
				       found),
		cmocka_unit_test_setup(
			strings_that_are_evaluated_are_one_and_keep_their_line_when_they_are_gone,
			found),
		cmocka_unit_test_setup(names_are_text, found),
		cmocka_unit_test_setup(a_stash_may_have_several_names_or_lie_behind_its_buckets,
				       found),
		cmocka_unit_test_setup(without_threads_a_file_is_a_glob, found),
		cmocka_unit_test_setup(what_has_become_another_has_no_name, found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
