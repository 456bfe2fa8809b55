/*
 * GHC's run-time system in an image: by its content, as most Haskell programs are stripped and have it linked in.
 *
 * StgRun(), which all Haskell code is called by, is written in assembly and the same in every version: it saves the
 * registers that C functions keep and makes room for what Haskell code spills. Having CFI it is found among the
 * few functions of such a program that have: Haskell code has none. Where the state of a thread and its stack lie is
 * in the code that GHC generates wherever that calls C (bpf/walk/ghc.h says what is needed):
 *
 *   mov    rCurrentTSO(%r13),%rax
 *   mov    stackobj(%rax),%rbx
 *   mov    sp(%rbx),%rbp
 *   lea    stack + RESERVED_STACK_WORDS * 8(%rbx),%r15
 */
#include "lang/ghc.h"

#include "elf/cfi.h"
#include "elf/ghc_version.h"
#include "lang/image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EH_FRAME_SHARE =
		16, /* of the text, less is .eh_frame where most of it is Haskell code: 3 % in the smallest
				 * program of 9.0.2, 10 % and more in C */
	RUN_BYTES_MIN = 0x40,
	RUN_BYTES_MAX = 0xa0,
	NEAR_BYTES = 1 << 20, /* the run-time system's own code, before and behind StgRun() */
};

/* --- StgRun --- */

bool ghc_run_read(const uint8_t *code, size_t len, uint32_t *ret_saved)
{
	static const uint8_t saves[] = {
		0x48, 0x89, 0x18,       /* mov %rbx,(%rax)     */
		0x48, 0x89, 0x68, 0x08, /* mov %rbp,0x8(%rax)  */
		0x4c, 0x89, 0x60, 0x10, /* mov %r12,0x10(%rax) */
		0x4c, 0x89, 0x68, 0x18, /* mov %r13,0x18(%rax) */
		0x4c, 0x89, 0x70, 0x20, /* mov %r14,0x20(%rax) */
		0x4c, 0x89, 0x78, 0x28, /* mov %r15,0x28(%rax) */
	};
	static const uint8_t begins[] = {
		0x48, 0x83, 0xec, 0x30, /* sub $0x30,%rsp */
		0x48, 0x89, 0xe0,       /* mov %rsp,%rax  */
		0x48, 0x81, 0xec,       /* sub $…,%rsp    */
	};
	uint32_t room;

	if (len < sizeof(begins) + 4 + sizeof(saves) || memcmp(code, begins, sizeof(begins)) != 0 ||
	    memcmp(code + sizeof(begins) + 4, saves, sizeof(saves)) != 0)
		return false;
	memcpy(&room, code + sizeof(begins), sizeof(room));
	if (!room || room > 1 << 20 || room % 8)
		return false;
	*ret_saved = room;
	return true;
}

static int find_run(struct elf_file *elf, struct ghc_image *ghc, struct err *e)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	int r = cfi_open(elf, CFI_EH_FRAME, &cfi, e);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < cfi_n_fdes(cfi); i++) {
		struct cfi_fde fde = cfi_fde_at(cfi, i);
		uint64_t bytes = fde.end - fde.start;
		uint8_t code[64];

		if (bytes < RUN_BYTES_MIN || bytes > RUN_BYTES_MAX ||
		    !elf_file_read_vaddr(elf, fde.start, code, sizeof(code)) ||
		    !ghc_run_read(code, sizeof(code), &ghc->run_saved))
			continue;
		ghc->run = fde.start;
		return 0;
	}
	return -ENOENT;
}

/* --- offsets --- */

bool ghc_offsets_read(const uint8_t *code, size_t len, struct ghc_offsets *ret_offsets)
{
	struct ghc_offsets first = { 0 };
	uint32_t n = 0;

	/*    0: 49 8b 85 reg_tso:4   7: 48 8b 58 tso_stack   11: 48 8b 6b stack_sp   15: 4c 8d bb limit:4 */
	for (size_t i = 0; i + 22 <= len; i++) {
		const uint8_t *c = code + i;
		struct ghc_offsets o;
		uint32_t reg, limit;

		if (c[0] != 0x49 || c[1] != 0x8b || c[2] != 0x85 ||
		    memcmp(c + 7, "\x48\x8b\x58", 3) != 0 ||
		    memcmp(c + 11, "\x48\x8b\x6b", 3) != 0 ||
		    memcmp(c + 15, "\x4c\x8d\xbb", 3) != 0)
			continue;
		memcpy(&reg, c + 3, sizeof(reg));
		memcpy(&limit, c + 18, sizeof(limit));
		if (reg % 8 || reg > 0x2000 || c[10] % 8 || c[14] % 8 || c[14] < 16 ||
		    c[10] > 0x7f || c[14] > 0x7f || limit <= c[14] || limit > 0x400)
			continue;
		o = (struct ghc_offsets){ (uint16_t)reg, c[10], c[14] };
		if (n++ && memcmp(&o, &first, sizeof(o)) != 0)
			return false;
		first = o;
	}
	*ret_offsets = first;
	return n > 0;
}

