/*
 * Options from a file, in their own long names:
 *
 *   # what a service is asked for
 *   archive   = /var/lib/memscope
 *   every     = 60
 *   container = web,db
 *   container = cache         an option that takes a list, or may be given again: adds to it
 *   verbose                   a flag; or: verbose = yes, verbose = no
 *
 * A line whose first character is # is a comment. A value goes to the end of its line, without the blanks around
 * it and without double quotes around all of it. The command line goes before the file, option by option.
 */
#ifndef MEMSCOPE_BASE_OPT_FILE_H
#define MEMSCOPE_BASE_OPT_FILE_H

#include "base/cleanup.h"
#include "base/opt.h"

struct opt_file {
	const char *path;
	const struct opt *opts;
	uint32_t n_opts;
	char *text, *as_read; /* in pieces; whole */
	uint32_t *lines; /* by rows of the table: which line said it, from 1; 0: none       */
	char **joined;   /* … a list of several lines, as one string; or NULL               */
};

/*
 * Reads `path` (borrowed) into `args`, but for the options that `given` says are known already (opt_parse_given()).
 * What is stored lives as long as *ret_file. -EINVAL: a mistake, as "FILE:LINE: SENTENCE"; other errors: it cannot
 * be read. -EPERM: others than its owner, who is root or who we are, could write to it. `kept`: what opt_file_keep() kept of it, which
 * is read instead, and stays open; -1: nothing.
 */
int opt_file_read(const struct opt_command *cmd, const char *path, int kept, const bool *given, void *args,
		  struct opt_file *ret_file, struct err *e);
/*
 * What was read, kept for whom this process executes next, whatever becomes of the file: a descriptor that he reads it from, to be
 * closed. -errno.
 */
int opt_file_keep(const struct opt_file *f);
/*
 * A sentence that begins with an option, "--keep: …": where that option is from the file, its line is put before it.
 * For mistakes that are found after reading.
 */
void opt_file_blame(const struct opt_file *f, struct err *e);
void opt_file_fini(struct opt_file *f);

#endif
