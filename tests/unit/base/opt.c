#include "base/opt.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

struct args {
	bool quiet, inverted;
	const char *output;
	uint32_t width;
	double minwidth;
	int colors;
	uint32_t any;
	const char *pids;
	struct opt_list labels;
};

static const struct opt opts[] = {
	{ "Output", .kind = OPT_HEADING },
	{ "output", 'o', OPT_STRING, "FILE", offsetof(struct args, output), .help = "where to" },
	{ "quiet", 'q', OPT_FLAG, NULL, offsetof(struct args, quiet), .help = "say less" },
	{ "Picture", .kind = OPT_HEADING },
	{ "inverted", 0, OPT_FLAG, NULL, offsetof(struct args, inverted), .help = "icicle" },
	{ "width", 'w', OPT_U32, "PX", offsetof(struct args, width), 100, 20000,
	  .help = "px (1200)" },
	{ "minwidth", 0, OPT_DOUBLE, "PX", offsetof(struct args, minwidth), 0, 100, .help = "px" },
	{ "colors", 0, OPT_CHOICE, "NAME", offsetof(struct args, colors), .choices = "hot|mem|io",
	  .help = "palette" },
	{ "any", 0, OPT_U32, "N", offsetof(struct args, any), .help = "number" },
	{ "pid", 'p', OPT_STRING, "PID,…", offsetof(struct args, pids), .help = "of these" },
	{ "label", 0, OPT_LIST, "KEY=VALUE", offsetof(struct args, labels), .help = "kept" },
	{ "archive", 0, OPT_STRING, "DIR", offsetof(struct args, output), .help = "into",
	  .synonyms = { "tree", "forest" } },
	{ "alloc", 0, OPT_CHOICE, NULL, offsetof(struct args, colors), .choices = "auto|bursts|off",
	  .help = "mode", .choice_synonyms = "slices=bursts|none=off" },
	{ 0 },
};

static const struct opt_command cmd = { "flame", "[OPTION…] FILE…", "Draws.", opts };

static struct args args;
static struct err e;
static int operand;
static char *argv_[16];
static int argc_;

/* Parses the words of `line`, split at spaces; a word '' is the empty one. */
static int parse(const char *line)
{
	static char copy[512];

	memset(&args, 0, sizeof(args));
	memset(&e, 0, sizeof(e));
	operand = -1;
	snprintf(copy, sizeof(copy), "flame %s", line);
	argc_ = 0;
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv_[argc_++] = strcmp(w, "''") == 0 ? (char *)"" : w;
	argv_[argc_] = NULL;
	return opt_parse(&cmd, argc_, argv_, &args, &operand, &e);
}

static void assert_refused(const char *line, const char *sentence)
{
	assert_int_equal(parse(line), -EINVAL);
	assert_int_equal(operand, -1);
	assert_string_equal(e.msg, sentence);
}

static void values_are_stored_by_kind(void **state)
{
	assert_int_equal(parse("-q -o x.svg --width 2400 --minwidth=.5 --colors io --inverted"), 0);
	assert_true(args.quiet);
	assert_true(args.inverted);
	assert_string_equal(args.output, "x.svg");
	assert_int_equal(args.width, 2400);
	assert_true(args.minwidth == 0.5);
	assert_int_equal(args.colors, 2);
	assert_int_equal(operand, argc_);
}

static void options_may_follow_operands(void **state)
{
	assert_int_equal(parse("a.folded -w 300 b.folded -q"), 0);
	assert_int_equal(args.width, 300);
	assert_true(args.quiet);
	assert_int_equal(argc_ - operand, 2);
	assert_string_equal(argv_[operand], "a.folded");
	assert_string_equal(argv_[operand + 1], "b.folded");
}

static void everything_after_two_dashes_is_an_operand(void **state)
{
	assert_int_equal(parse("-q -- ls -q --width"), 0);
	assert_int_equal(argc_ - operand, 3);
	assert_string_equal(argv_[operand - 1], "--");
	assert_string_equal(argv_[operand], "ls");
	assert_string_equal(argv_[operand + 1], "-q");
	assert_int_equal(parse("--"), 0);
	assert_int_equal(operand, argc_);
}

static void a_range_of_time_before_now_is_an_operand(void **state)
{
	assert_int_equal(parse("dir -30m.. -q -2h..-1h -w 300"), 0);
	assert_true(args.quiet);
	assert_int_equal(args.width, 300);
	assert_int_equal(argc_ - operand, 3);
	assert_string_equal(argv_[operand], "dir");
	assert_string_equal(argv_[operand + 1], "-30m..");
	assert_string_equal(argv_[operand + 2], "-2h..-1h");
	assert_int_equal(parse("-- -30m.."), 0);
	assert_string_equal(argv_[operand], "-30m..");
	assert_int_equal(parse("-30m"), -EINVAL);
}

