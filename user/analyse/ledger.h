/*
 * Where the resident memory of a process is: RSS split into what explains it, and the rest.
 *
 * The parts do not overlap. Those of the heap come from walking the allocator's own structures, and
 * count the resident pages of its blocks; the others come from smaps. A running process cannot be
 * read atomically, so the parts need not add up: the remainder is reported, and may be negative.
 */
#ifndef MEMSCOPE_ANALYSE_LEDGER_H
#define MEMSCOPE_ANALYSE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

enum ledger_part {
	LEDGER_TRACED,     /* in use, and in the table of traced blocks                     */
	LEDGER_BEFORE,     /* pre-existing: in use since the start, not in that table       */
	LEDGER_LIVE,       /* in use; which of the two is unknown                           */
	LEDGER_FREE,       /* freed, or never handed out: retained by the allocator         */
	LEDGER_METADATA,   /* headers of blocks, arenas, caches                             */
	LEDGER_HELD,       /* the allocator's, but not walked: in use or free               */
	LEDGER_ANONYMOUS,  /* the rest of private memory of no file                         */
	LEDGER_STACKS,     /* of threads                                                    */
	LEDGER_DATA,       /* pages of files that were changed: variables                   */
	LEDGER_FILE,       /* of files, as they are; and the vDSO                           */
	LEDGER_SHARED,     /* shared memory, tmpfs                                          */
	N_LEDGER_PARTS,
	N_LEDGER_HEAP_PARTS = LEDGER_HELD + 1,
};

struct ledger_row {
	int64_t resident;         /* bytes of RSS                                          */
	int64_t bytes;            /* of the heap's: resident or not                        */
	int64_t blocks;
};

struct ledger {
	uint32_t processes;       /* 0: there is none                                       */
	int64_t rss;              /* bytes, by smaps_rollup                                 */
	struct ledger_row parts[N_LEDGER_PARTS];
	/* Of the heap's parts, what an interpreter keeps its objects in. */
	struct ledger_row objects[N_LEDGER_HEAP_PARTS];
	uint32_t object_arenas;
	const char *objects_by;   /* "pymalloc"; NULL: there are none                       */
	bool objects_traced;      /* … and in LEDGER_LIVE all the same: they are not listed */
	char allocators[64];      /* that were walked: "glibc, jemalloc"                    */
	const char *caveat;        /* why parts cannot be separated; a sentence; or NULL     */
	const char *unsupported_allocator;     /* an allocator that was not walked, or NULL              */
	int64_t took_ns;          /* to make it                                             */
};

/* "live_traced", …: the word in JSON and in CSV. */
const char *ledger_name(enum ledger_part part);
/* For people; and how the number was made, a few words. */
const char *ledger_title(enum ledger_part part);
const char *ledger_how(enum ledger_part part);

/* The heap's: they have blocks, and bytes that need not be resident. */
bool ledger_of_heap(enum ledger_part part);

void ledger_add(struct ledger *sum, const struct ledger *one);

/* RSS less all parts. */
int64_t ledger_unexplained(const struct ledger *l);

#endif
