#include "collect/probes/return_sites.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void return_sites_image_close(struct return_sites_image *im)
{
	cfi_free(im->cfi);
	elf_syms_free(im->syms);
	elf_plt_free(im->plt);
	*im = (struct return_sites_image){ 0 };
}

#if defined(__x86_64__)

#include <Zydis/Zydis.h>

#define MAX_BLOCKS 1024
#define MAX_INSNS  16384
#define MAX_CODE   (64u << 10) /* bytes of one function */

struct walk {
	const struct return_sites_image *im;
	ZydisDecoder decoder;
	/* The function that is read just now. */
	uint8_t *code;
	uint64_t start, end;
	/* Where control goes; the first `n_done` have been followed. */
	uint64_t blocks[MAX_BLOCKS];
	uint32_t n_blocks, n_done, n_insns;
	uint64_t *exits;
	uint32_t n_return_sites;
};

static int add_block(struct walk *w, uint64_t vaddr)
{
	for (uint32_t i = 0; i < w->n_blocks; i++)
		if (w->blocks[i] == vaddr)
			return 0;
	if (w->n_blocks == MAX_BLOCKS)
		return -E2BIG;
	w->blocks[w->n_blocks++] = vaddr;
	return 0;
}

static int add_exit(struct walk *w, uint64_t vaddr)
{
	for (uint32_t i = 0; i < w->n_return_sites; i++)
		if (w->exits[i] == vaddr)
			return 0;
	if (w->n_return_sites == RETURN_SITES_MAX)
		return -E2BIG;
	w->exits[w->n_return_sites++] = vaddr;
	return 0;
}

/* The code of the function around `vaddr`. */
static int read_function(struct walk *w, uint64_t vaddr)
{
	const struct elf_segment *segs;
	struct cfi_fde fde;
	uint32_t ix, n;
	uint64_t off;
	uint8_t *code;

	if (w->code && vaddr >= w->start && vaddr < w->end)
		return 0;
	if (cfi_find(w->im->cfi, vaddr, &ix) < 0)
		return -EOPNOTSUPP;
	fde = cfi_fde_at(w->im->cfi, ix);
	segs = elf_file_segments(w->im->elf, &n);
	if (fde.end - fde.start > MAX_CODE || !elf_segments_vaddr_to_off(segs, n, fde.start, &off))
		return -EOPNOTSUPP;
	code = malloc(fde.end - fde.start);
	if (!code)
		return -ENOMEM;
	free(w->code);
	w->code = code;
	w->start = fde.start;
	w->end = fde.end;
	return elf_file_read(w->im->elf, off, code, fde.end - fde.start, NULL);
}

/* A jump: to its target, or to what the stub there calls, if that is in this file. */
static int add_jump(struct walk *w, uint64_t to)
{
	const char *name = w->im->plt ? elf_plt_find(w->im->plt, to) : NULL;
	struct elf_sym sym;

	if (!name)
		return add_block(w, to);
	if (!w->im->syms || elf_syms_find_name(w->im->syms, name, &sym, 1) != 1 || sym.ifunc)
		return -EOPNOTSUPP;
	return add_block(w, sym.vaddr);
}

/* Is it the end of a block? What comes after it is added. < 0: it is no one's to say. */
static int follow(struct walk *w, const ZydisDecodedInstruction *in, uint64_t vaddr)
{
	uint64_t to = vaddr + in->length + (uint64_t)in->raw.imm[0].value.s;
	int r;

	switch (in->meta.category) {
	case ZYDIS_CATEGORY_RET:
		r = add_exit(w, vaddr);
		return r < 0 ? r : 1;
	case ZYDIS_CATEGORY_COND_BR:
		return in->raw.imm[0].is_relative ? add_jump(w, to) : -EOPNOTSUPP;
	case ZYDIS_CATEGORY_UNCOND_BR:
		r = in->raw.imm[0].is_relative ? add_jump(w, to) : -EOPNOTSUPP;
		return r < 0 ? r : 1;
	case ZYDIS_CATEGORY_INTERRUPT:
		return 1;
	default:
		return in->mnemonic == ZYDIS_MNEMONIC_UD2 || in->mnemonic == ZYDIS_MNEMONIC_HLT;
	}
}

static int walk_block(struct walk *w, uint64_t vaddr)
{
	ZydisDecodedInstruction in;
	int r = read_function(w, vaddr);

	while (r == 0 && vaddr < w->end) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			    &w->decoder, NULL, w->code + (vaddr - w->start), w->end - vaddr, &in)))
			return -EOPNOTSUPP;
		if (++w->n_insns > MAX_INSNS)
			return -E2BIG;
		r = follow(w, &in, vaddr);
		vaddr += in.length;
	}
	return r < 0 ? r : 0;
}

int return_sites_image_open(struct elf_file *elf, struct return_sites_image *ret_image)
{
	struct return_sites_image im = { .elf = elf };
	int r = elf_file_machine(elf) == EM_X86_64 && elf_file_is64(elf) ? 0 : -EOPNOTSUPP;

	if (r == 0)
		r = cfi_open(elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &im.cfi, NULL);
	if (r == 0) {
		r = elf_syms_load(elf, &im.syms, NULL);
		r = r == -ENOENT ? 0 : r;
	}
	if (r == 0) {
		r = elf_plt_load(elf, &im.plt, NULL);
		r = r == -ENOENT ? 0 : r;
	}
	if (r < 0)
		return_sites_image_close(&im);
	else
		*ret_image = im;
	return r;
}

int return_sites_find(const struct return_sites_image *im, uint64_t vaddr, uint64_t *ret_sites)
{
	struct walk *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->im = im;
	w->exits = ret_sites;
	ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	r = add_block(w, vaddr);
	while (r == 0 && w->n_done < w->n_blocks)
		r = walk_block(w, w->blocks[w->n_done++]);
	r = r < 0 ? r : (int)w->n_return_sites;
	free(w->code);
	free(w);
	return r;
}

#else

int return_sites_image_open(struct elf_file *elf, struct return_sites_image *ret_image)
{
	(void)elf;
	(void)ret_image;
	return -EOPNOTSUPP;
}

int return_sites_find(const struct return_sites_image *im, uint64_t vaddr, uint64_t *ret_sites)
{
	(void)im;
	(void)vaddr;
	(void)ret_sites;
	return -EOPNOTSUPP;
}

#endif

int return_sites_offs(const struct return_sites_image *im, uint64_t vaddr, uint64_t *ret_offs)
{
	uint64_t vaddrs[RETURN_SITES_MAX], offs[RETURN_SITES_MAX];
	int n = im ? return_sites_find(im, vaddr, vaddrs) : -EOPNOTSUPP;
	const struct elf_segment *segs;
	uint32_t n_segs;

	if (n < 0)
		return n;
	segs = elf_file_segments(im->elf, &n_segs);
	for (int i = 0; i < n; i++)
		if (!elf_segments_vaddr_to_off(segs, n_segs, vaddrs[i], &offs[i]))
			return -EOPNOTSUPP;
	memcpy(ret_offs, offs, sizeof(*offs) * (size_t)n);
	return n;
}
