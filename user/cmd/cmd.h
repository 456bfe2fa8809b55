/*
 * Subcommands: one file (cmd/NAME.c), its line below, and one row in commands.c each.
 *
 * run() returns the exit status (design: 0 done; 1 nothing could be gathered, or not all
 * could be written; 2 wrong usage; 3 done, but something asked for was unavailable) and has printed its own sentence.
 */
#ifndef MEMSCOPE_CMD_CMD_H
#define MEMSCOPE_CMD_CMD_H

#include "base/opt.h"
#include "base/rights.h"

#include <stdbool.h>

enum exit_status { EXIT_DONE = 0, EXIT_NOTHING = 1, EXIT_USAGE = 2, EXIT_PARTIAL = 3 };

struct command {
	const char *name;
	const char *summary;               /* one line of `memscope --help`         */
	const struct opt_command *options;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name          */
	enum rights_phase phase;           /* what it may do from its first line on  */
};

extern const struct command commands[];  /* ends with a row without a name; the first is the default */

/* Prints the sentence of `e` (err_print()); returns `status`. */
int command_fail(enum exit_status status, const struct err *e);

extern const struct opt_command record_options;
int cmd_record(int argc, char **argv);

extern const struct opt_command flame_options;
int cmd_flame(int argc, char **argv);

extern const struct opt_command report_options;
int cmd_report(int argc, char **argv);

extern const struct opt_command annotate_options;
int cmd_annotate(int argc, char **argv);

extern const struct opt_command diff_options;
int cmd_diff(int argc, char **argv);

extern const struct opt_command merge_options;
int cmd_merge(int argc, char **argv);

extern const struct opt_command convert_options;
int cmd_convert(int argc, char **argv);

extern const struct opt_command trend_options;
int cmd_trend(int argc, char **argv);

extern const struct opt_command heap_options;
int cmd_heap(int argc, char **argv);
/* Is it one of the words that stand behind `memscope heap`? */
bool cmd_heap_asks(const char *word);
/* Prints the help of one of them. False: it is none. */
bool cmd_heap_help(const char *question, FILE *f);

extern const struct opt_command top_options;
int cmd_top(int argc, char **argv);

extern const struct opt_command serve_options;
int cmd_serve(int argc, char **argv);

extern const struct opt_command trace_options;
int cmd_trace(int argc, char **argv);

extern const struct opt_command ls_options;
int cmd_ls(int argc, char **argv);

extern const struct opt_command clean_options;
int cmd_clean(int argc, char **argv);

extern const struct opt_command doctor_options;
int cmd_doctor(int argc, char **argv);

#endif
