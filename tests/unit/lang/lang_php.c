/*
 * PHP in a process made of bytes, and in Debian's file: which versions are read, and which are refused, with a sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "php_fixture.h"
#include "python_fixture.h"

static struct php_process p;
static struct lang_runtime rt;
static struct err e;

static int fresh(void **state)
{
	(void)state;
	phf_init(&p);
	memset(&rt, 0, sizeof(rt));
	return 0;
}

static int find(void)
{
	return lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, &e);
}

static int find_version(const char *text)
{
	fresh(NULL);
	memset(p.bytes + PHF_VERSION_TEXT, 0, 64);
	strcpy((char *)p.bytes + PHF_VERSION_TEXT, text);
	return find();
}

static void its_frames_are_found_by_the_globals(void **state)
{
	(void)state;
	assert_int_equal(find(), 0);
	assert_string_equal(rt.name, "PHP 8.2.36");
	assert_int_equal(rt.version, 0x080224);
	assert_false(rt.untested);
	assert_int_equal(rt.row.lang, MS_LANG_PHP);
	assert_int_equal(rt.row.thread, MS_THREAD_GLOBAL);
	assert_int_equal(rt.row.off, phf_addr(PHF_CURRENT));
	assert_int_equal(rt.row.range[0].start, PHF_BIAS + 0x11000);
	assert_int_equal(rt.row.php.func_ops, 88);
	assert_int_equal(rt.row.php.frame_reg, 14);
	assert_int_equal(rt.row.php.opline_reg, 15);
	assert_int_equal(rt.row.php.prologue, 48);
	fresh(state);
	p.php.php.has_registers = false;
	assert_int_equal(find(), 0);
	assert_int_equal(rt.row.php.frame_reg, 0);
}

static void versions_are_those_of_the_engine(void **state)
{
	static const struct {
		const char *text, *name;
		uint16_t current, ops;
	} known[] = {
		{ "Zend Engine v3.4.0, Copyright", "PHP 7.4.0", 488, 64 },
		{ "Zend Engine v4.0.30, Copyright", "PHP 8.0.30", 488, 72 },
		{ "Zend Engine v4.1.2-dev, Copyright", "PHP 8.1.2", 488, 72 },
		{ "Zend Engine v4.3.8, Copyright", "PHP 8.3.8", 488, 80 },
		{ "Zend Engine v4.4.14, Copyright", "PHP 8.4.14", 488, 104 },
		{ "Zend Engine v4.5.2, Copyright", "PHP 8.5.2", 512, 104 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(find_version(known[i].text), 0);
		assert_string_equal(rt.name, known[i].name);
		assert_int_equal(rt.row.off, phf_addr(PHF_GLOBALS + known[i].current));
		assert_int_equal(rt.row.php.func_ops, known[i].ops);
		assert_int_equal(rt.untested, rt.version >> 8 == 0x0800);
		/* What the walk reads at once. */
		assert_true(rt.row.php.func_ops + 8u <= MS_LANG_BYTES &&
			    rt.row.php.func_n_ops + 4u <= rt.row.php.func_ops + 8u);
	}
}

static void other_versions_are_refused(void **state)
{
	static const char *const texts[] = { "Zend Engine v3.3.9, Copyright",
					     "Zend Engine v4.6.0, Copyright",
					     "Zend Engine v5.4.0, Copyright" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(find_version(texts[i]), -EOPNOTSUPP);
		assert_non_null(strstr(e.msg, "7.4 to 8.5 can be read"));
	}
}

static void php_that_is_being_started_is_looked_at_again(void **state)
{
	phf_put(&p, PHF_VERSION, 0, 8);
	assert_int_equal(find(), -EAGAIN);
	fresh(state);
	p.memory.hole = PHF_VERSION;
	p.memory.hole_len = 8;
	assert_int_equal(find(), -EAGAIN);
	assert_int_equal(find_version("Zend"), -EAGAIN);
}

static void globals_and_versions_of_another_kind_are_refused(void **state)
{
	p.php.php.globals_size = 400;
	assert_int_equal(find(), -EOPNOTSUPP);
	fresh(state);
	p.php.php.version.len = 1;
	assert_int_equal(find(), -EOPNOTSUPP);
}

