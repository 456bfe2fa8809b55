/* A function by the name, or a part of it, that somebody typed. */
#ifndef MEMSCOPE_ANALYSE_FUNCTION_FIND_H
#define MEMSCOPE_ANALYSE_FUNCTION_FIND_H

#include "base/err.h"
#include "model/profile.h"

/*
 * The function that `name` means: the one of that name, or "name(…)"; else the only one that has it as a
 * part. -ENOENT: none; -EINVAL: several, with a sentence that names some. *ret_name is borrowed from
 * the dict.
 */
int function_find(const struct profile *p, const char *name, const char **ret_name, struct err *e);

#endif
