/* Writing a profile to where a command was told to. */
#ifndef MEMSCOPE_CMD_OUTPUTS_H
#define MEMSCOPE_CMD_OUTPUTS_H

#include "render/render.h"

/*
 * `chosen`: index of --format, -1 none. Then the ending of `path` says it; "-" is `usual`. NULL with a
 * sentence when nothing does.
 */
const struct format *output_format(const char *path, int chosen, const char *usual, struct err *e);

/* Where the profile is of estimates and the format has no place for their errors, says so on stderr. */
void output_tell_lost_errors(const struct profile *p, const struct format *format);

int output_profile(const struct profile *p, const char *path, const struct format *format,
		   const struct render_opts *opts, struct err *e);

#endif