/* The executable segment that StgRun() is in, and what is near that. */
static int read_near(struct elf_file *elf, struct ghc_image *ghc, struct err *e)
{
	_cleanup_(freep) uint8_t *code = NULL;
	const struct elf_segment *segs;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = ghc->run - segs[i].vaddr, from, to;
		int r;

		if (at >= segs[i].filesz)
			continue;
		from = at > NEAR_BYTES ? at - NEAR_BYTES : 0;
		to = segs[i].filesz - at > NEAR_BYTES ? at + NEAR_BYTES : segs[i].filesz;
		ghc->text = segs[i].vaddr;
		ghc->text_bytes = segs[i].filesz;
		code = malloc(to - from);
		if (!code)
			return err_set(e, -ENOMEM, "%s: out of memory for a language's runtime",
				       elf_file_name(elf));
		r = elf_file_read(elf, segs[i].off + from, code, to - from, e);
		if (r < 0)
			return r;
		ghc->has_offsets = ghc_offsets_read(code, to - from, &ghc->offsets);
		return 0;
	}
	return -ENOENT;
}

/* Is it worth looking? Haskell code has no .eh_frame; a library of the run-time system exports its own. */
static bool is_likely(struct elf_file *elf)
{
	const struct elf_section *eh, *text;
	struct elf_export stop;

	if (elf_export_find(elf, "stg_stop_thread_info", &stop, NULL) == 0)
		return true;
	return elf_file_find_section(elf, ".eh_frame", &eh, NULL) == 0 &&
	       elf_file_find_section(elf, ".text", &text, NULL) == 0 && eh->size &&
	       eh->size < text->size / EH_FRAME_SHARE;
}

int ghc_image_read(struct elf_file *elf, const struct elf_export *syms, struct lang_image *image,
		   struct err *e)
{
	struct ghc_image ghc = { 0 };
	int r;

	(void)syms;
	if (!elf_file_is64(elf) || elf_file_machine(elf) != EM_X86_64 || !is_likely(elf))
		return -ENOENT;
	r = find_run(elf, &ghc, e);
	if (r < 0)
		return r;
	r = read_near(elf, &ghc, e);
	if (r < 0)
		return r;
	ghc.version = ghc_version_read(elf);
	image->ghc = ghc;
	return 0;
}

/* --- in a process --- */

/* From rCurrentTSO to suspended_ccalls, in a Capability. */
#define SUSPENDED_OFF 0x68

int ghc_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
	     const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e)
{
	const struct ghc_image *ghc = &runtime->image->ghc;
	struct lang_runtime rt = { .lang = MS_LANG_GHC, .version = ghc->version };

	(void)libc;
	(void)mem;
	if (ghc->version)
		snprintf(rt.name, sizeof(rt.name), "GHC %u.%u.%u", ghc->version >> 16,
			 ghc->version >> 8 & 0xff, ghc->version & 0xff);
	else
		snprintf(rt.name, sizeof(rt.name), "GHC");
	if (!ghc->has_offsets)
		return err_set(
			e, -EOPNOTSUPP,
			"%s: has %s, but where its threads have their stack cannot be read from its code",
			runtime->image->name, rt.name);
	rt.untested = ghc->version != GHC_TESTED;
	rt.row.lang = MS_LANG_GHC;
	rt.row.ghc = (struct ms_ghc){
		.text = ghc->text + runtime->bias,
		.text_bytes = ghc->text_bytes,
		.run_saved = ghc->run_saved,
		.reg_tso = ghc->offsets.reg_tso,
		.tso_stack = ghc->offsets.tso_stack,
		.stack_sp = ghc->offsets.stack_sp,
		.reg_suspended = (uint16_t)(ghc->offsets.reg_tso + SUSPENDED_OFF),
	};
	*ret_runtime = rt;
	return 0;
}
