/*
 * The outer form of a profile.proto message: fields in any order. For pprof_read.c, which walks
 * it without unpacking the whole.
 */
#ifndef MEMSCOPE_MODEL_PPROF_WIRE_H
#define MEMSCOPE_MODEL_PPROF_WIRE_H

#include "base/bytes.h"

/* Field numbers of Profile (profile.proto). */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE,
	MAPPING,
	LOCATION,
	FUNCTION,
	STRING_TABLE,
	DROP_FRAMES,
	KEEP_FRAMES,
	TIME_NANOS,
	DURATION_NANOS,
	PERIOD_TYPE,
	PERIOD,
	COMMENT,
	DEFAULT_SAMPLE_TYPE,
	DOC_URL,
};

/* Wire types (protobuf's encoding). */
enum { VARINT = 0, FIXED64 = 1, LEN = 2, FIXED32 = 5 };

struct pprof_field {
	uint64_t number;
	unsigned wire;
	uint64_t value;       /* VARINT */
	struct bytes bytes;   /* LEN    */
};

/* Takes the next field from the front. -EBADMSG: cut, or not protobuf. */
int pprof_next_field(struct bytes *b, struct pprof_field *ret_field);

#endif
