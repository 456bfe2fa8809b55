/* Which windows may go, and that nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/archive.h"

#define RUN "20260101-000000"

static const char *const run_files[] = { "trend.csv", "summary.txt", NULL };
static const struct keep keep_all = { 0 };

static char dir[] = "/tmp/memscope-tree-XXXXXX";
static struct archive *run;

static int setup(void **state)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return mkdtemp(dir) && archive_open(dir, RUN, run_files, &keep_all, &run, NULL) == 0 ? 0
											     : -1;
}

static int teardown(void **state)
{
	char command[128];

	archive_close(run);
	run = NULL;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* What was written down for good, in order: "list" while no window is in place yet, "listed" later, "dir", "web". */
static char synced[256];

int fsync(int fd)
{
	char link[64], target[256] = "";
	const char *name;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, target, sizeof(target) - 1) < 0)
		return -1;
	name = strrchr(target, '/') + 1;
	if (strcmp(name, ".memscope") == 0)
		name = access("oncpu-20260102-000000.pb.gz", F_OK) == 0 ? "listed" : "list";
	else if (strcmp(target, dir) == 0)
		name = "dir";
	if (strlen(synced) + strlen(name) + 2 <= sizeof(synced))
		strcat(strcat(synced, name), " ");
	return 0;
}

/* Files that were looked at. */
static unsigned looked_at;

int fstatat(int fd, const char *restrict name, struct stat *restrict st, int flags)
{
	looked_at += strncmp(name, "oncpu-", 6) == 0;
	return (int)syscall(SYS_newfstatat, fd, name, st, flags);
}

static const char *path(const char *name)
{
	static char buf[256];

	snprintf(buf, sizeof(buf), "%s/%s", dir, name);
	return buf;
}

static bool is_there(const char *name)
{
	return access(path(name), F_OK) == 0;
}

/* A file of `bytes`, last written `age_s` ago. */
static void make_at(const char *where, size_t bytes, int age_s)
{
	struct timespec then[2] = { { .tv_sec = time(NULL) - age_s },
				    { .tv_sec = time(NULL) - age_s } };
	int fd = open(where, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(futimens(fd, then), 0);
	close(fd);
}

static void make_in(const struct archive *t, const char *name, size_t bytes, int age_s)
{
	char making[512];

	snprintf(making, sizeof(making), "%s/%s", archive_making(t), name);
	make_at(making, bytes, age_s);
}

/* `ours`: as a window's file. */
static void make_file(const char *name, size_t bytes, int age_s, bool ours)
{
	char stamp[16] = "";

	if (!ours) {
		make_at(path(name), bytes, age_s);
		return;
	}
	make_in(run, name, bytes, age_s);
	memcpy(stamp, strchr(name, '-') + 1, 15);
	assert_int_equal(archive_commit(run, stamp, &keep_all, NULL), 0);
	assert_true(is_there(name));
}

static struct pruned prune(const char *what)
{
	struct pruned pruned = { 0 };
	struct keep keep;
	struct err e = { 0 };

	assert_int_equal(keep_parse(what, "--keep", &keep, &e), 0);
	assert_int_equal(archive_prune(dir, &keep, &pruned, &e), 0);
	return pruned;
}

static bool is_listed(const char *line)
{
	FILE *f = fopen(path(".memscope"), "r");
	char buf[256];
	bool found = false;

	while (f && !found && fgets(buf, sizeof(buf), f)) {
		buf[strcspn(buf, "\n")] = '\0';
		found = strcmp(buf, line) == 0;
	}
	if (f)
		fclose(f);
	return found;
}

static void append_line(const char *line)
{
	FILE *f = fopen(path(".memscope"), "a");

	assert_non_null(f);
	fputs(line, f);
	fclose(f);
}

static void make_three(void)
{
	make_file("oncpu-20260101-000000.pb.gz", 100, 3000, true);
	make_file("offcpu-20260101-000000.pb.gz", 50, 3000, true);
	make_file("oncpu-20260101-000100.pb.gz", 200, 2000, true);
	make_file("oncpu-20260101-000200.pb.gz", 400, 1000, true);
}

static void an_age_a_number_and_a_size_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		struct keep keep;
	} good[] = {
		{ "30s", { .age_s = 30 } },
		{ "90m", { .age_s = 5400 } },
		{ "12h", { .age_s = 43200 } },
		{ "7d", { .age_s = 604800 } },
		{ "200", { .count = 200 } },
		{ "500M", { .bytes = 524288000 } },
		{ "2G", { .bytes = 2147483648 } },
		{ "1K", { .bytes = 1024 } },
		{ "7d,20G", { .age_s = 604800, .bytes = 21474836480 } },
		{ "1K,3,2h", { 7200, 3, 1024 } },
	};
	static const char *const bad[] = {
		"",      "0",    "-1",      "7x",      "d7",
		"7dd",   "1.5d", " 7d",     "7 d",     "99999999999999999999",
		"7d,",   ",20G", "7d,,20G", "7d, 20G", "7d,1h",
		"1K,2M", "1,2",
	};
	struct keep keep;
	struct err e = { 0 };

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(keep_parse(good[i].text, "--keep", &keep, &e), 0);
		assert_memory_equal(&keep, &good[i].keep, sizeof(keep));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(keep_parse(bad[i], "--keep", &keep, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "--keep"));
	}
}

