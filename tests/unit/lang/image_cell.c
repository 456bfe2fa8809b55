/* What a file says of a language's runtime, by a cell: as without one, and nothing that does not hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/put.h"
#include "cell_fixture.h"
#include "lang/image.h"
#include "lang/image_cell.h"
#include "lang/which.h"

#include <errno.h>
#include <fcntl.h>

static int open_it(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct lang_image *read_here(const char *path, int fd)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct lang_image *image = NULL;
	struct err e;

	assert_int_equal(elf_file_open(fd, path, &elf, &e), 0);
	assert_int_equal(lang_image_read(elf, &image, &e), 0);
	return image;
}

static void same_code(const struct accessor *a, const struct accessor *b)
{
	assert_int_equal(a->machine, b->machine);
	assert_int_equal(a->len, b->len);
	assert_int_equal(a->vaddr, b->vaddr);
	assert_memory_equal(a->bytes, b->bytes, a->len);
}

static void a_cell_says_what_reading_it_here_does(void **state)
{
	const char *path = path_of_the_c_library();
	_cleanup_(closep) int fd = open_it(path);
	_cleanup_(lang_image_freep) struct lang_image *here = read_here(path, fd), *image = NULL;
	struct err e;
	bool is_go = true;

	(void)state;
	assert_int_equal(lang_image_ask(fd, path, &image, &is_go, &e), 0);
	assert_false(is_go);
	assert_true(image->libc);
	assert_int_equal(image->lang, MS_LANG_NONE);
	assert_string_equal(image->name, path);
	assert_true(image->getspecific.len > 0);
	same_code(&image->getspecific, &here->getspecific);
	same_code(&image->self, &here->self);
}

static void a_file_without_one_has_no_sentence(void **state)
{
	_cleanup_(closep) int fd = open_it("/proc/self/exe");
	struct lang_image *image = NULL;
	struct err e = { 0 };
	bool is_go = true;

	(void)state;
	assert_int_equal(lang_image_ask(fd, "this", &image, &is_go, &e), -ENOENT);
	assert_null(image);
	assert_string_equal(e.msg, "");
	assert_false(is_go);
	assert_null(lang_runtime_in(fd, "this"));
}

static void what_is_no_elf_file_says_so(void **state)
{
	_cleanup_(closep) int fd = open_it("/etc/passwd");
	struct lang_image *image = NULL;
	struct err e = { 0 };

	(void)state;
	assert_true(lang_image_ask(fd, "/etc/passwd", &image, NULL, &e) < 0);
	assert_null(image);
	assert_non_null(strstr(e.msg, "/etc/passwd"));
}

/* --- answers --- */

static struct lang_image image_of_libc(void)
{
	const char *path = path_of_the_c_library();
	_cleanup_(closep) int fd = open_it(path);
	_cleanup_(lang_image_freep) struct lang_image *here = read_here(path, fd);

	return *here;
}

static int take(int code, int is_go, const void *rest, size_t len, struct lang_image **ret,
		struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	put_u32(&b, (uint32_t)code);
	put_u8(&b, (uint8_t)is_go);
	strbuf_add(&b, rest, len);
	*e = (struct err){ 0 };
	*ret = NULL;
	return lang_image_take(bytes_of(b.s, b.len), "it", ret, NULL, e);
}

static void refused(const struct lang_image *bent)
{
	struct lang_image *image;
	struct err e;

	assert_int_equal(take(0, 0, bent, sizeof(*bent), &image, &e), -EBADMSG);
	assert_null(image);
}

static void answers_that_do_not_hold_together_are_refused(void **state)
{
	const struct lang_image good = image_of_libc();
	const uint8_t two = 2;
	struct lang_image *image;
	struct err e;

	(void)state;
	assert_int_equal(take(0, 0, &good, sizeof(good), &image, &e), 0);
	lang_image_free(image);
	for (size_t cut = 1; cut < sizeof(good); cut += 97)
		assert_int_equal(take(0, 0, &good, sizeof(good) - cut, &image, &e), -EBADMSG);
	assert_int_equal(take(0, 2, &good, sizeof(good), &image, &e), -EBADMSG);
#define BEND(...)                                                                                  \
	do {                                                                                       \
		struct lang_image b = good;                                                        \
		__VA_ARGS__;                                                                       \
		refused(&b);                                                                       \
	} while (0)
	BEND(b.lang = MS_N_LANGS);
	BEND(b.lang = (enum ms_lang) - 1);
	BEND(b.libc = false);
	BEND(memcpy(&b.libc, &two, 1));
	BEND(memcpy(&b.ghc.has_offsets, &two, 1));
	BEND(memcpy(&b.php.has_registers, &two, 1));
	BEND(memcpy(&b.v8.untested, &two, 1));
	BEND(memcpy(&b.v8.is_opaque, &two, 1));
	BEND(b.n_ranges = MS_LANG_RANGES + 1);
	BEND(b.getspecific.len = ACCESSOR_BYTES_MAX + 1);
	BEND(b.self.len = ACCESSOR_BYTES_MAX + 1);
	BEND(b.python.tstate.len = ACCESSOR_BYTES_MAX + 1);
	BEND(b.php.storage.len = ACCESSOR_BYTES_MAX + 1);
	BEND(b.php.version.len = ACCESSOR_BYTES_MAX + 1);
	BEND(b.ruby.current.len = ACCESSOR_BYTES_MAX + 1);
	BEND(b.ruby.n_names = RUBY_CANDIDATES + 1);
	BEND(b.v8.rt.n_bytecodes = 257);
	BEND(b.v8.rt.function_shared = 4);
	BEND(b.v8.rt.function_shared = MS_LANG_BYTES);
	BEND(b.v8.rt.shared_numbers = 3);
}

static void no_pointer_and_no_name_come_from_a_cell(void **state)
{
	struct lang_image bent = image_of_libc(), *image;
	struct err e;

	(void)state;
	memset(bent.name, 'x', sizeof(bent.name));
	memset(&bent.v8.rt.deopts, 0x41, sizeof(bent.v8.rt.deopts));
	bent.v8.version = 1;
	assert_int_equal(take(0, 0, &bent, sizeof(bent), &image, &e), 0);
	assert_string_equal(image->name, "it");
	assert_null(image->v8.rt.deopts);
	lang_image_free(image);
}

static void reasons_are_those_that_there_are(void **state)
{
	struct lang_image *image;
	struct err e;

	(void)state;
	assert_int_equal(take(-EOPNOTSUPP, 0, "so", 2, &image, &e), -EOPNOTSUPP);
	assert_string_equal(e.msg, "so");
	assert_int_equal(take(-ENOENT, 1, "", 0, &image, &e), -ENOENT);
	assert_string_equal(e.msg, "");
	/* Neither what would have it asked again, nor what is no error. */
	assert_int_equal(take(-EAGAIN, 0, "so", 2, &image, &e), -EBADMSG);
	assert_int_equal(take(5, 0, "so", 2, &image, &e), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_says_what_reading_it_here_does),
		cmocka_unit_test(a_file_without_one_has_no_sentence),
		cmocka_unit_test(what_is_no_elf_file_says_so),
		cmocka_unit_test(answers_that_do_not_hold_together_are_refused),
		cmocka_unit_test(no_pointer_and_no_name_come_from_a_cell),
		cmocka_unit_test(reasons_are_those_that_there_are),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
