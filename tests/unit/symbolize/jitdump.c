#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/jitdump.h"

static const uint64_t asked[] = { 0x1000, 0x1008, 0x100f, 0x1010, 0x2004 };

enum { N = sizeof(asked) / sizeof(asked[0]) };

/* A file that is written record by record, as its specification draws them. */
struct fixture {
	int fd;
	struct jitdump *dump;
};

static void put(struct fixture *f, const void *data, size_t len)
{
	assert_int_equal(write(f->fd, data, len), len);
}

static void put32(struct fixture *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

static void put64(struct fixture *f, uint64_t v)
{
	put(f, &v, sizeof(v));
}

static void record(struct fixture *f, uint32_t id, size_t len, uint64_t time)
{
	put32(f, id);
	put32(f, (uint32_t)(16 + len));
	put64(f, time);
}

static void load(struct fixture *f, uint64_t time, uint64_t addr, uint64_t size, uint64_t index,
		 const char *name)
{
	char code[64] = { 0 };

	record(f, 0, 40 + strlen(name) + 1 + size, time);
	put32(f, 7);
	put32(f, 7);
	put64(f, addr);
	put64(f, addr);
	put64(f, size);
	put64(f, index);
	put(f, name, strlen(name) + 1);
	put(f, code, size);
}

static void move(struct fixture *f, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
		 uint64_t index)
{
	record(f, 1, 48, time);
	put32(f, 7);
	put32(f, 7);
	put64(f, to);
	put64(f, from);
	put64(f, to);
	put64(f, size);
	put64(f, index);
}

static void entry(struct fixture *f, uint64_t addr, uint32_t line, const char *file)
{
	put64(f, addr);
	put32(f, line);
	put32(f, 0);
	put(f, file, strlen(file) + 1);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->fd = memfd_create("jit.dump", MFD_CLOEXEC);
	put(f, "DTiJ", 4);
	put32(f, 1);
	put32(f, 40);
	put32(f, 62);
	put32(f, 0);
	put32(f, 7);
	put64(f, 1);
	put64(f, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	jitdump_free(f->dump);
	close(f->fd);
	free(f);
	return 0;
}

static void read_it(struct fixture *f)
{
	assert_int_equal(jitdump_read(f->fd, asked, N, &f->dump), 0);
}

static void assert_at(struct fixture *f, uint64_t vaddr, const char *name, const char *file,
		      uint32_t line)
{
	struct jit_place p;

	assert_int_equal(jitdump_find(f->dump, vaddr, &p), 0);
	assert_string_equal(p.name, name);
	assert_string_equal(p.file ? p.file : "", file);
	assert_int_equal(p.line, line);
}

static void a_load_names_its_addresses_and_no_others(void **state)
{
	struct fixture *f = *state;
	struct jit_place p;

	load(f, 10, 0x1000, 16, 1, "fib");
	read_it(f);
	assert_at(f, 0x1000, "fib", "", 0);
	assert_at(f, 0x100f, "fib", "", 0);
	assert_int_equal(jitdump_find(f->dump, 0x1010, &p), -ENOENT);
	assert_int_equal(jitdump_find(f->dump, 0x1001, &p), -ENOENT);
}

static void lines_before_a_load_are_its_own(void **state)
{
	struct fixture *f = *state;

	record(f, 2, 16 + 16 + 7 + 16 + 2 + 16 + 5, 9);
	put64(f, 0x1000);
	put64(f, 3);
	entry(f, 0x1000, 3, "/app.c");
	entry(f, 0x1008, 4, "\xff");
	entry(f, 0x100c, 90, "/b.c");
	load(f, 10, 0x1000, 16, 1, "fib");
	load(f, 11, 0x2000, 16, 2, "other");
	read_it(f);
	assert_at(f, 0x1000, "fib", "/app.c", 3);
	assert_at(f, 0x1008, "fib", "/app.c", 4);
	assert_at(f, 0x100f, "fib", "/b.c", 90);
	assert_at(f, 0x2004, "other", "", 0);
}

static void the_latest_at_an_address_wins(void **state)
{
	struct fixture *f = *state;

	load(f, 20, 0x1000, 8, 2, "newer");
	load(f, 10, 0x1000, 16, 1, "older");
	read_it(f);
	assert_at(f, 0x1000, "newer", "", 0);
	assert_at(f, 0x1008, "older", "", 0);
}

static void code_that_moved_keeps_its_name_and_lines(void **state)
{
	struct fixture *f = *state;

	record(f, 2, 16 + 16 + 7, 9);
	put64(f, 0x5000);
	put64(f, 1);
	entry(f, 0x5000, 3, "/app.c");
	load(f, 10, 0x5000, 16, 1, "fib");
	move(f, 12, 0x5000, 0x2000, 16, 1);
	move(f, 13, 0x9000, 0x1000, 16, 99); /* never loaded */
	read_it(f);
	assert_at(f, 0x2004, "fib", "/app.c", 3);
}

static void what_is_damaged_behind_its_beginning_is_good_up_to_there(void **state)
{
	struct fixture *f = *state;

	load(f, 10, 0x1000, 16, 1, "fib");
	put32(f, 0);
	put32(f, 3); /* shorter than a record's head */
	put64(f, 0);
	load(f, 11, 0x1000, 16, 2, "never read");
	read_it(f);
	assert_at(f, 0x1000, "fib", "", 0);
}

static void a_record_cut_off_is_no_harm(void **state)
{
	struct fixture *f = *state;

	load(f, 10, 0x1000, 16, 1, "fib");
	load(f, 11, 0x2000, 16, 2, "x");
	assert_int_equal(ftruncate(f->fd, 40 + 16 + 40 + 4 + 16 + 20), 0);
	read_it(f);
	assert_at(f, 0x1000, "fib", "", 0);
}

static void another_file_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(jitdump_read(f->fd, asked, N, &f->dump), -ENOENT);
	assert_int_equal(pwrite(f->fd, "JiTD", 4, 0), 4); /* the other byte order */
	assert_int_equal(jitdump_read(f->fd, asked, N, &f->dump), -EBADMSG);
	assert_int_equal(ftruncate(f->fd, 10), 0);
	assert_int_equal(jitdump_read(f->fd, asked, N, &f->dump), -EBADMSG);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_load_names_its_addresses_and_no_others),
		TEST(lines_before_a_load_are_its_own),
		TEST(the_latest_at_an_address_wins),
		TEST(code_that_moved_keeps_its_name_and_lines),
		TEST(what_is_damaged_behind_its_beginning_is_good_up_to_there),
		TEST(a_record_cut_off_is_no_harm),
		TEST(another_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
