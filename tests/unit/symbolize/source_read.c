/* Source files as the program sees them, else as we do, and with the rights of who owns the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolize/source_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/memscope-source-XXXXXX";
static bool below; /* the program's root has the file, too */

static int open_source(void *ctx, module_id m, const char *path, bool host)
{
	int fd;

	if (!host && !below)
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static const char *file(const char *name, const void *bytes, size_t len, mode_t mode)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static struct source_text read_as(const char *path, uid_t reader, int64_t built_s)
{
	struct source_text t;

	assert_int_equal(
		source_read(open_source, NULL, (module_id){ 0 }, path, reader, built_s, &t), 0);
	assert_string_equal(t.path, path);
	return t;
}

static void assert_problem(const char *path, uid_t reader, const char *problem)
{
	struct source_text t = read_as(path, reader, 0);

	assert_non_null(t.problem);
	assert_string_equal(t.problem, problem);
	assert_int_equal(t.n, 0);
	source_text_fini(&t);
}

static void lines_are_read_from_here_where_the_program_has_none(void **state)
{
	const char *path = file("a.c", "one\ntwo\n", 8, 0644);
	struct source_text t = read_as(path, 0, 0);

	assert_null(t.problem);
	assert_int_equal(t.n, 2);
	assert_false(t.newer);
	source_text_fini(&t);
	t = read_as(path, 0, 1000);
	assert_true(t.newer);
	source_text_fini(&t);
}

static void what_is_not_there_or_no_text_says_so(void **state)
{
	char missing[128];

	snprintf(missing, sizeof(missing), "%s/missing.c", dir);
	assert_problem(missing, 0, "there is no such file here");
	assert_problem("src/a.c", 0, "its directory is not known");
	assert_problem(file("b", "a\0b", 3, 0644), 0, "it is no text");
}

static void a_program_of_another_user_names_no_file_that_it_may_not_read(void **state)
{
	const char *path;
	gid_t before[64], after[64];
	int n_before, n_after;
	struct source_text t;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(dir, 0755), 0);
	n_before = getgroups(64, before);
	path = file("secret", "key\n", 4, 0640); /* readable by root's group */
	assert_problem(path, SOURCE_READER_NOBODY, "the program's user may not read it");
	/* And we are again who we were. */
	t = read_as(path, 0, 0);
	assert_null(t.problem);
	source_text_fini(&t);
	n_after = getgroups(64, after);
	assert_int_equal(n_after, n_before);
	assert_memory_equal(after, before, (size_t)n_before * sizeof(*before));
	t = read_as(file("open.c", "x\n", 2, 0644), SOURCE_READER_NOBODY, 0);
	assert_null(t.problem);
	source_text_fini(&t);
	/* The directories count, too. */
	assert_int_equal(chmod(dir, 0700), 0);
	assert_problem(file("open.c", "x\n", 2, 0644), SOURCE_READER_NOBODY,
		       "the program's user may not read it");
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_from_here_where_the_program_has_none),
		cmocka_unit_test(what_is_not_there_or_no_text_says_so),
		cmocka_unit_test(a_program_of_another_user_names_no_file_that_it_may_not_read),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
