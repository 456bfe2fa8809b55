/*
 * The events of a GHC eventlog, one after another as their bytes come (GHC user's guide, "Eventlog encodings"; the numbers of
 * events are in rts/include/rts/EventLogFormat.h and, since 9.4, rts/gen_event_types.py). All integers are big-endian.
 *
 *   file:    'hdrb' 'hetb' TYPE… 'hete' 'hdre' 'datb' EVENT… ffff
 *   TYPE:    'etb\0' number:2 size:2 (ffff: varies) length:4 description length:4 more 'ete\0'
 *   EVENT:   number:2 ns:8 [size:2, of those that vary] payload
 *
 * Events of capabilities come in blocks: a block marker says how many bytes the block has, itself included, when it ends, and
 * whose it is. Blocks are written as their buffers fill, so times go forth and back from block to block. An event that
 * the header has not declared has no known size: what follows in its block is passed over; outside a block that is the end of
 * what can be read.
 */
#ifndef MEMSCOPE_IMPORT_GHC_EVENTS_H
#define MEMSCOPE_IMPORT_GHC_EVENTS_H

#include "base/bytes.h"

enum ghc_event_number {
	GHC_GC_START = 9,
	GHC_GC_END = 10,
	GHC_LOG_MSG = 16,
	GHC_BLOCK_MARKER = 18,
	GHC_USER_MSG = 19,
	GHC_PROGRAM_ARGS = 30,
	GHC_OSPROCESS_PID = 32,
	GHC_WALL_CLOCK_TIME = 43,
	GHC_HEAP_ALLOCATED = 49,
	GHC_HEAP_SIZE = 50,
	GHC_HEAP_LIVE = 51,
	GHC_GC_STATS = 53,
	GHC_USER_MARKER = 58,
	GHC_BLOCKS_SIZE = 91,
	GHC_HEAP_PROF_BEGIN = 160,
	GHC_HEAP_PROF_COST_CENTRE = 161,
	GHC_HEAP_PROF_SAMPLE_BEGIN = 162,
	GHC_HEAP_PROF_SAMPLE_COST_CENTRE = 163,
	GHC_HEAP_PROF_SAMPLE_STRING = 164,
	GHC_HEAP_PROF_SAMPLE_END = 165,
	GHC_HEAP_BIO_PROF_SAMPLE_BEGIN = 166,
	GHC_PROF_SAMPLE_COST_CENTRE = 167,
	GHC_PROF_BEGIN = 168,
	GHC_IPE = 169,
};

enum { GHC_NO_CAP = UINT16_MAX, GHC_EVENT_MAX = 2 + 8 + 2 + UINT16_MAX };

struct ghc_event {
	uint16_t number, cap; /* cap: of its block; GHC_NO_CAP: none */
	uint64_t ns;
	struct bytes payload;
};

struct ghc_events {
	int (*event)(void *ctx, const struct ghc_event *e); /* 0 to go on; else ghc_events_feed() returns it */
	void *ctx;
	int32_t size[UINT16_MAX + 1]; /* by number: -1: not declared, UINT16_MAX: varies */
	int state;
	uint64_t offset;            /* of the next byte                                        */
	uint64_t n_events;          /* that were understood or passed over whole               */
	uint64_t last_ns;           /* the latest time of all                                  */
	uint64_t block_end;         /* of the block that is read; 0: none                      */
	uint16_t block_cap;
	uint64_t skip;              /* bytes still to pass over                                */
	uint64_t skipped, first_skipped; /* bytes of blocks that were passed over, and where first */
	uint16_t unknown;           /* the event that was not declared                         */
	size_t n_carry;
	uint8_t carry[2 * GHC_EVENT_MAX]; /* what began in the piece before                    */
};

/* Large: not for the stack. */
void ghc_events_init(struct ghc_events *g, int (*event)(void *ctx, const struct ghc_event *e), void *ctx);
/* 0, what `event` returned, or -EBADMSG: it is not an eventlog, or goes on as none. */
int ghc_events_feed(struct ghc_events *g, struct bytes piece);
/* Where reading stands: are the events there, and was the end mark? */
bool ghc_events_begun(const struct ghc_events *g);
bool ghc_events_ended(const struct ghc_events *g);
/* Does the file declare that event? */
bool ghc_events_has(const struct ghc_events *g, uint16_t number);

/* Integers from the front of a payload; false: it is too short. */
bool ghc_u8(struct bytes *b, uint8_t *ret);
bool ghc_u16(struct bytes *b, uint16_t *ret);
bool ghc_u32(struct bytes *b, uint32_t *ret);
bool ghc_u64(struct bytes *b, uint64_t *ret);
/* Up to a NUL, which is taken too, or to the end. */
struct bytes ghc_string(struct bytes *b);

#endif