static void a_single_dash_is_an_operand(void **state)
{
	assert_int_equal(parse("-"), 0);
	assert_int_equal(argc_ - operand, 1);
	assert_int_equal(parse("-o -"), 0);
	assert_string_equal(args.output, "-");
}

static void long_names_may_be_shortened_while_unambiguous(void **state)
{
	assert_int_equal(parse("--inv --wid 200"), 0);
	assert_true(args.inverted);
	assert_int_equal(args.width, 200);
}

static void a_misspelled_option_names_the_one_that_was_meant(void **state)
{
	assert_refused("--widht 5", "there is no option --widht; did you mean --width?");
	assert_refused("x --colours=hot", "there is no option --colours; did you mean --colors?");
	assert_refused("-q --ouptut", "there is no option --ouptut; did you mean --output?");
	assert_refused("-inverted", "there is no option -inverted; did you mean --inverted?");
}

static void an_unknown_option_without_a_neighbour_points_to_help(void **state)
{
	assert_refused("--zzzzzzzz",
		       "there is no option --zzzzzzzz (memscope flame --help lists them)");
	assert_refused("-Z", "there is no option -Z (memscope flame --help lists them)");
	assert_refused("-qZ", "there is no option -Z (in -qZ; memscope flame --help lists them)");
	assert_refused("-qZq", "there is no option -Z (in -qZq; memscope flame --help lists them)");
}

static void a_missing_or_unwanted_value_is_refused(void **state)
{
	assert_refused("--width", "--width needs a value (--width=PX)");
	assert_refused("-qw", "-w needs a value (-w PX)");
	assert_refused("--quiet=yes", "--quiet takes no value");
}

static void a_list_is_given_once_and_other_options_the_last_time(void **state)
{
	assert_refused("-p 1 -p 2", "--pid is given twice; give all in one: --pid=1,2");
	assert_int_equal(parse("-o a -o b -w 200 -w 300"), 0);
	assert_string_equal(args.output, "b");
	assert_int_equal(args.width, 300);
}

static void what_may_be_given_again_keeps_all_in_their_order(void **state)
{
	assert_int_equal(parse("--label a=1 x --label=b=2,3"), 0);
	assert_int_equal(args.labels.n, 2);
	assert_string_equal(args.labels.items[0], "a=1");
	assert_string_equal(args.labels.items[1], "b=2,3");
}

static void numbers_are_strict(void **state)
{
	assert_refused("-w 12x", "--width: \"12x\" is not a whole number");
	assert_refused("-w -5", "--width: -5 is out of range (100 to 20000)");
	assert_refused("-w ''", "--width: \"\" is not a whole number");
	assert_refused("-w 1e3", "--width: \"1e3\" is not a whole number");
	assert_refused("-w 99", "--width: 99 is out of range (100 to 20000)");
	assert_refused("-w 20001", "--width: 20001 is out of range (100 to 20000)");
	assert_refused("-w 99999999999999999999",
		       "--width: 99999999999999999999 is too large (at most 20000)");
	assert_refused("--any 4294967296", "--any: 4294967296 is too large (at most 4294967295)");
	assert_int_equal(parse("--any 4294967295"), 0);
	assert_int_equal(args.any, UINT32_MAX);
	assert_refused("--minwidth nan", "--minwidth: \"nan\" is not a number");
	assert_refused("--minwidth 0x1", "--minwidth: \"0x1\" is not a number");
	assert_refused("--minwidth 1.2.3", "--minwidth: \"1.2.3\" is not a number");
	assert_refused("--minwidth .", "--minwidth: \".\" is not a number");
	assert_refused("--minwidth 101", "--minwidth: 101 is out of range (0 to 100)");
}

static void a_wrong_choice_lists_the_right_ones(void **state)
{
	assert_refused("--colors hit",
		       "--colors: \"hit\" is not one of hot, mem, io; did you mean \"hot\"?");
	assert_refused("--colors chartreuse",
		       "--colors: \"chartreuse\" is not one of hot, mem, io");
	assert_refused("--colors ''", "--colors: \"\" is not one of hot, mem, io");
}

static void an_ambiguous_prefix_lists_its_options(void **state)
{
	static const struct opt two[] = {
		{ "only", 0, OPT_FLAG, NULL, offsetof(struct args, quiet), .help = "" },
		{ "once", 0, OPT_FLAG, NULL, offsetof(struct args, quiet), .help = "" },
		{ 0 },
	};
	static const struct opt_command c = { "x", "", "", two };
	char *av[] = { (char *)"x", (char *)"--on", NULL };

	assert_int_equal(opt_parse(&c, 2, av, &args, &operand, &e), -EINVAL);
	assert_string_equal(e.msg, "--on could be any of --only, --once");
}

