#include "collect/alloc_sites.h"

#include "collect/placement.h"
#include "elf/elf_file.h"
#include "elf/elf_syms.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES (1u << 20)  /* of code at a time                            */
#define JUMP_REACH (16u << 20) /* how far from them jumps to functions are looked for */

/* A function, before it is known where in it the probe goes. */
struct found {
	uint64_t vaddr, off;
	const struct allocator *row;
	struct placement at_entry, best;
};

struct search {
	struct elf_file *elf;
	struct elf_syms *syms;
	bool moved;
	uint32_t n;
	struct found found[ALLOC_SITES_MAX];
};

/* Arguments that the program of a shape reads, a bit each. */
static const uint32_t shape_args[MS_N_SHAPES] = {
	[MS_SHAPE_SIZE] = 1,    [MS_SHAPE_COUNT_SIZE] = 3, [MS_SHAPE_ALIGN_SIZE] = 2,
	[MS_SHAPE_OUT_PTR] = 5, [MS_SHAPE_REALLOC] = 3,    [MS_SHAPE_REALLOC_N] = 7,
	[MS_SHAPE_FREE] = 1,
};

/* Where in the function: at its entry, and better if the code is known. */
static void place(const struct search *s, const struct elf_sym *sym, struct found *f)
{
	uint8_t code[PLACEMENT_MAX_CODE];
	struct placement_ask ask = {
		.code = code,
		.args = shape_args[f->row->shape],
		.returns = f->row->shape != MS_SHAPE_FREE,
		.moved = s->moved,
	};

	if (elf_file_machine(s->elf) == EM_X86_64 && elf_file_is64(s->elf) && !sym->label)
		ask.len = sym->size < sizeof(code) ? sym->size : sizeof(code);
	if (ask.len && elf_file_read(s->elf, f->off, code, ask.len, NULL) < 0)
		ask.len = 0;
	placement_entry(&ask, &f->at_entry);
	placement_find(&ask, &f->best);
}

static void found_add(struct search *s, const struct elf_sym *sym, const struct allocator *row)
{
	const struct elf_segment *segs;
	struct found f = { .vaddr = sym->vaddr, .row = row };
	uint32_t n;

	segs = elf_file_segments(s->elf, &n);
	if (sym->ifunc || !elf_segments_vaddr_to_off(segs, n, sym->vaddr, &f.off))
		return;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->found[i].off == f.off)
			return; /* an alias */
	if (s->n == ALLOC_SITES_MAX)
		return;
	place(s, sym, &f);
	s->found[s->n++] = f;
}

/* Jumps in [from, to) of the file's addresses, piece by piece; a jump may lie on a boundary. */
static void read_jumps(const struct search *s, const struct elf_segment *seg, uint64_t from,
		       uint64_t to, struct placement_gap *gaps, uint32_t n)
{
	uint8_t *text = malloc(READ_BYTES + 8);

	for (uint64_t at = from; text && at < to; at += READ_BYTES) {
		size_t len = to - at < READ_BYTES + 8 ? to - at : READ_BYTES + 8;

		if (elf_file_read(s->elf, seg->off + (at - seg->vaddr), text, len, NULL) < 0)
			break;
		placement_jumps(text, len, at, gaps, n);
	}
	free(text);
}

/* Functions that are jumped into, before the place that was found, are probed at their entries. */
static void check_jumps(struct search *s)
{
	struct placement_gap gaps[ALLOC_SITES_MAX];
	const struct elf_segment *segs;
	uint64_t low = UINT64_MAX, high = 0;
	uint32_t n_segs;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct found *f = &s->found[i];

		gaps[i] = (struct placement_gap){ f->vaddr, f->vaddr + f->best.at, false };
		low = f->vaddr < low ? f->vaddr : low;
		high = f->vaddr > high ? f->vaddr : high;
	}
	low = low < JUMP_REACH ? 0 : low - JUMP_REACH;
	high = high > UINT64_MAX - JUMP_REACH ? UINT64_MAX : high + JUMP_REACH;
	segs = elf_file_segments(s->elf, &n_segs);
	for (uint32_t i = 0; i < n_segs && s->n; i++) {
		uint64_t from = segs[i].vaddr, to = segs[i].vaddr + segs[i].filesz;

		if (segs[i].flags & PF_X && from < high && to > low)
			read_jumps(s, &segs[i], from > low ? from : low, to < high ? to : high,
				   gaps, s->n);
	}
	for (uint32_t i = 0; i < s->n; i++)
		if (gaps[i].hit)
			s->found[i].best = s->found[i].at_entry;
}

/*
 * jemalloc (from 5.3) and tcmalloc define operator new without calling their malloc; it throws, so
 * it gets no return probe, and what it allocates is not seen. They are known by a function of their
 * own.
 */
static const char *const own_new_marks[] = { "mallocx", "tc_version", NULL };

static bool has_own_new(struct elf_syms *syms)
{
	if (elf_syms_find_name(syms, "_Znwm", NULL, 0) <= 0)
		return false;
	for (const char *const *mark = own_new_marks; *mark; mark++)
		if (elf_syms_find_name(syms, *mark, NULL, 0) > 0)
			return true;
	return false;
}

static bool is_name(const char *name, const char *of_symbol)
{
	while (*name && *name == *of_symbol)
		name++, of_symbol++;
	return !*name && (!*of_symbol || *of_symbol == '@');
}

/* What is looked for below, in a program that may have a hundred thousand other functions. */
static bool is_of_interest(void *ctx, const char *symbol)
{
	(void)ctx;
	for (const struct allocator *a = allocators; a->symbol; a++)
		if (is_name(a->symbol, symbol))
			return true;
	for (const char *const *mark = own_new_marks; *mark; mark++)
		if (is_name(*mark, symbol))
			return true;
	return false;
}

void alloc_sites_find(int fd, bool moved, struct alloc_sites *ret_sites)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	struct search s = { .moved = moved };

	memset(ret_sites, 0, sizeof(*ret_sites));
	if (elf_file_open(fd, "", &elf, NULL) < 0 ||
	    elf_syms_load_some(elf, is_of_interest, NULL, &syms, NULL) < 0)
		return;
	s.elf = elf;
	s.syms = syms;
	for (const struct allocator *a = allocators; a->symbol; a++) {
		struct elf_sym syms_of[8];
		int n = a->via ? 0 : elf_syms_find_name(syms, a->symbol, syms_of, 8);

		for (int i = 0; i < n && i < 8; i++)
			found_add(&s, &syms_of[i], a);
	}
	ret_sites->own_new = has_own_new(syms);
	ret_sites->site = s.n ? calloc(s.n, sizeof(*ret_sites->site)) : NULL;
	if (!ret_sites->site)
		return;
	check_jumps(&s);
	for (uint32_t i = 0; i < s.n; i++) {
		const struct found *f = &s.found[i];

		ret_sites->site[ret_sites->n++] = (struct alloc_site){
			.off = f->off + f->best.at,
			.place = f->best.place,
			.shape = f->row->shape,
			.main = strcmp(f->row->symbol, "malloc") == 0 ||
				strcmp(f->row->symbol, "free") == 0,
			.emulated = f->best.emulated,
		};
	}
}

void alloc_sites_fini(struct alloc_sites *sites)
{
	free(sites->site);
}
