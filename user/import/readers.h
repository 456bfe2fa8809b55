/*
 * Profiles made elsewhere, or earlier: one file and one row per format. A format is recognised by
 * its content, never by the name of the file; gzip is looked through.
 */
#ifndef MEMSCOPE_IMPORT_READERS_H
#define MEMSCOPE_IMPORT_READERS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/input.h"
#include "model/profile.h"

/* What a format that names places by their addresses asks for. NULL members: nothing is known. */
struct import_opts {
	/* An open descriptor of the regular file that was mapped under `path` (the reader closes it),
	 * or -errno. */
	int (*open_image)(void *ctx, const char *path);
	void *ctx;
};

/* What is known of a file that was read. */
struct import_info {
	const char *format;      /* name of the row that read it                        */
	uint64_t skipped_lines;  /* text formats: lines that were not understood         */
	uint64_t other_events;   /* perf script: samples of other events than the first one */
	bool cut;                /* perf script: it ends in a sample, which is left out   */
	bool addresses;          /* its places have no names yet: symbolize/ is asked     */
	bool no_mappings;        /* heap dumps: it ends before MAPPED_LIBRARIES           */
	uint32_t changed_files;  /* heap dumps: mapped files that are others now (inode)  */
	/* Where the file is damaged and what of it was kept, as a sentence without the file's name; "": it is whole. */
	char damage[320];
};

struct reader {
	const char *name;   /* "pprof"                                                   */
	const char *help;   /* one line                                                  */
	/* By its first IMPORT_HEAD bytes; `by_all`: by all of it. */
	bool (*recognise)(struct bytes data);
	bool by_all;
	/* One of the two: from all of its bytes, or as they come. `name` is for sentences. -EBADMSG: not a file of this
	 * format; one that is damaged further on is kept up to there, and info->damage says so. */
	int (*read)(struct dict *d, struct bytes data, const char *name,
		    const struct import_opts *opts, struct import_info *info,
		    struct profile **ret_profile, struct err *e);
	int (*read_input)(struct dict *d, struct input *in, const char *name,
			  struct import_info *info, struct profile **ret_profile, struct err *e);
};

enum { IMPORT_HEAD = 64 << 10 };

/* What every reader of `input` does behind its last line: a fault of the input becomes info->damage. */
void import_note_fault(const struct input *in, struct import_info *info);

extern const struct reader readers[];  /* asked in order; ends with a row without a name */

/*
 * Reads the profile in `path` ("-": standard input) into `d`. `opts` and `ret_info` may be NULL. A cell reads it (base/cells.h): a file
 * that breaks its reader is one that cannot be read.
 * -EBADMSG with a sentence that says what is wrong, or which formats there are when it is none of them.
 */
int import_read(struct dict *d, const char *path, const struct import_opts *opts,
		struct profile **ret_profile, struct import_info *ret_info, struct err *e);

/* In this process: for bytes at hand, and what a cell does with the file that it is sent. */
int import_fd(struct dict *d, int fd, const char *name, const struct import_opts *opts, struct profile **ret_profile,
	      struct import_info *ret_info, struct err *e);
int import_bytes(struct dict *d, struct bytes data, const char *name,
		 const struct import_opts *opts, struct profile **ret_profile,
		 struct import_info *ret_info, struct err *e);

/* Whatever is done with a profile looks at each frame of each stack: one whose stacks take too long for that is refused, -EFBIG. */
int import_check_depths(const struct dict *d, const struct profile *p, const char *name, struct err *e);

/* The rows' own functions. */
bool folded_recognise(struct bytes data);
int folded_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		struct profile **ret_profile, struct err *e);
/* jemalloc's, tcmalloc's and gperftools' text (heap_dump.c); empty ones have no samples. */
bool heap_dump_recognise(struct bytes data);
int heap_dump_read(struct dict *d, struct bytes data, const char *name,
		   const struct import_opts *opts, struct import_info *info,
		   struct profile **ret_profile, struct err *e);
/* heaptrack's data files (heaptrack.c). */
bool heaptrack_recognise(struct bytes data);
int heaptrack_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		   struct profile **ret_profile, struct err *e);
/* Massif's output (massif.c). */
bool massif_recognise(struct bytes data);
int massif_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		struct profile **ret_profile, struct err *e);
/* Callgrind's output (callgrind.c). */
bool callgrind_recognise(struct bytes data);
int callgrind_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		   struct profile **ret_profile, struct err *e);
/* speedscope's own file (speedscope.c), DHAT's (dhat.c), the Firefox Profiler's processed format (firefox.c). */
bool speedscope_recognise(struct bytes data);
int speedscope_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		    struct profile **ret_profile, struct err *e);
bool dhat_recognise(struct bytes data);
int dhat_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
	      struct profile **ret_profile, struct err *e);
bool firefox_recognise(struct bytes data);
int firefox_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		 struct profile **ret_profile, struct err *e);
/* What `perf script` prints (perf_script.c). */
bool perf_script_recognise(struct bytes data);
int perf_script_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		     struct profile **ret_profile, struct err *e);
/* GHC's eventlogs (ghc_eventlog.c), and .hp files (ghc_hp.c). */
bool ghc_eventlog_recognise(struct bytes data);
int ghc_eventlog_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		      struct profile **ret_profile, struct err *e);
bool ghc_hp_recognise(struct bytes data);
int ghc_hp_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		struct profile **ret_profile, struct err *e);

#endif
