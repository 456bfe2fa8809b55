/* Inside snapshot/: the sections of a file that is read, and whether what they say can be believed. */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_FILE_PARTS_H
#define MEMSCOPE_HEAP_SNAPSHOT_FILE_PARTS_H

#include "heap/snapshot/file.h"

/* A section: its records, and how many. NULL: it is not there. */
struct part {
	const void *at;
	uint64_t n;
};

struct snapshot_stored {
	const uint8_t *data;
	uint64_t len;
	bool mapped;
	const char *path; /* for sentences, while it is opened */
	struct part parts[FILE_KINDS];
	struct contents *contents;
};

/* Finds its sections, and checks all that answers index by. -EBADMSG with a sentence. */
int file_check(struct snapshot_stored *f, struct err *e);
/* Runs, their frames, and how many bytes they are in all. */
bool file_contents_are_good(const struct snapshot_stored *f, uint64_t *ret_len);
/* The text of that number; "": there is none. */
const char *file_text(const struct snapshot_stored *f, uint32_t at);
/* -EBADMSG */
int file_damaged(const struct snapshot_stored *f, struct err *e, const char *what);

#endif
