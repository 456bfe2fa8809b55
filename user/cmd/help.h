/*
 * memscope help [COMMAND|TOPIC], and what the build asks of the program: its manual pages and what
 * shells complete.
 */
#ifndef MEMSCOPE_CMD_HELP_H
#define MEMSCOPE_CMD_HELP_H

#include <stdbool.h>
#include <stdio.h>

/* A topic: a file of user/cmd/topics/, in the form that base/page.h describes, and a row in topics.c. */
struct topic {
	const char *name;
	const char *text;
};

extern const struct topic topics[]; /* ends with a row without a name */

/* The commands and topics. */
void help_overview(FILE *f);

/* The sentence for a word that is no command (nor, asked of `help`, a topic); EXIT_USAGE. */
int help_unknown(const char *word, bool topics_too);

/* argv[0] is "help". The exit status. */
int cmd_help(int argc, char **argv);

/* --man: the options of all commands, for memscope(1); --man TOPIC: memscope-TOPIC(7). */
int cmd_man(int argc, char **argv);

/* --completion bash|zsh */
int cmd_completion(int argc, char **argv);

#endif