static void what_is_older_goes_window_by_window(void **state)
{
	struct pruned pruned;

	make_three();
	pruned = prune("2500s");
	assert_int_equal(pruned.files, 2);
	assert_int_equal(pruned.bytes, 150);
	assert_false(is_there("oncpu-20260101-000000.pb.gz"));
	assert_false(is_there("offcpu-20260101-000000.pb.gz"));
	assert_true(is_there("oncpu-20260101-000100.pb.gz"));
	assert_int_equal(prune("2500s").files, 0);
}

static void a_number_of_windows_stays(void **state)
{
	make_three();
	assert_int_equal(prune("1").files, 3);
	assert_true(is_there("oncpu-20260101-000200.pb.gz"));
}

static void a_number_of_bytes_stays(void **state)
{
	make_three();
	assert_int_equal(prune("1K").files, 0);
	make_file("oncpu-20260101-000300.pb.gz", 400, 10, true);
	/* 400 + 400 + 200 fit, the 150 before them do not. */
	assert_int_equal(prune("1K").files, 2);
	assert_true(is_there("oncpu-20260101-000100.pb.gz"));
}

static void all_limits_of_a_list_hold_at_once(void **state)
{
	make_three();
	assert_int_equal(prune("2500s,1K").files, 2); /* too old, though all would fit */
	make_file("oncpu-20260101-000300.pb.gz", 900, 10, true);
	assert_int_equal(prune("2500s,1K").files, 2); /* too large together, though not old */
	make_file("oncpu-20260101-000400.pb.gz", 10, 10, true);
	assert_int_equal(prune("1d,1,1K").files, 1); /* too many, though they would fit */
	assert_true(is_there("oncpu-20260101-000400.pb.gz"));
}

/* The directory of a run as it is when the run has ended. */
static void make_run(const char *name, size_t bytes, int age_s)
{
	static const char *const files[] = { "oncpu.pb.gz", "summary.txt", "web/trend.csv" };
	char where[300];

	assert_int_equal(mkdir(path(name), 0700), 0);
	snprintf(where, sizeof(where), "%s/web", path(name));
	assert_int_equal(mkdir(where, 0700), 0);
	for (int i = 0; i < 3; i++) {
		snprintf(where, sizeof(where), "%s/%s", path(name), files[i]);
		make_at(where, bytes, age_s + i);
	}
	snprintf(where, sizeof(where), "%s", path(name));
	assert_int_equal(archive_list_run(where, files, 3, NULL), 0);
}

static void a_run_s_directory_goes_as_a_whole(void **state)
{
	struct pruned pruned;

	make_run("memscope-a-1-20260101-000000", 10, 3000);
	make_run("memscope-a-1-20260102-000000", 20, 900);
	make_three();
	assert_int_equal(prune("2500s").files, 3 + 2);
	assert_false(is_there("memscope-a-1-20260101-000000"));
	assert_true(is_there("memscope-a-1-20260102-000000/web/trend.csv"));
	make_run("memscope-b-1-20260103-000000", 30, 500);
	pruned = prune("2"); /* both windows are older than the runs */
	assert_int_equal(pruned.files, 2);
	assert_int_equal(pruned.bytes, 600);
	assert_int_equal(prune("1d,2,1K").files, 0);
	pruned = prune("1d,1,1K");
	assert_int_equal(pruned.files, 3);
	assert_int_equal(pruned.bytes, 3 * 20);
	assert_true(is_there("memscope-b-1-20260103-000000/oncpu.pb.gz"));
}

static void runs_in_a_directory_without_a_list_are_seen(void **state)
{
	archive_close(run);
	run = NULL;
	assert_false(is_there(".memscope"));
	make_run("memscope-a-1-20260101-000000", 10, 3000);
	make_run("memscope-a-2-20260101-000000", 10, 1000);
	assert_int_equal(prune("1").files, 3);
	assert_false(is_there("memscope-a-1-20260101-000000"));
	assert_true(is_there("memscope-a-2-20260101-000000"));
	assert_false(is_there(".memscope"));
}

/* All files of a run, written at so many ns of a second in the past. */
static void set_time(const char *name, time_t second, long ns)
{
	static const char *const files[] = { "oncpu.pb.gz", "summary.txt", "web/trend.csv" };
	struct timespec at[2] = { { second, ns }, { second, ns } };
	char where[300];

	for (int i = 0; i < 3; i++) {
		snprintf(where, sizeof(where), "%s/%s", path(name), files[i]);
		assert_int_equal(utimensat(AT_FDCWD, where, at, 0), 0);
	}
}

static void of_runs_that_ended_in_one_second_the_older_goes(void **state)
{
	time_t second = time(NULL) - 1000;

	make_run("run", 10, 1000);
	make_run("run-2", 10, 1000);
	make_run("another", 10, 1000);
	set_time("run", second, 300);
	set_time("run-2", second, 200);
	set_time("another", second, 100);
	assert_int_equal(prune("2").files, 3);
	assert_false(is_there("another"));
	assert_int_equal(prune("1").files, 3);
	assert_true(is_there("run"));
	/* Where times have no nanoseconds, the number that a run's name ends with. */
	make_run("run-9", 10, 1000);
	make_run("run-10", 10, 1000);
	set_time("run", second, 0);
	set_time("run-9", second, 0);
	set_time("run-10", second, 0);
	assert_int_equal(prune("1").files, 6);
	assert_true(is_there("run-10"));
}

