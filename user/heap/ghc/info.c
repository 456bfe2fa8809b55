#include "heap/ghc/ghc.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 1024, SIZE_MAX_WORDS = 1 << 24 };

void ghc_fini(struct ghc *g)
{
	free(g->infos.rows);
	free(g->infos.slots);
	g->infos = (struct ghc_infos){ 0 };
}

bool ghc_word_slowly(struct ghc *g, uint64_t addr, uint64_t *ret)
{
	uint64_t len;
	const uint8_t *bytes;

	if (addr % 8)
		return false;
	if (!ghc_in_heap(g, addr))
		return g->mem.read(g->mem.ctx, addr, ret, 8);
	bytes = g->mem.piece(g->mem.ctx, addr, &len);
	if (!bytes || len < 8) {
		*ret = 0;
		return true;
	}
	g->at = addr;
	g->len = len < g->end - addr ? len : g->end - addr;
	g->bytes = bytes;
	memcpy(ret, bytes, 8);
	return true;
}

bool ghc_is_code(const struct ghc *g, uint64_t addr)
{
	uint32_t low = 0, high = g->n_code;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (addr >= g->code[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g->n_code && addr >= g->code[low].from;
}

/* --- info tables --- */

static void read_fun(struct ghc *g, struct ghc_info *i)
{
	struct {
		uint64_t bitmap;
		uint32_t type, arity;
	} fun;

	if (g->mem.read(g->mem.ctx, i->at - 32, &fun, sizeof(fun))) {
		i->fun_type = fun.type;
		i->fun_bitmap = fun.bitmap;
	} else {
		i->type = GHC_INVALID;
	}
}

static struct ghc_info read_info(struct ghc *g, uint64_t at)
{
	struct ghc_info i = { .at = at };
	struct {
		uint64_t layout;
		uint32_t type;
		int32_t srt;
	} table;

	if (!g->mem.read(g->mem.ctx, at - sizeof(table), &table, sizeof(table)) || !table.type ||
	    table.type >= g->layout->types)
		return i;
	i.type = (enum ghc_type)table.type;
	i.layout = table.layout;
	i.ptrs = (uint32_t)table.layout;
	i.nptrs = (uint32_t)(table.layout >> 32);
	if (!ghc_is_constr(i.type) && table.srt)
		i.srt = at + (uint64_t)(int64_t)table.srt;
	if (ghc_is_fun(i.type))
		read_fun(g, &i);
	if ((ghc_is_constr(i.type) || ghc_is_fun(i.type) || ghc_is_thunk(i.type)) &&
	    (i.ptrs > SIZE_MAX_WORDS || i.nptrs > SIZE_MAX_WORDS))
		i.type = GHC_INVALID;
	return i;
}

static uint32_t slot_of(const struct ghc_infos *t, uint64_t at)
{
	uint32_t mask = t->n_slots - 1, i = (uint32_t)((at * 0x9e3779b97f4a7c15ULL) >> 32) & mask;

	while (t->slots[i] && t->rows[t->slots[i] - 1].at != at)
		i = (i + 1) & mask;
	return i;
}

static bool grow(struct ghc_infos *t)
{
	uint32_t n = t->n_slots ? 2 * t->n_slots : SLOTS_MIN;
	struct ghc_info *rows = reallocarray(t->rows, n / 2, sizeof(*rows));
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (rows)
		t->rows = rows;
	if (!rows || !slots) {
		free(slots);
		return false;
	}
	free(t->slots);
	t->slots = slots;
	t->n_slots = n;
	t->room = n / 2;
	for (uint32_t i = 0; i < t->n; i++)
		t->slots[slot_of(t, t->rows[i].at)] = i + 1;
	return true;
}

const struct ghc_info *ghc_info_known(const struct ghc *g, uint64_t at)
{
	uint32_t slot = g->infos.n_slots ? g->infos.slots[slot_of(&g->infos, at)] : 0;

	return slot ? &g->infos.rows[slot - 1] : NULL;
}

const struct ghc_info *ghc_info_of(struct ghc *g, uint64_t at)
{
	static const struct ghc_info none;
	struct ghc_infos *t = &g->infos;
	uint32_t slot;

	/* Whatever is not even code is not remembered: there may be any number of those. */
	if (at % 8 || !ghc_is_code(g, at))
		return &none;
	if (t->n_slots) {
		slot = slot_of(t, at);
		if (t->slots[slot])
			return &t->rows[t->slots[slot] - 1];
	}
	if (t->n == t->room && !grow(t)) {
		g->oom = true;
		return NULL;
	}
	slot = slot_of(t, at);
	t->rows[t->n++] = read_info(g, at);
	t->slots[slot] = t->n;
	return &t->rows[t->n - 1];
}

bool ghc_constr_name(struct ghc *g, uint64_t info, char *text, size_t cap)
{
	int32_t off;
	uint64_t at;

	if (!g->mem.read(g->mem.ctx, info - 24, &off, sizeof(off)))
		return false;
	at = info + (uint64_t)(int64_t)off;
	for (size_t i = 0; i < cap; i++) {
		if (!g->mem.read(g->mem.ctx, at + i, text + i, 1))
			return false;
		if (!text[i])
			return i > 0;
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	}
	return false;
}
