/*
 * What a run leaves: profiles, tables, the summary. A file gets its name when it is whole (base/sink.h), so
 * that a reader never sees half of one; one that cannot be written does not keep the others from being.
 */
#ifndef MEMSCOPE_RUN_OUTPUT_FILES_H
#define MEMSCOPE_RUN_OUTPUT_FILES_H

#include "base/sink.h"
#include "model/pprof.h"
#include "render/render.h"
#include "run/run.h"

struct run_output;
struct symbolize_stats;

/* A file NAME.EXT of the run as a whole ("-STAMP" in it where others' stay beside it) was written: the summary
 * names it. A new NAME goes into the lists of user/README.md, "A component". */
void output_written(struct run_output *to, const char *name, const char *ext);

/*
 * A file of the run that grows while it is at work, FOLDER/trend.csv, or trend-STAMP.csv in an archive of
 * windows: an earlier one is removed, the folder is made, and no cleaner takes it from the run.
 */
int output_in_folder_begin(const struct run *r, const char *folder, const char *file, char *ret_path,
			   uint32_t cap, struct err *e);
/* FOLDER/FILE was written (folders.h). The summary names the folder. */
void output_in_folder(struct run_output *to, const char *name, const char *file);
/* FILE, or FOLDER/FILE, was written in the run, and nobody needs to be told: it goes with the run's. */
void output_beside(struct run_output *to, const char *file);

/* Makes NAME.csv in write() of a component. 0, or -errno when it could not be written, which the summary
 * names. A new NAME: as above. */
int output_csv(struct run_output *to, const char *name,
	       int (*write)(void *ctx, struct sink *sink, struct err *e), void *ctx, struct err *e);

/* The same of a profile that is no source's own: NAME.pb.gz, with when it was and what the run is known by;
 * `comment`: one more line, NULL for none. */
int output_pprof(struct run_output *to, const char *name, struct profile *p, uint32_t default_type,
		 const char *comment, struct err *e);

/* What a profile of this kind says of itself, but for when and how long. */
struct profile_meta output_profile_meta(const struct run *r, const struct profile_row *row);
/* Names every location that has no name yet. `ret_stats` may be NULL. */
int output_name(struct run *r, bool lines, struct symbolize_stats *ret_stats, struct err *e);
struct dwarf_budget;
/* The same, with lines within a budget; what it was not enough for is marked (symbolize.h). */
int output_name_within(struct run *r, struct dwarf_budget *budget, struct err *e);
/* -ENODATA: there is nothing to show in this format. */
int output_write(const struct run *r, const struct profile *p, const struct format *f,
		 const char *path, struct err *e);
/* Sets it, with comments: `comment` (NULL or "": none) and what the run is known by. 0 or -ENOMEM. */
int output_set_meta(const struct run *r, struct profile *p, struct profile_meta *meta,
		    const char *comment);

#endif
