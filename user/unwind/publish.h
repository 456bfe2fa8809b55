/*
 * Which unwind tables are where walks find them, and which process has which.
 *
 * Writes the memory of bpf/walk/rows.h: tables, rules, lists of spans. A walk may be reading at any time, so
 * what it can reach is whole before it can be reached, and nothing that it may still be reading is
 * overwritten before MS_POOL_GRACE_NS have gone by:
 *
 *   a table comes:   rows, directory, then ms_table.n_pages        goes: n_pages = 0, words wait
 *   a list comes:    spans, then the process's entry               goes: other entry, words wait
 *
 * A table belongs to a file, not to a process, and has its number from the first mention on: spans
 * name it before it is resident, while it is, and after it was evicted; only n_pages changes. A
 * list belongs to all processes whose spans are the same (a server and its forks).
 *
 * When the pool is full, tables that no process refers to are evicted for any other; tables
 * that a process refers to only for one that a walk needs, least recently used first, and never one
 * used just now. A table that is merely mapped does not evict one in use. The room can be used after
 * the grace time, so the caller tries again.
 *
 * No system calls and no libbpf: memory comes from the caller, entries leave through struct
 * space_sink. Not thread-safe. Times are CLOCK_MONOTONIC ns.
 */
#ifndef MEMSCOPE_UNWIND_PUBLISH_H
#define MEMSCOPE_UNWIND_PUBLISH_H

#include "abi.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "unwind/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PUBLISH_KEY_MAX = 80,
	/* For pool and tables, of words: 32-bit numbers of words reach no further. */
	PUBLISH_WORDS_MAX = 1 << 30,
};

#define PUBLISH_NO_TABLE UINT32_MAX
#define PUBLISH_KEEP_NS  5000000000ULL /* how long the spans of an ended process are kept */

struct publish;

/* Zeroed memory, borrowed; all of it aligned to 8 bytes. */
struct publish_mem {
	uint32_t *pool;
	uint32_t n_words;         /* a multiple of MS_SPAN_WORDS, at most PUBLISH_WORDS_MAX */
	struct ms_table *tables;
	uint32_t n_tables;
	void *rules;
	uint32_t n_rules;
	size_t rule_stride;       /* bytes from one rule to the next */
};

/* Where the entries of processes go. */
struct space_sink {
	/* Puts or replaces; 0 or -errno. */
	int (*put)(void *ctx, uint32_t pid, const struct ms_space *space);
	void (*drop)(void *ctx, uint32_t pid);
	void *ctx;
};

int publish_new(const struct publish_mem *mem, const struct space_sink *sink,
		struct publish **ret_publish, struct err *e);
void publish_free(struct publish *p);
DEFINE_CLEANUP(struct publish *, publish_freep, publish_free)

const struct publish_mem *publish_memory(const struct publish *p);

/* --- tables --- */

/* What makes two files one to us: `len` bytes, compared as they are. */
struct publish_key {
	uint32_t len;
	uint8_t bytes[PUBLISH_KEY_MAX];
};

enum publish_state {
	PUBLISH_ABSENT,    /* not given yet                                       */
	PUBLISH_RESIDENT,
	PUBLISH_EVICTED,   /* was resident; evicted for another                   */
	PUBLISH_REFUSED,   /* larger than the pool: never will be                 */
	PUBLISH_NO_ROWS,   /* publish_table_none(): there is nothing to publish   */
};

/*
 * The number of a file's table, as known before or new. -ENOSPC: all numbers are taken by tables
 * that processes refer to (some may be free after the grace time); -EINVAL: the key is too long.
 * A number that no list of spans mentions within the grace time may become another file's.
 */
int publish_table(struct publish *p, const struct publish_key *key, uint64_t now_ns,
		  uint32_t *ret_table);
/* The same, if it is known: else PUBLISH_NO_TABLE. */
uint32_t publish_table_find(const struct publish *p, const struct publish_key *key);
enum publish_state publish_table_state(const struct publish *p, uint32_t table);
/* How often it was evicted. */
uint32_t publish_table_evictions(const struct publish *p, uint32_t table);

/*
 * Makes a table resident; `t` is copied; `needed`: a walk could not go on without it. 0: it is, or
 * was before. -EAGAIN: others were evicted to make room, try again after the grace time. -EFBIG:
 * larger than the pool. -ENOSPC: what is in the way is not to go for it. -ENODATA: it has no rows.
 * -ENOMEM.
 */
int publish_table_put(struct publish *p, uint32_t table, const struct unwind_table *t, bool needed,
		      uint64_t now_ns, struct err *e);
/* There are no rows for this file: walks through it guess from now on. So they do where a table was
 * refused. */
void publish_table_none(struct publish *p, uint32_t table);

/* --- processes --- */

/*
 * The spans of a process image in address-space generation `as_gen`; they replace what it had, and
 * what another image of the same pid had. Spans are sorted, those that touch and say the same are
 * joined, what overlaps an earlier one is cut off. More than MS_MAX_SPANS: those without tables are
 * left out first, and counted. `ended`: the process is gone, and only finishing what it left needs
 * them; no entry is put.
 *
 * -EAGAIN, -ENOSPC as publish_table_put(); -ENOMEM. Its old entry is dropped then.
 */
int publish_space_put(struct publish *p, const struct ms_proc *proc, uint32_t as_gen,
		      const struct ms_span *spans, uint32_t n, bool ended, uint64_t now_ns);
/* The process has ended, or has another image: its entry is dropped, its spans a while later. */
void publish_space_end(struct publish *p, uint32_t pid, uint64_t now_ns);

/* What walks on behalf of this image start from; false: nothing is known of it. */
bool publish_space(const struct publish *p, const struct ms_proc *proc, struct ms_space *ret_space);
/* The same for the image whose entry is put. */
bool publish_space_of_pid(const struct publish *p, uint32_t pid, struct ms_proc *ret_proc,
			  struct ms_space *ret_space);

/* Frees what has waited long enough. Call it now and then. */
void publish_tick(struct publish *p, uint64_t now_ns);

struct publish_stats {
	uint64_t pool_bytes;      /* the budget                                          */
	uint64_t table_bytes, span_bytes, waiting_bytes;
	uint32_t tables;          /* resident                                            */
	uint32_t tables_known;    /* with a number                                       */
	uint64_t rows;            /* of the resident ones                                */
	uint32_t rules;
	uint32_t spaces;          /* processes with an entry                             */
	uint32_t lists;
	uint64_t spans;           /* of all lists                                        */
	uint64_t evictions;       /* tables evicted …                                    */
	uint64_t evicted_in_use;  /* … though processes referred to them                 */
	uint64_t too_large;       /* tables refused: larger than the pool                */
	uint64_t no_room;         /* tables or lists for which nothing was evicted       */
	uint64_t no_number;       /* mentions of files for which there was no number     */
	uint64_t bad_rows;        /* rows made MS_RULE_BAD, for want of room for their rule */
	uint64_t spans_left_out;
	uint64_t entries_failed;  /* the sink refused                                    */
};
void publish_stats(const struct publish *p, struct publish_stats *ret_stats);

#endif
