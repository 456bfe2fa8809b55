/*
 * V8's translations and safepoints as anyone may have made them, in each of their formats. What is read ends, and functions
 * that come out of it are functions.
 *
 *   version:1 pc:2 safepoints:40 translations …
 */
#include "base/bytes.h"
#include "v8_fixture.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { SAFEPOINTS = 40, TRANSLATIONS_MAX = 0x1800, DEOPTS = 64 };

static void check_active(const struct v8_process *p, const struct v8_reader *r, uint32_t n,
			 const struct v8_active *active)
{
	if (n > LANG_INLINED_MAX || p->memory.reads > 1 << 20)
		abort();
	for (uint32_t i = 0; i < n; i++)
		if (!v8_is(r, active[i].shared, V8F_SHARED))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint32_t versions[] = { 13 << 16 | 6, 12 << 16 | 4, 11 << 16 | 3, 10 << 16 | 2,
					     9 << 16 | 4 };
	static struct v8_process p;
	struct v8_active active[LANG_INLINED_MAX];
	struct bytes in = bytes_of(data, len);
	uint32_t n = len < SAFEPOINTS + 3 ? 0 : (uint32_t)len - SAFEPOINTS - 3;
	struct v8_rt rt;
	struct v8_reader r = { .rt = &rt, .mem = &p.memory.mem };
	struct v8_code code = { .deopt = v8f_ptr(V8F_DEOPT), .start = v8f_addr(V8F_SAFEPOINTS) };
	uint8_t version;
	uint16_t pc;

	if (bytes_u8(&in, &version) < 0 || bytes_u16(&in, &pc) < 0 || len < SAFEPOINTS + 3)
		return 0;
	v8f_init(&p);
	rt = p.image.v8.rt;
	rt.deopts = v8_deopt_layout(versions[version % 5]);
	code.kind = rt.kind_baseline + 1u + (version >> 7);
	memcpy(p.bytes + V8F_SAFEPOINTS, data + 3, SAFEPOINTS);
	v8f_bytes(&p, V8F_TRANSLATIONS, data + 3 + SAFEPOINTS,
		  n < TRANSLATIONS_MAX ? n : TRANSLATIONS_MAX);
	v8f_smi(&p, V8F_DEOPT + 8, 11 + 3 * DEOPTS);
	if (v8_deopt_of_call(&r, &code, pc) < -1)
		abort();
	/* From anywhere in the first bytes. */
	for (uint32_t i = 0; i < 4; i++) {
		v8f_smi(&p, V8F_FIRST_DEOPT + 24 * i + 8, (int32_t)(i ? pc % (17 * i) : 0));
		p.memory.reads = 0;
		check_active(&p, &r, v8_deopt_frames(&r, &code, i, active), active);
	}
	return 0;
}
