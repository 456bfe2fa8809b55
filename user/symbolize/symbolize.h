/*
 * Names for every location of a dict, each once, grouped by image: modules that are the same file
 * or the same bytes under several paths are one (same_image.h).
 *
 * A table of resolvers (resolvers.c) is tried in order; the first that knows a location names it.
 * Where none does, a location of an image is shown as `basename+0xvaddr`, one in memory without a
 * file as `[anon]`, one without a mapping as `[unknown]`, and counted. A name is only given to an
 * address inside the symbol's size, never to one above the nearest exported symbol.
 *
 * Each image is read once by each resolver that is needed for it, when its locations' turn comes, in a cell of its own
 * (image_names.h), and closed again: memory is that of one image's symbols. kallsyms is only read when there is a
 * kernel location.
 */
#ifndef MEMSCOPE_SYMBOLIZE_SYMBOLIZE_H
#define MEMSCOPE_SYMBOLIZE_SYMBOLIZE_H

#include "base/err.h"
#include "elf/dwarf.h"
#include "model/dict.h"

/* Time limit for the debug info of all images together; remaining locations get only function
 * names. */
enum { SYMBOLIZE_DWARF_MS_MAX = 60000 };

enum jit_file { JIT_PERF_MAP, JIT_DUMP };

struct symbolize_opts {
	/* An open descriptor of the image's file (we close it), or -errno. */
	int (*open_module)(void *ctx, module_id m, struct err *e);
	/*
	 * The same for a regular file of separate debug info, by its path below the root of the
	 * processes that map the image or, with `host`, below our own. NULL: none is searched.
	 */
	int (*open_debug)(void *ctx, module_id m, const char *path, bool host);
	/*
	 * The same for a process's file about code that it generated into the memory `m`. -EPERM:
	 * the file's owner may not describe that process. NULL: none.
	 */
	int (*open_jit)(void *ctx, module_id m, enum jit_file what);
	void *ctx;
	bool no_demangle;
	bool no_lines; /* debug info is left alone: functions by symbols, no inlined calls */
	/* What reading it may take; NULL: as much as there is. Then functions are named by symbols, and their locations are marked. */
	struct dwarf_budget *lines_within;
};

struct symbolize_stats {
	uint64_t locations;     /* handled now: named + ranges + offset_only + no_module    */
	uint64_t named;
	uint64_t ranges;        /* known only by a function's range, `[image+0xstart]`      */
	uint64_t offset_only;   /* in an image, but no symbol covers them; [anon]           */
	uint64_t no_module;     /* [unknown]                                                */
	uint64_t images;        /* read for them                                            */
	struct symbolize_miss {
		module_id module;
		uint64_t locations;     /* of it without a name */
		const char *reason;     /* a few words, static or the dict's: "no symbol table", "file changed" */
	} worst[8];                     /* most unnamed locations first */
	uint32_t n_worst;
	/* The first image whose debug info could not be read to its end: why, a few words, static or the dict's. */
	module_id lines_module;
	const char *lines_problem;      /* NULL: none */
};

/*
 * Names all locations that have no name yet, or whose debug info was left unread where it may be read now: function as shown, and system_name as the linker knows
 * it (without version); made-up names have no system_name. 0 or -ENOMEM; an image that fails only
 * costs its own names.
 */
int symbolize(struct dict *d, const struct symbolize_opts *opts, struct symbolize_stats *ret_stats);

#endif
