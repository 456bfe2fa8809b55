/*
 * The code of a hostile runtime, followed to find where it keeps its threads' values: every place that comes out is one, whatever the
 * code, and no more instructions are followed than are allowed. An instruction has a length that it says, within its bytes. First byte:
 * machine, and the function's argument.
 */
#include "lang/accessor.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_place(void *ctx, const struct place *p)
{
	uint32_t *n = ctx;

	if (p->base > PLACE_THREAD || p->reads > ACCESSOR_READS_MAX ||
	    (p->reads && p->last_bytes != 4 && p->last_bytes != 8) ||
	    (p->base == PLACE_UNKNOWN && p->reads))
		abort();
	/* An instruction makes few. */
	if (++*n > ACCESSOR_STEPS_MAX * (ACCESSOR_REGS + 2u))
		abort();
}

static void step_through(const struct accessor *code)
{
	struct accessor_state s = { 0 };
	struct accessor_insn in;

	for (size_t at = 0; at < code->len; at += in.len) {
		in = (struct accessor_insn){ .taken = -1 };
		if (!(code->machine == EM_X86_64 ? accessor_step_x86 : accessor_step_arm64)(
			    &s, code->bytes + at, code->len - at, code->vaddr + at, &in))
			return;
		if (!in.len || in.len > code->len - at || in.flow > FLOW_END || in.taken < -1 ||
		    in.taken > 1)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct accessor code = { .vaddr = 0x401000 };
	uint32_t n = 0;
	const struct accessor_fn fn = { check_place, check_place, check_place, &n };

	if (!size)
		return 0;
	code.machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	code.len = (uint16_t)(size - 1 < ACCESSOR_BYTES_MAX ? size - 1 : ACCESSOR_BYTES_MAX);
	memcpy(code.bytes, data + 1, code.len);
	accessor_follow(&code, data[0] >> 1, &fn);
	step_through(&code);
	return 0;
}
