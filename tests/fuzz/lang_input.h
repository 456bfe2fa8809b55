/*
 * What the fuzz targets of languages have in common: an image read from bytes, changes of a process's memory taken from
 * the input, and checks of what comes out.
 */
#ifndef MEMSCOPE_TESTS_FUZZ_LANG_INPUT_H
#define MEMSCOPE_TESTS_FUZZ_LANG_INPUT_H

#include "base/bytes.h"
#include "lang/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* `len` bytes of `word` go to `at`. */
struct lang_change {
	uint32_t at;
	uint8_t len;
	uint64_t word;
};

/* at:2 or 4, len:1, base:1, word:8. The word is counted from one of four bases: most of what lies in memory points into it.
 * false: that was the last. */
static inline bool lang_change_next(struct bytes *in, bool wide, const uint64_t bases[4],
				    struct lang_change *ret)
{
	uint8_t bytes, base;
	uint16_t at = 0;
	uint64_t word;

	*ret = (struct lang_change){ 0 };
	if ((wide ? bytes_u32(in, &ret->at) : bytes_u16(in, &at)) < 0 || bytes_u8(in, &bytes) < 0 ||
	    bytes_u8(in, &base) < 0 || bytes_u64(in, &word) < 0)
		return false;
	if (!wide)
		ret->at = at;
	ret->len = 1 + bytes % 8;
	ret->word = word + bases[base % 4];
	return true;
}

/* A file: NULL when nothing of a language is in it. The caller's. */
static inline struct lang_image *lang_image_of(struct bytes in)
{
	struct lang_image *image = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	if (elf_file_open_memory(in.data, in.len, "image", &elf, NULL) < 0 ||
	    lang_image_read(elf, &image, NULL) < 0)
		return NULL;
	if (image->n_ranges > MS_LANG_RANGES)
		abort();
	for (uint32_t i = 0; i < image->n_ranges; i++)
		if (image->range[i].start >= image->range[i].end)
			abort();
	return image;
}

/* Was it found? Any other error than these is none that a process may cause. */
static inline bool lang_found(int r, const struct lang_runtime *rt)
{
	if (r < 0 && r != -EAGAIN && r != -EOPNOTSUPP)
		abort();
	if (r == 0 && !memchr(rt->name, 0, sizeof(rt->name)))
		abort();
	return r == 0;
}

static inline void lang_check_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	if (n == room)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			abort();
}

static inline void lang_check_frame(const struct lang_frame *frame)
{
	lang_check_text(frame->function, sizeof(frame->function));
	lang_check_text(frame->file, sizeof(frame->file));
}

/* One frame, whose fields were anything before. */
static inline void lang_check_decode(const struct lang_runtime *rt, const struct lang_memory *mem,
				     const uint64_t words[2])
{
	static struct lang_frame frame;

	memset(&frame, 'x', sizeof(frame));
	if (lang_decode(rt, mem, words, &frame) == LANG_DECODED)
		lang_check_frame(&frame);
}

/* Those of one place in compiled code. */
static inline void lang_check_decode_all(const struct lang_runtime *rt,
					 const struct lang_memory *mem, const uint64_t words[2])
{
	static struct lang_frames all;

	memset(&all, 'x', sizeof(all));
	if (lang_decode_all(rt, mem, words, &all) != LANG_DECODED)
		return;
	if (!all.n || all.n > LANG_INLINED_MAX)
		abort();
	for (uint32_t i = 0; i < all.n; i++)
		lang_check_frame(&all.frame[i]);
}

#endif
