#include "base/opt_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct args {
	bool quiet, all;
	const char *archive, *containers, *config;
	uint32_t hz;
	double every_s;
	struct opt_list labels;
};

static const struct opt opts[] = {
	{ "Things", .kind = OPT_HEADING },
	{ "archive", 0, OPT_STRING, "DIR", offsetof(struct args, archive), .help = "into" },
	{ "container", 'c', OPT_STRING, "NAME,…", offsetof(struct args, containers), .help = "of" },
	{ "frequency", 'F', OPT_U32, "HZ", offsetof(struct args, hz), 1, 10000, .help = "rate" },
	{ "every", 0, OPT_DOUBLE, "SEC", offsetof(struct args, every_s), 1, 1e7, .help = "length" },
	{ "label", 0, OPT_LIST, "KEY=VALUE", offsetof(struct args, labels), .help = "kept" },
	{ "quiet", 'q', OPT_FLAG, NULL, offsetof(struct args, quiet), .help = "say less" },
	{ "all", 'a', OPT_FLAG, NULL, offsetof(struct args, all), .help = "everything" },
	{ "config", 0, OPT_STRING, "FILE", offsetof(struct args, config), .help = "this",
	  .not_in_file = true },
	{ 0 },
};
enum { N_ROWS = sizeof(opts) / sizeof(*opts) };

static const struct opt_command cmd = { "serve", "[OPTION…]", "Serves.", opts };

static struct args args;
static bool given[N_ROWS];
static struct opt_file file;
static struct err e;
static char path[64];

static int make_path(void **state)
{
	snprintf(path, sizeof(path), "/tmp/opt_file.%d", (int)getpid());
	return 0;
}

static int remove_path(void **state)
{
	return unlink(path);
}

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

static int read_file(void)
{
	memset(&args, 0, sizeof(args));
	memset(&e, 0, sizeof(e));
	memset(&file, 0, sizeof(file));
	return opt_file_read(&cmd, path, -1, given, &args, &file, &e);
}

static int read_text(const char *text)
{
	write_file(text, strlen(text));
	return read_file();
}

static void assert_refused(const char *text, const char *sentence)
{
	char whole[300];

	snprintf(whole, sizeof(whole), "%s:%s", path, sentence);
	assert_int_equal(read_text(text), -EINVAL);
	assert_string_equal(e.msg, whole);
}

static void names_and_values_are_stored(void **state)
{
	assert_int_equal(read_text("# a service\n\n"
				   "  archive =  /var/lib/with blanks \r\n"
				   "every=60\nfrequency = 19\nquiet\nall = no\n"
				   "label = env=prod\nlabel=\"a = b\"\n"
				   "container = web,db\n  # between\ncontainer = cache"),
			 0);
	assert_string_equal(args.archive, "/var/lib/with blanks");
	assert_float_equal(args.every_s, 60, 0);
	assert_int_equal(args.hz, 19);
	assert_true(args.quiet);
	assert_false(args.all);
	assert_int_equal(args.labels.n, 2);
	assert_string_equal(args.labels.items[0], "env=prod");
	assert_string_equal(args.labels.items[1], "a = b");
	assert_string_equal(args.containers, "web,db,cache");
	opt_file_fini(&file);
}

static void an_empty_file_says_nothing(void **state)
{
	assert_int_equal(read_text(""), 0);
	opt_file_fini(&file);
	assert_int_equal(read_text("\n#"), 0);
	opt_file_fini(&file);
	assert_null(args.archive);
}

static void what_the_command_line_gave_stays(void **state)
{
	given[4] = true; /* every */
	assert_int_equal(read_text("every = 60\nfrequency = 5\n"), 0);
	given[4] = false;
	assert_float_equal(args.every_s, 0, 0);
	assert_int_equal(args.hz, 5);
	opt_file_fini(&file);
}

