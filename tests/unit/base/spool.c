/* What was put is taken in order, once, as a whole or not at all, and within its limit. */
#include "base/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { KIB = 1024 };

static char folder[64], dir[128];
static struct spool_use use;
static struct spool spool;
static struct spool_gone gone;

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/memscope-spool-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(dir, sizeof(dir), "%s/s", folder);
	use.entries = use.bytes = 0;
	gone = (struct spool_gone){ 0 };
	spool = (struct spool){ dir, 64 * KIB, &use };
	return spool_open(&spool, NULL);
}

static int tear_down(void **state)
{
	char command[200];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static int put(int64_t at, const char *title, size_t len)
{
	static char body[256 * KIB];
	struct err e = { 0 };

	memset(body, 'a' + (int)(at % 26), len);
	return spool_put(&spool, at, title, bytes_of(body, len), &gone, &e);
}

/* The titles that are there, oldest first: "a b c". */
static const char *titles(void)
{
	static char out[4096];
	struct spool_names names;

	*out = '\0';
	assert_int_equal(spool_list(&spool, &names, NULL), 0);
	for (uint32_t i = 0; i < names.n; i++) {
		struct spool_entry entry;
		size_t n = strlen(out);

		if (spool_hold(&spool, names.names[i], &entry, NULL) < 0)
			continue;
		snprintf(out + n, sizeof(out) - n, "%s%s", n ? " " : "", entry.title);
		spool_let_go(&entry);
	}
	spool_names_fini(&names);
	return out;
}

static void the_oldest_is_first_whatever_came_first(void **state)
{
	assert_int_equal(put(30, "c", 10), 0);
	assert_int_equal(put(1763812345000000000, "d", 10), 0);
	assert_int_equal(put(2, "a", 10), 0);
	assert_int_equal(put(11, "b", 10), 0);
	assert_string_equal(titles(), "a b c d");
	assert_int_equal(use.entries, 4);
	assert_int_equal(use.bytes, 4 * 4 * KIB); /* blocks of a disk */
}

static void what_was_put_comes_back_and_is_removed_once(void **state)
{
	struct spool_names names;
	struct spool_entry entry;

	assert_int_equal(put(1, "oncpu of web", 5000), 0);
	assert_int_equal(spool_list(&spool, &names, NULL), 0);
	assert_int_equal(names.n, 1);
	assert_int_equal(spool_hold(&spool, names.names[0], &entry, NULL), 0);
	assert_string_equal(entry.title, "oncpu of web");
	assert_int_equal(entry.body.len, 5000);
	for (size_t i = 0; i < entry.body.len; i++)
		assert_int_equal(entry.body.data[i], 'b');
	spool_let_go(&entry);
	assert_int_equal(spool_remove(&spool, names.names[0]), 0);
	assert_int_equal(spool_remove(&spool, names.names[0]), -ENOENT);
	assert_int_equal(use.bytes, 0);
	spool_names_fini(&names);
}

static void the_oldest_make_way_and_are_counted(void **state)
{
	char title[8];

	for (int i = 0; i < 40; i++) {
		snprintf(title, sizeof(title), "%d", i);
		assert_int_equal(put(i + 1, title, 4000), 0);
		assert_true(use.bytes <= spool.max_bytes);
	}
	assert_int_equal(use.entries + gone.over_limit, 40);
	assert_true(use.entries >= 14); /* 15/16 of the limit, in blocks */
	assert_true(strstr(titles(), "38 39") != NULL);
	assert_null(strstr(titles(), "10 11"));
	assert_int_equal(put(50, "huge", 100 * KIB), -EFBIG);
	assert_true(strstr(titles(), "38 39") != NULL);
}

static void what_is_held_does_not_make_way(void **state)
{
	struct spool_names names;
	struct spool_entry entry;

	assert_int_equal(put(1, "held", 4000), 0);
	assert_int_equal(spool_list(&spool, &names, NULL), 0);
	assert_int_equal(spool_hold(&spool, names.names[0], &entry, NULL), 0);
	for (int i = 0; i < 30; i++)
		assert_int_equal(put(i + 2, "x", 4000), 0);
	assert_true(gone.over_limit > 0);
	assert_int_equal(spool_remove(&spool, names.names[0]), 0);
	spool_let_go(&entry);
	spool_names_fini(&names);
}

static void an_entry_that_was_changed_or_cut_is_known(void **state)
{
	struct spool_names names;
	struct spool_entry entry;
	char path[4096];
	int fd;

	assert_int_equal(put(1, "cut", 5000), 0);
	assert_int_equal(put(2, "changed", 5000), 0);
	assert_int_equal(put(3, "good", 5000), 0);
	assert_int_equal(spool_list(&spool, &names, NULL), 0);
	snprintf(path, sizeof(path), "%s/%s", dir, names.names[0]);
	assert_int_equal(truncate(path, 3000), 0);
	snprintf(path, sizeof(path), "%s/%s", dir, names.names[1]);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "!", 1, 4000), 1);
	close(fd);
	assert_int_equal(spool_hold(&spool, names.names[0], &entry, NULL), -EBADMSG);
	assert_int_equal(spool_hold(&spool, names.names[1], &entry, NULL), -EBADMSG);
	assert_string_equal(titles(), "good");
	/* Of any length down to nothing. */
	snprintf(path, sizeof(path), "%s/%s", dir, names.names[2]);
	for (int len = 60; len >= 0; len--) {
		assert_int_equal(truncate(path, len), 0);
		assert_int_equal(spool_hold(&spool, names.names[2], &entry, NULL), -EBADMSG);
	}
	spool_names_fini(&names);
}

