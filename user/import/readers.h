/*
 * Profiles made elsewhere, or earlier: one file and one row per format. A format is recognised by
 * its content, never by the name of the file; gzip is looked through.
 */
#ifndef MEMSCOPE_IMPORT_READERS_H
#define MEMSCOPE_IMPORT_READERS_H

#include "base/bytes.h"
#include "base/err.h"
#include "model/profile.h"

/* What there is to tell about a file that was read. */
struct import_info {
	const char *format;      /* name of the row that read it                        */
	uint64_t skipped_lines;  /* text formats: lines that were not understood         */
};

struct reader {
	const char *name;   /* "pprof"                                                   */
	const char *help;   /* one line                                                  */
	bool (*recognise)(struct bytes data);
	/* `name` is for sentences. -EBADMSG: not a whole file of this format. */
	int (*read)(struct dict *d, struct bytes data, const char *name, struct import_info *info,
		    struct profile **ret_profile, struct err *e);
};

extern const struct reader readers[];  /* asked in order; ends with a row without a name */

/*
 * Reads the profile in `path` ("-": standard input) into `d`. `ret_info` may be NULL. -EBADMSG with
 * a sentence that says what is wrong, or which formats there are when it is none of them.
 */
int import_read(struct dict *d, const char *path, struct profile **ret_profile,
		struct import_info *ret_info, struct err *e);

/* The same for bytes at hand. */
int import_bytes(struct dict *d, struct bytes data, const char *name,
		 struct profile **ret_profile, struct import_info *ret_info, struct err *e);

/* The rows' own functions. */
bool folded_recognise(struct bytes data);
int folded_read(struct dict *d, struct bytes data, const char *name, struct import_info *info,
		struct profile **ret_profile, struct err *e);

#endif
