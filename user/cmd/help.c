/*
 * memscope help: the commands, and the topics that explain what the numbers mean.
 */
#include "cmd/help.h"
#include "base/page.h"
#include "base/terminal.h"
#include "cmd/cmd.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static const struct topic *topic_find(const char *name)
{
	for (const struct topic *t = topics; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

static int flushed(void)
{
	return err_flush_stdout() < 0 ? EXIT_NOTHING : EXIT_DONE;
}

void help_overview(FILE *f)
{
	fprintf(f, "memscope: where a program's time and memory go, without touching it.\n\n"
		   "Usage: memscope [COMMAND] [OPTION…]\n\nCommands:\n");
	for (const struct command *c = commands; c->name; c++)
		fprintf(f, "  %-10s %s%s\n", c->name, c->summary,
			c == commands ? " (the default)" : "");
	fprintf(f, "  %-10s %s\n\nTopics:\n", "help", "a command's options, or a topic");
	for (const struct topic *t = topics; t->name; t++) {
		int len;
		const char *summary = page_summary(t->text, &len);

		fprintf(f, "  %-10s %.*s\n", t->name, len, summary);
	}
	fprintf(f,
		"\nmemscope help COMMAND|TOPIC says more; memscope --version shows the version.\n"
		"Exit status: 0 done; 1 nothing could be gathered, or not all could be written;\n"
		"2 wrong usage; 3 done, but something asked for was unavailable.\n");
}

int help_unknown(const char *word, bool topics_too)
{
	const char *names[64], *near, *what = topics_too ? "command or topic" : "command";
	struct err e;
	size_t n = 0;

	for (const struct command *c = commands; c->name && n < 64; c++)
		names[n++] = c->name;
	for (const struct topic *t = topics; topics_too && t->name && n < 64; t++)
		names[n++] = t->name;
	near = opt_nearest(word, names, n);
	if (!topics_too && cmd_heap_asks(word))
		err_set(&e, 0, "\"%s\" is a question to a heap: memscope heap %s -p PID", word,
			word);
	else if (!topics_too && !word[strspn(word, "0123456789")])
		err_set(&e, 0,
			"there is no command \"%.20s\"; to profile that process: memscope -p %.20s",
			word, word);
	else if (near)
		err_set(&e, 0, "there is no %s \"%.64s\"; did you mean \"%s\"?", what, word, near);
	else if (topics_too)
		err_set(&e, 0, "there is no %s \"%.64s\" (memscope help lists them)", what, word);
	else
		err_set(&e, 0,
			"there is no command \"%.64s\" (memscope --help lists them; to start a program "
			"and profile it: memscope -- %.64s)",
			word, word);
	return command_fail(EXIT_USAGE, &e);
}

static int terminal_width(void)
{
	uint32_t columns = terminal_columns(STDOUT_FILENO);

	return columns && columns < 80 ? (int)columns : 80;
}

/* Through $PAGER, as man(1) does. Whoever leaves it before the end has seen enough. */
static int page_topic(const struct topic *t)
{
	FILE *pager;

	setenv("LESS", "FRX", 0);
	signal(SIGPIPE, SIG_IGN);
	fflush(stdout);
	pager = popen("if [ -n \"$PAGER\" ]; then exec $PAGER; fi; "
		      "command -v less > /dev/null && exec less; exec cat",
		      "w");
	if (!pager)
		pager = stdout;
	page_print_text(t->text, pager, terminal_width(), !getenv("NO_COLOR"));
	if (pager == stdout)
		return flushed();
	pclose(pager);
	return EXIT_DONE;
}

static int print_topic(const struct topic *t)
{
	if (isatty(STDOUT_FILENO))
		return page_topic(t);
	page_print_text(t->text, stdout, 80, false);
	return flushed();
}

int cmd_help(int argc, char **argv)
{
	const struct command *c;
	const struct topic *t;

	if (argc < 2 || strcmp(argv[1], "help") == 0) {
		help_overview(stdout);
		return flushed();
	}
	c = command_find(argv[1]);
	if (c && argc > 2 && c->run == cmd_heap && cmd_heap_help(argv[2], stdout))
		return flushed();
	t = topic_find(argv[1]);
	if (t) /* also where a command has its name: that one's options are printed by its --help */
		return print_topic(t);
	if (!c)
		return help_unknown(argv[1], true);
	opt_print_help(c->options, stdout);
	return flushed();
}

int cmd_man(int argc, char **argv)
{
	const struct topic *t;

	if (argc < 2) {
		for (const struct command *c = commands; c->name; c++)
			opt_print_man(c->options, stdout);
		return flushed();
	}
	t = topic_find(argv[1]);
	if (!t)
		return help_unknown(argv[1], true);
	page_print_man(t->name, t->text, stdout);
	return flushed();
}
