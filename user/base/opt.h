/*
 * Command-line options as rows: from one table come the parser (GNU argp), --help, the man page
 * and what shells complete.
 *
 * Bad input is refused, never guessed at: the sentence names the option as it was typed, what was
 * found, and, where a known word is near, what may have been meant. Nothing here prints errors or
 * exits on them, so argp's own exit status (64) and messages cannot leak.
 *
 * A name or a choice that has been renamed keeps its former name as a synonym, so that scripts go on
 * working: it is parsed like the new one, and appears neither in help nor in suggestions.
 */
#ifndef MEMSCOPE_BASE_OPT_H
#define MEMSCOPE_BASE_OPT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_kind {
	OPT_FLAG,      /* bool: true                                        */
	OPT_STRING,    /* const char *: borrowed from argv                  */
	OPT_U32,       /* uint32_t, decimal, checked against min … max      */
	OPT_DOUBLE,    /* double, decimal, checked against min … max        */
	OPT_LIST,      /* struct opt_list: borrowed from argv; may be given again  */
	OPT_CHOICE,    /* int: index into `choices` ("a|b|c")               */
	OPT_HEADING,   /* a line that groups the rows below it              */
};

enum { OPT_SYNONYMS = 2 };

/* What an option that may be given again was given. */
struct opt_list {
	const char *items[64];
	uint32_t n;
};

struct opt {
	const char *name;      /* long name, without dashes; the heading's text            */
	char key;              /* short name or 0                                          */
	enum opt_kind kind;
	const char *arg;       /* shown in help: PID, SEC; NULL: the choices, or VALUE     */
	size_t offset;         /* offsetof(struct …_args, field)                           */
	double min, max;       /* inclusive; max 0: no upper bound                         */
	const char *choices;
	const char *help;      /* one sentence; the default in it where there is one       */
	const char *synonyms[OPT_SYNONYMS]; /* former long names: accepted, never shown    */
	const char *choice_synonyms; /* former choices, "slices=bursts|…": likewise        */
	bool not_in_file;      /* a file of options may not have it (base/opt_file.h)      */
};

struct opt_command {
	const char *name;        /* "record"                                            */
	const char *synopsis;    /* "[OPTION…] [-- CMD ARG…]"                           */
	const char *doc;         /* one paragraph                                       */
	const struct opt *opts;  /* ends with a row without a name                      */
};

/*
 * Parses argv[1…] into `args` (already holding the defaults). Options may be mixed with
 * operands and long names shortened while they stay unambiguous; everything from "--" on is
 * operands, and so is a word like -30m.. (import/window_choice.h). On success `*ret_operand` is the index of the first operand in argv, which has been
 * permuted so that operands come last; argv[*ret_operand - 1] is "--" when that was given.
 * -h and --help print and exit 0 (1 when the output could not be written). A mistake: -EINVAL
 * with a sentence; `args` may then be half filled. -ENOMEM.
 */
int opt_parse(const struct opt_command *cmd, int argc, char **argv, void *args, int *ret_operand,
	      struct err *e);
/* The same, and which options were given: `given` has an element for each row of the table, false at first. */
int opt_parse_given(const struct opt_command *cmd, int argc, char **argv, void *args, bool *given,
		    int *ret_operand, struct err *e);

/* Stores the value of one option (NULL: of a flag), which stays borrowed. -EINVAL with a sentence. */
int opt_set(const struct opt *o, const char *value, void *args, struct err *e);
/* The option of that long name, or former name; NULL: there is none, and `*ret_near` is one that is near, or NULL. */
const struct opt *opt_named(const struct opt *opts, const char *name, const char **ret_near);

/* What --help shows; the options as a roff (man) section. */
void opt_print_help(const struct opt_command *cmd, FILE *file);
void opt_print_man(const struct opt_command *cmd, FILE *file);

/*
 * For shells. bash: the arms of `case COMMAND:OPTION in` that complete values, and the names of the
 * options as one line of words; zsh: the specifications that _arguments takes, a line each.
 */
void opt_print_bash_values(const struct opt_command *cmd, FILE *file);
void opt_print_bash_names(const struct opt_command *cmd, FILE *file);
void opt_print_zsh(const struct opt_command *cmd, FILE *file);

/*
 * The word of `words` (n of them) that `word` was probably meant to be: within an edit distance
 * of a third of its length (swapping two neighbours counts as one), or NULL. Ties go to the
 * first.
 */
const char *opt_nearest(const char *word, const char *const *words, size_t n);

#endif
