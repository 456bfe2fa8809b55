/*
 * What the fuzz targets of languages have in common: an image read from bytes, changes of a process's memory taken from
 * the input, and checks of what comes out.
 */
#ifndef MEMSCOPE_TESTS_FUZZ_LANG_INPUT_H
#define MEMSCOPE_TESTS_FUZZ_LANG_INPUT_H

#include "base/bytes.h"
#include "fake_process.h"
#include "lang/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Changes of a process's memory, up to the end of the input: { at:2 or 4, len:1, base:1, word:8 }…
 * The word is counted from one of four bases: most of what lies in memory points into it.
 */
static inline void lang_change(struct fake_process *f, struct bytes *in, bool wide, const uint64_t bases[4])
{
	uint8_t len, base;
	uint32_t at = 0;
	uint16_t near;
	uint64_t word;

	for (;;) {
		if (wide ? bytes_u32(in, &at) < 0 : bytes_u16(in, &near) < 0)
			return;
		if (bytes_u8(in, &len) < 0 || bytes_u8(in, &base) < 0 || bytes_u64(in, &word) < 0)
			return;
		fake_process_put(f, wide ? at % (uint32_t)f->len : near, word + bases[base % 4], 1 + len % 8);
	}
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

/* Finds a runtime, in so many reads at most. Any other error than these is none that a process may cause. */
static inline bool lang_find(struct fake_process *f, const struct lang_mapped *runtime_at,
			     const struct lang_mapped *libc_at, uint64_t reads_max, struct lang_runtime *rt)
{
	int r = lang_runtime_find(runtime_at, libc_at, &f->mem, rt, NULL);

	if (f->reads > reads_max || (r < 0 && r != -EAGAIN && r != -EOPNOTSUPP))
		abort();
	if (r == 0 && !memchr(rt->name, 0, sizeof(rt->name)))
		abort();
	f->reads = 0;
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

/* One frame, whose fields were anything before, in so many reads at most. */
static inline void lang_check_decode(const struct lang_runtime *rt, struct fake_process *f,
				     const uint64_t words[2], uint64_t reads_max)
{
	static struct lang_frame frame;

	memset(&frame, 'x', sizeof(frame));
	f->reads = 0;
	if (lang_decode(rt, &f->mem, words, &frame) == LANG_DECODED)
		lang_check_frame(&frame);
	if (f->reads > reads_max)
		abort();
}

/* Those of one place in compiled code. */
static inline void lang_check_decode_all(const struct lang_runtime *rt, struct fake_process *f,
					 const uint64_t words[2], uint64_t reads_max)
{
	enum lang_decoded r;
	static struct lang_frames all;

	memset(&all, 'x', sizeof(all));
	f->reads = 0;
	r = lang_decode_all(rt, &f->mem, words, &all);
	if (f->reads > reads_max)
		abort();
	if (r != LANG_DECODED)
		return;
	if (!all.n || all.n > LANG_INLINED_MAX)
		abort();
	for (uint32_t i = 0; i < all.n; i++)
		lang_check_frame(&all.frame[i]);
}

#endif