static void what_else_is_in_a_run_s_directory_stays(void **state)
{
	make_run("memscope-a-1-20260101-000000", 10, 3000);
	make_file("memscope-a-1-20260101-000000/notes.txt", 10, 9000, false);
	make_file("memscope-a-1-20260101-000000/heap.svg", 10, 9000, false);
	assert_int_equal(symlink("/etc", path("memscope-a-1-20260101-000000/etc")), 0);
	assert_int_equal(mkdir(path("memscope-x-1-20260101-000000"), 0700), 0);
	make_file("memscope-x-1-20260101-000000/oncpu.pb.gz", 10, 9000,
		  false); /* by its name alone */
	assert_int_equal(symlink("memscope-x-1-20260101-000000", path("link")), 0);
	assert_int_equal(prune("1s").files, 3);
	assert_true(is_there("memscope-a-1-20260101-000000/notes.txt"));
	assert_true(is_there("memscope-a-1-20260101-000000/heap.svg"));
	assert_true(is_there("memscope-a-1-20260101-000000/etc"));
	assert_false(is_there("memscope-a-1-20260101-000000/.memscope"));
	assert_false(is_there("memscope-a-1-20260101-000000/web"));
	assert_true(is_there("memscope-x-1-20260101-000000/oncpu.pb.gz"));
	assert_int_equal(prune("1s").files, 0);
}

static void a_run_at_work_keeps_its_directory(void **state)
{
	int fd;

	make_run("memscope-a-1-20260101-000000", 10, 3000);
	assert_int_equal(archive_hold_run(path("memscope-a-1-20260101-000000"), &fd, NULL), 0);
	assert_int_equal(prune("1s").files, 0);
	close(fd);
	assert_int_equal(prune("1s").files, 3);
}

static void a_run_replaces_the_list_of_the_one_before_it(void **state)
{
	static const char *const fewer[] = { "oncpu.pb.gz" };
	char where[300];

	make_run("again", 10, 3000);
	snprintf(where, sizeof(where), "%s", path("again"));
	assert_int_equal(archive_list_run(where, fewer, 1, NULL), 0);
	assert_false(is_there("again/web")); /* of a container that is in this run no more */
	assert_int_equal(prune("1s").files, 1);
	assert_true(is_there("again/summary.txt"));
}

static void a_run_s_list_that_others_could_write_is_not_believed(void **state)
{
	make_run("memscope-a-1-20260101-000000", 10, 3000);
	assert_int_equal(chmod(path("memscope-a-1-20260101-000000/.memscope"), 0666), 0);
	assert_int_equal(prune("1s").files, 0);
	assert_int_equal(chmod(path("memscope-a-1-20260101-000000/.memscope"), 0600), 0);
	assert_int_equal(prune("1s").files, 3);
}

static void names_in_a_run_s_list_lead_nowhere(void **state)
{
	FILE *f;

	make_run("run", 10, 3000);
	make_file("notes.txt", 10, 9000, false);
	assert_int_equal(mkdir(path("run/deep"), 0700), 0);
	assert_int_equal(mkdir(path("run/deep/er"), 0700), 0);
	make_file("run/deep/er/x.csv", 10, 9000, false);
	assert_int_equal(symlink("..", path("run/up")), 0);
	f = fopen(path("run/.memscope"), "a");
	assert_non_null(f);
	fputs(":../notes.txt\n:up/notes.txt\n:/etc/passwd\n:deep/er/x.csv\n:deep/..\n:.memscope\n:\n",
	      f);
	fclose(f);
	assert_int_equal(prune("1s").files, 3);
	assert_true(is_there("notes.txt"));
	assert_true(is_there("run/deep/er/x.csv"));
}

static void a_window_is_there_as_a_whole_or_not_at_all(void **state)
{
	make_three();
	make_in(run, "oncpu-20260101-000300.pb.gz", 100, 9000);
	make_in(run, "oncpu-20260101-000300.svg", 100, 9000);
	make_in(run, ".oncpu-20260101-000300.folded.x1x2x3", 100, 9000);
	/* A cleaner meets nothing of it. */
	assert_int_equal(prune("1s").files, 4);
	assert_false(is_there("oncpu-20260101-000300.pb.gz"));
	assert_int_equal(archive_commit(run, "20260101-000300", &keep_all, NULL), 0);
	assert_true(is_there("oncpu-20260101-000300.pb.gz"));
	assert_true(is_there("oncpu-20260101-000300.svg"));
	assert_int_equal(prune("1s").files, 2);
}

