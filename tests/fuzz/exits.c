/*
 * Code of a hostile file, in an image that is well-formed but for that: what is found to be a return
 * is one.
 */
#include "collect/probes/return_sites.h"

#include "unit/elf/code_image.h"

#include <stdlib.h>

#define LEN 0x400

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(return_sites_image_close) struct return_sites_image image = { 0 };
	static struct code_image im;
	uint64_t exits[RETURN_SITES_MAX];
	int n;

	code_init(&im);
	memcpy(code_text(&im, CODE_TEXT), data, size < LEN ? size : LEN);
	code_sym(&im, "first", CODE_TEXT, LEN / 2);
	code_sym(&im, "second", CODE_TEXT + LEN / 2, LEN / 2);
	put_usual_cie(&im);
	put_fde(&im, CODE_TEXT, LEN / 2, "", 0);
	put_fde(&im, CODE_TEXT + LEN / 2, LEN / 2, "", 0);
	code_finish(&im);
	if (elf_file_open_memory(im.bytes, im.len, "input", &elf, NULL) < 0 ||
	    return_sites_image_open(elf, &image) < 0)
		return 0;
	n = return_sites_find(&image, CODE_TEXT, exits);
	if (n > RETURN_SITES_MAX)
		abort();
	for (int i = 0; i < n; i++)
		if (exits[i] < CODE_TEXT || exits[i] >= CODE_TEXT + LEN)
			abort();
	return 0;
}
