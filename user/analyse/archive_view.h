/*
 * What is in an archive, for people: its windows by time, the time between them in which nothing was gathered, its
 * containers, what is missing or damaged. Filled in by who reads it; gaps and sums are found here.
 */
#ifndef MEMSCOPE_ANALYSE_ARCHIVE_VIEW_H
#define MEMSCOPE_ANALYSE_ARCHIVE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct archive_row {
	char name[104];          /* as an operand: "20261122-195000", "oom-20261122-195530" */
	char trigger[64];        /* its word; "": a window of --every                  */
	int64_t begin_ns, end_ns; /* since the Epoch; end 0: not known                  */
	uint64_t bytes;          /* of all its files                                   */
	uint32_t files, containers;
	char sources[128];       /* "oncpu, offcpu"                                    */
	bool shown;              /* it was asked for; others count in sums alone       */
};

/* Between two windows of --every; also, where a window could not be read, an upper bound. */
struct archive_gap {
	uint32_t before; /* the row that it ends at */
	int64_t from_ns, to_ns;
};

#define ARCHIVE_BYTES_UNKNOWN UINT64_MAX

struct archive_folder {
	char name[64];
	uint32_t windows;
	uint64_t bytes;  /* ARCHIVE_BYTES_UNKNOWN: its files were not looked at */
	int64_t last_ns; /* begin of the last of them */
};

struct archive_view {
	const char *dir, *container; /* container: NULL, all */
	bool at_work;              /* a run writes there                       */
	const char *const *labels; /* "env=prod", up to a NULL; NULL: not known */
	struct archive_row *rows;  /* by time                                  */
	uint32_t n_rows;
	struct archive_folder *folders; /* of containers, the largest first     */
	uint32_t n_folders;
	struct archive_gap *gaps;
	uint32_t n_gaps;
	int64_t gaps_ns;
	char **missing;   /* files that are listed and are not there          */
	uint32_t n_missing;
	char **damaged;   /* a sentence each                                  */
	uint32_t n_damaged;
	bool checked;     /* all files were read; else only what was needed   */
	uint64_t bytes, files; /* of all rows                                  */
	uint32_t n_triggered;
};

/* Shorter ones are between two runs of one process that follow each other, and no gaps. */
#define ARCHIVE_GAP_NS 500000000LL

/* Gaps and sums from the rows. 0 or -ENOMEM. archive_view_fini() in any case. */
int archive_view_complete(struct archive_view *v);
/* Frees rows, folders, gaps, missing and damaged. */
void archive_view_fini(struct archive_view *v);

#endif
