/*
 * Blocks whose bytes are text: strings of C, printable up to a NUL (UTF-8 or of one byte a letter) that fill their block as an
 * allocator rounds up; and, where there are dicts of redis, its own strings (sds.h: length, room and kind before the text; in an
 * object of 16 bytes for short ones).
 */
#include "heap/snapshot/type_way.h"

#include "heap/snapshot/snapshot.h"

#include <string.h>

enum {
	LETTERS_MIN = 4,
	SDS_KINDS = 5,
	OBJECT_EMBSTR = 0x80, /* OBJ_STRING, OBJ_ENCODING_EMBSTR << 4 */
	OBJECT_BYTES = 16,
};

struct finder {
	uint32_t text, sds, object; /* types; 0: none yet */
	bool redis;
};

/* Bytes before the text: its kind is the low three bits of the last. Two numbers of this many bytes each before that. */
static const uint8_t sds_number[SDS_KINDS] = { 0, 1, 2, 4, 8 };

/* Text in `size` bytes, as far as an allocator may have rounded that up. */
static bool is_c_string(const uint8_t *bytes, uint64_t size)
{
	uint64_t n = strnlen((const char *)bytes, size);

	return n >= LETTERS_MIN && n < size && collection_fits(n + 1, size) &&
	       type_is_text(bytes, n);
}

static uint64_t number(const uint8_t *bytes, uint8_t n)
{
	uint64_t x = 0;

	memcpy(&x, bytes, n);
	return x;
}

/* At `bytes`, `size` of which there are. */
static bool is_sds_of(const uint8_t *bytes, uint64_t size, uint8_t kind)
{
	uint64_t head = 2 * sds_number[kind] + 1ULL, length, room;

	if (size < head + 1 || (bytes[head - 1] & 7) != kind)
		return false;
	length = kind ? number(bytes, sds_number[kind]) : bytes[0] >> 3;
	room = kind ? number(bytes + sds_number[kind], sds_number[kind]) : length;
	if (length > room || room >= size || head + room + 1 > size ||
	    !collection_fits(head + room + 1, size) || bytes[head + length] ||
	    (kind && bytes[head - 1] != kind))
		return false;
	/* A length of more than a byte is proof enough. */
	return kind > 1 || type_is_text(bytes + head, length);
}

static bool is_sds(const uint8_t *bytes, uint64_t size)
{
	for (uint8_t kind = SDS_KINDS; kind-- > 0;)
		if (is_sds_of(bytes, size, kind))
			return true;
	return false;
}

static bool is_sds_object(uint64_t addr, const uint64_t words[TYPE_WORDS], const uint8_t *bytes,
			  uint64_t size)
{
	return size > OBJECT_BYTES + 4 && (words[0] & 0xff) == OBJECT_EMBSTR &&
	       words[1] == addr + OBJECT_BYTES + 3 &&
	       is_sds_of(bytes + OBJECT_BYTES, size - OBJECT_BYTES, 1);
}

static void set(struct type_finder *f, uint32_t node, uint32_t *type, const char *name)
{
	if (!*type)
		*type = type_add(f, TYPE_TEXT, name, 0);
	type_set(f, node, *type, 0);
}

static void look(struct type_finder *f, void *ctx, uint32_t node, const uint64_t words[TYPE_WORDS])
{
	uint64_t addr = f->blocks->rows[node].addr,
		 size = 8 * (uint64_t)f->blocks->rows[node].words, n;
	const uint8_t *bytes = copy_bytes(f->copy, addr, &n);
	struct finder *k = ctx;
	uint32_t offset;

	if (!bytes)
		return;
	size = size < n ? size : n;
	if (k->redis && is_sds_object(addr, words, bytes, size))
		set(f, node, &k->object, "redis string object");
	else if (k->redis && is_sds(bytes, size))
		set(f, node, &k->sds, "redis string (sds)");
	/* The bytes of an address may all be letters. */
	else if (is_c_string(bytes, size) &&
		 block_index_find(f->s->index, words[0], &offset) == BLOCK_NONE &&
		 !heap_map_of(copy_memory(f->copy), words[0]))
		set(f, node, &k->text, "C string");
}

void types_of_text(struct type_finder *f)
{
	struct finder k = { 0 };

	for (uint32_t i = 0; i < f->s->collections.n && !k.redis; i++)
		k.redis = f->s->collections.rows[i].kind == COLLECTION_DICT;
	type_each_unknown(f, look, &k);
}
