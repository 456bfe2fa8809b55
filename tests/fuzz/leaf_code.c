/*
 * Code that no call frame information covers, in a hostile file: what is taken for code that leaves the stack alone does so. By another
 * reader, the disassembler: each instruction is one, one of them returns, and none names the stack pointer, pushes, pops, calls or
 * leaves. What is padding, and where a signal handler returns, lies in the code that it is asked of.
 */
#include "unwind/leaf_code.h"
#include "elf/disassembler.h"

/* The name is taken. */
#define code_init image_init
#include "unit/elf/code_image.h"
#undef code_init

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MOST = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_word(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

static void check_leaf(const uint8_t *bytes, size_t len)
{
	static const char *const none_of[] = { "push", "pop", "call", "leave", "enter", "iret" };
	static struct disassembler *dis;
	bool returns = false;
	struct instruction in;

	if (!dis && disassembler_open(EM_X86_64, SYNTAX_INTEL, &dis) < 0)
		abort();
	for (size_t at = 0; at < len; at += in.size) {
		disassembler_read(dis, bytes + at, len - at, CODE_TEXT + at, &in);
		if (bytes[at] == 0xcc) {
			in.size = 1;
			continue;
		}
		if (is_word(in.text, "(bad)") || strstr(in.text, "rsp") || strstr(in.text, "esp"))
			abort();
		for (size_t i = 0; i < sizeof(none_of) / sizeof(*none_of); i++)
			if (is_word(in.text, none_of[i]))
				abort();
		returns |= strstr(in.text, "ret") != NULL;
	}
	if (!returns)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	size_t len = size < CODE_MOST ? size : CODE_MOST;
	static struct code_image im;
	static struct code code;
	uint64_t at, end = CODE_TEXT + len;
	uint32_t bytes;

	image_init(&im);
	memcpy(code_text(&im, CODE_TEXT), data, len);
	put_usual_cie(&im);
	code_finish(&im);
	if (elf_file_open_memory(im.bytes, im.len, "input", &elf, NULL) < 0 ||
	    code_init(&code, elf, NULL) < 0)
		abort();
	if (leaf_code(&code, CODE_TEXT, end))
		check_leaf(data, len);
	if (code_find_sigreturn(&code, CODE_TEXT, end, &at, &bytes) &&
	    (at < CODE_TEXT || at > end || bytes > end - at))
		abort();
	code_is_padding(&code, CODE_TEXT, end);
	code_sigreturn_ends_at(&code, end);
	return 0;
}
