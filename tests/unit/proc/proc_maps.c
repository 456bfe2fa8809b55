#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proc/proc_maps.h"

static char line[8192];

static int parse(const char *text, struct proc_map *ret_map)
{
	snprintf(line, sizeof(line), "%s", text);
	return proc_maps_parse(line, strlen(line), ret_map);
}

static void a_file_mapping_has_all_its_parts(void **state)
{
	struct proc_map m;

	assert_int_equal(parse("7f3c5e4d2000-7f3c5e628000 r-xp 00026000 fe:01 5769                "
			       "       /usr/lib/libc.so.6",
			       &m),
			 0);
	assert_int_equal(m.start, 0x7f3c5e4d2000);
	assert_int_equal(m.end, 0x7f3c5e628000);
	assert_int_equal(m.perms, PROC_MAP_READ | PROC_MAP_EXEC);
	assert_int_equal(m.file_off, 0x26000);
	assert_int_equal(m.dev, makedev(0xfe, 1));
	assert_int_equal(m.ino, 5769);
	assert_string_equal(m.path, "/usr/lib/libc.so.6");
	assert_false(m.deleted);
}

static void a_mapping_without_a_file_has_an_empty_path(void **state)
{
	struct proc_map m;

	assert_int_equal(parse("1000-2000 rw-s 00000000 00:00 0 ", &m), 0);
	assert_string_equal(m.path, "");
	assert_int_equal(m.perms, PROC_MAP_READ | PROC_MAP_WRITE | PROC_MAP_SHARED);
	assert_int_equal(parse("1000-2000 rw-s 00000000 00:00 0", &m), 0);
	assert_string_equal(m.path, "");
}

static void odd_paths_are_given_back_as_they_are(void **state)
{
	struct proc_map m;

	assert_int_equal(parse("1000-2000 r-xp 0 00:01 7 /tmp/a  b\\012c (deleted)", &m), 0);
	assert_string_equal(m.path, "/tmp/a  b\nc");
	assert_true(m.deleted);
	assert_int_equal(parse("1000-2000 r-xp 0 00:01 7 /tmp/(deleted)", &m), 0);
	assert_string_equal(m.path, "/tmp/(deleted)");
	assert_false(m.deleted);
	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 0 00:00 0   [vsyscall]", &m),
			 0);
	assert_string_equal(m.path, "[vsyscall]");
	assert_int_equal(m.perms, PROC_MAP_EXEC);
}

static void what_is_no_such_line_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 r-x",
		"1000-2000 r-xq 0 0:0 0",
		"1000-2000 rrxp 0 0:0 0",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"1000-2000 r-xp 0 0:0 0x",
		"1000-2000 r-xp 0 0 0",
		"1000-2000 r-xp 0 0:0 ",
		"11111111111111111-2000 r-xp 0 0:0 0",
		"1000-2000 r-xp 0 100000000:0 0 /x",
		"1000-2000 r-xp 0 0:0 99999999999999999999 /x",
	};
	struct proc_map m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i], &m) != -EBADMSG)
			fail_msg("\"%s\" was accepted", bad[i]);
	memcpy(line, "1000-2000 r-xp 0 0:0 0 /a\0b", 27);
	assert_int_equal(proc_maps_parse(line, 27, &m), -EBADMSG);
}

struct seek {
	uint64_t addr;
	uint32_t n;
	struct proc_map map;
	char path[4200];
};

static int find(void *ctx, const struct proc_map *map)
{
	struct seek *s = ctx;

	s->n++;
	if (s->addr < map->start || s->addr >= map->end)
		return 0;
	s->map = *map;
	snprintf(s->path, sizeof(s->path), "%s", map->path);
	return 1;
}

static void a_live_mapping_is_found_with_its_file(void **state)
{
	char path[] = "/tmp/maps\ntest.XXXXXX";
	_cleanup_(closep) int fd = mkstemp(path);
	struct seek s = { 0 };
	struct stat st;
	void *at;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(fstat(fd, &st), 0);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
	s.addr = (uintptr_t)at;
	assert_int_equal(proc_maps_each(getpid(), find, &s, NULL), 1);
	assert_int_equal(s.map.ino, st.st_ino);
	assert_int_equal(s.map.file_off, 4096);
	assert_string_equal(s.path, path);
	assert_false(s.map.deleted);

	unlink(path);
	assert_int_equal(proc_maps_each(getpid(), find, &s, NULL), 1);
	assert_true(s.map.deleted);
	assert_string_equal(s.path, path);
	munmap(at, 4096);
}

static void many_mappings_are_all_read(void **state)
{
	enum { N = 3000 };
	struct seek s = { .addr = UINT64_MAX };
	char *at = mmap(NULL, 2 * N * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t before;

	proc_maps_each(getpid(), find, &s, NULL);
	before = s.n;
	s.n = 0;
	for (int i = 0; i < N; i++)
		mprotect(at + (2 * i + 1) * 4096, 4096, PROT_READ);
	assert_int_equal(proc_maps_each(getpid(), find, &s, NULL), 0);
	assert_true(s.n >= before + 2 * N - 2);
	munmap(at, 2 * N * 4096);
}

static void a_process_that_is_gone_is_named(void **state)
{
	struct err e = { 0 };
	char want[64];
	pid_t pid = fork();
	struct seek s = { 0 };

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(proc_maps_each(pid, find, &s, &e), -ESRCH);
	snprintf(want, sizeof(want), "process %d is gone", (int)pid);
	assert_string_equal(e.msg, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_mapping_has_all_its_parts),
		cmocka_unit_test(a_mapping_without_a_file_has_an_empty_path),
		cmocka_unit_test(odd_paths_are_given_back_as_they_are),
		cmocka_unit_test(what_is_no_such_line_is_refused),
		cmocka_unit_test(a_live_mapping_is_found_with_its_file),
		cmocka_unit_test(many_mappings_are_all_read),
		cmocka_unit_test(a_process_that_is_gone_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
