#include "unwind/go_rows.h"
#include "unwind/roots.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum { X86_SAVE_RBP = 1, A64_SAVE_FP = 10, X86_R12 = 12, A64_X20 = 20, FUNC_BYTES_MAX = 1024 };

struct go_build {
	const struct rule_machine *machine;
	struct code *code;
	struct rule_set *rules;
	struct rule_ranges *to;
	bool saves_fp; /* the function's frame pointer is saved once its frame is there */
	bool seen_frame;
};

static int add(struct go_build *b, uint64_t vaddr, const struct ms_rule *rule)
{
	uint32_t ix;
	int r = rule_set_add(b->rules, rule, &ix);

	if (r == -EFBIG)
		ix = MS_RULE_IX_BAD;
	else if (r < 0)
		return r;
	return rule_ranges_add(b->to, vaddr, ix);
}

static struct ms_rule rule_of_delta(const struct go_build *b, uint8_t reg, int64_t delta)
{
	struct ms_rule rule = { .kind = MS_RULE_REG, .reg = reg };

	if (delta < 0 || delta > INT32_MAX - 8)
		return (struct ms_rule){ .kind = MS_RULE_BAD };
	if (b->machine->machine == EM_X86_64) {
		rule.off = (int32_t)delta + 8;
		rule.ra_off = -8;
		if (delta && b->saves_fp)
			rule.save[X86_SAVE_RBP] = -16;
		return rule;
	}
	rule.off = (int32_t)delta;
	if (!delta) {
		rule.flags = MS_RULE_RA_REG;
		rule.ra_reg = MS_A64_LR;
	} else if (delta > INT16_MAX - 8) {
		rule = (struct ms_rule){ .kind = MS_RULE_BAD };
	} else {
		rule.ra_off = (int16_t)-delta;
		rule.save[A64_SAVE_FP] = (int16_t)(-delta - 8);
	}
	return rule;
}

/*
 * Length of the `mov %rbp,n(%rsp)` with which Go before 1.21 saves the frame pointer; 0: none.
 * Later, and in assembly, `push %rbp` comes before.
 */
static uint32_t fp_store(struct go_build *b, uint64_t vaddr)
{
	const uint8_t *p = code_at(b->code, vaddr, 8);

	if (!p || p[0] != 0x48 || p[1] != 0x89 || p[3] != 0x24)
		return 0;
	return p[2] == 0x6c ? 5 : p[2] == 0xac ? 8 : 0;
}

static bool fp_pushed(struct go_build *b, uint64_t vaddr)
{
	const uint8_t *p = code_at(b->code, vaddr - 1, 1);

	return p && *p == 0x55;
}

static int on_row(void *arg, uint64_t start, uint64_t end, int32_t delta)
{
	struct go_build *b = arg;
	struct ms_rule rule;
	uint32_t store = 0;
	int r;

	if (delta > 0 && !b->seen_frame && b->machine->machine == EM_X86_64) {
		b->seen_frame = true;
		store = fp_store(b, start);
		b->saves_fp = fp_pushed(b, start);
	}
	rule = rule_of_delta(b, b->machine->sp, delta);
	r = add(b, start, &rule);
	if (r == 0 && store && store < end - start) {
		b->saves_fp = true;
		rule = rule_of_delta(b, b->machine->sp, delta);
		r = add(b, start + store, &rule);
	}
	return r;
}

/* --- functions that need more than their deltas --- */

/* Where `insn` first stands in [start, end); `end`: nowhere. */
static uint64_t find_insn(struct go_build *b, uint64_t start, uint64_t end, const uint8_t *insn,
			  size_t len)
{
	const uint8_t *p, *at;

	if (end - start > FUNC_BYTES_MAX)
		end = start + FUNC_BYTES_MAX;
	p = code_at(b->code, start, end - start);
	at = p ? memmem(p, end - start, insn, len) : NULL;
	return at ? start + (uint64_t)(at - p) : end;
}

struct sp_kept {
	struct go_build *b;
	uint64_t from, to;
};

/* As on_row(), with sp's old value in a register within [from, to). */
static int on_row_sp_kept(void *arg, uint64_t start, uint64_t end, int32_t delta)
{
	struct sp_kept *k = arg;
	struct go_build *b = k->b;
	uint64_t from = start > k->from ? start : k->from, to = end < k->to ? end : k->to;
	struct ms_rule rule;
	int r = on_row(b, start, end, delta);

	if (r < 0 || from >= to)
		return r;
	rule = rule_of_delta(b, b->machine->machine == EM_X86_64 ? X86_R12 : A64_X20, delta);
	r = add(b, from, &rule);
	if (r < 0 || to == end)
		return r;
	rule = rule_of_delta(b, b->machine->sp, delta);
	return add(b, to, &rule);
}