static void the_window_put_in_place_stays_and_those_before_it_go(void **state)
{
	static const struct keep one = { .count = 1 }, small = { .bytes = 100 };

	make_three();
	make_in(run, "oncpu-20260101-000300.pb.gz", 500, 10);
	assert_int_equal(archive_commit(run, "20260101-000300", &one, NULL), 0);
	assert_false(is_there("oncpu-20260101-000200.pb.gz"));
	make_in(run, "oncpu-20260101-000400.pb.gz", 600, 10);
	assert_int_equal(archive_commit(run, "20260101-000400", &small, NULL), 0);
	assert_false(is_there("oncpu-20260101-000300.pb.gz"));
	assert_true(is_there("oncpu-20260101-000400.pb.gz"));
	/* One that comes late is not taken away by itself. */
	make_in(run, "oncpu-20260101-000350.pb.gz", 600, 10);
	assert_int_equal(archive_commit(run, "20260101-000350", &one, NULL), 0);
	assert_true(is_there("oncpu-20260101-000350.pb.gz"));
	assert_true(is_there("oncpu-20260101-000400.pb.gz"));
}

static void nothing_that_is_there_is_written_over(void **state)
{
	struct archive *other;

	make_file("oncpu-20260101-000100.svg", 7, 9000, false);
	make_in(run, "oncpu-20260101-000100.pb.gz", 100, 10);
	make_in(run, "oncpu-20260101-000100.svg", 100, 10);
	assert_int_equal(archive_commit(run, "20260101-000100", &keep_all, NULL), 0);
	assert_false(is_there("oncpu-20260101-000100.pb.gz"));
	assert_true(is_there("oncpu-20260101-000100-2.pb.gz"));
	assert_true(is_there("oncpu-20260101-000100-2.svg"));
	/* Another run that began in the same second has its own names. */
	assert_int_equal(archive_open(dir, RUN, run_files, &keep_all, &other, NULL), 0);
	assert_string_equal(archive_stamp(other), RUN "-2");
	assert_true(is_listed("=trend-" RUN "-2.csv"));
	make_in(other, "oncpu-20260101-000100-2.pb.gz", 100, 10);
	assert_int_equal(archive_commit(other, "20260101-000100-2", &keep_all, NULL), 0);
	assert_true(is_there("oncpu-20260101-000100-3.pb.gz"));
	archive_close(other);
	assert_int_equal(prune("1s").files, 3);
	assert_true(is_there("oncpu-20260101-000100.svg"));
}

static void files_of_a_run_stay_while_it_is_at_work(void **state)
{
	make_file("trend-" RUN ".csv", 10, 9000, false);
	assert_int_equal(prune("1s").files, 0);
	assert_true(is_listed("=summary-" RUN ".txt")); /* which is yet to be written */
	archive_close(run);
	run = NULL;
	assert_false(is_listed("=summary-" RUN ".txt"));
	assert_false(is_there(".memscope-" RUN));
	assert_int_equal(prune("1s").files, 1);
}

static void files_of_a_run_go_with_the_windows_of_their_time(void **state)
{
	make_three();
	make_file("trend-" RUN ".csv", 10, 9000, false);
	make_file("summary-" RUN ".txt", 10, 100, false); /* the time of both */
	archive_close(run);
	run = NULL;
	assert_int_equal(prune("2").files, 2);
	assert_int_equal(prune("1").files, 2 - 1);
	assert_true(is_there("trend-" RUN ".csv"));
	assert_int_equal(archive_open(dir, "20260101-000300", run_files, &keep_all, &run, NULL), 0);
	make_file("oncpu-20991231-000000.pb.gz", 10, 1, true);
	assert_int_equal(prune("1").files, 3); /* the last window before it, and those two */
	assert_false(is_there("trend-" RUN ".csv"));
}

/* As SIGKILL does: its lock is gone, and what it was making is there. */
static void forget_run(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct archive *dead;

		if (archive_open(dir, "20260102-000000", run_files, &keep_all, &dead, NULL) < 0)
			_exit(1);
		make_in(dead, "oncpu-20260102-000000.pb.gz", 10, 10);
		make_in(dead, "oncpu-20260102-000100.pb.gz", 10, 10);
		make_in(dead, ".oncpu-20260102-000100.svg.abcdef", 10, 10);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &(int){ 0 }, 0), pid);
}

static unsigned missing;
static char missing_name[256];

static int count_missing(void *ctx, const char *name)
{
	(void)ctx;
	missing++;
	snprintf(missing_name, sizeof(missing_name), "%s", name);
	return 0;
}

static void what_a_killed_run_has_left_is_put_right(void **state)
{
	struct archive *next;
	FILE *f;

	forget_run();
	assert_true(is_there(".memscope-20260102-000000/oncpu-20260102-000100.pb.gz"));
	f = fopen(path(".memscope"), "a"); /* it died between the list and the names */
	fputs("oncpu-20260102-000000.pb.gz\n", f);
	fclose(f);
	assert_int_equal(archive_check(dir, &keep_all, NULL), 0);
	assert_int_equal(archive_open(dir, "20260103-000000", run_files, &keep_all, &next, NULL),
			 0);
	assert_true(is_there("oncpu-20260102-000000.pb.gz"));
	assert_false(is_listed("oncpu-20260102-000000.pb.gz")); /* but in a window */
	assert_int_equal(archive_each_missing(dir, count_missing, NULL), 0);
	assert_false(is_there("oncpu-20260102-000100.pb.gz"));
	assert_false(is_there(".memscope-20260102-000000"));
	assert_false(is_listed("=trend-20260102-000000.csv"));
	assert_true(is_there(".memscope-20260103-000000"));
	assert_true(is_there(".memscope-" RUN)); /* which is at work */
	archive_close(next);
	assert_false(is_there(".memscope-20260103-000000"));
}

