/* Paths as seen below a root: nothing leads out of it, and nothing but a regular file is opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proc/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct fixture {
	char dir[64];
	struct ns_roots roots;
	int ix;
};

static void at(const struct fixture *f, const char *name, char *ret_path)
{
	snprintf(ret_path, 256, "%s/%s", f->dir, name);
}

static void put(const struct fixture *f, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	at(f, name, path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void put_link(const struct fixture *f, const char *name, const char *to)
{
	char path[256];

	at(f, name, path);
	assert_int_equal(symlink(to, path), 0);
}

/* DIR/outside, and DIR/root as the root. */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[256];

	strcpy(f->dir, "/tmp/memscope-ns-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	at(f, "root", path);
	if (mkdir(path, 0755) < 0)
		return -1;
	put(f, "outside", "outside");
	put(f, "root/inside", "inside");
	f->ix = ns_roots_add_dir(&f->roots, path);
	*state = f;
	return f->ix < 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	ns_roots_fini(&f->roots);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	free(f);
	return system(command);
}

/* What is in the file, or the error as text. */
static const char *content(const struct fixture *f, int ix, const char *path)
{
	static char text[64];
	int fd = ns_roots_open(&f->roots, ix, path);
	ssize_t n;

	if (fd < 0)
		return strerrorname_np(-fd);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return text;
}

static void a_path_begins_at_the_root(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(content(f, f->ix, "/inside"), "inside");
	assert_string_equal(content(f, f->ix, "inside"), "inside");
	assert_string_equal(content(f, f->ix, "/outside"), "ENOENT");
}

static void no_way_leads_out_of_the_root(void **state)
{
	struct fixture *f = *state;
	char outside[256];

	at(f, "outside", outside);
	put_link(f, "root/absolute", outside);
	put_link(f, "root/upwards", "../outside");
	put_link(f, "root/around", "/../../../inside");
	assert_string_equal(content(f, f->ix, "/../outside"), "ENOENT");
	assert_string_equal(content(f, f->ix, "/absolute"), "ENOENT");
	assert_string_equal(content(f, f->ix, "/upwards"), "ENOENT");
	/* Above the root is the root. */
	assert_string_equal(content(f, f->ix, "/around"), "inside");
}

