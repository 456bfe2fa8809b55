/*
 * What calls return pointers to, by the debug info of their callers (elf/dwarf_makes.h): of `malloc(sizeof(*s))` the type of `s`.
 * Locations of calls are return addresses moved back into the call, as all in a dict.
 */
#ifndef MEMSCOPE_SYMBOLIZE_CALL_TYPES_H
#define MEMSCOPE_SYMBOLIZE_CALL_TYPES_H

#include "symbolize/symbolize.h"

struct call_type {
	location_id call;
	const char *name;  /* lives until the function returns                            */
	uint64_t bytes;    /* of one: what was allocated may be several                   */
	bool is_guess;     /* by what the caller itself returns: only a size speaks for it */
};
typedef void (*call_type_fn)(void *ctx, const struct call_type *type);

/* Calls fn() for each of `calls` of which that is known; images that cannot be read are left out. 0 or -ENOMEM. */
int call_types_find(struct dict *d, const struct symbolize_opts *opts, const location_id *calls, uint32_t n, call_type_fn fn,
		    void *ctx);

#endif
