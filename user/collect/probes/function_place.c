#include "collect/probes/function_place.h"

#include <elf.h>
#include <stdlib.h>

#define READ_BYTES (1u << 20)  /* of code at a time */
#define JUMP_REACH (16u << 20) /* how far from functions jumps to them are searched */

bool function_place_find(struct elf_file *elf, const struct elf_sym *sym, struct placement_ask ask,
			 struct function_place *ret_place)
{
	struct function_place place = { .vaddr = sym->vaddr };
	uint8_t code[PLACEMENT_MAX_CODE];
	const struct elf_segment *segs;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	if (sym->ifunc || !elf_segments_vaddr_to_off(segs, n, sym->vaddr, &place.off))
		return false;
	ask.code = code;
	ask.len = 0;
	if (elf_file_machine(elf) == EM_X86_64 && elf_file_is64(elf) && !sym->label)
		ask.len = sym->size < sizeof(code) ? sym->size : sizeof(code);
	if (ask.len && elf_file_read(elf, place.off, code, ask.len, NULL) < 0)
		ask.len = 0;
	placement_entry(&ask, &place.at_entry);
	placement_find(&ask, &place.best);
	*ret_place = place;
	return true;
}

/* Jumps in [from, to) of the file's addresses, piece by piece; a jump may lie on a boundary. */
static void read_jumps(struct elf_file *elf, const struct elf_segment *seg, uint64_t from,
		       uint64_t to, struct placement_gap *gaps, uint32_t n)
{
	uint8_t *text = malloc(READ_BYTES + 8);

	for (uint64_t at = from; text && at < to; at += READ_BYTES) {
		size_t len = to - at < READ_BYTES + 8 ? to - at : READ_BYTES + 8;

		if (elf_file_read(elf, seg->off + (at - seg->vaddr), text, len, NULL) < 0)
			break;
		placement_jumps(text, len, at, gaps, n);
	}
	free(text);
}

static void find_jumps(struct elf_file *elf, struct placement_gap *gaps, uint32_t n)
{
	uint64_t low = UINT64_MAX, high = 0;
	const struct elf_segment *segs;
	uint32_t n_segs;

	for (uint32_t i = 0; i < n; i++) {
		low = gaps[i].from < low ? gaps[i].from : low;
		high = gaps[i].from > high ? gaps[i].from : high;
	}
	low = low < JUMP_REACH ? 0 : low - JUMP_REACH;
	high = high > UINT64_MAX - JUMP_REACH ? UINT64_MAX : high + JUMP_REACH;
	segs = elf_file_segments(elf, &n_segs);
	for (uint32_t i = 0; i < n_segs && n; i++) {
		uint64_t from = segs[i].vaddr, to = segs[i].vaddr + segs[i].filesz;

		if (segs[i].flags & PF_X && from < high && to > low)
			read_jumps(elf, &segs[i], from > low ? from : low, to < high ? to : high,
				   gaps, n);
	}
}

void function_places_check(struct elf_file *elf, struct function_place *const *places, uint32_t n)
{
	struct placement_gap gaps[FUNCTION_PLACES_MAX];
	struct function_place *moved[FUNCTION_PLACES_MAX];
	uint32_t n_gaps = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct function_place *p = places[i];

		if (!p->best.at)
			continue;
		if (n_gaps == FUNCTION_PLACES_MAX) {
			p->best = p->at_entry;
			continue;
		}
		gaps[n_gaps] = (struct placement_gap){ p->vaddr, p->vaddr + p->best.at, false };
		moved[n_gaps++] = p;
	}
	find_jumps(elf, gaps, n_gaps);
	for (uint32_t i = 0; i < n_gaps; i++)
		if (gaps[i].hit)
			moved[i]->best = moved[i]->at_entry;
}
