/*
 * A pclntab of four functions, with 8 bytes of arguments times their number, in the layout of each version of Go, in the frames' place of
 * code_image.h:
 *
 *   main.main        0x401000: delta 0, from +4 on 24, from +0x30 on 0
 *   runtime.goexit   0x401040: delta 0
 *   runtime.systemstack  0x401080: delta 0
 *   runtime.systemstack_switch  0x4010c0: delta 0, up to 0x401100
 */
#ifndef MEMSCOPE_TESTS_GO_IMAGE_H
#define MEMSCOPE_TESTS_GO_IMAGE_H

#include "code_image.h"

enum { GO_FUNCS = 4, GO_FUNC_BYTES = 0x40, GO_PARTS = 0x100 };

static const char *const go_names[GO_FUNCS] = { "main.main", "runtime.goexit", "runtime.systemstack",
						"runtime.systemstack_switch" };

/* `magic`: of the version; `text`: what the header says of the text's start, if it says something. */
static inline void go_put(struct code_image *im, uint32_t magic, uint64_t text)
{
	bool old = magic == 0xfffffffb, offsets = magic == 0xfffffff0 || magic == 0xfffffff1;
	uint32_t field = offsets ? 4 : 8, quantum = im->machine == EM_AARCH64 ? 4 : 1;
	/* names, pc values, functions: each at a place of its own behind the header */
	uint32_t names = GO_PARTS, pcs = 2 * GO_PARTS, funcs = old ? 16 : 3 * GO_PARTS;
	uint32_t record = 4 * GO_PARTS, name = 1;
	/* +1: from -1 to 0; 24 up; 24 down */
	const uint8_t deltas[] = { 2, (uint8_t)(4 / quantum), 48, (uint8_t)(0x2c / quantum), 47,
				   (uint8_t)(0x10 / quantum), 0 };
	const uint8_t flat[] = { 2, (uint8_t)(0x40 / quantum), 0 };
	uint8_t *b = im->frames;

	im->frames_name = ".gopclntab";
	memset(b, 0, 0x800);
	memcpy(b, &magic, 4);
	b[6] = (uint8_t)quantum;
	b[7] = 8;
	b[8] = GO_FUNCS;
	if (!old) {
		const uint64_t new16[] = { 0, names, 0, 0, pcs, funcs };
		const uint64_t new18[] = { 0, text, names, 0, 0, pcs, funcs };

		memcpy(b + 16, offsets ? new18 : new16, offsets ? sizeof(new18) : sizeof(new16));
	}
	memcpy(b + pcs + 1, deltas, sizeof(deltas));
	memcpy(b + pcs + 32, flat, sizeof(flat));
	for (uint32_t i = 0; i <= GO_FUNCS; i++) {
		uint64_t entry = offsets ? i * GO_FUNC_BYTES : CODE_TEXT + i * GO_FUNC_BYTES;
		uint64_t at = record + 64 * i - (old ? 0 : funcs);
		uint32_t name_at = old ? names + name : name, pcsp = i ? 32 : 1;

		memcpy(b + funcs + 2 * i * field, &entry, field);
		if (i == GO_FUNCS)
			break;
		memcpy(b + funcs + (2 * i + 1) * field, &at, field);
		if (old)
			pcsp += pcs;
		memcpy(b + record + 64 * i + field, &name_at, 4);
		memcpy(b + record + 64 * i + field + 4, &(uint32_t){ 8 * i }, 4);
		memcpy(b + record + 64 * i + field + 12, &pcsp, 4);
		strcpy((char *)b + names + name, go_names[i]);
		name += (uint32_t)strlen(go_names[i]) + 1;
	}
	im->frames_len = 0x800;
}

#endif
