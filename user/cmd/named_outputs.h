/* --names TEMPLATE of convert and flame: a file for each profile of a run, or for each file that is named. */
#ifndef MEMSCOPE_CMD_NAMED_OUTPUTS_H
#define MEMSCOPE_CMD_NAMED_OUTPUTS_H

#include "cmd/inputs.h"

#define NAMES_OPT(args)                                                                             \
	{ "names", 0, OPT_STRING, "TEMPLATE", offsetof(args, names),                               \
	  .help = "instead of -o: a file for each profile of a run's directory or each FILE, with a name like " \
		  "profile-{source}-{pid}.pb.gz; also {comm}, {container}, {time}" }

/*
 * Reads each profile and gives it to `write` with its name. No file is written before all names are known. -EINVAL with a sentence:
 * the template is wrong, a field is not known, or two profiles would have one name; the rest is about the files.
 */
int named_outputs_write(struct inputs *in, char *const *operands, int n, const char *source, const char *template,
			int (*write)(void *ctx, struct profile *p, const char *path, struct err *e), void *ctx,
			struct err *e);

#endif
