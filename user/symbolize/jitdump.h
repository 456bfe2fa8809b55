/*
 * A jitdump: what a just-in-time compiler writes to jit-PID.dump, a record for each function that
 * it made or moved, with its code and perhaps its lines (tools/perf/Documentation/
 * jitdump-specification.txt, version 1).
 *
 *   header:  magic:4 "DTiJ"  version:4  size:4  machine:4  0:4  pid:4  time:8  flags:8
 *   record:  id:4  size:4  time:8  …
 *   LOAD 0:        pid:4 tid:4 vma:8 code_addr:8 code_size:8 code_index:8 name NUL code
 *   MOVE 1:        pid:4 tid:4 vma:8 old_addr:8 new_addr:8 code_size:8 code_index:8
 *   DEBUG_INFO 2:  code_addr:8 n:8 { addr:8 line:4 discriminator:4 file NUL }×n
 *                  before the LOAD it belongs to; file "\xff": the same as before
 *   CLOSE 3, UNWINDING_INFO 4: passed over
 *
 * Of several functions at one address the latest counts. Integers of the other byte order are not
 * read. The file is read record by record, never mapped; it may still grow.
 */
#ifndef MEMSCOPE_SYMBOLIZE_JITDUMP_H
#define MEMSCOPE_SYMBOLIZE_JITDUMP_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_RECORDS_MAX = 4 << 20,
	JITDUMP_KEPT_MAX = 1 << 20,     /* of those that cover an address asked for */
	JITDUMP_NAME_MAX = 4096,
};

struct jitdump;

struct jit_place {
	const char *name;  /* of the function; borrowed */
	const char *file;  /* NULL: not known           */
	uint32_t line;     /* 0: not known              */
};

/*
 * Reads the file for these addresses (ascending; borrowed until it is freed). -EBADMSG: not a
 * jitdump of this byte order; -ENOENT: it has none of them; -ENOMEM. A file damaged after its
 * header is used up to the damage.
 */
int jitdump_read(int fd, const uint64_t *vaddrs, uint32_t n, struct jitdump **ret_dump);
void jitdump_free(struct jitdump *j);
DEFINE_CLEANUP(struct jitdump *, jitdump_freep, jitdump_free)

/* -ENOENT: nothing at that address, or it was not asked for. */
int jitdump_find(const struct jitdump *j, uint64_t vaddr, struct jit_place *ret_place);

#endif
