/*
 * Where this process's own C library keeps what its threads put there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

#include "lang/image.h"

static bool read_own(void *ctx, uint64_t addr, void *buf, size_t len)
{
	memcpy(buf, (const void *)(uintptr_t)addr, len);
	return true;
}

static struct lang_image *own_libc(void)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct lang_image *image = NULL;
	Dl_info info;
	struct err e = { 0 };

	assert_true(dladdr((void *)pthread_getspecific, &info) != 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, info.dli_fname, &elf, &e), 0);
	assert_int_equal(lang_image_read(elf, &image, &e), 0);
	assert_true(lang_image_is_libc(image));
	assert_int_equal(lang_image_lang(image), MS_LANG_NONE);
	return image;
}

struct thread {
	const struct lang_image *libc;
	pthread_key_t *keys;
	int n, tables;
};

static void *check_slots(void *arg)
{
	struct lang_memory mem = { .read = read_own };
	struct thread *t = arg;
	uint64_t tp;

	if (!lang_thread_pointer(t->libc, (uint64_t)pthread_self(), &tp) ||
	    tp != (uint64_t)(uintptr_t)__builtin_thread_pointer())
		return "pthread_self()";
	for (int i = 0; i < t->n; i++) {
		struct ms_lang_row row = { 0 };
		uint64_t value;
		struct err e;

		pthread_setspecific(t->keys[i], (void *)(uintptr_t)(0x1000 + i));
		if (lang_thread_slot(t->libc, t->keys[i], &row, &e) < 0 ||
		    !lang_thread_value(&row, tp, &mem, &value) || value != 0x1000u + (unsigned)i)
			return "a value";
		t->tables += row.thread == MS_THREAD_TABLE;
	}
	return NULL;
}

static void values_of_threads_are_where_they_are_looked_for(void **state)
{
	enum { N = 100 }; /* glibc has 32 in a thread's own block */
	_cleanup_(lang_image_freep) struct lang_image *libc = own_libc();
	pthread_key_t keys[N];
	struct thread t = { .libc = libc, .keys = keys, .n = N };
	pthread_t thread;
	void *wrong;

	for (int i = 0; i < N; i++)
		assert_int_equal(pthread_key_create(&keys[i], NULL), 0);
	wrong = check_slots(&t);
	if (wrong)
		fail_msg("main thread: %s", (char *)wrong);
	assert_true(t.tables > 0);
	assert_int_equal(pthread_create(&thread, NULL, check_slots, &t), 0);
	pthread_join(thread, &wrong);
	if (wrong)
		fail_msg("thread: %s", (char *)wrong);
}

static void an_image_without_a_libc_has_none(void **state)
{
	struct lang_image image = { 0 };
	struct ms_lang_row row;
	struct err e = { 0 };
	uint64_t tp;

	assert_int_equal(lang_thread_slot(&image, 1, &row, &e), -EAGAIN);
	assert_int_equal(lang_thread_slot(NULL, 1, &row, &e), -EAGAIN);
	assert_non_null(strstr(e.msg, "C library"));
	assert_false(lang_thread_pointer(&image, 1, &tp));
	assert_false(lang_thread_pointer(NULL, 1, &tp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_threads_are_where_they_are_looked_for),
		cmocka_unit_test(an_image_without_a_libc_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
