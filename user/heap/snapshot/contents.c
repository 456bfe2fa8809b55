#include "heap/snapshot/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

enum { LEVEL = 1, NUMBER_MAX = 1 << 24, PAIR_MAX = 1 << 16, LETTERS = 4 };

/* --- words --- */

static bool is_mapped(const struct heap_memory *mem, const struct heap_map **last, uint64_t word)
{
	if (*last && word >= (*last)->start && word < (*last)->end)
		return true;
	if (!mem->n_maps || word < mem->maps[0].start || word >= mem->maps[mem->n_maps - 1].end)
		return false;
	*last = heap_map_of(mem, word);
	return *last != NULL;
}

static bool is_letter(uint32_t half)
{
	return half >= 0x20 && half < PAIR_MAX && half != 0x7f;
}

/* Pairs that may be letters of 32 bits each: LETTERS of them behind each other are. */
static void drop_wide_text(uint32_t *halves, size_t n)
{
	for (size_t i = 0, from = 0; i <= n; i++) {
		if (i < n && is_letter(halves[i]))
			continue;
		if (i - from >= LETTERS)
			memset(&halves[from], 0, (i - from) * sizeof(*halves));
		from = i + 1;
	}
}

/* How many letters it begins with, up to 8; behind them it is zeros, or it has none. */
static uint32_t letters_of(uint64_t word)
{
	uint32_t n = 0;

	for (; n < 8 && (word & 0xff) >= 0x20 && (word & 0xff) != 0x7f; word >>= 8)
		n++;
	return word ? 0 : n;
}

void contents_keep_words(const struct heap_memory *mem, uint8_t *bytes, size_t len)
{
	const struct heap_map *last = NULL;
	bool in_text = false;

	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t word;
		bool ends_text;

		memcpy(&word, bytes + i, 8);
		/* The last letters of a text are no number. */
		ends_text = in_text && letters_of(word) > 0;
		in_text = letters_of(word) == 8;
		if (ends_text || in_text) {
			memset(bytes + i, 0, 8);
			continue;
		}
		if (word >= NUMBER_MAX && !(word >> 32 < PAIR_MAX && (uint32_t)word < PAIR_MAX) &&
		    !is_mapped(mem, &last, word))
			memset(bytes + i, 0, 8);
	}
	memset(bytes + len - len % 8, 0, len % 8);
	drop_wide_text((uint32_t *)(void *)bytes, len / 4);
}

/* --- packing --- */

struct contents_packer {
	const struct heap_memory *mem;
	ZSTD_CCtx *z;
	uint8_t *kept; /* NULL: everything is */
	uint8_t *frame;
	size_t room;
};

struct contents_packer *contents_packer_new(const struct heap_memory *mem, bool words)
{
	_cleanup_(contents_packer_freep) struct contents_packer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->mem = mem;
	p->z = ZSTD_createCCtx();
	p->room = ZSTD_compressBound(FILE_FRAME);
	p->frame = malloc(p->room);
	p->kept = words ? malloc(FILE_FRAME) : NULL;
	if (!p->z || !p->frame || (words && !p->kept) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(p->z, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(p->z, ZSTD_c_checksumFlag, 1)))
		return NULL;
	return TAKE_PTR(p);
}

void contents_packer_free(struct contents_packer *p)
{
	if (!p)
		return;
	ZSTD_freeCCtx(p->z);
	free(p->kept);
	free(p->frame);
	free(p);
}

int contents_pack(struct contents_packer *p, const uint8_t *bytes, size_t len,
		  const uint8_t **ret_frame, size_t *ret_len)
{
	size_t n;

	if (p->kept) {
		memcpy(p->kept, bytes, len);
		contents_keep_words(p->mem, p->kept, len);
		bytes = p->kept;
	}
	n = ZSTD_compress2(p->z, p->frame, p->room, bytes, len);
	if (ZSTD_isError(n))
		return -EIO;
	*ret_frame = p->frame;
	*ret_len = n;
	return 0;
}

/* --- unpacking --- */

struct contents {
	const uint8_t *packed;
	const uint64_t *frames;
	uint64_t n, len;
	int fd; /* without a name; its size is `len` */
	uint8_t *bytes;
	uint8_t *loaded; /* of each frame: 0 not yet, 1 it is there, 2 it cannot be */
	uint8_t *piece;
	ZSTD_DCtx *z;
};

int contents_open(const uint8_t *packed, const uint64_t *frames, uint64_t n, uint64_t len,
		  const char *folder, struct contents **ret_contents)
{
	struct contents *c = calloc(1, sizeof(*c));
	void *at = MAP_FAILED;

	if (!c)
		return -ENOMEM;
	*c = (struct contents){ packed, frames, n, len, -1, NULL, NULL, NULL, NULL };
	c->loaded = calloc(n + 1, 1);
	c->piece = malloc(FILE_FRAME);
	c->z = ZSTD_createDCtx();
	c->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (c->fd < 0)
		c->fd = memfd_create("memscope-contents", MFD_CLOEXEC);
	if (c->fd >= 0 && ftruncate(c->fd, (off_t)len) == 0)
		at = mmap(NULL, len, PROT_READ, MAP_SHARED, c->fd, 0);
	if (at == MAP_FAILED || !c->loaded || !c->piece || !c->z) {
		contents_close(c);
		return -ENOMEM;
	}
	c->bytes = at;
	*ret_contents = c;
	return 0;
}

void contents_close(struct contents *c)
{
	if (!c)
		return;
	if (c->bytes)
		munmap(c->bytes, c->len);
	if (c->fd >= 0)
		close(c->fd);
	free(c->loaded);
	free(c->piece);
	ZSTD_freeDCtx(c->z);
	free(c);
}

uint8_t *contents_bytes(const struct contents *c)
{
	return c->bytes;
}

/* By a write, which says so where there is no room; a store into the mapping would end the program. */
static bool load_frame(struct contents *c, uint64_t i)
{
	uint64_t at = i * FILE_FRAME, want = c->len - at < FILE_FRAME ? c->len - at : FILE_FRAME;
	size_t n = ZSTD_decompressDCtx(c->z, c->piece, want, c->packed + c->frames[i],
				       c->frames[i + 1] - c->frames[i]);

	return !ZSTD_isError(n) && n == want &&
	       pwrite(c->fd, c->piece, want, (off_t)at) == (ssize_t)want;
}

bool contents_load(void *contents, uint64_t at, uint64_t len)
{
	struct contents *c = contents;

	if (at > c->len || len > c->len - at)
		return false;
	for (uint64_t i = at / FILE_FRAME; len && i <= (at + len - 1) / FILE_FRAME; i++) {
		if (!c->loaded[i])
			c->loaded[i] = load_frame(c, i) ? 1 : 2;
		if (c->loaded[i] != 1)
			return false;
	}
	return true;
}