static int add_sp_kept(struct go_build *b, const struct gopclntab *tab, uint32_t i,
		       const struct go_func *f)
{
	static const uint8_t keep_x86[] = { 0x49, 0x89, 0xe4 };       /* mov %rsp,%r12 */
	static const uint8_t give_x86[] = { 0x4c, 0x89, 0xe4 };       /* mov %r12,%rsp */
	static const uint8_t keep_a64[] = { 0xf4, 0x03, 0x00, 0x91 }; /* mov x20, sp   */
	static const uint8_t give_a64[] = { 0x9f, 0x02, 0x00, 0x91 }; /* mov sp, x20   */
	bool x86 = b->machine->machine == EM_X86_64;
	size_t len = x86 ? sizeof(keep_x86) : sizeof(keep_a64);
	struct sp_kept k = { b, 0, 0 };

	k.from = find_insn(b, f->start, f->end, x86 ? keep_x86 : keep_a64, len);
	if (k.from < f->end)
		k.from += len;
	k.to = find_insn(b, k.from, f->end, x86 ? give_x86 : give_a64, len);
	if (k.to < f->end)
		k.to += len;
	return gopclntab_rows(tab, i, on_row_sp_kept, &k);
}

/*
 * The caller's frame, by the frame pointer: see ROOT_SWITCH. arm64's points below its frame, whose
 * size it does not give.
 */
static struct ms_rule rule_of_switch(const struct go_build *b)
{
	struct ms_rule rule = { .kind = MS_RULE_NONE };

	if (b->machine->machine == EM_X86_64)
		rule = (struct ms_rule){ .kind = MS_RULE_REG,
					 .reg = MS_X86_RBP,
					 .off = 16,
					 .ra_off = -8,
					 .save = { [X86_SAVE_RBP] = -16 } };
	return rule;
}

static int has_frame(void *ret, uint64_t start, uint64_t end, int32_t delta)
{
	*(bool *)ret |= delta > 0;
	return 0;
}

static int add_switch(struct go_build *b, const struct gopclntab *tab, uint32_t i, uint64_t start)
{
	const struct ms_rule rule = rule_of_switch(b);
	bool wrapper = false;

	/* What only converts the arguments has the same name, and a frame. */
	gopclntab_rows(tab, i, has_frame, &wrapper);
	return wrapper ? gopclntab_rows(tab, i, on_row, b) : add(b, start, &rule);
}

static int add_function(struct go_build *b, const struct gopclntab *tab, uint32_t i)
{
	struct go_func f = gopclntab_func(tab, i);
	const struct root *root = root_find(roots_go, f.name, strlen(f.name));
	struct ms_rule rule = rule_of_delta(b, b->machine->sp, 0);
	int r;

	if (f.start >= f.end)
		return 0;
	switch (root ? root->how : ROOT_PLAIN) {
	case ROOT_END:
		return rule_ranges_add(b->to, f.start, MS_RULE_IX_END);
	case ROOT_GUESS:
		return rule_ranges_add(b->to, f.start, MS_RULE_IX_NONE);
	case ROOT_FP:
		return rule_ranges_add(b->to, f.start, MS_RULE_IX_FP);
	case ROOT_EARLY:
		r = add(b, f.start - (f.start > 0), &rule);
		return r < 0 ? r : gopclntab_rows(tab, i, on_row, b);
	case ROOT_SWITCH:
		return add_switch(b, tab, i, f.start);
	case ROOT_SP_KEPT:
		return add_sp_kept(b, tab, i, &f);
	default:
		return gopclntab_rows(tab, i, on_row, b);
	}
}

int go_rows(const struct gopclntab *tab, const struct rule_machine *m, struct code *code,
	    struct rule_set *rules, struct rule_ranges *to)
{
	struct go_build b = { .machine = m, .code = code, .rules = rules, .to = to };
	uint32_t n = gopclntab_n_funcs(tab);
	uint64_t end = 0;
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct go_func f = gopclntab_func(tab, i);

		b.saves_fp = b.seen_frame = false;
		/* One without rows follows the frame pointer, as all of Go can. */
		r = rule_ranges_add(to, f.start, MS_RULE_IX_FP);
		if (r == 0)
			r = add_function(&b, tab, i);
		end = f.end;
	}
	return r < 0 ? r : rule_ranges_add(to, end, RULE_RANGE_HOLE);
}