static void no_sentence_is_needed(void **state)
{
	char *av[] = { (char *)"flame", (char *)"--nope", NULL };

	assert_int_equal(opt_parse(&cmd, 2, av, &args, &operand, NULL), -EINVAL);
}

static void distance_counts_a_swap_of_neighbours_once(void **state)
{
	static const char *const words[] = { "record", "flame", "doctor" };

	assert_string_equal(opt_nearest("flmae", words, 3), "flame");
	assert_string_equal(opt_nearest("docter", words, 3), "doctor");
	assert_null(opt_nearest("ls", words, 3));
	assert_null(opt_nearest("", words, 3));
	assert_null(opt_nearest(
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", words,
		3));
}

static void a_former_name_does_what_the_new_one_does(void **state)
{
	assert_int_equal(parse("--tree a"), 0);
	assert_string_equal(args.output, "a");
	assert_int_equal(parse("--forest=b"), 0);
	assert_string_equal(args.output, "b");
	assert_int_equal(parse("--archive=b --tree c"), 0);
	assert_string_equal(args.output, "c");
	assert_refused("--tree", "--archive needs a value (--archive=DIR)");
}

static void a_former_choice_means_the_new_one(void **state)
{
	assert_int_equal(parse("--alloc=slices"), 0);
	assert_int_equal(args.colors, 1);
	assert_int_equal(parse("--alloc=none"), 0);
	assert_int_equal(args.colors, 2);
	assert_refused("--alloc=slice", "--alloc: \"slice\" is not one of auto, bursts, off");
	assert_refused("--alloc=slices=bursts",
		       "--alloc: \"slices=bursts\" is not one of auto, bursts, off");
}

static void a_former_name_is_never_suggested(void **state)
{
	assert_refused("--tere x", "there is no option --tere (memscope flame --help lists them)");
}

static char *printed(void (*print)(const struct opt_command *, FILE *))
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	print(&cmd, f);
	fclose(f);
	return text;
}

static void help_and_man_come_from_the_same_rows(void **state)
{
	_cleanup_(freep) char *help = printed(opt_print_help), *man = printed(opt_print_man);

	for (const struct opt *o = opts; o->name; o++) {
		assert_non_null(strstr(help, o->name));
		assert_non_null(strstr(man, o->name));
	}
	assert_null(strstr(help, "tree"));
	assert_null(strstr(man, "forest"));
	assert_null(strstr(help, "slices"));
	assert_non_null(strstr(help, "  -w, --width=PX          px (1200)\n"));
	assert_non_null(strstr(help, "palette: hot, mem, io\n"));
	assert_non_null(
		strstr(man, "\\fB\\-w\\fR, \\fB\\-\\-width\\fR=\\fIPX\\fR\n\\&px (1200)\n"));
}

static void help_exits_0_without_parsing_further(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (freopen("/dev/null", "w", stdout))
			parse("--help --nope");
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_stored_by_kind),
		cmocka_unit_test(options_may_follow_operands),
		cmocka_unit_test(everything_after_two_dashes_is_an_operand),
		cmocka_unit_test(a_range_of_time_before_now_is_an_operand),
		cmocka_unit_test(a_single_dash_is_an_operand),
		cmocka_unit_test(long_names_may_be_shortened_while_unambiguous),
		cmocka_unit_test(a_misspelled_option_names_the_one_that_was_meant),
		cmocka_unit_test(an_unknown_option_without_a_neighbour_points_to_help),
		cmocka_unit_test(a_missing_or_unwanted_value_is_refused),
		cmocka_unit_test(a_list_is_given_once_and_other_options_the_last_time),
		cmocka_unit_test(what_may_be_given_again_keeps_all_in_their_order),
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(a_wrong_choice_lists_the_right_ones),
		cmocka_unit_test(an_ambiguous_prefix_lists_its_options),
		cmocka_unit_test(no_sentence_is_needed),
		cmocka_unit_test(distance_counts_a_swap_of_neighbours_once),
		cmocka_unit_test(a_former_name_does_what_the_new_one_does),
		cmocka_unit_test(a_former_choice_means_the_new_one),
		cmocka_unit_test(a_former_name_is_never_suggested),
		cmocka_unit_test(help_and_man_come_from_the_same_rows),
		cmocka_unit_test(help_exits_0_without_parsing_further),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
