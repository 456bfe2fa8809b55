/*
 * A part of a profile by its stacks: those that have a frame, those that have none, and what a function called.
 *
 * A pattern matches a frame whose name has it as a part, or matches it as an extended regular expression (POSIX). With
 * "module:" before it, it is the name of the frame's image that is meant.
 */
#ifndef MEMSCOPE_ANALYSE_SELECTION_H
#define MEMSCOPE_ANALYSE_SELECTION_H

#include "base/err.h"
#include "base/opt.h"
#include "base/strbuf.h"
#include "model/profile.h"

struct selection_args {
	struct opt_list filter; /* a stack needs a frame for each of these …  */
	struct opt_list ignore; /* … and none for any of these               */
	const char *focus;      /* and is cut to this function and what it called: its whole name, or as function_find() takes it */
};

struct selection;

/* Was anything asked for? */
bool selection_wanted(const struct selection_args *args);
/* -EINVAL with a sentence: a pattern, or the function, is empty. -ENOMEM. */
int selection_new(const struct selection_args *args, struct selection **ret_selection, struct err *e);
void selection_free(struct selection *s);
DEFINE_CLEANUP(struct selection *, selection_freep, selection_free)

/* "stacks with parse, without free, below main" */
void selection_describe(const struct selection_args *args, struct strbuf *out);

/*
 * The profile of those stacks, with their labels, errors and times; among its comments "Selected: …" (about.h). Of a
 * recursive function the outermost call is the root. -ENODATA with a sentence: nothing is left;
 * -ENOENT, -EINVAL: there is no such function, or there are several; -ENOMEM.
 */
int selection_apply(struct selection *s, const struct profile *p, struct profile **ret_part, struct err *e);

/* The sum of the positive values of a type; saturates. */
int64_t profile_positive_total(const struct profile *p, uint32_t type);

#endif
