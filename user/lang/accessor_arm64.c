/*
 * arm64: one instruction of a short function (Arm ARM DDI 0487, C4.1). What is not understood makes the
 * registers that it may write unknown.
 */
#include "lang/accessor.h"

#include <string.h>

enum { ZR = 31 };

static uint32_t bits(uint32_t insn, int low, int n)
{
	return insn >> low & ((1u << n) - 1);
}

static int64_t signed_bits(uint32_t insn, int low, int n)
{
	return (int64_t)((uint64_t)bits(insn, low, n) << (64 - n)) >> (64 - n);
}

static struct place value(const struct accessor_state *s, uint32_t reg)
{
	return reg == ZR ? place_number(0) : s->reg[reg];
}

static void set(struct accessor_state *s, uint32_t reg, struct place p, bool wide)
{
	if (!wide && p.base == PLACE_NUMBER && !p.reads)
		p.off[0] = (uint32_t)p.off[0];
	if (reg != ZR)
		s->reg[reg] = p;
}

static bool is_number(const struct place *p)
{
	return p->base == PLACE_NUMBER && !p->reads;
}

static struct place shifted(struct place p, unsigned n)
{
	if (n == 0)
		return p;
	return is_number(&p) ? place_number((uint64_t)p.off[0] << n) : (struct place){ 0 };
}

static struct place negative(struct place p)
{
	return is_number(&p) ? place_number(-(uint64_t)p.off[0]) : (struct place){ 0 };
}

/* Addition and subtraction of `b`, which may compare only. */
static void add(struct accessor_state *s, uint32_t insn, struct place a, struct place b)
{
	bool wide = bits(insn, 31, 1), minus = bits(insn, 30, 1), flags = bits(insn, 29, 1);

	if (flags) {
		s->left = minus ? a : (struct place){ 0 };
		s->right = b;
		s->narrow = !wide;
	}
	/* Of an addition and subtraction that sets no flags, register 31 is the stack pointer. */
	set(s, bits(insn, 0, 5), place_sum(a, minus ? negative(b) : b), wide);
}

static struct place bit_field(struct place p, uint32_t insn)
{
	unsigned width = bits(insn, 31, 1) ? 64 : 32, r = bits(insn, 16, 6), m = bits(insn, 10, 6);
	uint64_t x = (uint64_t)p.off[0], mask;

	if (!is_number(&p) || r >= width || m >= width)
		return (struct place){ 0 };
	if (m >= r) {
		mask = m - r + 1 == 64 ? ~0ULL : (1ULL << (m - r + 1)) - 1;
		return place_number(x >> r & mask);
	}
	return place_number((x & ((1ULL << (m + 1)) - 1)) << (width - r));
}

/* `and` with ones in the low bits, the only kind that indexes need. */
static struct place masked(struct place p, uint32_t insn)
{
	unsigned r = bits(insn, 16, 6), m = bits(insn, 10, 6);
	bool one_word = bits(insn, 22, 1) || (!bits(insn, 31, 1) && m < 32);

	if (!is_number(&p) || r || !one_word || m == 63)
		return (struct place){ 0 };
	return place_number((uint64_t)p.off[0] & ((1ULL << (m + 1)) - 1));
}

static int8_t is_taken(const struct accessor_state *s, uint32_t cond)
{
	uint64_t a = (uint64_t)s->left.off[0], b = (uint64_t)s->right.off[0];

	if (!is_number(&s->left) || !is_number(&s->right))
		return -1;
	if (s->narrow) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (cond) {
	case 0:
		return a == b;
	case 1:
		return a != b;
	case 2:
		return a >= b;
	case 3:
		return a < b;
	case 8:
		return a > b;
	case 9:
		return a <= b;
	default:
		return -1;
	}
}

