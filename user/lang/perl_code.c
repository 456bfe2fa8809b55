/*
 * Two functions of Perl's by the code around them, as they have no symbol, or lie in another: docatch(), and the part of
 * perl_run() that calls the loop which executes the program.
 */
#include "lang/perl.h"

#include "elf/cfi.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MAX = 1 << 16, TARGETS_MAX = 256 };

/* Where a function's calls and jumps lead to, out of it. */
struct targets {
	uint64_t at[TARGETS_MAX];
	uint32_t n;
	bool indirect; /* also calls of what a variable points to */
};

static bool follow(struct elf_file *elf, uint64_t vaddr, uint64_t size, struct targets *t)
{
	_cleanup_(freep) uint8_t *code = NULL;
	bool x86 = elf_file_machine(elf) == EM_X86_64;
	struct accessor_state state = { 0 };
	const struct elf_segment *segs;
	uint64_t off, at = 0;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	if (!vaddr || !size || size > CODE_MAX || !elf_segments_vaddr_to_off(segs, n, vaddr, &off))
		return false;
	code = malloc(size);
	if (!code || elf_file_read(elf, off, code, size, NULL) < 0)
		return false;
	while (at < size) {
		struct accessor_insn in = { 0 };

		if (!(x86 ? accessor_step_x86 : accessor_step_arm64)(&state, code + at, size - at,
								     vaddr + at, &in)) {
			at += x86 ? 1 : 4;
			continue;
		}
		at += in.len;
		if (in.flow != FLOW_CALL && in.flow != FLOW_JUMP && in.flow != FLOW_BRANCH)
			continue;
		if (!in.target || in.target == ~0ULL)
			t->indirect |= in.flow == FLOW_CALL;
		else if (in.target - vaddr >= size && t->n < TARGETS_MAX)
			t->at[t->n++] = in.target;
	}
	return true;
}

bool perl_main_find(struct elf_file *elf, const struct elf_export *run,
		    struct lang_range *ret_range)
{
	struct targets t = { 0 };

	if (!follow(elf, run->vaddr, run->size, &t) || !t.indirect)
		return false;
	*ret_range = (struct lang_range){ run->vaddr, run->vaddr + run->size };
	return true;
}

uint64_t perl_pointer_at(struct elf_file *elf, uint64_t vaddr)
{
	_cleanup_(freep) uint8_t *relocations = NULL;
	bool x86 = elf_file_machine(elf) == EM_X86_64;
	const struct elf_segment *segs;
	const struct elf_section *sec;
	uint64_t off, word = 0;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	if (!elf_segments_vaddr_to_off(segs, n, vaddr, &off) ||
	    elf_file_read(elf, off, &word, sizeof(word), NULL) < 0 || word)
		return word;
	if (elf_file_find_section(elf, ".rela.dyn", &sec, NULL) < 0 ||
	    elf_file_read_section(elf, sec, &relocations, NULL) < 0)
		return 0;
	for (uint64_t i = 0; i + sizeof(Elf64_Rela) <= sec->size; i += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, relocations + i, sizeof(rela));
		if (rela.r_offset == vaddr &&
		    ELF64_R_TYPE(rela.r_info) == (x86 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE))
			return (uint64_t)rela.r_addend;
	}
	return 0;
}

/* Goes through the function that begins at `vaddr`. */
static bool follow_function(struct elf_file *elf, const struct cfi *cfi, uint64_t vaddr,
			    struct targets *t)
{
	struct cfi_fde fde;
	uint32_t i;

	if (!vaddr || cfi_find(cfi, vaddr, &i) < 0)
		return false;
	fde = cfi_fde_at(cfi, i);
	return fde.start == vaddr && follow(elf, vaddr, fde.end - vaddr, t);
}

bool perl_catch_find(struct elf_file *elf, uint64_t entertry, uint64_t entereval,
		     struct lang_range *ret_range)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	struct targets a = { 0 }, b = { 0 };
	uint64_t found = 0;
	struct cfi_fde fde;
	uint32_t fde_ix;

	if (cfi_open(elf, CFI_EH_FRAME, &cfi, NULL) < 0 || !cfi ||
	    !follow_function(elf, cfi, entertry, &a) || !follow_function(elf, cfi, entereval, &b))
		return false;
	for (uint32_t i = 0; i < a.n; i++)
		for (uint32_t k = 0; k < b.n; k++) {
			struct targets in = { 0 };

			/* It calls the loop. A stub for a library's function does not begin where its FDE does. */
			if (a.at[i] != b.at[k] || a.at[i] == found ||
			    !follow_function(elf, cfi, a.at[i], &in) || !in.indirect)
				continue;
			if (found)
				return false;
			found = a.at[i];
		}
	if (!found || cfi_find(cfi, found, &fde_ix) < 0)
		return false;
	fde = cfi_fde_at(cfi, fde_ix);
	*ret_range = (struct lang_range){ fde.start, fde.end };
	return true;
}
