#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/sink.h"

/* A scratch folder, the working directory of each test. */
static char dir[] = "/tmp/memscope-sink-XXXXXX";

static int enter(void **state)
{
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static int entries(void)
{
	DIR *d = opendir(".");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static char *content(const char *path)
{
	static char buf[256];
	_cleanup_(fclosep) FILE *f = fopen(path, "r");

	assert_non_null(f);
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = '\0';
	return buf;
}

static void put(const char *path, const char *text)
{
	struct sink *s;

	assert_int_equal(sink_open_file(path, &s, NULL), 0);
	sink_puts(s, text);
	assert_int_equal(sink_commit(s, NULL), 0);
	sink_close(s);
}

static void file_appears_whole_at_commit_and_not_before(void **state)
{
	struct sink *s;
	struct stat st;

	put("out", "old");
	assert_int_equal(sink_open_file("out", &s, NULL), 0);
	sink_printf(s, "%s %d", "new", 7);
	assert_string_equal(content("out"), "old");
	assert_int_equal(sink_commit(s, NULL), 0);
	sink_close(s);
	assert_string_equal(content("out"), "new 7");
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(entries(), 1);
	unlink("out");
}

static void close_without_commit_leaves_nothing(void **state)
{
	struct sink *s;

	assert_int_equal(sink_open_file("out", &s, NULL), 0);
	sink_puts(s, "half");
	sink_close(s);
	assert_int_equal(entries(), 0);
}

static void symbolic_link_is_replaced_not_followed(void **state)
{
	struct stat st;

	put("precious", "keep");
	assert_int_equal(symlink("precious", "out"), 0);
	put("out", "new");
	assert_string_equal(content("precious"), "keep");
	assert_int_equal(lstat("out", &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink("out");
	unlink("precious");
}

static void longest_file_name_is_possible(void **state)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	put(name, "x");
	assert_string_equal(content(name), "x");
	unlink(name);
}

static void full_device_is_enospc_in_a_sentence(void **state)
{
	struct err e = { 0 };
	struct sink *s;

	assert_int_equal(sink_open_file("/dev/full", &s, NULL), 0);
	sink_puts(s, "x");
	assert_int_equal(sink_commit(s, &e), -ENOSPC);
	assert_string_equal(e.msg, "/dev/full: No space left on device; it was not written");
	sink_close(s);
	assert_int_equal(access("/dev/full", F_OK), 0);
}

/* In a child with a mount namespace of its own; 77: not allowed to. */
static int fill_small_disk(void)
{
	struct err e = { 0 };
	struct sink *s;
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=64k") < 0 || chdir(dir) < 0)
		return 77;
	put("out", "old");
	if (sink_open_file("out", &s, NULL) < 0)
		return 1;
	for (int i = 0; i < 100000; i++)
		sink_printf(s, "line %d\n", i);
	r = sink_commit(s, &e);
	sink_close(s);
	if (r != -ENOSPC || !strstr(e.msg, "out: No space left on device"))
		return 2;
	return entries() == 1 && !strcmp(content("out"), "old") ? 0 : 3;
}

static void full_disk_keeps_the_old_file_and_no_temporary(void **state)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(fill_small_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("CAP_SYS_ADMIN is needed to mount a small disk\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void impossible_targets_are_refused_when_opened(void **state)
{
	struct err e = { 0 };
	struct sink *s = NULL;

	assert_int_equal(sink_open_file("/tmp", &s, &e), -EISDIR);
	assert_non_null(strstr(e.msg, "/tmp: is a directory"));
	assert_int_equal(sink_open_file("no/such/dir", &s, &e), -ENOENT);
	assert_string_equal(e.msg, "no/such/dir: cannot be created: No such file or directory");
	assert_null(s);
}

static void dash_is_standard_output(void **state)
{
	int pipefd[2], saved = dup(STDOUT_FILENO);
	char got[16] = { 0 };
	struct sink *s;

	assert_int_equal(pipe(pipefd), 0);
	fflush(stdout);
	dup2(pipefd[1], STDOUT_FILENO);
	assert_int_equal(sink_open_file("-", &s, NULL), 0);
	sink_puts(s, "hello");
	assert_int_equal(sink_commit(s, NULL), 0);
	sink_close(s);
	assert_int_not_equal(fcntl(STDOUT_FILENO, F_GETFD), -1);
	dup2(saved, STDOUT_FILENO);
	assert_int_equal(read(pipefd[0], got, sizeof(got)), 5);
	assert_string_equal(got, "hello");
	close(pipefd[0]);
	close(pipefd[1]);
	close(saved);
}

static void memory_sink_keeps_all_and_terminates(void **state)
{
	struct sink *s;
	size_t len;
	const char *text;

	assert_int_equal(sink_open_memory(&s, NULL), 0);
	for (int i = 0; i < 50000; i++)
		sink_write(s, "0123456789", 10);
	assert_int_equal(sink_commit(s, NULL), 0);
	text = sink_memory(s, &len);
	assert_int_equal(len, 500000);
	assert_int_equal(strlen(text), len);
	sink_close(s);

	assert_int_equal(sink_open_memory(&s, NULL), 0);
	assert_int_equal(sink_commit(s, NULL), 0);
	assert_string_equal(sink_memory(s, &len), "");
	assert_int_equal(len, 0);
	sink_close(s);
}

static void long_printf_is_not_cut(void **state)
{
	char big[2000];
	struct sink *s;
	size_t len;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(sink_open_memory(&s, NULL), 0);
	sink_printf(s, "<%s>", big);
	sink_commit(s, NULL);
	sink_memory(s, &len);
	assert_int_equal(len, sizeof(big) + 1);
	sink_close(s);
}

static void gzip_gives_back_what_went_in_and_carries_no_time(void **state)
{
	enum { N = 300000 };
	static uint32_t in[N], out[N + 1];
	struct sink *s;
	const char *z;
	size_t len;
	z_stream zs = { 0 };

	for (uint32_t i = 0; i < N; i++)
		in[i] = i * 2654435761u;
	assert_int_equal(sink_open_memory(&s, NULL), 0);
	assert_int_equal(sink_gzip(s, NULL), 0);
	sink_write(s, in, sizeof(in));
	assert_int_equal(sink_commit(s, NULL), 0);
	z = sink_memory(s, &len);
	assert_memory_equal(z, "\x1f\x8b\x08\0\0\0\0\0", 8); /* no flags, mtime 0 */
	assert_int_equal(inflateInit2(&zs, 16 + 15), Z_OK);
	zs.next_in = (Bytef *)z;
	zs.avail_in = (uInt)len;
	zs.next_out = (Bytef *)out;
	zs.avail_out = sizeof(out);
	assert_int_equal(inflate(&zs, Z_FINISH), Z_STREAM_END);
	assert_int_equal(zs.total_out, sizeof(in));
	assert_memory_equal(in, out, sizeof(in));
	inflateEnd(&zs);
	sink_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_appears_whole_at_commit_and_not_before),
		cmocka_unit_test(close_without_commit_leaves_nothing),
		cmocka_unit_test(symbolic_link_is_replaced_not_followed),
		cmocka_unit_test(longest_file_name_is_possible),
		cmocka_unit_test(full_device_is_enospc_in_a_sentence),
		cmocka_unit_test(full_disk_keeps_the_old_file_and_no_temporary),
		cmocka_unit_test(impossible_targets_are_refused_when_opened),
		cmocka_unit_test(dash_is_standard_output),
		cmocka_unit_test(memory_sink_keeps_all_and_terminates),
		cmocka_unit_test(long_printf_is_not_cut),
		cmocka_unit_test(gzip_gives_back_what_went_in_and_carries_no_time),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
