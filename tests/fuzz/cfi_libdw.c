/*
 * Programs of call frame information against libdw: well-formed entries whose instructions, factors and encodings are the input's, so
 * that it is the rules that are compared (eh_frame.c takes entries of any form). Wherever both have a row for an address, its first
 * and its last byte, they find the same CFA and the same registers over made-up memory (libdw_fixture.h). They may differ so:
 *
 *   refused    libdw refuses instructions that we take (a move in a CIE, DW_CFA_def_cfa_register behind an expression), and we what it
 *              takes (a location that goes back, numbers beyond 32 bits, more than 32 remembered states): nothing is compared
 *   no rule    a register without one has what the ABI says, which libdw fills in: as it was, lost, or the CFA (the stack pointer)
 *   0x2d       is SPARC's register window for libdw on x86-64, and nothing for us: not made
 *   ""         an empty expression is the CFA that it begins with for us, and nothing known for libdw: not made
 *
 *   input:  machine and encoding:1  code factor:1  data factor:1  instructions of the CIE:1  of the first FDE:1  instructions …
 */
#include "elf/cfi.h"
#include "libdw_fixture.h"
#include "unit/elf/code_image.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>

enum { FUNCTION = CODE_TEXT_LEN / 2, ROOM = CODE_FRAMES_LEN - 512, MOST = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t next8(struct bytes *in)
{
	uint8_t v = 0;