static void mistakes_are_named_with_their_line(void **state)
{
	assert_refused("\n#\nevry = 3\n", "3: there is no option \"evry\"; did you mean every?");
	assert_refused("zebra = 3\n", "1: there is no option \"zebra\"");
	assert_refused("= 3\n", "1: there is no option \"\"");
	assert_refused("every = soon\n", "1: --every: \"soon\" is not a number");
	assert_refused("every = 0.5\n", "1: --every: 0.5 is out of range (1 to 10000000)");
	assert_refused("every\n", "1: every needs a value (every = SEC)");
	assert_refused("every =\n", "1: every needs a value (every = SEC)");
	assert_refused("every = 5\nevery = 6\n", "2: every is given twice (before in line 1)");
	assert_refused("quiet = maybe\n", "1: quiet is yes or no, not \"maybe\"");
	assert_refused("config = other\n", "1: config is for the command line alone");
	assert_refused("archive = \x1b[31m\n", "1: there is a control character (0x1b)");
	assert_refused("q = yes\n", "1: there is no option \"q\"");
}

static void what_is_no_file_of_ours_is_refused(void **state)
{
	static char large[70000];

	write_file("every = 5\0\n", 11);
	assert_int_equal(read_file(), -EINVAL);
	memset(large, '#', sizeof(large));
	write_file(large, sizeof(large));
	assert_int_equal(read_file(), -EINVAL);
	write_file("every = 5\n", 10);
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_equal(read_file(), -EPERM);
	assert_non_null(strstr(e.msg, "can be written to by others (mode 0620): chmod go-w"));
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(read_file(), 0);
	opt_file_fini(&file);
	assert_int_equal(opt_file_read(&cmd, "/tmp", -1, given, &args, &file, &e), -EINVAL);
	assert_int_equal(opt_file_read(&cmd, "/nowhere/x", -1, given, &args, &file, &e), -ENOENT);
}

/* Whatever becomes of the file. */
static void what_was_read_is_kept_for_the_next_one(void **state)
{
	struct opt_file again = { 0 };
	int fd;

	assert_int_equal(read_text("# first\nevery = 60\nlabel = a=b\n"), 0);
	fd = opt_file_keep(&file);
	assert_true(fd >= 0);
	opt_file_fini(&file);
	write_file("evry = 3\n", 9);
	for (int turn = 0; turn < 2; turn++) {
		memset(&args, 0, sizeof(args));
		assert_int_equal(opt_file_read(&cmd, path, fd, given, &args, &again, &e), 0);
		assert_true(args.every_s == 60);
		assert_string_equal(again.as_read, "# first\nevery = 60\nlabel = a=b\n");
		opt_file_fini(&again);
	}
	close(fd);
}

static void a_later_mistake_is_traced_to_its_line(void **state)
{
	char whole[100];

	snprintf(whole, sizeof(whole), "%s:2: --archive: no such place", path);
	assert_int_equal(read_text("every = 5\narchive = x\ncontainer = a\n"), 0);
	err_set(&e, -EINVAL, "--archive: no such place");
	opt_file_blame(&file, &e);
	assert_string_equal(e.msg, whole);
	assert_int_equal(e.code, -EINVAL);
	err_set(&e, -EINVAL, "--archives: no such place");
	opt_file_blame(&file, &e);
	assert_string_equal(e.msg, "--archives: no such place");
	err_set(&e, -EINVAL, "-c is odd");
	opt_file_blame(&file, &e);
	assert_non_null(strstr(e.msg, ":3: -c is odd"));
	err_set(&e, -EINVAL, "--frequency is odd");
	opt_file_blame(&file, &e);
	assert_string_equal(e.msg, "--frequency is odd");
	opt_file_fini(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_values_are_stored),
		cmocka_unit_test(an_empty_file_says_nothing),
		cmocka_unit_test(what_the_command_line_gave_stays),
		cmocka_unit_test(mistakes_are_named_with_their_line),
		cmocka_unit_test(what_is_no_file_of_ours_is_refused),
		cmocka_unit_test(what_was_read_is_kept_for_the_next_one),
		cmocka_unit_test(a_later_mistake_is_traced_to_its_line),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
