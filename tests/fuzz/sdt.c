/*
 * USDT notes of a hostile file: the bytes of their section in a well-formed image. What is kept lies
 * in the file, and every argument is understood or refused.
 */
#include "elf/sdt.h"
#include "unit/elf/code_image.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_arguments(const char *args)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	struct sdt_arg arg;

	for (int m = 0; m < 2; m++)
		for (uint32_t i = 0; i < SDT_ARGS_MAX; i++) {
			int r = sdt_arg_parse(machines[m], args, i, &arg);

			if (r == -ENOENT)
				break;
			if (r == 0 && (!arg.size || arg.size > 8 || arg.reg > 31))
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(sdt_notes_freep) struct sdt_notes *notes = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	static struct code_image im;

	code_init(&im);
	im.frames_name = ".note.stapsdt";
	im.frames_flags = 0;
	put(&im, data, size < CODE_FRAMES_LEN ? size : CODE_FRAMES_LEN);
	code_finish(&im);
	if (elf_file_open_memory(im.bytes, im.len, "input", &elf, NULL) < 0)
		abort();
	if (sdt_notes_load(elf, &notes, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < sdt_notes_count(notes); i++) {
		const struct sdt_note *note = sdt_notes_at(notes, i);

		if (note->off >= im.len || note->semaphore_off >= im.len ||
		    strlen(note->provider) + strlen(note->name) > size)
			abort();
		check_arguments(note->args);
	}
	return 0;
}