/* A thread finds its globals by a key of pthread_getspecific(), here of CPython's fixture. */
static void php_for_threads_finds_those_of_a_thread(void **state)
{
	static struct python_process c;
	struct ms_lang_row slot = { 0 };

	pyf_init(&c);
	phf_threads(&p, 5);
	assert_int_equal(lang_runtime_find(&p.at, &c.libc_at, &p.memory.mem, &rt, &e), 0);
	assert_string_equal(rt.name, "PHP 8.2.36 ZTS");
	assert_false(rt.untested);
	assert_int_equal(lang_thread_slot(c.libc_at.image, 5, &slot, &e), 0);
	assert_int_equal(rt.row.thread, slot.thread);
	assert_int_equal(rt.row.off, slot.off);
	assert_int_equal(rt.row.php.current, PHF_GLOBALS - PHF_STORAGE + 488);
	strcpy((char *)p.bytes + PHF_VERSION_TEXT, "Zend Engine v4.3.8, Copyright");
	assert_int_equal(lang_runtime_find(&p.at, &c.libc_at, &p.memory.mem, &rt, &e), 0);
	assert_true(rt.untested); /* without threads it was tried */
	/* The key is not known before it has been made. */
	phf_put(&p, PHF_OFFSET, 0, 8);
	assert_int_equal(lang_runtime_find(&p.at, &c.libc_at, &p.memory.mem, &rt, &e), -EAGAIN);
	fresh(state);
	phf_threads(&p, 5);
	assert_int_equal(find(), -EAGAIN); /* without the C library */
	phf_threads(&p, 4000);
	assert_int_equal(lang_runtime_find(&p.at, &c.libc_at, &p.memory.mem, &rt, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "tsrm_get_ls_cache()"));
	p.php.php.storage.len = 0;
	assert_int_equal(lang_runtime_find(&p.at, &c.libc_at, &p.memory.mem, &rt, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "PHP 8.2.36 ZTS: "));
}

/* A closure's code is copied with it. */
static void copies_of_a_function_have_a_key_in_common(void **state)
{
	uint64_t words[2], other[2], key;
	uint32_t line = 0;

	(void)state;
	phf_words(&p, PHF_METHOD, 12, words);
	phf_words(&p, PHF_METHOD, 13, other);
	other[0] += 0x100;
	key = lang_function_key(words, &line);
	assert_int_not_equal(key, 0);
	assert_int_equal(line, 12);
	assert_int_equal(lang_function_key(other, &line), key);
	assert_int_equal(line, 13);
	phf_words(&p, PHF_MAIN, 12, other);
	key = lang_function_key(other, &line);
	assert_int_not_equal(lang_function_key(words, &line), key);
	phf_words(&p, PHF_MAIN, 12 | MS_PHP_INCLUDED, words);
	assert_int_not_equal(lang_function_key(words, &line), key);
	words[0] &= ~MS_FRAME_ADDR_MASK; /* frames that could not be read */
	assert_int_equal(lang_function_key(words, &line), 0);
	words[0] |= 0x1000;
	words[1] ^= (uint64_t)(MS_LANG_PHP ^ MS_LANG_PYTHON) << MS_LANG_SHIFT;
	assert_int_equal(lang_function_key(words, &line), 0);
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

static void debians_keeps_its_frame_in_a_register(void **state)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	const char *path = "/usr/bin/php8.2";

	(void)state;
	assert_int_equal(read_image(path, &image), 0);
	assert_int_equal(lang_image_lang(image), MS_LANG_PHP);
	assert_true(image->php.globals && image->php.globals_size > 1000 && image->php.version.len);
	assert_true(image->n_ranges >= 1);
	if (image->php.version.machine != EM_X86_64)
		return;
	assert_true(image->php.has_registers);
	assert_in_range(image->php.prologue, 8, 128);
}

int main(void)
{
#if !defined(__x86_64__)
	puts("1..0 # SKIP the PHP that is made for it has code of x86-64");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(its_frames_are_found_by_the_globals, fresh),
		cmocka_unit_test_setup(versions_are_those_of_the_engine, fresh),
		cmocka_unit_test_setup(other_versions_are_refused, fresh),
		cmocka_unit_test_setup(php_that_is_being_started_is_looked_at_again, fresh),
		cmocka_unit_test_setup(globals_and_versions_of_another_kind_are_refused, fresh),
		cmocka_unit_test_setup(php_for_threads_finds_those_of_a_thread, fresh),
		cmocka_unit_test_setup(copies_of_a_function_have_a_key_in_common, fresh),
		cmocka_unit_test(debians_keeps_its_frame_in_a_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
