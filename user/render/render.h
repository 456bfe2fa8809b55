/*
 * View → bytes. One row per output format in formats.c; a format sees a profile or a tree, never
 * where it came from.
 */
#ifndef MEMSCOPE_RENDER_RENDER_H
#define MEMSCOPE_RENDER_RENDER_H

#include "analyse/frame_tree.h"
#include "base/err.h"
#include "base/sink.h"
#include "model/profile.h"

/* What the user may choose about a picture; zero or NULL means the default. Named as
 * flamegraph.pl names them. */
struct render_opts {
	int value_type;        /* index into the profile's value types, -1: the format's default */
	const char *title;     /* default: who, what, when, how much (title.h) */
	const char *subtitle;  /* default: what the width means, and labels; "" for none */
	const char *what;      /* of a profile that does not say whose it is: its file */
	uint32_t width;        /* px, default 1200                        */
	uint32_t fontsize;     /* px, default 12                          */
	double minwidth;       /* px below which a frame is left out, default 0.1 and what keeps the file below 1 MB; < 0: none is */
	const char *colors;    /* palette name (palette.h), default "auto" */
	const char *countname; /* named as asked, counted as folded text counts; default: values for people */
	bool inverted;         /* icicle: root at the top                 */
	const char *by;        /* root frames: the text of this label; NULL: none      */
	bool no_comm;          /* do not put the process name at the root   */
	/* The difference to this one, of the same dict (pictures and folded text only). */
	const struct profile *before;
	const char *before_what;
	int before_type;       /* index of its value type                  */
	double before_scale;   /* of its values, 0: 1                      */
};

struct format {
	const char *name;      /* "svg"                                    */
	const char *ext;       /* ".svg"                                    */
	const char *help;      /* one line                                  */
	bool gzip;             /* the writer's bytes are gzipped into the file */
	bool picture;          /* can be drawn later from a file of another format */
	bool one_value;        /* shows one value type (render_opts), not all */
	bool of_times;         /* needs to know when samples came: profile_times() */
	bool with_times;       /* shows when samples came, where that is known */
	bool with_levels;      /* shows what was held over time, where that is known */
	bool on_demand;        /* made when asked for; a run does not write it */
	/* 0, -ENODATA (nothing to show), -ENOMEM; a full disk shows in the sink. */
	int (*write)(const struct profile *p, const struct render_opts *opts, struct sink *out,
		     struct err *e);
};

extern const struct format formats[];  /* ends with a row without a name */
/* For OPT_CHOICE: the names, in the order of the table. */
#define FORMAT_CHOICES "pprof|folded|svg|csv|speedscope|callgrind|dot|massif|dhat|times|firefox|perf-script|otlp"
/* By name ("svg") or by the ending of a file name ("x.pb.gz"); NULL when there is none. */
const struct format *format_find(const char *name);
const struct format *format_for_path(const char *path);

#endif
