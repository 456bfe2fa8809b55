/* Option rows as what a shell completes: bash(1) and zsh(1). */
#include "base/opt.h"

#include <string.h>

/* What the value of an option is, by the name that help gives it. */
static const char *action(const struct opt *o, const char *file, const char *dir, const char *pid)
{
	if (!o->arg)
		return NULL;
	if (strncmp(o->arg, "FILE", 4) == 0)
		return file;
	if (strncmp(o->arg, "DIR", 3) == 0)
		return dir;
	return strncmp(o->arg, "PID", 3) == 0 ? pid : NULL;
}

static void put_choices(const char *choices, FILE *f)
{
	for (; *choices; choices++)
		fputc(*choices == '|' ? ' ' : *choices, f);
}

/* --- bash --- */

/* An arm of `case COMMAND:OPTION in`: what may follow. Of a value that nobody can know, nothing. */
static void put_bash_value(const struct opt_command *cmd, const struct opt *o, FILE *f)
{
	const char *what = action(o, "_memscope_reply -f", "_memscope_reply -d",
				  "_memscope_reply -W \"$(_memscope_pids)\"");

	fprintf(f, "\t%s:--%s", cmd->name, o->name);
	if (o->key)
		fprintf(f, "|%s:-%c", cmd->name, o->key);
	fputc(')', f);
	if (o->kind == OPT_CHOICE) {
		fputs(" _memscope_reply -W \"", f);
		put_choices(o->choices, f);
		fputs("\";", f);
	} else if (what) {
		fprintf(f, " %s;", what);
	}
	fputs(" return ;;\n", f);
}

void opt_print_bash_values(const struct opt_command *cmd, FILE *f)
{
	for (const struct opt *o = cmd->opts; o->name; o++)
		if (o->kind != OPT_HEADING && o->kind != OPT_FLAG)
			put_bash_value(cmd, o, f);
}

void opt_print_bash_names(const struct opt_command *cmd, FILE *f)
{
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (o->kind == OPT_HEADING)
			continue;
		fprintf(f, "--%s%s ", o->name, o->kind == OPT_FLAG ? "" : "=");
		if (o->key)
			fprintf(f, "-%c ", o->key);
	}
	fputs("--help", f);
}

/* --- zsh --- */

/* The first clause of a help sentence, inside of [] and ''. */
static void put_zsh_help(const char *help, FILE *f)
{
	for (const char *c = help; *c && !strchr(";:(", *c) && strncmp(c, ". ", 2) != 0; c++) {
		if (*c == '\'')
			fputs("'\\'", f);
		if (strchr("[]\\", *c))
			fputc('\\', f);
		if (*c != ' ' || (c[1] && !strchr(";:(", c[1])))
			fputc(*c, f);
	}
}

static void put_zsh_value(const struct opt *o, FILE *f)
{
	const char *what = action(o, "_files", "_files -/", "_pids");

	fprintf(f, ":%s:", o->arg ? o->arg : "value");
	if (o->kind == OPT_CHOICE) {
		fputc('(', f);
		put_choices(o->choices, f);
		fputc(')', f);
	} else {
		fputs(what ? what : " ", f);
	}
}

void opt_print_zsh(const struct opt_command *cmd, FILE *f)
{
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (o->kind == OPT_HEADING)
			continue;
		fputs("\t\t'", f);
		if (o->key)
			fprintf(f, "(-%c --%s)'{-%c%s,--%s%s}'", o->key, o->name, o->key,
				o->kind == OPT_FLAG ? "" : "+", o->name,
				o->kind == OPT_FLAG ? "" : "=");
		else
			fprintf(f, "%s--%s%s", o->kind == OPT_LIST ? "*" : "", o->name,
				o->kind == OPT_FLAG ? "" : "=");
		fputc('[', f);
		put_zsh_help(o->help ? o->help : "", f);
		fputc(']', f);
		if (o->kind != OPT_FLAG)
			put_zsh_value(o, f);
		fputs("' \\\n", f);
	}
	fputs("\t\t'--help[show the options]' \\\n", f);
}
