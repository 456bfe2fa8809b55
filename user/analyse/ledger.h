/*
 * Where the resident memory of a process is: RSS split into what explains it, and the rest. Of a container or
 * a host it is the sum of the PSS (proc(5)) of its processes: a page that n processes map counts as an nth of
 * it in each, so none counts twice, and containers add up to their host. What is shared with processes of
 * others counts in part.
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
	int64_t pss;              /* `resident`, less what other processes have of it      */
};

struct ledger {
	uint32_t processes;       /* 0: there is none                                       */
	int64_t rss, pss;         /* bytes, by smaps_rollup                                 */
	bool by_pss;              /* it is a sum whose parts explain `pss`, not `rss`       */
	uint32_t not_read;        /* processes that there was no time to read: in no part,  */
	int64_t not_read_rss;     /* … and their RSS, with all that they share              */
	double heap_pss;          /* PSS by RSS of the memory that heaps are in             */
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

/* Is there anything to show? */
bool ledger_known(const struct ledger *l);
/* Fills in the PSS of the heap's parts: what of a heap is shared (after a fork) is no more in one part than
 * in another, as far as is known. */
void ledger_apportion(struct ledger *l);
void ledger_add(struct ledger *sum, const struct ledger *one);

/* What the parts explain, RSS or PSS; of a part, what it explains of that; and that less all parts. */
int64_t ledger_total(const struct ledger *l);
int64_t ledger_part_bytes(const struct ledger *l, const struct ledger_row *row);
int64_t ledger_unexplained(const struct ledger *l);

#endif