static void what_is_no_regular_file_is_not_opened(void **state)
{
	struct fixture *f = *state;
	char path[256];

	at(f, "root/fifo", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	/* A reader of it would wait for a writer. */
	assert_string_equal(content(f, f->ix, "/fifo"), "EINVAL");
	assert_string_equal(content(f, f->ix, "/"), "EINVAL");
	assert_string_equal(content(f, -1, "/dev/null"), "EINVAL");
}

static void without_a_root_it_is_our_own(void **state)
{
	struct fixture *f = *state;
	char path[256];

	at(f, "outside", path);
	assert_string_equal(content(f, -1, path), "outside");
}

static void one_root_is_kept_once(void **state)
{
	struct fixture *f = *state;
	char path[256];
	int own = ns_roots_add(&f->roots, getpid());

	assert_true(own >= 0 && own != f->ix);
	assert_int_equal(ns_roots_add(&f->roots, getpid()), own);
	at(f, "root", path);
	assert_int_equal(ns_roots_add_dir(&f->roots, path), f->ix);
	assert_int_equal(f->roots.n, 2);
	assert_true(ns_root_is_own(&f->roots, own));
	assert_false(ns_root_is_own(&f->roots, f->ix));
}

static void a_root_that_is_known_is_found_without_opening_it(void **state)
{
	struct fixture *f = *state;
	int own = ns_roots_add(&f->roots, getpid());
	struct rlimit files, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){ 0, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(ns_roots_add(&f->roots, getpid()), own);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void a_root_is_there_when_its_name_has_gone(void **state)
{
	struct fixture *f = *state;
	char from[256], to[256];

	at(f, "root", from);
	at(f, "elsewhere", to);
	assert_int_equal(rename(from, to), 0);
	assert_string_equal(content(f, f->ix, "/inside"), "inside");
}

static void what_is_no_directory_is_no_root(void **state)
{
	struct fixture *f = *state;
	char path[256];

	at(f, "outside", path);
	assert_int_equal(ns_roots_add_dir(&f->roots, path), -ENOTDIR);
	at(f, "nowhere", path);
	assert_int_equal(ns_roots_add_dir(&f->roots, path), -ENOENT);
	assert_true(ns_roots_add(&f->roots, 0x7ffffff0) < 0);
	assert_int_equal(f->roots.n, 1);
}

static void a_path_that_a_process_sees_is_opened_as_below_a_root(void **state)
{
	struct fixture *f = *state;
	char path[256];
	int fd;

	at(f, "outside", path);
	fd = ns_open_seen(getpid(), path);
	assert_true(fd >= 0);
	close(fd);
	at(f, "root/pipe", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(ns_open_seen(getpid(), path), -EINVAL);
	assert_int_equal(ns_open_seen(getpid(), "/dev/null"), -EINVAL);
	assert_true(ns_open_seen(0x7ffffff0, "/etc/passwd") < 0);
}

static void a_directory_is_opened_below_the_root(void **state)
{
	struct fixture *f = *state;
	char path[256];
	struct stat st, want;
	int fd;

	at(f, "root/folder", path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(stat(path, &want), 0);
	put_link(f, "root/to-folder", "/folder");
	put_link(f, "root/to-proc", "/proc");
	fd = ns_roots_open_dir(&f->roots, f->ix, "/to-folder");
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	close(fd);
	assert_int_equal(ns_roots_open_dir(&f->roots, f->ix, "/to-proc"), -ENOENT);
	assert_int_equal(ns_roots_open_dir(&f->roots, f->ix, "/inside"), -ENOTDIR);
}

/* As a loader's mapping of this program. */
static void a_mapping_leads_to_its_file(void **state)
{
	uint64_t start, end;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	struct stat a, b;
	int fd;

	(void)state;
	assert_non_null(maps);
	/* Sanitizers have memory before that of the program. */
	do
		assert_non_null(fgets(line, sizeof(line), maps));
	while (!strchr(line, '/'));
	fclose(maps);
	assert_int_equal(sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end), 2);
	fd = ns_open_mapped(getpid(), start, end);
	if (fd == -EPERM)
		skip(); /* CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN */
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat("/proc/self/exe", &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	close(fd);
	assert_true(ns_open_mapped(getpid(), start, end + 4096) < 0);
}

static void a_link_of_proc_leads_to_its_file(void **state)
{
	_cleanup_(closep) int fd = ns_open_link(getpid(), "exe");
	struct stat a, b;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat("/proc/self/exe", &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(ns_open_link(getpid(), "cwd"), -EINVAL);
}

static void a_process_has_its_own_number_in_its_namespace(void **state)
{
	(void)state;
	assert_int_equal(proc_ns_pid(getpid()), getpid());
	assert_int_equal(proc_ns_pid(0x7ffffff0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_path_begins_at_the_root, setup, teardown),
		cmocka_unit_test_setup_teardown(no_way_leads_out_of_the_root, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_not_opened, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_a_root_it_is_our_own, setup, teardown),
		cmocka_unit_test_setup_teardown(one_root_is_kept_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_root_that_is_known_is_found_without_opening_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_root_is_there_when_its_name_has_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_no_directory_is_no_root, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_path_that_a_process_sees_is_opened_as_below_a_root, setup, teardown),
		cmocka_unit_test_setup_teardown(a_directory_is_opened_below_the_root, setup,
						teardown),
		cmocka_unit_test(a_mapping_leads_to_its_file),
		cmocka_unit_test(a_link_of_proc_leads_to_its_file),
		cmocka_unit_test(a_process_has_its_own_number_in_its_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