static bool is_branch(const struct accessor_state *s, uint32_t insn, uint64_t at,
		      struct accessor_insn *in)
{
	if (bits(insn, 26, 5) == 5) { /* b, bl */
		in->flow = bits(insn, 31, 1) ? FLOW_CALL : FLOW_JUMP;
		in->target = at + 4 * (uint64_t)signed_bits(insn, 0, 26);
	} else if ((insn & 0xff000010) == 0x54000000) { /* b.cond */
		in->flow = FLOW_BRANCH;
		in->taken = is_taken(s, bits(insn, 0, 4));
		in->target = at + 4 * (uint64_t)signed_bits(insn, 5, 19);
	} else if ((insn & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		struct place p = value(s, bits(insn, 0, 5));

		in->flow = FLOW_BRANCH;
		if (is_number(&p))
			in->taken = (p.off[0] == 0) != bits(insn, 24, 1);
		in->target = at + 4 * (uint64_t)signed_bits(insn, 5, 19);
	} else if ((insn & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		in->flow = FLOW_BRANCH;
		in->target = at + 4 * (uint64_t)signed_bits(insn, 5, 14);
	} else if ((insn & 0xfe000000) == 0xd6000000) { /* by register */
		uint32_t kind = bits(insn, 21, 4);

		in->flow = kind == 0   ? FLOW_JUMP
			   : kind == 1 ? FLOW_CALL
			   : kind == 2 ? FLOW_RETURN
				       : FLOW_END;
		in->target = ~0ULL;
	} else {
		return false;
	}
	return true;
}

/* Loads and stores of one register; false: something else. */
static bool is_access(struct accessor_state *s, uint32_t insn)
{
	unsigned bytes = 1u << bits(insn, 30, 2), opc = bits(insn, 22, 2);
	struct place at = value(s, bits(insn, 5, 5));

	if ((insn & 0x3a400000) == 0x28000000) /* stp */
		return true;
	if ((insn & 0x3b000000) == 0x39000000 && !bits(insn, 26, 1)) { /* scaled distance */
		at = place_add(at, (uint64_t)bits(insn, 10, 12) * bytes);
	} else if ((insn & 0x3b200c00) == 0x38000000 && !bits(insn, 26, 1)) { /* ldur */
		at = place_add(at, (uint64_t)signed_bits(insn, 12, 9));
	} else if ((insn & 0x3b200c00) == 0x38200800 && !bits(insn, 26, 1)) { /* index */
		at = place_sum(at, shifted(value(s, bits(insn, 16, 5)),
					   bits(insn, 12, 1) ? bits(insn, 30, 2) : 0));
	} else {
		return false;
	}
	if (opc)
		set(s, bits(insn, 0, 5),
		    bits(insn, 5, 5) == ZR ? (struct place){ 0 } : place_read(at, bytes), true);
	return true;
}

static bool is_constant(struct accessor_state *s, uint32_t insn, uint64_t at)
{
	uint32_t rd = bits(insn, 0, 5), shift = 16 * bits(insn, 21, 2);
	bool wide = bits(insn, 31, 1);
	uint64_t imm = (uint64_t)bits(insn, 5, 16) << shift;
	struct place p = { .base = PLACE_IMAGE };

	if ((insn & 0x1f000000) == 0x10000000) { /* adr, adrp */
		int64_t by = (int64_t)((uint64_t)signed_bits(insn, 5, 19) << 2 | bits(insn, 29, 2));

		set(s, rd,
		    wide ? place_add(p, (at & ~0xfffULL) + ((uint64_t)by << 12))
			 : place_add(p, at + (uint64_t)by),
		    true);
	} else if ((insn & 0x7f800000) == 0x52800000) { /* movz */
		set(s, rd, place_number(imm), wide);
	} else if ((insn & 0x7f800000) == 0x12800000) { /* movn */
		set(s, rd, place_number(~imm), wide);
	} else if ((insn & 0x7f800000) == 0x72800000) { /* movk */
		p = value(s, rd);
		set(s, rd,
		    is_number(&p) ? place_number(((uint64_t)p.off[0] & ~(0xffffULL << shift)) | imm)
				  : (struct place){ 0 },
		    wide);
	} else if ((insn & 0xffffffe0) == 0xd53bd040) { /* mrs tpidr_el0 */
		set(s, rd, (struct place){ .base = PLACE_THREAD }, true);
	} else {
		return false;
	}
	return true;
}

static bool is_arithmetic(struct accessor_state *s, uint32_t insn)
{
	struct place n = value(s, bits(insn, 5, 5)), m = value(s, bits(insn, 16, 5));
	bool wide = bits(insn, 31, 1);

	if ((insn & 0x1f800000) == 0x11000000) /* a number */
		add(s, insn, bits(insn, 5, 5) == ZR ? (struct place){ 0 } : n,
		    place_number((uint64_t)bits(insn, 10, 12) << (bits(insn, 22, 1) ? 12 : 0)));
	else if ((insn & 0x1fe00000) == 0x0b000000) /* a register, shifted left */
		add(s, insn, n, shifted(m, bits(insn, 10, 6)));
	else if ((insn & 0x1fe00000) == 0x0b200000) /* a register, widened */
		add(s, insn, n, shifted(m, bits(insn, 10, 3)));
	else if ((insn & 0x7fe0ffe0) == 0x2a0003e0) /* mov */
		set(s, bits(insn, 0, 5), m, wide);
	else if ((insn & 0x7f800000) == 0x53000000) /* ubfm: shifts */
		set(s, bits(insn, 0, 5), bit_field(n, insn), wide);
	else if ((insn & 0xfffffc00) == 0x93407c00) /* sxtw: of what is no sign is seen */
		set(s, bits(insn, 0, 5), n, true);
	else if ((insn & 0x7f800000) == 0x12000000) /* and */
		set(s, bits(insn, 0, 5), masked(n, insn), wide);
	else
		return false;
	return true;
}

bool accessor_step_arm64(struct accessor_state *s, const uint8_t *bytes, size_t len, uint64_t at,
			 struct accessor_insn *ret_insn)
{
	uint32_t insn;

	if (len < sizeof(insn))
		return false;
	memcpy(&insn, bytes, sizeof(insn));
	*ret_insn = (struct accessor_insn){ .len = 4, .taken = -1 };
	if (insn == 0)
		return false;
	if (is_branch(s, insn, at, ret_insn) || is_constant(s, insn, at) ||
	    is_arithmetic(s, insn) || is_access(s, insn))
		return true;
	if ((insn & 0xfffff000) == 0xd5032000 ||
	    (insn & 0xfffff000) == 0xd5033000) /* hints, barriers */
		return true;
	/* What it writes is in these. */
	set(s, bits(insn, 0, 5), (struct place){ 0 }, true);
	set(s, bits(insn, 5, 5), (struct place){ 0 }, true);
	set(s, bits(insn, 10, 5), (struct place){ 0 }, true);
	s->left = s->right = (struct place){ 0 };
	return true;
}
