/* The writers behind the rows of formats.c; called through struct format only. */
#ifndef MEMSCOPE_RENDER_FORMATS_WRITERS_H
#define MEMSCOPE_RENDER_FORMATS_WRITERS_H

#include "render/render.h"

/*
 * Folded stacks: `comm;root;…;leaf COUNT`, one line per stack, sorted by name. Kernel frames end
 * in _[k], inlined ones in _[i]. What counts is shown.h's choice; stacks that round to 0 are left
 * out.
 */
int folded_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		 struct err *e);

/*
 * A flame graph in one SVG file that needs nothing else: drawn without scripts, and with them
 * zoomed, searched and walked with the keyboard (assets/flame.js). Frames narrower than
 * `minwidth` are neither drawn nor kept. -ENODATA when there is nothing to draw.
 */
int svg_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	      struct err *e);

/* pprof, uncompressed; ignores the options, all value types are kept. */
int pprof_format_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		       struct err *e);

/*
 * One line per function, most of the default value type first: function, module, kind, then self and
 * total of every value type. Ignores the options.
 */
int csv_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	      struct err *e);

/* speedscope's file format: a "sampled" profile for every value type. Takes `no_comm`. */
int speedscope_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		     struct err *e);

/* Callgrind's profile format 1, every value type an event. Ignores the options but `title`. */
int callgrind_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		    struct err *e);

/* The call graph for graphviz, one value type. -ENODATA when there is nothing to draw. */
int dot_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	      struct err *e);

/* Massif's output, of a value in bytes or of a profile of sites. -EINVAL with a sentence for another value. */
int massif_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		 struct err *e);

/* DHAT's file format 2, of a profile of sites. -EINVAL with a sentence for any other profile. */
int dhat_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	       struct err *e);

/* When the samples came (import/sample_times.h). -ENODATA where that is not known. */
int times_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		struct err *e);
/* The Firefox Profiler's processed format, one value type. -ENODATA when there is nothing to show. */
int firefox_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		  struct err *e);

/* Text as perf script prints it, one value type. */
int perf_script_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		      struct err *e);
/* OpenTelemetry's ProfilesData, every value type; with --value that one. */
int otlp_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	       struct err *e);

#endif