static void make_folder(const struct archive *t, const char *name)
{
	char making[512];

	snprintf(making, sizeof(making), "%s/%s", archive_making(t), name);
	assert_int_equal(mkdir(making, 0700), 0);
}

static void a_window_in_folders_is_one_and_goes_as_one(void **state)
{
	make_folder(run, "my-web.1");
	for (int day = 1; day <= 3; day++) {
		char stamp[32], name[64];

		snprintf(stamp, sizeof(stamp), "2026010%d-000000", day);
		snprintf(name, sizeof(name), "oncpu-%s.pb.gz", stamp);
		make_in(run, name, 10, 100);
		snprintf(name, sizeof(name), "my-web.1/oncpu-%s.pb.gz", stamp);
		make_in(run, name, 10, 100);
		assert_int_equal(archive_commit(run, stamp, &keep_all, NULL), 0);
		assert_true(is_there(name));
	}
	assert_true(is_listed("#1 my-web.1"));
	make_at(path("my-web.1/notes.txt"), 10, 9000);
	/* The same second again: all files of it get another number. */
	make_in(run, "my-web.1/oncpu-20260103-000000.pb.gz", 10, 100);
	assert_int_equal(archive_commit(run, "20260103-000000", &keep_all, NULL), 0);
	assert_true(is_there("my-web.1/oncpu-20260103-000000-2.pb.gz"));
	assert_int_equal(prune("2").files, 4);
	assert_true(is_there("my-web.1/oncpu-20260103-000000.pb.gz"));
	assert_false(is_there("my-web.1/oncpu-20260102-000000.pb.gz"));
	unlink(path("my-web.1/notes.txt"));
	assert_int_equal(prune("1s").files, 3);
	assert_false(is_there("my-web.1")); /* with the last that was in it */
}

static void files_of_a_run_in_folders_stay_while_it_is_at_work(void **state)
{
	make_folder(run, "web");
	assert_int_equal(archive_add_file(run, "web/trend.csv", NULL), 0);
	assert_int_equal(mkdir(path("web"), 0700), 0);
	make_at(path("web/trend-" RUN ".csv"), 10, 9000);
	assert_int_equal(prune("1s").files, 0);
	archive_close(run);
	run = NULL;
	assert_int_equal(prune("1s").files, 1);
	assert_false(is_there("web"));
}

static void folders_that_a_killed_run_has_left_are_put_right(void **state)
{
	struct archive *next;
	pid_t pid = fork();
	FILE *f;

	if (pid == 0) {
		struct archive *dead;

		if (archive_open(dir, "20260102-000000", run_files, &keep_all, &dead, NULL) < 0)
			_exit(1);
		make_folder(dead, "web");
		make_in(dead, "web/oncpu-20260102-000000.pb.gz", 10, 10);
		make_in(dead, "web/oncpu-20260102-000100.pb.gz", 10, 10);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &(int){ 0 }, 0), pid);
	f = fopen(path(".memscope"), "a");
	fputs("web/oncpu-20260102-000000.pb.gz\n", f);
	fclose(f);
	assert_int_equal(archive_open(dir, "20260103-000000", run_files, &keep_all, &next, NULL),
			 0);
	assert_true(is_there("web/oncpu-20260102-000000.pb.gz"));
	assert_false(is_there("web/oncpu-20260102-000100.pb.gz"));
	assert_false(is_there(".memscope-20260102-000000"));
	archive_close(next);
}

static void profiles_that_a_signal_asked_for_go_with_the_run(void **state)
{
	static const char *const asked[] = { "oncpu.pb.gz", "oncpu-20260101-000007.pb.gz" };
	static const char *const other[] = { "oncpu.pb.gz" };
	char where[300];

	make_run("again", 10, 3000);
	make_at(path("again/oncpu-20260101-000007.pb.gz"), 10, 3000);
	snprintf(where, sizeof(where), "%s", path("again"));
	assert_int_equal(archive_list_run(where, asked, 2, NULL), 0);
	assert_int_equal(archive_list_run(where, other, 1, NULL), 0); /* another run, there */
	assert_true(is_there("again/oncpu-20260101-000007.pb.gz"));
	assert_int_equal(prune("1s").files, 2);
}

static void a_line_cut_by_a_crash_hides_no_other(void **state)
{
	FILE *f = fopen(path(".memscope"), "a");

	assert_non_null(f);
	fputs("oncpu-2026", f);
	fclose(f);
	make_file("oncpu-20260101-000100.pb.gz", 10, 9000, true);
	assert_int_equal(prune("1s").files, 1);
}

