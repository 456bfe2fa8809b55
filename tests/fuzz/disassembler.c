/* The code of a hostile file: each instruction is within it, has a text that ends, and goes on to the next. First byte: machine, syntax. */
#include "elf/disassembler.h"

#include <elf.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(disassembler_closep) struct disassembler *dis = NULL;
	size_t at = 1;

	if (!size || disassembler_open(data[0] & 1 ? EM_AARCH64 : EM_X86_64,
				       data[0] & 2 ? SYNTAX_INTEL : SYNTAX_ATT, &dis) < 0)
		return 0;
	while (at < size) {
		struct instruction in;

		disassembler_read(dis, data + at, size - at, UINT64_MAX - size / 2 + at, &in);
		if (!in.size || in.size > size - at || !*in.text ||
		    !memchr(in.text, 0, sizeof(in.text)))
			__builtin_trap();
		at += in.size;
	}
	return 0;
}
