/*
 * What a run leaves: profiles, tables, the summary. Files are made under a temporary name and renamed, so
 * that a reader never sees half of one; one that cannot be written does not keep the others from being.
 */
#ifndef MEMSCOPE_RUN_OUTPUT_FILES_H
#define MEMSCOPE_RUN_OUTPUT_FILES_H

#include "base/sink.h"
#include "model/pprof.h"
#include "render/render.h"
#include "run/run.h"
#include "symbolize/symbolize.h"

struct run_output;

/* A file NAME.EXT of the run as a whole ("-STAMP" in it where others' stay beside it) was written, or was
 * not: the summary names it. */
void output_written(struct run_output *to, const char *name, const char *ext);

/*
 * The folder of one container in the directory of a run that is of several: its name, as one word; NULL:
 * what is in none, "host". Made when it is not there.
 */
bool output_has_folders(const struct run_config *cfg);
void output_folder_name(const char *container, char *ret_name, uint32_t cap);
int output_folder_make(const struct run *r, const char *name, struct err *e);
/* FOLDER/FILE was written. The summary names the folder. */
void output_in_folder(struct run_output *to, const char *name, const char *file);

/* NAME.csv. 0, or -errno when it could not be written, which the summary names. */
int output_csv(struct run_output *to, const char *name,
	       int (*write)(void *ctx, struct sink *sink, struct err *e), void *ctx, struct err *e);

/* Names every location that has no name yet. `ret_stats` may be NULL. */
int output_name(struct run *r, struct symbolize_stats *ret_stats, struct err *e);
/* What a profile of this kind says of itself, but for when and how long. */
struct profile_meta output_profile_meta(const struct run *r, const struct profile_row *row);
/* -ENODATA: there is nothing to show in this format. */
int output_write(const struct run *r, const struct profile *p, const struct format *f,
		 const char *path, struct err *e);
/* Sets it, with comments: `comment` (NULL or "": none) and what the run is known by. 0 or -ENOMEM. */
int output_set_meta(const struct run *r, struct profile *p, struct profile_meta *meta,
		    const char *comment);

#endif
