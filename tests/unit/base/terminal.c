#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/terminal.h"

static void colour_goes_to_terminals_that_want_it(void **state)
{
	int master, slave, file = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
		skip();
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	assert_true(terminal_takes_colour(slave));
	assert_false(terminal_takes_colour(file));
	setenv("NO_COLOR", "", 1); /* not set, by no-color.org */
	assert_true(terminal_takes_colour(slave));
	setenv("NO_COLOR", "1", 1);
	assert_false(terminal_takes_colour(slave));
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(terminal_takes_colour(slave));
	unsetenv("TERM");
	assert_false(terminal_takes_colour(slave));
	close(master);
	close(slave);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(colour_goes_to_terminals_that_want_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
