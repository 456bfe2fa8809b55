#include "heap/blocks.h"

#include "base/grow.h"
#include "base/large.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_MAX (16ULL << 30) /* bytes of one; larger ones are several */

static uint32_t words(uint64_t bytes)
{
	return bytes / 8 < UINT32_MAX ? (uint32_t)(bytes / 8) : UINT32_MAX;
}

/* Is an address that is asked for in it? Blocks come mostly by address: the place of the last one is near. */
static bool is_sought(struct heap_blocks *b, uint64_t addr, uint64_t bytes)
{
	uint64_t low = 0, high = b->n_sought;

	if (b->at && b->sought[b->at - 1] >= addr)
		b->at = 0;
	else
		low = b->at;
	for (int steps = 0; steps < 8 && low < high && b->sought[low] < addr; steps++)
		low++;
	while (low < high && b->sought[low] < addr) {
		uint64_t mid = low + (high - low) / 2;

		if (b->sought[mid] < addr)
			low = mid + 1;
		else
			high = mid;
	}
	b->at = low;
	return low < b->n_sought && b->sought[low] - addr < bytes;
}

static bool is_sampled(const struct heap_blocks *b, uint64_t addr)
{
	/* MurmurHash3's finalizer: addresses are multiples of sizes. */
	addr ^= addr >> 33;
	addr *= 0xff51afd7ed558ccdULL;
	addr ^= addr >> 33;
	addr *= 0xc4ceb9fe1a85ec53ULL;
	addr ^= addr >> 33;
	return addr <= UINT64_MAX / b->one_in;
}

