/*
 * Time in code that has no names: a stripped library is not known by its functions, but by who calls it.
 */
#ifndef MEMSCOPE_ANALYSE_NAMELESS_H
#define MEMSCOPE_ANALYSE_NAMELESS_H

#include "model/profile.h"

#include <stdbool.h>

/* Is that what a function is called that has no name (frame.h): "[libcrypto.so.3+0x4a210]", "libcrypto.so.3+0x4a2f7"? */
bool nameless_name(const char *name);

struct nameless_row {
	const char *module;   /* the image that has most of it                                 */
	int64_t value;        /* whose leaf is in a function of it without a name              */
	const char *caller;   /* outside of it and named, the nearest that most of this is for; "" */
	int64_t caller_value; /* how much that is                                             */
};

/* Of value type `type`. 1; 0: there is no such code; -ENOMEM. Names borrow from the dict. */
int nameless_find(const struct profile *p, uint32_t type, struct nameless_row *ret_row);

#endif
