/*
 * Which functions of a hostile file refer to addresses, by its code and by looking at every byte of it: an image of four functions, whose
 * code and addresses are the input's. Who refers to an address is exactly those that have its four bytes; what is kept of a list is a
 * part of it, in its order.
 */
#include "elf/code_refs.h"
#include "unit/elf/code_image.h"

#include "base/bytes.h"

#include <stdlib.h>

enum { FUNCTIONS = 4, EACH = CODE_TEXT_LEN / FUNCTIONS, ASKED = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t begin_of(uint32_t function)
{
	return CODE_TEXT + function * EACH;
}

/* By the header's words: four bytes as a distance from behind them, or as they are. What it comes across is nothing to search for. */
__attribute__((no_sanitize("coverage"))) static bool refers(struct code_image *im,
							    uint32_t function, uint64_t to)
{
	for (uint64_t at = begin_of(function);
	     at < begin_of(function) + EACH && at + 4 <= CODE_TEXT + CODE_TEXT_LEN; at++) {
		int32_t word;

		memcpy(&word, code_text(im, at), sizeof(word));
		if (at + 4 + (uint64_t)(int64_t)word == to || (uint32_t)word == to)
			return true;
	}
	return false;
}

static void check_users(struct code_image *im, struct elf_file *elf, struct cfi *cfi,
			const uint64_t asked[ASKED])
{
	uint32_t fdes[FUNCTIONS], k = 0;
	int n = code_refs_users(elf, cfi, asked, ASKED, fdes, FUNCTIONS);

	for (uint32_t f = 0; f < FUNCTIONS; f++) {
		bool is = false;

		for (int i = 0; i < ASKED; i++)
			is |= refers(im, f, asked[i]);
		if (is && ((int)k >= n || fdes[k++] != f))
			abort();
	}
	if ((int)k != n)
		abort();
	if (n > 1 && code_refs_users(elf, cfi, asked, ASKED, fdes, 1) != -E2BIG)
		abort();
}

/* Of functions 1 and 2: each stays, unless the other one alone refers to it. */
static void check_entries(struct code_image *im, struct elf_file *elf, struct cfi *cfi)
{
	uint32_t fdes[2] = { 1, 2 }, kept = 0;
	int n = code_refs_entries(elf, cfi, fdes, 2);

	for (uint32_t f = 1; f <= 2; f++) {
		uint32_t other = 3 - f;
		bool outer = refers(im, 0, begin_of(f)) || refers(im, 3, begin_of(f));

		if (!outer && refers(im, other, begin_of(f)))
			continue;
		if ((int)kept >= n || fdes[kept++] != f)
			abort();
	}
	if ((int)kept != n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	struct bytes in = bytes_of(data, size);
	static struct code_image im;
	uint64_t asked[ASKED];

	code_init(&im);
	for (int i = 0; i < ASKED; i++) {
		uint16_t at = 0;

		bytes_u16(&in, &at);
		asked[i] = CODE_TEXT + at % (2 * CODE_TEXT_LEN);
	}
	memcpy(code_text(&im, CODE_TEXT), in.data, in.len < CODE_TEXT_LEN ? in.len : CODE_TEXT_LEN);
	put_usual_cie(&im);
	for (uint32_t f = 0; f < FUNCTIONS; f++)
		put_fde(&im, begin_of(f), EACH, "", 0);
	code_finish(&im);
	if (elf_file_open_memory(im.bytes, im.len, "input", &elf, NULL) < 0 ||
	    cfi_open(elf, CFI_EH_FRAME, &cfi, NULL) < 0 || cfi_n_fdes(cfi) != FUNCTIONS)
		abort();
	check_users(&im, elf, cfi, asked);
	check_entries(&im, elf, cfi);
	/* No function has a personality routine. */
	for (uint32_t f = 0; f < FUNCTIONS; f++)
		if (code_refs_may_throw(elf, cfi, f))
			abort();
	return 0;
}
