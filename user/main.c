/*
 * The program: finds the subcommand and runs it. A first word that begins with a dash belongs to
 * the default command (`memscope -p 12` is `memscope record -p 12`).
 */
#include "base/cells.h"
#include "base/err.h"
#include "base/rights.h"
#include "base/version.h"
#include "cmd/cmd.h"
#include "cmd/help.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static int flushed(void)
{
	return err_flush_stdout() < 0 ? EXIT_NOTHING : EXIT_DONE;
}

/*
 * A standard descriptor that the caller has closed would be given to the next file that is opened,
 * a map or a profile, and what is printed would go into that. So each is held, the wrong way round:
 * what is printed there fails. Commands that are started find it closed, as they would without us.
 */
static void hold_closed_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	const struct command *c = commands;

	hold_closed_descriptors();
	if (argc < 2) {
		help_overview(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help_overview(stdout);
		return flushed();
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("memscope %s\n", MEMSCOPE_VERSION);
		return flushed();
	}
	/* For the build: the generated parts of the manual, and what shells complete. */
	if (strcmp(argv[1], "--man") == 0)
		return cmd_man(argc - 1, argv + 1);
	if (strcmp(argv[1], "--completion") == 0)
		return cmd_completion(argc - 1, argv + 1);
	if (strcmp(argv[1], "help") == 0)
		return cmd_help(argc - 1, argv + 1);
	if (argv[1][0] != '-') {
		c = command_find(argv[1]);
		if (!c)
			return help_unknown(argv[1], false);
		argc--;
		argv++;
	}
	/* Before anything is known that a reader of foreign files should not have. Where it cannot be made now, it is tried again. */
	cells_begin();
	rights_enter(c->phase);
	return c->run(argc, argv);
}
