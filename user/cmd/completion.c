/*
 * memscope --completion bash|zsh: what a shell needs to complete commands, options and their values,
 * made from the same rows as --help.
 */
#include "cmd/cmd.h"
#include "cmd/help.h"

#include <string.h>

static void put_commands(FILE *f)
{
	for (const struct command *c = commands; c->name; c++)
		fprintf(f, "%s ", c->name);
	fputs("help", f);
}

static void put_topics(FILE *f)
{
	for (const struct topic *t = topics; t->name; t++)
		fprintf(f, "%s%s", t == topics ? "" : " ", t->name);
}

/* Commands whose operands are not files. */
static bool takes_no_files(const struct command *c)
{
	return c == commands || strcmp(c->name, "doctor") == 0;
}

static void print_bash(FILE *f)
{
	fputs("# bash completion for memscope(1), made by memscope --completion bash\n\n"
	      "_memscope_pids()\n{\n\tlocal p\n\tfor p in /proc/[0-9]*; do echo \"${p#/proc/}\"; done\n}\n\n"
	      "_memscope_reply()\n{\n"
	      "\tmapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\")\n"
	      "\t[[ $1 == -W ]] || compopt -o filenames 2> /dev/null\n"
	      "\t[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace 2> /dev/null\n"
	      "}\n\n"
	      "_memscope()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=",
	      f);
	fputs(commands->name, f);
	fputs(" i\n"
	      "\tCOMPREPLY=()\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do # what follows -- is another program's\n"
	      "\t\t[[ ${COMP_WORDS[i]} != -- ]] || {\n"
	      "\t\t\tif ((i + 1 == COMP_CWORD)); then _memscope_reply -c; else _memscope_reply -f; fi\n"
	      "\t\t\treturn\n\t\t}\n"
	      "\tdone\n"
	      "\tif [[ $cur == = ]]; then # bash takes --name=value for three words\n\t\tcur=\n"
	      "\telif [[ $prev == = ]] && ((COMP_CWORD > 1)); then\n\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n\tfi\n"
	      "\tif ((COMP_CWORD == 1)); then\n"
	      "\t\tif [[ $cur != -* ]]; then _memscope_reply -W \"",
	      f);
	put_commands(f);
	fputs("\"; return; fi\n"
	      "\telif [[ ${COMP_WORDS[1]} != -* ]]; then\n\t\tcommand=${COMP_WORDS[1]}\n\tfi\n"
	      "\tcase $command:$prev in\n",
	      f);
	for (const struct command *c = commands; c->name; c++)
		opt_print_bash_values(c->options, f);
	fputs("\tesac\n\tcase $command:$cur in\n", f);
	for (const struct command *c = commands; c->name; c++) {
		fprintf(f, "\t%s:-*) _memscope_reply -W \"", c->name);
		opt_print_bash_names(c->options, f);
		fputs("\" ;;\n", f);
		if (takes_no_files(c))
			fprintf(f, "\t%s:*) ;;\n", c->name);
	}
	fputs("\thelp:*) _memscope_reply -W \"", f);
	put_commands(f);
	fputc(' ', f);
	put_topics(f);
	fputs("\" ;;\n\t*) _memscope_reply -f ;;\n\tesac\n}\n\ncomplete -F _memscope memscope\n",
	      f);
}

/* Between single quotes. */
static void put_quoted(FILE *f, const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", f);
		else
			fputc(*text, f);
}

static void print_zsh(FILE *f)
{
	fputs("#compdef memscope\n# zsh completion for memscope(1), made by memscope --completion zsh\n\n"
	      "_memscope()\n{\n\tlocal command=",
	      f);
	fputs(commands->name, f);
	fputs("\n\tlocal -a commands=(\n", f);
	for (const struct command *c = commands; c->name; c++) {
		fprintf(f, "\t\t'%s:", c->name);
		put_quoted(f, c->summary);
		fputs("'\n", f);
	}
	fputs("\t\t'help:a command'\\''s options, or a topic'\n\t)\n"
	      "\tif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
	      "\t\t_describe command commands\n\t\treturn\n\tfi\n"
	      "\tif [[ $words[2] != -* ]]; then\n"
	      "\t\tcommand=$words[2]\n\t\tshift words\n\t\t(( CURRENT-- ))\n\tfi\n"
	      "\tcase $command in\n",
	      f);
	for (const struct command *c = commands; c->name; c++) {
		fprintf(f, "\t%s)\n\t\t_arguments -s -S \\\n", c->name);
		opt_print_zsh(c->options, f);
		if (c == commands)
			fputs("\t\t'*::command: _normal' ;;\n", f);
		else
			fprintf(f, "\t\t'*:file:%s' ;;\n", takes_no_files(c) ? " " : "_files");
	}
	fputs("\thelp) _values 'command or topic' ", f);
	put_commands(f);
	fputc(' ', f);
	put_topics(f);
	fputs(" ;;\n\tesac\n}\n\n_memscope \"$@\"\n", f);
}

int cmd_completion(int argc, char **argv)
{
	struct err e;

	if (argc == 2 && strcmp(argv[1], "bash") == 0) {
		print_bash(stdout);
	} else if (argc == 2 && strcmp(argv[1], "zsh") == 0) {
		print_zsh(stdout);
	} else {
		err_set(&e, 0, "--completion takes bash or zsh");
		return command_fail(EXIT_USAGE, &e);
	}
	return err_flush_stdout() < 0 ? EXIT_NOTHING : EXIT_DONE;
}
