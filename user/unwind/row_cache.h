/*
 * Unwind tables on disk, so that a file's CFI is read once and not by every run.
 *
 * A directory (usually /var/cache/memscope/rows, mode 0700) with one file per build ID. A build ID is
 * only a claim of the file that carries it, and another owner's file must not spoil what is known of
 * libc: the entry also has a digest of what the table was made from (segments, CFI, Go's tables) and
 * by which build of memscope, under a secret seed that lies in the same directory. Padding and names
 * are not in it.
 *
 *   header:  magic, version, digest, numbers of what follows, checksum
 *   then:    directory, rows, rules, as in struct unwind_table
 *
 * An entry is used when it is a file as base/cache_dir.h asks for, of this version, of
 * the length it says, with the right checksum and digest, and every number in it is within its
 * bounds: whatever is wrong with it, it is not there. It appears whole, under its name, or not at
 * all. Entries that were not used for longest go when there is more than a limit.
 */
#ifndef MEMSCOPE_UNWIND_ROW_CACHE_H
#define MEMSCOPE_UNWIND_ROW_CACHE_H

#include "unwind/rows.h"

enum {
	ROW_CACHE_VERSION =
		7, /* of the layout, and of how tables are made: more of either, one more */
	ROW_CACHE_BYTES_MAX = 256 << 20,
};

struct row_cache;

/* `dir` as cache_dir_open() has it. */
int row_cache_open(const char *dir, uint64_t bytes_max, struct row_cache **ret_cache,
		   struct err *e);
void row_cache_close(struct row_cache *cache);
DEFINE_CLEANUP(struct row_cache *, row_cache_closep, row_cache_close)

/* All below may be called by several threads. */

/* The table of `elf`, if it is there. -ENOENT: it is not, or not usable, or `elf` has no build ID. */
int row_cache_load(struct row_cache *cache, struct elf_file *elf, struct unwind_table **ret_table);
/* -ENOENT: `elf` has no build ID; -ENOSPC and others as files have them. */
int row_cache_store(struct row_cache *cache, struct elf_file *elf, const struct unwind_table *table,
		    struct err *e);

/*
 * unwind_table_in_cell() with the cache before and behind it, `cache` may be NULL. Storing may fail,
 * which nobody needs to know.
 */
int row_cache_build(struct row_cache *cache, struct elf_file *elf, struct unwind_table **ret_table,
		    struct err *e);

#endif
