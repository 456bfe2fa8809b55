/*
 * Where the code is that executes an interpreter's frames: a function (CPython's _PyEval_EvalFrameDefault()), and what
 * the compiler put elsewhere because it is rarely run. That has a symbol of its own (….cold) in a file that was not
 * stripped, and none in others: Debian's python3.11 has 13,913 of 69,557 bytes there. It is found by following
 * direct jumps out of the function into another FDE. A part differs from a function, to which a last call
 * may jump, in that its CFA is not as at the begin of a function, or that jumps go to its middle.
 *
 * An interpreter of tail calls (CPython 3.14) is entered by the same function, which stays on the stack under the
 * one that executes an instruction: nothing else is needed, as each entry has one such frame.
 */
#include "elf/cfi.h"
#include "lang/image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

enum { CODE_MAX = 1 << 20, X86_RSP = 7, ARM64_SP = 31 };

struct search {
	struct elf_file *elf;
	struct cfi *cfi;
	struct lang_range *range;
	uint32_t n;
};

static bool is_known(const struct search *s, uint64_t vaddr)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (vaddr >= s->range[i].start && vaddr < s->range[i].end)
			return true;
	return false;
}

/* The first row: as a function begins? */
static int is_begin(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules)
{
	bool *begins = arg;

	*begins = rules->cfa_kind == CFI_CFA_REG &&
		  ((rules->cfa_reg == X86_RSP && rules->cfa_off == 8) ||
		   (rules->cfa_reg == ARM64_SP && rules->cfa_off == 0));
	return 1;
}

static void follow_jump(struct search *s, uint64_t target)
{
	struct cfi_fde fde;
	bool begins = true;
	uint32_t i, least = 1;

	if (is_known(s, target) || cfi_find(s->cfi, target, &i) < 0)
		return;
	fde = cfi_fde_at(s->cfi, i);
	if (target == fde.start)
		cfi_rows(s->cfi, i, is_begin, &begins);
	else
		begins = false;
	if (begins || fde.end - fde.start > CODE_MAX)
		return;
	if (s->n < MS_LANG_RANGES) {
		s->range[s->n++] = (struct lang_range){ fde.start, fde.end };
		return;
	}
	/* The largest count. The first is the function. */
	for (uint32_t k = 1; k < s->n; k++)
		if (s->range[k].end - s->range[k].start <
		    s->range[least].end - s->range[least].start)
			least = k;
	if (fde.end - fde.start > s->range[least].end - s->range[least].start)
		s->range[least] = (struct lang_range){ fde.start, fde.end };
}

static int follow_jumps_of(struct search *s, struct lang_range range, struct err *e)
{
	bool x86 = elf_file_machine(s->elf) == EM_X86_64;
	size_t len = range.end - range.start, at = 0;
	_cleanup_(freep) uint8_t *code = malloc(len);
	struct accessor_state state = { 0 };
	const struct elf_segment *segs;
	uint64_t off;
	uint32_t n;
	int r;

	if (!code)
		return err_set(e, -ENOMEM, "%s: out of memory for code", elf_file_name(s->elf));
	segs = elf_file_segments(s->elf, &n);
	if (!elf_segments_vaddr_to_off(segs, n, range.start, &off))
		return err_set(e, -EBADMSG, "%s: a function is outside of the file",
			       elf_file_name(s->elf));
	r = elf_file_read(s->elf, off, code, len, e);
	if (r < 0)
		return r;
	while (at < len) {
		struct accessor_insn in = { 0 };

		if (!(x86 ? accessor_step_x86 : accessor_step_arm64)(&state, code + at, len - at,
								     range.start + at, &in)) {
			at += x86 ? 1 : 4;
			continue;
		}
		if ((in.flow == FLOW_JUMP || in.flow == FLOW_BRANCH) && in.target != ~0ULL &&
		    (in.target < range.start || in.target >= range.end))
			follow_jump(s, in.target);
		at += in.len;
	}
	return 0;
}

int lang_ranges(struct elf_file *elf, const struct elf_export *function, struct lang_image *image,
		struct err *e)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	struct search s = { .elf = elf, .range = image->range, .n = 1 };
	uint64_t size = function->size;
	uint32_t i;
	int r;

	r = cfi_open(elf, CFI_EH_FRAME, &cfi, e);
	if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP)
		return r;
	if (!size && cfi && cfi_find(cfi, function->vaddr, &i) == 0)
		size = cfi_fde_at(cfi, i).end - function->vaddr;
	if (!size || size > CODE_MAX || function->vaddr + size < size)
		return err_set(e, -EOPNOTSUPP,
			       "%s: where the code of its interpreter ends is not known",
			       elf_file_name(elf));
	s.cfi = cfi;
	image->range[0] = (struct lang_range){ function->vaddr, function->vaddr + size };
	for (uint32_t k = 0; cfi && k < s.n; k++) {
		r = follow_jumps_of(&s, s.range[k], e);
		if (r < 0)
			return r;
	}
	image->n_ranges = s.n;
	return 0;
}

void lang_range_add(const struct elf_export *function, struct lang_image *image)
{
	uint64_t size = function->size;

	if (function->vaddr && size && size <= CODE_MAX && function->vaddr + size > size &&
	    image->n_ranges < MS_LANG_RANGES)
		image->range[image->n_ranges++] =
			(struct lang_range){ function->vaddr, function->vaddr + size };
}

void lang_ranges_mapped(const struct lang_mapped *runtime, struct ms_lang_row *row)
{
	const struct lang_image *image = runtime->image;

	row->n_ranges = (uint8_t)image->n_ranges;
	for (uint32_t i = 0; i < image->n_ranges; i++) {
		row->range[i].start = image->range[i].start + runtime->bias;
		row->range[i].end = image->range[i].end + runtime->bias;
	}
}
