/*
 * What comes from the kernel's maps and ring, as bpf/abi.h has it, into the profiles: for files of this room
 * (ingest_listen() calls most of it). All others include ingest.h.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_INGEST_WIRE_H
#define MEMSCOPE_COLLECT_STREAM_INGEST_WIRE_H

#include "collect/stream/ingest.h"
#include "collect/wire.h"

/* All return 0 or -ENOMEM. */
int ingest_stack(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames);
/* The same for a stack walked in user space, which knows the generation of its addresses; those of
 * totals are ignored. */
int ingest_stack_placed(struct ingest *in, const struct ms_stack_rec *rec, const uint64_t *frames,
			uint32_t as_gen);
int ingest_total(struct ingest *in, const struct ms_total_key *key, const struct ms_total *total);
/*
 * The scheduler's times of a thread. One that has not ended is assumed to stay in its present state
 * up to `end_ns`, and a wait that is still open becomes a sample of that length.
 */
int ingest_thread(struct ingest *in, uint32_t tid, const struct ms_thread *t, uint64_t end_ns);
/* Adds the wait that a thread is in at `now_ns`, if any, as a sample to `to`, and nothing else.
 * Neither its blocked nor its runnable part exceeds what will be reported when it ends. A wait
 * whose stack has not arrived is dropped here: it will be in a total when it ends. */
int ingest_open_wait(struct ingest *in, struct profile *to, uint32_t tid, const struct ms_thread *t,
		     uint64_t now_ns);
/* The same for waits of a sampled thread that are in no total yet. */
int ingest_rest(struct ingest *in, struct profile *to, const struct ms_total_key *key,
		const struct ms_total *total);

#endif