	bytes_u8(in, &v);
	return v;
}

/* Mostly a small one. */
static int64_t number(struct bytes *in)
{
	int8_t small = (int8_t)next8(in);
	uint64_t large = 0;

	if (small != INT8_MIN)
		return small;
	bytes_u64(in, &large);
	return (int64_t)large;
}

static void put_uleb(struct code_image *im, uint64_t v)
{
	do {
		put8(im, (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
		v >>= 7;
	} while (v);
}

static void put_sleb(struct code_image *im, int64_t v)
{
	for (;; v >>= 7) {
		bool last = v >= -64 && v < 64;

		put8(im, (uint8_t)((v & 0x7f) | (last ? 0 : 0x80)));
		if (last)
			return;
	}
}

static void put_reg(struct code_image *im, struct bytes *in)
{
	put_uleb(im, next8(in) % 48);
}

static void put_expression(struct code_image *im, struct bytes *in)
{
	uint8_t len = 1 + next8(in) % 15;

	put_uleb(im, len);
	for (uint8_t i = 0; i < len; i++)
		put8(im, next8(in));
}

/* What stands behind an instruction: r a register, u and s numbers, e an expression, p a pointer, 1 2 4 8 so many bytes. */
static void put_operands(struct code_image *im, struct bytes *in, const char *what)
{
	for (; *what; what++) {
		uint64_t v;

		switch (*what) {
		case 'r':
			put_reg(im, in);
			break;
		case 'u':
			put_uleb(im, (uint64_t)number(in));
			break;
		case 's':
			put_sleb(im, number(in));
			break;
		case 'e':
			put_expression(im, in);
			break;
		case 'p':
			put_pointer(im, im->enc, CODE_TEXT + next8(in) * 16);
			break;
		default:
			v = (uint64_t)number(in);
			put(im, &v, (size_t)(*what - '0'));
		}
	}
}

static void put_instruction(struct code_image *im, struct bytes *in)
{
	static const struct {
		uint8_t op;
		const char *operands;
	} all[] = {
		{ DW_CFA_nop, "" },
		{ DW_CFA_set_loc, "p" },
		{ DW_CFA_advance_loc1, "1" },
		{ DW_CFA_advance_loc2, "2" },
		{ DW_CFA_advance_loc4, "4" },
		{ DW_CFA_MIPS_advance_loc8, "8" },
		{ DW_CFA_offset_extended, "ru" },
		{ DW_CFA_offset_extended_sf, "rs" },
		{ DW_CFA_GNU_negative_offset_extended, "ru" },
		{ DW_CFA_val_offset, "ru" },
		{ DW_CFA_val_offset_sf, "rs" },
		{ DW_CFA_restore_extended, "r" },
		{ DW_CFA_undefined, "r" },
		{ DW_CFA_same_value, "r" },
		{ DW_CFA_register, "rr" },
		{ DW_CFA_remember_state, "" },
		{ DW_CFA_restore_state, "" },
		{ DW_CFA_def_cfa, "ru" },
		{ DW_CFA_def_cfa_sf, "rs" },
		{ DW_CFA_def_cfa_register, "r" },
		{ DW_CFA_def_cfa_offset, "u" },
		{ DW_CFA_def_cfa_offset_sf, "s" },
		{ DW_CFA_def_cfa_expression, "e" },
		{ DW_CFA_expression, "re" },
		{ DW_CFA_val_expression, "re" },
		{ DW_CFA_GNU_args_size, "u" },
	};
	uint8_t op = next8(in);

	if (op >= DW_CFA_advance_loc) {
		put8(im, op);
		if ((op & 0xc0) == DW_CFA_offset)
			put_uleb(im, (uint64_t)number(in));
		return;
	}
	op %= sizeof(all) / sizeof(*all);
	put8(im, all[op].op);
	put_operands(im, in, all[op].operands);
}

static void put_instructions(struct code_image *im, struct bytes *in, unsigned n)
{
	for (unsigned i = 0; i < n && in->len && im->frames_len < ROOM; i++)
		put_instruction(im, in);
}

static void make_image(struct code_image *im, struct bytes in)
{
	static const uint8_t encodings[] = { DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_absptr,
					     DW_EH_PE_udata4, DW_EH_PE_pcrel | DW_EH_PE_sdata8 };
	uint8_t first = next8(&in), n_cie, n_fde;
	size_t begin;

	code_init(im);
	im->machine = first & 1 ? EM_AARCH64 : EM_X86_64;
	im->enc = encodings[first >> 1 & 3];
	im->cie = im->frames_len;
	begin = begin_entry(im);
	put(im, "\0\0\0\0\1zR", 8);
	put_uleb(im, 1 + next8(&in) % 8);
	put_sleb(im, (int8_t)next8(&in));
	put8(im, im->machine == EM_AARCH64 ? 30 : 16);
	put8(im, 1);
	put8(im, im->enc);
	n_cie = next8(&in) % 16;
	n_fde = next8(&in) % MOST;
	put_instructions(im, &in, n_cie);
	end_entry(im, begin);
	for (uint64_t start = CODE_TEXT; start < CODE_TEXT + CODE_TEXT_LEN; start += FUNCTION) {
		begin = begin_entry(im);
		put32(im, (uint32_t)(im->frames_len - im->cie));
		put_pointer(im, im->enc, start);
		put_pointer(im, im->enc & 0x0f, FUNCTION);
		put8(im, 0);
		put_instructions(im, &in, start == CODE_TEXT ? n_fde : MOST);
		end_entry(im, begin);
	}
	put32(im, 0);
	code_finish(im);
}

/* --- the comparison --- */

static uint64_t our_cfa(const struct cfi_rules *r, const struct frame *f)
{
	uint64_t at = f->regs[r->cfa_reg] + (uint64_t)(int64_t)r->cfa_off;

	if (r->cfa_kind == CFI_CFA_DEREF)
		return memory(at) + (uint64_t)(int64_t)r->cfa_off2;
	if (r->cfa_kind == CFI_CFA_PLT && (f->pc & 15) >= (uint32_t)r->cfa_off2)
		return at + 8;
	return at;
}

/* What a crash is about. */
static void differ(const struct frame *f, int reg, const struct cfi_reg *rule, enum answer answer,
		   uint64_t want)
{
	fprintf(stderr, "%#llx: register %d: rule %d, %u%+d; libdw %d, %#llx\n",
		(unsigned long long)f->pc, reg, rule->kind, rule->base, rule->off, answer,
		(unsigned long long)want);
	abort();
}

static void check_register(Dwarf_Frame *frame, const struct frame *f, int reg,
			   const struct cfi_reg *rule)
{
	uint64_t want = 0, at, got;
	enum answer answer = libdw_register(frame, f, reg, &want);

	if (rule->kind == CFI_REG_BAD || answer == STRANGE)
		return;
	if (rule->kind == CFI_REG_UNSET) {
		if (answer == KNOWN && want != f->regs[reg] && want != f->cfa)
			differ(f, reg, rule, answer, want);
		return;
	}
	if ((answer == LOST) != (rule->kind == CFI_REG_UNDEFINED))
		differ(f, reg, rule, answer, want);
	if (answer == LOST)
		return;
	at = (rule->base == CFI_BASE_CFA ? f->cfa : f->regs[rule->base % N_REGS]) +
	     (uint64_t)(int64_t)rule->off;
	got = rule->kind == CFI_REG_SAME ? f->regs[reg]
	      : rule->kind == CFI_REG_AT ? memory(at)
					 : at;
	if (want != got)
		differ(f, reg, rule, answer, want);
}

static void check_at(Dwarf_CFI *cfi, uint64_t at, const struct cfi_rules *rules)
{
	Dwarf_Frame *frame = NULL;
	struct frame f = { .cfa = 0 };
	uint64_t want;
	bool is_value;
	Dwarf_Op *ops;
	size_t n;

	make_frame(&f, at);
	if (dwarf_cfi_addrframe(cfi, at, &frame) != 0)
		return;
	if (dwarf_frame_cfa(frame, &ops, &n) == 0 && evaluate(ops, n, &f, &want, &is_value) == 1) {
		if (want != our_cfa(rules, &f))
			abort();
		f.cfa = want;
		for (int reg = 0; reg < N_REGS; reg++)
			check_register(frame, &f, reg, &rules->regs[reg]);
	}
	free(frame);
}

static int check_row(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules)
{
	if (rules->cfa_kind == CFI_CFA_BAD)
		return 0;
	check_at(arg, start, rules);
	if (end - 1 != start)
		check_at(arg, end - 1, rules);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	static struct code_image im;
	Dwarf_CFI *other;
	Elf *image;

	make_image(&im, bytes_of(data, size));
	if (elf_file_open_memory(im.bytes, im.len, "input", &elf, NULL) < 0 ||
	    cfi_open(elf, CFI_EH_FRAME, &cfi, NULL) < 0 || cfi_n_fdes(cfi) != 2)
		abort();
	elf_version(EV_CURRENT);
	image = elf_memory((char *)im.bytes, im.len);
	other = dwarf_getcfi_elf(image);
	if (!other)
		abort();
	for (uint32_t i = 0; i < cfi_n_fdes(cfi); i++)
		cfi_rows(cfi, i, check_row, other);
	dwarf_cfi_end(other);
	elf_end(image);
	return 0;
}
