#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/builder.h"

static uint32_t begun; /* of files whose tables are large */

/* What a build is asked to do is in the name of its file. */
static int make(void *ctx, int fd, const char *name, struct unwind_table **ret_table, struct err *e)
{
	pthread_mutex_t *hold = ctx;

	if (fcntl(fd, F_GETFD) < 0)
		return err_set(e, -EBADF, "%s: not open", name);
	if (!strcmp(name, "fails"))
		return err_set(e, -ENOENT, "%s: no rows", name);
	if (!strcmp(name, "waits")) {
		pthread_mutex_lock(hold);
		pthread_mutex_unlock(hold);
	}
	*ret_table = calloc(1, sizeof(**ret_table));
	(*ret_table)->n_rows = (uint32_t)strlen(name);
	if (!strcmp(name, "is-large")) {
		__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
		(*ret_table)->n_rows = BUILDER_DONE_BYTES / 4 + 1;
	}
	return 0;
}

static uint64_t soon(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)(ts.tv_sec + 20) * 1000000000;
}

static void add(struct builder *b, const char *name, uint8_t key)
{
	struct publish_key k = { 1, { key } };

	assert_int_equal(builder_add(b, open("/dev/null", O_RDONLY | O_CLOEXEC), name, &k, NULL),
			 0);
}

static void every_file_comes_back_once_with_its_table_or_a_reason(void **state)
{
	_cleanup_(builder_freep) struct builder *b = NULL;
	bool seen[100] = { 0 };

	assert_int_equal(builder_new(3, make, NULL, &b, NULL), 0);
	assert_null(builder_take(b));
	assert_false(builder_wait(b, soon())); /* nothing is under way */
	for (uint8_t i = 0; i < 100; i++)
		add(b, i % 3 ? "makes" : "fails", i);
	while (builder_pending(b)) {
		_cleanup_(build_freep) struct build *build = NULL;

		assert_true(builder_wait(b, soon()));
		build = builder_take(b);
		if (!build)
			continue;
		assert_false(seen[build->key.bytes[0]]);
		seen[build->key.bytes[0]] = true;
		if (build->key.bytes[0] % 3) {
			assert_int_equal(build->table->n_rows, 5);
			continue;
		}
		assert_null(build->table);
		assert_int_equal(build->error.code, -ENOENT);
		assert_string_equal(build->error.msg, "fails: no rows");
	}
	for (int i = 0; i < 100; i++)
		assert_true(seen[i]);
	(void)state;
}

static void a_large_file_does_not_keep_the_main_thread(void **state)
{
	pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;
	_cleanup_(builder_freep) struct builder *b = NULL;

	assert_int_equal(builder_new(1, make, &hold, &b, NULL), 0);
	pthread_mutex_lock(&hold);
	add(b, "waits", 1);
	add(b, "makes", 2);
	assert_false(builder_wait(b, 1));
	assert_null(builder_take(b));
	assert_int_equal(builder_pending(b), 2);
	pthread_mutex_unlock(&hold);
	for (uint8_t i = 1; i <= 2;) {
		_cleanup_(build_freep) struct build *build = NULL;

		assert_true(builder_wait(b, soon()));
		build = builder_take(b);
		if (build)
			assert_int_equal(build->key.bytes[0], i++); /* in the order asked for */
	}
	(void)state;
}

static int under_way, most_under_way, passed;

/* Large ones wait until some small ones have passed them; all are counted. */
static int make_and_count(void *ctx, int fd, const char *name, struct unwind_table **ret_table,
			  struct err *e)
{
	const int *small = ctx;

	if (strcmp(name, "large")) {
		__atomic_add_fetch(&passed, 1, __ATOMIC_SEQ_CST);
	} else {
		int n = __atomic_add_fetch(&under_way, 1, __ATOMIC_SEQ_CST);

		if (n > most_under_way)
			most_under_way = n;
		for (int i = 0; i < 20000 && __atomic_load_n(&passed, __ATOMIC_SEQ_CST) < *small;
		     i++)
			usleep(1000);
		__atomic_sub_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
	}
	return make(NULL, fd, name, ret_table, e);
}

static void large_files_are_made_one_at_a_time_and_small_ones_pass_them(void **state)
{
	_cleanup_(builder_freep) struct builder *b = NULL;
	int small = 20, n_large = 0, n_small = 0;

	assert_int_equal(builder_new(3, make_and_count, &small, &b, NULL), 0);
	for (uint8_t i = 0; i < 5; i++) {
		struct publish_key k = { 1, { i } };
		int fd = memfd_create("large", MFD_CLOEXEC);

		assert_int_equal(ftruncate(fd, BUILDER_LARGE_BYTES), 0);
		assert_int_equal(builder_add(b, fd, "large", &k, NULL), 0);
	}
	for (int i = 0; i < small; i++)
		add(b, "makes", (uint8_t)(100 + i));
	while (builder_pending(b)) {
		_cleanup_(build_freep) struct build *build = NULL;

		assert_true(builder_wait(b, soon()));
		build = builder_take(b);
		if (!build)
			continue;
		if (!strcmp(build->name, "large")) {
			assert_int_equal(build->key.bytes[0], n_large++); /* in their order */
			/* But for those that the other threads have just made. */
			assert_true(n_small >= small - 2);
		} else {
			n_small++;
		}
	}
	assert_int_equal(n_large, 5);
	assert_int_equal(most_under_way, 1);
	(void)state;
}

static void nothing_is_begun_while_large_tables_wait_to_be_taken(void **state)
{
	_cleanup_(builder_freep) struct builder *b = NULL;
	uint32_t n = 0;

	assert_int_equal(builder_new(3, make, NULL, &b, NULL), 0);
	for (uint8_t i = 0; i < 40; i++)
		add(b, "is-large", i);
	usleep(50000);
	/* The first takes its room; the other threads may have begun by then. */
	while (builder_pending(b)) {
		_cleanup_(build_freep) struct build *build = NULL;

		assert_true(builder_wait(b, soon()));
		build = builder_take(b);
		if (!build)
			continue;
		n++;
		assert_true(__atomic_load_n(&begun, __ATOMIC_SEQ_CST) <= n + 2 + 3);
	}
	assert_int_equal(n, 40);
	(void)state;
}

static void what_is_not_begun_is_left_undone_at_the_end(void **state)
{
	struct builder *b;

	assert_int_equal(builder_new(2, make, NULL, &b, NULL), 0);
	for (uint8_t i = 0; i < 50; i++)
		add(b, "makes", i);
	builder_free(b);
	builder_free(NULL);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_comes_back_once_with_its_table_or_a_reason),
		cmocka_unit_test(a_large_file_does_not_keep_the_main_thread),
		cmocka_unit_test(large_files_are_made_one_at_a_time_and_small_ones_pass_them),
		cmocka_unit_test(nothing_is_begun_while_large_tables_wait_to_be_taken),
		cmocka_unit_test(what_is_not_begun_is_left_undone_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