static void a_writer_that_is_killed_leaves_whole_entries_only(void **state)
{
	struct spool_names names;

	spool.max_bytes = 1 << 30;
	for (int round = 0; round < 20; round++) {
		pid_t pid = fork();

		if (pid == 0)
			for (int i = 0;; i++)
				put(1000 * round + i + 1, "x", 20000);
		for (uint64_t before = use.entries; use.entries == before;)
			assert_int_equal(spool_count(&spool, NULL), 0);
		usleep((useconds_t)(100 * round));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	assert_int_equal(spool_list(&spool, &names, NULL), 0);
	assert_true(names.n > 0);
	for (uint32_t i = 0; i < names.n; i++) {
		struct spool_entry entry;

		assert_int_equal(spool_hold(&spool, names.names[i], &entry, NULL), 0);
		assert_int_equal(entry.body.len, 20000);
		spool_let_go(&entry);
	}
	/* The next to open it counts what is there. */
	use.entries = use.bytes = 0;
	assert_int_equal(spool_open(&spool, NULL), 0);
	assert_int_equal(use.entries, names.n);
	spool_names_fini(&names);
}

static void on_a_full_disk_the_oldest_make_way(void **state)
{
	struct err e = { 0 };
	int kept = 0;

	if (mount("none", folder, "tmpfs", 0, "size=128k") < 0)
		skip();
	spool.max_bytes = 1 << 30;
	assert_int_equal(spool_open(&spool, &e), 0);
	for (int i = 0; i < 60; i++)
		assert_int_equal(put(i + 1, "x", 7000), 0);
	kept = (int)use.entries;
	assert_true(kept >= 8 && kept <= 16);
	assert_int_equal(kept + (int)gone.no_room, 60);
	assert_int_equal(put(100, "too much", 200 * KIB), -ENOSPC);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

static void other_files_are_left_alone(void **state)
{
	struct spool_names names;
	char path[200];

	snprintf(path, sizeof(path), "%s/notes.txt", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "%s/00000000000000000001.entry", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	for (int i = 0; i < 40; i++)
		assert_int_equal(put(i + 1, "x", 4000), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(spool_list(&spool, &names, NULL), 0);
	assert_int_equal(names.n, use.entries);
	spool_names_fini(&names);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_oldest_is_first_whatever_came_first),
		TEST(what_was_put_comes_back_and_is_removed_once),
		TEST(the_oldest_make_way_and_are_counted),
		TEST(what_is_held_does_not_make_way),
		TEST(an_entry_that_was_changed_or_cut_is_known),
		TEST(a_writer_that_is_killed_leaves_whole_entries_only),
		TEST(on_a_full_disk_the_oldest_make_way),
		TEST(other_files_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
