#include "model/pprof_wire.h"

#include "model/pprof.h"

int pprof_next_field(struct bytes *b, struct pprof_field *ret_field)
{
	struct pprof_field f = { 0 };
	uint64_t tag, len;

	if (bytes_uleb(b, &tag) < 0)
		return -EBADMSG;
	f.number = tag >> 3;
	f.wire = tag & 7;
	if (f.wire == VARINT) {
		if (bytes_uleb(b, &f.value) < 0)
			return -EBADMSG;
	} else if (f.wire == LEN) {
		if (bytes_uleb(b, &len) < 0 || bytes_take(b, len, &f.bytes) < 0)
			return -EBADMSG;
	} else if (f.wire == FIXED64 || f.wire == FIXED32) {
		if (bytes_skip(b, f.wire == FIXED64 ? 8 : 4) < 0)
			return -EBADMSG;
	} else {
		return -EBADMSG;
	}
	*ret_field = f;
	return 0;
}

bool pprof_recognise(struct bytes data)
{
	bool has_type = false;
	struct pprof_field f;

	while (data.len) {
		if (pprof_next_field(&data, &f) < 0 || !f.number || f.number > 64)
			return false;
		if (f.number <= STRING_TABLE && f.wire != LEN)
			return false;
		has_type |= f.number == SAMPLE_TYPE;
	}
	return has_type;
}
