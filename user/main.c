/*
 * The program: finds the subcommand and runs it. A first word that begins with a dash belongs to
 * the default command (`memscope -p 12` is `memscope record -p 12`).
 */
#include "base/version.h"
#include "cmd/cmd.h"

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

static void print_overview(FILE *f)
{
	fprintf(f, "memscope: where a program's time and memory go, without touching it.\n\n"
		   "Usage: memscope [COMMAND] [OPTION…]\n\nCommands:\n");
	for (const struct command *c = commands; c->name; c++)
		fprintf(f, "  %-10s %s%s\n", c->name, c->summary,
			c == commands ? " (the default)" : "");
	fprintf(f, "  %-10s %s\n\n", "help", "what a command does and its options");
	fprintf(f,
		"memscope help COMMAND shows a command's options; memscope --version the version.\n"
		"Exit status: 0 done; 1 nothing could be gathered, or not all could be written;\n"
		"2 wrong usage; 3 done, but something asked for was unavailable.\n");
}

static int flushed(void)
{
	return fflush(stdout) || ferror(stdout) ? EXIT_NOTHING : EXIT_DONE;
}

static int unknown_command(const char *word)
{
	const char *names[32], *near;
	struct err e;
	size_t n = 0;

	for (const struct command *c = commands; c->name && n < 32; c++)
		names[n++] = c->name;
	near = opt_nearest(word, names, n);
	if (near)
		err_set(&e, 0, "there is no command \"%.64s\"; did you mean \"%s\"?", word, near);
	else
		err_set(&e, 0,
			"there is no command \"%.64s\" (memscope --help lists them; to start a program "
			"and profile it: memscope -- %.64s)",
			word, word);
	return command_fail(EXIT_USAGE, &e);
}

static int help(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2 || strcmp(argv[1], "help") == 0) {
		print_overview(stdout);
		return flushed();
	}
	c = command_find(argv[1]);
	if (!c)
		return unknown_command(argv[1]);
	opt_print_help(c->options, stdout);
	return flushed();
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
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_overview(stdout);
		return flushed();
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("memscope %s\n", MEMSCOPE_VERSION);
		return flushed();
	}
	if (strcmp(argv[1], "--man") == 0) { /* for the build: the middle of memscope(1) */
		for (; c->name; c++)
			opt_print_man(c->options, stdout);
		return flushed();
	}
	if (strcmp(argv[1], "help") == 0)
		return help(argc - 1, argv + 1);
	if (argv[1][0] != '-') {
		c = command_find(argv[1]);
		if (!c)
			return unknown_command(argv[1]);
		argc--;
		argv++;
	}
	return c->run(argc, argv);
}
