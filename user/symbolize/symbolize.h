/*
 * Names for every location of a dict, each once, grouped by module.
 *
 * A table of resolvers (resolvers.c) is asked in order; the first that knows a location names
 * it. Where none does, a location of an image is shown as `basename+0xvaddr`, one without a
 * mapping as `[unknown]`, and counted. A name is only given to an address inside the symbol's
 * size: never the nearest exported symbol below it.
 */
#ifndef MEMSCOPE_SYMBOLIZE_SYMBOLIZE_H
#define MEMSCOPE_SYMBOLIZE_SYMBOLIZE_H

#include "base/err.h"
#include "model/dict.h"

struct symbolize_opts {
	/* An open descriptor of the image's file (we close it), or -errno. */
	int (*open_module)(void *ctx, module_id m, struct err *e);
	void *ctx;
	bool no_demangle;
};

struct symbolize_stats {
	uint64_t locations, named, offset_only, no_module;
	struct symbolize_miss {
		module_id module;
		uint64_t locations;     /* of it without a name */
		const char *reason;     /* static sentence: "no symbol table", "file changed", … */
	} worst[8];                     /* most unnamed locations first */
	uint32_t n_worst;
};

/* Names all locations that are not named yet. 0 or -ENOMEM; a module that fails only costs its own names. */
int symbolize(struct dict *d, const struct symbolize_opts *opts, struct symbolize_stats *ret_stats);

#endif
