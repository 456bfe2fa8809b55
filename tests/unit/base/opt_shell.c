#include "base/cleanup.h"
#include "base/opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

static const struct opt opts[] = {
	{ "Output", .kind = OPT_HEADING },
	{ "output", 'o', OPT_STRING, "FILE", .help = "where to; not \"there\"" },
	{ "archive", 0, OPT_STRING, "DIR", .help = "dir [of many]", .synonyms = { "tree" } },
	{ "quiet", 'q', OPT_FLAG, .help = "don't say more: nothing" },
	{ "colors", 0, OPT_CHOICE, "NAME", .choices = "hot|mem", .help = "palette",
	  .choice_synonyms = "warm=hot" },
	{ "width", 0, OPT_U32, "PX", .help = "px (1200)" },
	{ 0 },
};

static const struct opt_command cmd = { "flame", "FILE", "Draws.", opts };

static char *printed(void (*print)(const struct opt_command *, FILE *))
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	print(&cmd, f);
	fclose(f);
	return text;
}

static void bash_names_say_which_take_a_value(void **state)
{
	_cleanup_(freep) char *s = printed(opt_print_bash_names);

	assert_string_equal(s, "--output= -o --archive= --quiet -q --colors= --width= --help");
}

static void bash_completes_choices_files_and_folders_and_guesses_nothing(void **state)
{
	_cleanup_(freep) char *s = printed(opt_print_bash_values);

	assert_string_equal(s, "\tflame:--output|flame:-o) _memscope_reply -f; return ;;\n"
			       "\tflame:--archive) _memscope_reply -d; return ;;\n"
			       "\tflame:--colors) _memscope_reply -W \"hot mem\"; return ;;\n"
			       "\tflame:--width) return ;;\n");
}

/* What zsh reads as the end of a quoted word or of an explanation is escaped; the rest is one clause. */
static void zsh_shows_the_first_clause_of_help(void **state)
{
	_cleanup_(freep) char *s = printed(opt_print_zsh);

	assert_non_null(strstr(s, "'(-o --output)'{-o+,--output=}'[where to]:FILE:_files' \\\n"));
	assert_non_null(strstr(s, "'--archive=[dir \\[of many\\]]:DIR:_files -/' \\\n"));
	assert_non_null(strstr(s, "'(-q --quiet)'{-q,--quiet}'[don'\\''t say more]' \\\n"));
	assert_non_null(strstr(s, "'--colors=[palette]:NAME:(hot mem)' \\\n"));
	assert_non_null(strstr(s, "'--width=[px]:PX: ' \\\n"));
}

static void former_names_are_completed_nowhere(void **state)
{
	void (*const all[])(const struct opt_command *, FILE *) = { opt_print_bash_names,
								    opt_print_bash_values,
								    opt_print_zsh };

	for (size_t i = 0; i < 3; i++) {
		_cleanup_(freep) char *s = printed(all[i]);

		assert_null(strstr(s, "tree"));
		assert_null(strstr(s, "warm"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bash_names_say_which_take_a_value),
		cmocka_unit_test(bash_completes_choices_files_and_folders_and_guesses_nothing),
		cmocka_unit_test(zsh_shows_the_first_clause_of_help),
		cmocka_unit_test(former_names_are_completed_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