static void a_run_that_comes_to_nothing_leaves_nothing(void **state)
{
	archive_close(run);
	run = NULL;
	assert_false(is_there(".memscope"));
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void what_is_not_listed_stays(void **state)
{
	make_three();
	make_file("oncpu-20250101-000000.pb.gz", 10, 9000, false);
	make_file("notes.txt", 10, 9000, false);
	assert_int_equal(prune("1s").files, 4);
	assert_true(is_there("oncpu-20250101-000000.pb.gz"));
	assert_true(is_there("notes.txt"));
}

static void a_list_that_was_tampered_with_leads_nowhere(void **state)
{
	FILE *f;

	make_three();
	make_file("notes.txt", 10, 9000, false);
	assert_int_equal(symlink("notes.txt", path("oncpu-20250101-000000.svg")), 0);
	f = fopen(path(".memscope"), "a");
	assert_non_null(f);
	fputs("notes.txt\n../notes.txt\n/etc/passwd\nx-20250101-000000/../notes.txt\n"
	      "oncpu-20250101-000000.svg\noncpu-2025010a-000000.svg\n-20250101-000000.svg\n\n",
	      f);
	fclose(f);
	assert_int_equal(prune("1s").files, 4);
	assert_true(is_there("notes.txt"));
	assert_true(is_there("oncpu-20250101-000000.svg"));
}

static void links_and_directories_under_listed_names_stay(void **state)
{
	char other_name[256];

	make_three();
	make_file("keep.bin", 10, 9000, false);
	snprintf(other_name, sizeof(other_name), "%s/mine.bin", dir);
	assert_int_equal(link(path("oncpu-20260101-000200.pb.gz"), other_name), 0);
	assert_int_equal(unlink(path("oncpu-20260101-000100.pb.gz")), 0);
	assert_int_equal(mkdir(path("oncpu-20260101-000100.pb.gz"), 0700), 0);
	assert_int_equal(unlink(path("offcpu-20260101-000000.pb.gz")), 0);
	assert_int_equal(symlink("keep.bin", path("offcpu-20260101-000000.pb.gz")), 0);
	assert_int_equal(chmod(path("oncpu-20260101-000000.pb.gz"), 0400), 0);
	assert_int_equal(prune("1s").files, 2);
	assert_true(is_there("keep.bin"));
	assert_true(is_there("oncpu-20260101-000100.pb.gz"));
	assert_true(is_there("offcpu-20260101-000000.pb.gz"));
	assert_true(is_there("mine.bin")); /* another name of a file of ours is somebody's */
}

static void a_list_that_is_no_file_is_refused(void **state)
{
	struct pruned pruned = { 0 };

	archive_close(run);
	run = NULL;
	assert_int_equal(mkfifo(path(".memscope"), 0600), 0);
	assert_int_equal(archive_prune(dir, &keep_all, &pruned, NULL), -EINVAL);
	assert_int_equal(unlink(path(".memscope")), 0);
	assert_int_equal(symlink("/etc/passwd", path(".memscope")), 0);
	assert_int_equal(archive_prune(dir, &keep_all, &pruned, NULL), -ELOOP);
	assert_int_equal(unlink(path(".memscope")), 0);
	assert_int_equal(mkdir(path(".memscope"), 0700), 0);
	assert_true(archive_prune(dir, &keep_all, &pruned, NULL) < 0);
}

static void a_directory_without_a_list_is_said_to_have_none(void **state)
{
	struct keep keep = { .age_s = 1 };
	struct pruned pruned = { 0 };

	archive_close(run);
	run = NULL;
	assert_int_equal(archive_prune(dir, &keep, &pruned, NULL), -ENOENT);
}

/* The power may go at any moment: a name on the disk never comes after what has it. */
static void each_step_is_on_the_disk_before_the_next(void **state)
{
	(void)state;
	assert_int_equal(chdir(dir), 0);
	make_in(run, "oncpu-20260102-000000.pb.gz", 10, 0);
	make_in(run, "offcpu-20260102-000000.pb.gz", 10, 0);
	make_folder(run, "web");
	make_in(run, "web/oncpu-20260102-000000.pb.gz", 10, 0);
	make_in(run, "web/offcpu-20260102-000000.pb.gz", 10, 0);
	*synced = '\0';
	assert_int_equal(archive_commit(run, "20260102-000000", &keep_all, NULL), 0);
	assert_string_equal(synced, "list web dir ");
	assert_true(is_there("web/offcpu-20260102-000000.pb.gz"));
	assert_int_equal(chdir("/"), 0);
}

/* One that is written anew is whole before it has the name. */
static void a_list_written_anew_is_on_the_disk_before_it_is_the_list(void **state)
{
	const struct keep one = { .count = 1 };

	(void)state;
	make_in(run, "oncpu-20260102-000000.pb.gz", 10, 100);
	assert_int_equal(archive_commit(run, "20260102-000000", &keep_all, NULL), 0);
	make_in(run, "oncpu-20260103-000000.pb.gz", 10, 0);
	*synced = '\0';
	assert_int_equal(archive_commit(run, "20260103-000000", &one, NULL), 0);
	assert_string_equal(synced, "list dir .memscope.new dir ");
}

static void a_window_has_a_line_with_its_bytes_time_and_names(void **state)
{
	char line[128];

	(void)state;
	make_folder(run, "web");
	for (int i = 0; i < 2; i++) {
		make_in(run, i ? "web/oncpu-20260102-000000.pb.gz" : "oncpu-20260102-000000.pb.gz",
			100, 3000);
		make_in(run, i ? "web/a_b-20260102-000000.svg" : "a_b-20260102-000000.svg", 11,
			2000);
	}
	assert_int_equal(archive_commit(run, "20260102-000000", &keep_all, NULL), 0);
	/* Of ten seconds one is that in which the file was made. */
	for (int64_t s = time(NULL) - 2010, found = 0; !found; s++) {
		assert_true(s <= time(NULL) - 2000);
		snprintf(line, sizeof(line),
			 "*20260102-000000 %lld 222 4 a_b-.svg,oncpu-.pb.gz:0-1;", (long long)s);
		found = is_listed(line);
	}
	assert_true(is_listed("#1 web"));
}

static void adding_a_window_looks_at_no_file_of_others(void **state)
{
	const struct keep keep = { .age_s = 86400, .bytes = 1 << 20 }, two = { .count = 2 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		char name[64];

		snprintf(name, sizeof(name), "oncpu-20260101-0001%02d.pb.gz", i);
		make_file(name, 10, 100 - i, true);
	}
	make_in(run, "oncpu-20260101-000300.pb.gz", 10, 0);
	looked_at = 0;
	assert_int_equal(archive_commit(run, "20260101-000300", &keep, NULL), 0);
	assert_int_equal(looked_at, 1); /* its own */
	make_in(run, "oncpu-20260101-000400.pb.gz", 10, 0);
	assert_int_equal(archive_commit(run, "20260101-000400", &two, NULL), 0);
	assert_int_equal(looked_at, 1 + 1 + 20); /* its own and those that went */
	assert_true(is_there("oncpu-20260101-000300.pb.gz"));
	assert_false(is_there("oncpu-20260101-000119.pb.gz"));
}

static void windows_that_went_are_off_the_list_and_it_stays_short(void **state)
{
	const struct keep ten = { .count = 10 };
	struct stat st;
	off_t longest = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		char name[64], stamp[32];

		snprintf(stamp, sizeof(stamp), "20260101-00%02d%02d", i / 60, i % 60);
		snprintf(name, sizeof(name), "oncpu-%s.pb.gz", stamp);
		make_in(run, name, 10, 200 - i);
		assert_int_equal(archive_commit(run, stamp, &ten, NULL), 0);
		assert_int_equal(stat(path(".memscope"), &st), 0);
		longest = st.st_size > longest ? st.st_size : longest;
	}
	assert_true(is_there("oncpu-20260101-000130.pb.gz"));
	assert_false(is_there("oncpu-20260101-000129.pb.gz"));
	/* 10 windows of 60 bytes, as many that went, and lines of the run. */
	assert_in_range(longest, 600, 2 * 600 + 400);
	missing = 0;
	assert_int_equal(archive_each_missing(dir, count_missing, NULL), 0);
	assert_int_equal(missing, 0);
	assert_int_equal(prune("1s").files, 10);
}

