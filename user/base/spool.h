/*
 * Entries on disk that wait to be taken, oldest first, in a directory of their own; several processes put, one takes.
 *
 * An entry is there as a whole or not at all, however its writer ends, and stays until it is removed. What all entries take has
 * a limit: where a new one passes it, or the disk is full, the oldest go first, and are reported to who put it; but not the one
 * that is being held (spool_hold()).
 *
 *   DIR/TIME-RANDOM.entry   TIME: ns since the Epoch, 20 digits, so that names sort by age
 *
 *   entry:  "MSSPOOL1"  hash:8 (XXH3 of what follows)  title_len:4  title  body       integers are little-endian
 */
#ifndef MEMSCOPE_BASE_SPOOL_H
#define MEMSCOPE_BASE_SPOOL_H

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdint.h>

/* In memory that all who put and take share. */
struct spool_use {
	_Atomic uint64_t entries, bytes; /* bytes: on disk, in whole blocks */
};

struct spool {
	const char *dir;
	uint64_t max_bytes;
	struct spool_use *use;
};

/* What had to go to make room. */
struct spool_gone {
	uint64_t over_limit, no_room; /* entries: for the limit, for the disk */
};

/* Makes the directory, mode 0700, where it is not there yet, and counts what is in it. */
int spool_open(const struct spool *s, struct err *e);
/* Counts again what is there: others may have put into it by another `use`. */
int spool_count(const struct spool *s, struct err *e);

/*
 * Adds an entry; what went for it is added to *gone, also on failure. `title`: what it is, for sentences. -ENOSPC, -EDQUOT: the disk is
 * full, and nothing was left that could go; -EBUSY: the limit is passed, and what waits is being held; -EFBIG: it alone is more than
 * the limit.
 */
int spool_put(const struct spool *s, int64_t time_ns, const char *title, struct bytes body,
	      struct spool_gone *gone, struct err *e);

struct spool_names {
	char **names;
	uint32_t n;
};
/* Those that are there now, oldest first. */
int spool_list(const struct spool *s, struct spool_names *ret_names, struct err *e);
void spool_names_fini(struct spool_names *names);

struct spool_entry {
	char title[128];
	struct bytes body;
	void *data; /* title and body are in it */
	int fd;
};
/*
 * Reads one, which stays where it is until spool_let_go(). -ENOENT: it is gone; -EBADMSG: it is damaged, and may be removed:
 * *ret_entry is not set.
 */
int spool_hold(const struct spool *s, const char *name, struct spool_entry *ret_entry, struct err *e);
void spool_let_go(struct spool_entry *entry);
/* 0 or -errno; -ENOENT: somebody has. */
int spool_remove(const struct spool *s, const char *name);

#endif
