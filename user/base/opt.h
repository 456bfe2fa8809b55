/*
 * Command-line options as rows: from one table come the parser (GNU argp), --help, the man page
 * and the reference in README.md.
 */
#ifndef MEMSCOPE_BASE_OPT_H
#define MEMSCOPE_BASE_OPT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum opt_kind {
	OPT_FLAG,      /* bool: true                                        */
	OPT_STRING,    /* const char *: borrowed from argv                  */
	OPT_U32,       /* uint32_t, checked against min … max                */
	OPT_DOUBLE,    /* double, checked against min … max                  */
	OPT_CHOICE,    /* int: index into `choices` ("a|b|c")                */
	OPT_HEADING,   /* a line that groups the rows below it               */
};

struct opt {
	const char *name;      /* long name, without dashes; the heading's text         */
	char key;              /* short name or 0                                        */
	enum opt_kind kind;
	const char *arg;       /* shown in help: PID, SEC                                */
	size_t offset;         /* offsetof(struct …_args, field)                         */
	double min, max;
	const char *choices;
	const char *help;      /* one sentence; the default in it where there is one     */
};

struct opt_command {
	const char *name;        /* "record"                                            */
	const char *synopsis;    /* "[OPTION…] [-- CMD ARG…]"                             */
	const char *doc;         /* one paragraph                                        */
	const struct opt *opts;  /* ends with a row without a name                       */
};

/*
 * Parses argv[1…] into `args` (already holding the defaults). Options may be mixed with
 * operands; everything from "--" on is operands. On success `*ret_operand` is the index of the first operand in argv, which has been
 * permuted so that operands come last. --help prints and exits 0. A mistake: -EINVAL with a sentence that names the
 * option and, where one is near, what may have been meant.
 */
int opt_parse(const struct opt_command *cmd, int argc, char **argv, void *args, int *ret_operand,
	      struct err *e);

/* The options of `cmd` as a roff (man) section and as a Markdown table. */
void opt_print_man(const struct opt_command *cmd, void *file /* FILE * */);
void opt_print_help(const struct opt_command *cmd, void *file /* FILE * */);

#endif