static void a_list_of_files_becomes_one_of_windows(void **state)
{
	(void)state;
	make_at(path("oncpu-20250101-000000.pb.gz"), 100, 3000);
	make_at(path("offcpu-20250101-000000.pb.gz"), 20, 3000);
	make_at(path("oncpu-20250102-000000.pb.gz"), 3, 1000);
	append_line("oncpu-20250101-000000.pb.gz\noffcpu-20250101-000000.pb.gz\n"
		    "oncpu-20250102-000000.pb.gz\nlost-20250103-000000.pb.gz\n");
	assert_int_equal(prune("1d").files, 0);
	assert_false(is_listed("oncpu-20250102-000000.pb.gz"));
	make_file("oncpu-20260101-000000.pb.gz", 902, 10, true);
	assert_int_equal(prune("1K").files, 2); /* 902 + 3 + 120 */
	assert_true(is_there("oncpu-20250102-000000.pb.gz"));
	assert_int_equal(prune("500s").files, 1);
}

/* What is left of a line after a crash may look like another. */
static void a_window_s_line_that_was_cut_is_not_believed(void **state)
{
	static const char *const cut[] = {
		"*20250101-000000 1 10 2 oncpu-.pb.gz:0;",
		"*20250101-000000 1 10 12 oncpu-.pb.gz:0-1;",
		"*20250101-000000 1 10 1 oncpu-.pb.gz:0",
		"*20250101-000000 1 10 1",
		"*20250101-000000 1 10",
		"*20250101-0000",
		"*",
		"-20250101-000000", /* of 20250101-000000-2 */
		"#1 ",
		"#",
	};

	(void)state;
	make_at(path("oncpu-20250101-000000.pb.gz"), 10, 9000);
	for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
		append_line(cut[i]);
		assert_int_equal(archive_add_file(run, "x.csv", NULL), 0); /* ends the line */
		assert_int_equal(prune("1s").files, 0);
	}
	append_line("*20250101-000000 1 10 1 oncpu-.pb.gz:0;\n-20250101-000000");
	make_file("oncpu-20260101-000000.pb.gz", 10, 10, true);
	assert_int_equal(prune("1s").files, 2);
}

