#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/jit_files.h"

enum { NOBODY = 65534 };

/* A process of whose memory without a file nobody has heard: this one. */
static struct dict *dict;
static struct ns_roots roots;
static struct images images;
static struct image *code;
static char map_path[64], dir[64], dump_path[128];

static pid_t no_mapper(void *ctx, const struct image *img, uint32_t n)
{
	return 0;
}

static int begin(void **state)
{
	(void)state;
	dict = dict_new();
	images_init(&images, dict, &roots, no_mapper, NULL);
	code = images_get(&images, getpid(), 0x10000, "", 0, 0);
	if (!code)
		return -1;
	code->pid = getpid();
	code->root = ns_roots_add(&roots, getpid());
	strcpy(dir, "/tmp/memscope-jit-XXXXXX");
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
	return code->root >= 0 && mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	unlink(map_path);
	unlink(dump_path);
	rmdir(dir);
	images_fini(&images);
	ns_roots_fini(&roots);
	dict_free(dict);
	return 0;
}

static void make(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void is_text(int fd, const char *text)
{
	char got[64] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, text);
}

static void the_owner_of_memory_is_who_its_process_is(void **state)
{
	struct jit_owner owner;

	(void)state;
	jit_owner_read(getpid(), &owner);
	assert_true(owner.known);
	assert_int_equal(owner.uid, geteuid());
	assert_int_equal(owner.ns_pid, proc_ns_pid(getpid()));
	jit_owner_read(0x7ffffff0, &owner);
	assert_false(owner.known);
	assert_int_equal(owner.ns_pid, 0x7ffffff0);
}

static void a_map_of_the_process_s_own_is_opened(void **state)
{
	(void)state;
	assert_int_equal(jit_open_perf_map(&images, code), -ENOENT);
	make(map_path, "1000 10 f\n");
	is_text(jit_open_perf_map(&images, code), "1000 10 f\n");
	/* By the pid that the process has in its own namespace, and no other. */
	code->jit.ns_pid++;
	assert_int_equal(jit_open_perf_map(&images, code), -ENOENT);
}

static void a_map_of_somebody_else_is_not_believed(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	make(map_path, "1000 10 f\n");
	assert_int_equal(chown(map_path, NOBODY, NOBODY), 0);
	assert_int_equal(jit_open_perf_map(&images, code), -EPERM);
	/* Of who the process is: then it is its own. */
	code->jit.uid = NOBODY;
	is_text(jit_open_perf_map(&images, code), "1000 10 f\n");
	code->jit.known = false;
	assert_int_equal(jit_open_perf_map(&images, code), -EPERM);
	/* Root may say what it likes. */
	assert_int_equal(chown(map_path, 0, 0), 0);
	is_text(jit_open_perf_map(&images, code), "1000 10 f\n");
}

/* Who may write to /tmp makes a link there to any file of root's. */
static void a_link_to_what_only_root_may_read_is_not_followed_for_another_user(void **state)
{
	char secret[128];

	(void)state;
	if (geteuid())
		skip();
	snprintf(secret, sizeof(secret), "%s/secret", dir);
	make(secret, "1000 10 hunter2\n");
	assert_int_equal(chmod(secret, 0600), 0);
	assert_int_equal(symlink(secret, map_path), 0);
	is_text(jit_open_perf_map(&images, code), "1000 10 hunter2\n"); /* root's own process */
	code->jit.uid = NOBODY;
	assert_int_equal(jit_open_perf_map(&images, code), -EPERM);
	code->jit.known = false;
	assert_int_equal(jit_open_perf_map(&images, code), -EPERM);
	assert_int_equal(chmod(secret, 0644), 0);
	code->jit.known = true;
	is_text(jit_open_perf_map(&images, code), "1000 10 hunter2\n");
	unlink(secret);
}

static void what_is_no_regular_file_is_not_opened(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(map_path, 0600), 0);
	assert_true(jit_open_perf_map(&images, code) < 0); /* and does not wait for a writer */
	unlink(map_path);
	assert_int_equal(mkdir(map_path, 0700), 0);
	assert_true(jit_open_perf_map(&images, code) < 0);
	rmdir(map_path);
}

static struct image *mapped(const char *name, pid_t pid)
{
	struct image *img;
	struct stat st;

	snprintf(dump_path, sizeof(dump_path), "%s/%s", dir, name);
	make(dump_path, "a dump");
	assert_int_equal(stat(dump_path, &st), 0);
	img = images_get(&images, pid, 0x20000, dump_path, st.st_dev, st.st_ino);
	assert_non_null(img);
	img->pid = pid;
	return img;
}

static void a_dump_is_the_file_of_its_name_that_the_process_maps(void **state)
{
	char name[64];

	(void)state;
	assert_int_equal(jit_open_dump(&images, code), -ENOENT);
	snprintf(name, sizeof(name), "jit-%d.dump", (int)code->jit.ns_pid);
	mapped(name, getpid());
	is_text(jit_open_dump(&images, code), "a dump");
}

static void a_dump_of_another_name_or_process_is_none(void **state)
{
	struct image *img;
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "jit-%d.dump", (int)code->jit.ns_pid + 1);
	mapped(name, getpid());
	assert_int_equal(jit_open_dump(&images, code), -ENOENT);
	unlink(dump_path);
	snprintf(name, sizeof(name), "jit-%d.dump", (int)code->jit.ns_pid);
	img = mapped(name, getpid() + 1);
	assert_int_equal(jit_open_dump(&images, code), -ENOENT);
	/* Only for memory without a file. */
	assert_int_equal(jit_open_dump(&images, img), -ENOENT);
	assert_int_equal(jit_open_perf_map(&images, img), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_owner_of_memory_is_who_its_process_is, begin,
						end),
		cmocka_unit_test_setup_teardown(a_map_of_the_process_s_own_is_opened, begin, end),
		cmocka_unit_test_setup_teardown(a_map_of_somebody_else_is_not_believed, begin, end),
		cmocka_unit_test_setup_teardown(
			a_link_to_what_only_root_may_read_is_not_followed_for_another_user, begin,
			end),
		cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_not_opened, begin, end),
		cmocka_unit_test_setup_teardown(
			a_dump_is_the_file_of_its_name_that_the_process_maps, begin, end),
		cmocka_unit_test_setup_teardown(a_dump_of_another_name_or_process_is_none, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