static void count(struct heap_blocks *b, uint64_t bytes)
{
	b->all.blocks++;
	b->all.words += words(bytes);
	if (b->class_of)
		b->all.class_words[b->class_of(words(bytes))] += words(bytes);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void heap_blocks_uncount(struct heap_blocks *b, uint64_t bytes)
{
	uint64_t *class;

	if (!b)
		return;
	b->all.blocks = less(b->all.blocks, 1);
	b->all.words = less(b->all.words, words(bytes));
	if (!b->class_of)
		return;
	class = &b->all.class_words[b->class_of(words(bytes))];
	*class = less(*class, words(bytes));
}

void heap_blocks_add(struct heap_blocks *b, uint64_t addr, uint64_t bytes, uint64_t resident)
{
	if (!b)
		return;
	count(b, bytes);
	if (b->over || (b->sought && !is_sought(b, addr, bytes)) ||
	    (b->one_in && !is_sampled(b, addr)))
		return;
	if (b->n == b->room) {
		uint64_t room = b->room ? 2 * b->room : 1024;
		struct heap_block *rows;

		if (room > b->max)
			room = b->max;
		rows = room > b->n ? large_resize(b->rows, room, sizeof(*rows)) : NULL;
		b->over = !rows;
		if (!rows)
			return;
		b->rows = rows;
		b->room = room;
	}
	b->rows[b->n++] = (struct heap_block){ addr & HEAP_ADDR_MASK, b->owner, words(bytes),
					       words(resident) };
}

/* false: there is no room for it. */
static bool add_owner(struct heap_blocks *b, const struct heap_owner *owner)
{
	struct heap_owner *more = NULL;

	if (b->n_owners < HEAP_OWNERS_MAX)
		more = reallocarray(b->owners, b->n_owners + 1, sizeof(*more));
	if (!more)
		return false;
	b->owners = more;
	b->owners[b->n_owners++] = *owner;
	return true;
}

void heap_blocks_allocator(struct heap_blocks *b, const char *allocator)
{
	static const struct heap_owner none;

	if (!b || (!b->n_owners && !add_owner(b, &none)))
		return;
	b->first_owner = b->n_owners;
	b->owner = 0;
	if (add_owner(b, &(struct heap_owner){ .allocator = allocator, .arena = HEAP_NO_ARENA }))
		b->owner = (uint16_t)b->first_owner;
}

void heap_blocks_arena(struct heap_blocks *b, uint32_t arena)
{
	uint64_t at;

	if (!b || b->first_owner >= b->n_owners)
		return;
	at = b->first_owner + (arena == HEAP_NO_ARENA ? 0 : 1 + (uint64_t)arena);
	while (b->n_owners <= at) {
		struct heap_owner next = { .allocator = b->owners[b->first_owner].allocator,
					   .arena = b->n_owners - b->first_owner - 1 };

		if (at >= HEAP_OWNERS_MAX || !add_owner(b, &next)) {
			b->owner = (uint16_t)b->first_owner;
			return;
		}
	}
	b->owner = (uint16_t)at;
}

void heap_blocks_held(struct heap_blocks *b, uint64_t bytes)
{
	if (b && b->owner)
		b->owners[b->owner].held = bytes;
}

void heap_blocks_metadata(struct heap_blocks *b, uint64_t bytes)
{
	if (b && b->owner)
		b->owners[b->owner].metadata += bytes;
}

void heap_blocks_part(struct heap_blocks *b, enum heap_kind kind, uint64_t addr, uint64_t bytes)
{
	if (!b || !b->wants_parts)
		return;
	for (uint64_t piece; bytes >= 8; addr += piece, bytes -= piece) {
		if (!GROW(b->parts, b->n_parts, b->room_parts)) {
			b->over = true;
			return;
		}
		piece = bytes < PART_MAX ? bytes : PART_MAX;
		b->parts[b->n_parts++] =
			(struct heap_part){ addr & HEAP_ADDR_MASK, b->owner, words(piece), kind };
	}
}

void heap_owner_name(const struct heap_owner *owner, char name[HEAP_OWNER_NAME_MAX])
{
	if (!owner->allocator)
		snprintf(name, HEAP_OWNER_NAME_MAX, "unknown");
	else if (strcmp(owner->allocator, HEAP_NO_ALLOCATOR) == 0)
		snprintf(name, HEAP_OWNER_NAME_MAX, "mappings of no allocator");
	else if (owner->arena == HEAP_NO_ARENA)
		snprintf(name, HEAP_OWNER_NAME_MAX, "%s, own mappings", owner->allocator);
	else
		snprintf(name, HEAP_OWNER_NAME_MAX, "%s arena %u", owner->allocator, owner->arena);
}

const struct heap_owner *heap_blocks_owner(const struct heap_blocks *b, uint32_t owner)
{
	static const struct heap_owner none;

	return owner < b->n_owners ? &b->owners[owner] : &none;
}

void heap_blocks_unknown(struct heap_blocks *b, uint64_t from, uint64_t end)
{
	struct heap_range *more;

	if (!b || b->over)
		return;
	more = reallocarray(b->unknown, b->n_unknown + 1, sizeof(*more));
	b->over = !more;
	if (!more)
		return;
	b->unknown = more;
	b->unknown[b->n_unknown++] = (struct heap_range){ from, end };
}

static int by_address(const void *a, const void *b)
{
	const struct heap_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* A run comes before what is in it. */
static int part_by_address(const void *a, const void *b)
{
	const struct heap_part *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->kind < y->kind) - (x->kind > y->kind);
}

void heap_blocks_sort(struct heap_blocks *b)
{
	uint64_t i = 1;

	while (i < b->n && b->rows[i - 1].addr <= b->rows[i].addr)
		i++;
	if (i < b->n)
		qsort(b->rows, b->n, sizeof(*b->rows), by_address);
	if (b->n_parts)
		qsort(b->parts, b->n_parts, sizeof(*b->parts), part_by_address);
}

uint64_t heap_blocks_find(const struct heap_blocks *b, uint64_t addr)
{
	uint64_t low = 0, high = b->n;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (b->rows[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void heap_blocks_free(struct heap_blocks *b)
{
	large_free(b->rows);
	free(b->unknown);
	free(b->parts);
	free(b->owners);
	b->rows = NULL;
	b->unknown = NULL;
	b->parts = NULL;
	b->owners = NULL;
	b->n = b->room = b->n_unknown = b->n_parts = b->room_parts = b->n_owners = 0;
	b->first_owner = b->owner = 0;
}

void heap_blocks_mark(const struct heap_blocks *b, struct heap_mark *ret_mark)
{
	if (!b)
		return;
	ret_mark->n = b->n;
	ret_mark->n_parts = b->n_parts;
	ret_mark->metadata = heap_blocks_owner(b, b->owner)->metadata;
	ret_mark->over = b->over;
	ret_mark->all.blocks = b->all.blocks;
	ret_mark->all.words = b->all.words;
	if (b->class_of)
		ret_mark->all = b->all;
}

void heap_blocks_rewind(struct heap_blocks *b, const struct heap_mark *mark)
{
	if (!b)
		return;
	b->n = mark->n;
	b->n_parts = mark->n_parts;
	if (b->owner < b->n_owners)
		b->owners[b->owner].metadata = mark->metadata;
	b->over = mark->over;
	b->all.blocks = mark->all.blocks;
	b->all.words = mark->all.words;
	if (b->class_of)
		b->all = mark->all;
}

void heap_blocks_clear(struct heap_blocks *b)
{
	b->n = b->n_unknown = b->n_parts = b->n_owners = 0;
	b->first_owner = b->owner = 0;
	b->at = 0;
	b->over = false;
	b->all = (struct heap_counts){ 0 };
}

bool heap_blocks_lists_all(const struct heap_blocks *b)
{
	return !b->over && !b->sought && !b->one_in;
}