static void files_that_were_removed_by_hand_count_until_it_is_checked(void **state)
{
	(void)state;
	make_folder(run, "web");
	make_in(run, "web/oncpu-20260101-000100.pb.gz", 500, 30);
	make_file("oncpu-20260101-000100.pb.gz", 100, 30, true);
	make_file("oncpu-20260101-000200.pb.gz", 300, 20, true);
	make_file("oncpu-20260101-000300.pb.gz", 400, 10, true);
	assert_int_equal(unlink(path("web/oncpu-20260101-000100.pb.gz")), 0);
	assert_int_equal(unlink(path("oncpu-20260101-000200.pb.gz")), 0);
	make_at(path("oncpu-20260101-000100.svg"), 5, 1); /* nobody's */
	missing = 0;
	assert_int_equal(archive_each_missing(dir, count_missing, NULL), 0);
	assert_int_equal(missing, 2);
	looked_at = 0;
	assert_int_equal(archive_check(dir, &keep_all, NULL), 0);
	assert_int_equal(looked_at, 3); /* of the two windows that lack files */
	assert_int_equal(archive_each_missing(dir, count_missing, NULL), 0);
	assert_int_equal(missing, 2);
	assert_int_equal(prune("1K").files, 0); /* 100 + 400 */
	assert_int_equal(prune("2").files, 0);  /* of which there are two */
	assert_int_equal(prune("1").files, 1);
	assert_true(is_there("oncpu-20260101-000300.pb.gz"));
	assert_true(is_there("oncpu-20260101-000100.svg"));
}

static void on_a_full_disk_the_oldest_go_but_not_the_newest(void **state)
{
	struct pruned pruned = { 0 };

	(void)state;
	make_three();
	assert_int_equal(archive_make_room(dir, 1, &pruned, NULL), 0);
	assert_int_equal(pruned.files, 2);
	assert_false(is_there("offcpu-20260101-000000.pb.gz"));
	assert_true(is_there("oncpu-20260101-000100.pb.gz"));
	assert_int_equal(archive_make_room(dir, 100, &pruned, NULL), 0);
	assert_int_equal(pruned.files, 3);
	assert_true(is_there("oncpu-20260101-000200.pb.gz"));
	assert_int_equal(archive_make_room(dir, 1, &pruned, NULL), 0);
	assert_int_equal(pruned.files, 3);
}

static void what_is_discarded_leaves_nothing(void **state)
{
	(void)state;
	make_folder(run, "web");
	make_in(run, "oncpu-20260101-000000.pb.gz", 10, 0);
	make_in(run, "web/oncpu-20260101-000000.pb.gz", 10, 0);
	make_in(run, "oncpu-20260101-000100.pb.gz", 10, 0);
	archive_discard(run, "20260101-000000");
	assert_int_equal(archive_commit(run, "20260101-000000", &keep_all, NULL), 0);
	assert_false(is_there("oncpu-20260101-000000.pb.gz"));
	assert_int_equal(archive_commit(run, "20260101-000100", &keep_all, NULL), 0);
	assert_int_equal(prune("1").files, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_step_is_on_the_disk_before_the_next),
		TEST(a_list_written_anew_is_on_the_disk_before_it_is_the_list),
		TEST(a_window_has_a_line_with_its_bytes_time_and_names),
		TEST(adding_a_window_looks_at_no_file_of_others),
		TEST(windows_that_went_are_off_the_list_and_it_stays_short),
		TEST(a_list_of_files_becomes_one_of_windows),
		TEST(a_window_s_line_that_was_cut_is_not_believed),
		TEST(files_that_were_removed_by_hand_count_until_it_is_checked),
		TEST(on_a_full_disk_the_oldest_go_but_not_the_newest),
		TEST(what_is_discarded_leaves_nothing),
		TEST(an_age_a_number_and_a_size_are_told_apart),
		TEST(what_is_older_goes_window_by_window),
		TEST(a_number_of_windows_stays),
		TEST(a_number_of_bytes_stays),
		TEST(all_limits_of_a_list_hold_at_once),
		TEST(a_run_s_directory_goes_as_a_whole),
		TEST(runs_in_a_directory_without_a_list_are_seen),
		TEST(of_runs_that_ended_in_one_second_the_older_goes),
		TEST(what_else_is_in_a_run_s_directory_stays),
		TEST(a_run_at_work_keeps_its_directory),
		TEST(a_run_replaces_the_list_of_the_one_before_it),
		TEST(a_run_s_list_that_others_could_write_is_not_believed),
		TEST(names_in_a_run_s_list_lead_nowhere),
		TEST(a_window_is_there_as_a_whole_or_not_at_all),
		TEST(the_window_put_in_place_stays_and_those_before_it_go),
		TEST(nothing_that_is_there_is_written_over),
		TEST(files_of_a_run_stay_while_it_is_at_work),
		TEST(files_of_a_run_go_with_the_windows_of_their_time),
		TEST(what_a_killed_run_has_left_is_put_right),
		TEST(a_window_in_folders_is_one_and_goes_as_one),
		TEST(files_of_a_run_in_folders_stay_while_it_is_at_work),
		TEST(folders_that_a_killed_run_has_left_are_put_right),
		TEST(profiles_that_a_signal_asked_for_go_with_the_run),
		TEST(a_line_cut_by_a_crash_hides_no_other),
		TEST(a_run_that_comes_to_nothing_leaves_nothing),
		TEST(what_is_not_listed_stays),
		TEST(a_list_that_was_tampered_with_leads_nowhere),
		TEST(links_and_directories_under_listed_names_stay),
		TEST(a_list_that_is_no_file_is_refused),
		TEST(a_directory_without_a_list_is_said_to_have_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
