#include "unwind/named.h"
#include "elf/elf_syms.h"
#include "unwind/roots.h"
#include "unwind/rules.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	RANGES_MAX = 64,
	FUNC_BYTES_MAX = 512,
	FP_BYTES = 48, /* of a single function that keeps frame pointers: V8's has 33 */
	FP_HOLE_MIN =
		512 << 10, /* hand-written assembly is less: libcrypto has 151 KiB in a piece */
};

struct range {
	uint64_t start, end;
	uint32_t rule;
	bool spans; /* all names that begin alike */
};

/* Found so far: single functions, and what spans all functions of a name's beginning. */
struct found {
	struct range over[RANGES_MAX], under[RANGES_MAX];
	uint32_t n_over, n_under;
	bool fp_hole;
};

static void add_range(struct range *ranges, uint32_t *n, uint64_t start, uint64_t end,
		      uint32_t rule)
{
	if (*n < RANGES_MAX && start < end)
		ranges[(*n)++] = (struct range){ start, end, rule, false };
}

/*
 * Where a new thread begins in a function that makes one: behind the system call, where the frame
 * pointer is cleared (x86-64: xor %ebp,%ebp; arm64: mov x29,#0). `end`: nowhere.
 */
static uint64_t child_start(struct code *code, uint64_t start, uint64_t end)
{
	static const uint8_t call_x86[] = { 0x0f, 0x05 }, clear_x86[] = { 0x31, 0xed };
	static const uint8_t call_a64[] = { 0x01, 0, 0, 0xd4 },
			     clear_a64[] = { 0x1d, 0, 0x80, 0xd2 };
	bool x86 = elf_file_machine(code->elf) == EM_X86_64;
	size_t call_len = x86 ? sizeof(call_x86) : sizeof(call_a64);
	size_t clear_len = x86 ? sizeof(clear_x86) : sizeof(clear_a64);
	const uint8_t *p, *at;

	if (end - start > FUNC_BYTES_MAX)
		return end;
	p = code_at(code, start, end - start);
	at = p ? memmem(p, end - start, x86 ? call_x86 : call_a64, call_len) : NULL;
	if (at)
		at = memmem(at, (size_t)(p + (end - start) - at), x86 ? clear_x86 : clear_a64,
			    clear_len);
	return at ? start + (uint64_t)(at - p) : end;
}

static void on_symbol(struct found *found, struct code *code, const struct elf_sym *sym)
{
	const struct root *root = root_find(roots_elf, sym->name, sym->name_len);
	uint64_t start = sym->vaddr, end = sym->vaddr + sym->size;

	if (!root)
		return;
	found->fp_hole |= root->how == ROOT_FP_HOLE;
	if (root->how == ROOT_FP_HOLE)
		return;
	if (root->how == ROOT_CHILD)
		start = child_start(code, start, end);
	if (root->how == ROOT_END) {
		/* Start code is short: a symbol that says more must not end every stack. */
		if (end - start > NAMED_ENTRY_BYTES)
			end = start + NAMED_ENTRY_BYTES;
		add_range(found->over, &found->n_over, start, end, MS_RULE_IX_END);
		return;
	}
	/* Symbols come by address: one range from the first such name to the last. */
	if (root->prefix && found->n_under && found->under[found->n_under - 1].spans) {
		struct range *last = &found->under[found->n_under - 1];

		last->end = end > last->end ? end : last->end;
		return;
	}
	/* Assembly without .size, which would reach to the next symbol. */
	if (root->how == ROOT_FP && !root->prefix && end - start > FP_BYTES)
		end = start + FP_BYTES;
	add_range(found->under, &found->n_under, start, end,
		  root->how == ROOT_FP ? MS_RULE_IX_FP : MS_RULE_IX_END);
	if (root->prefix && found->n_under)
		found->under[found->n_under - 1].spans = true;
}

static bool is_root(const char *name)
{
	return root_may_be(roots_elf, name);
}

static int find_symbols(struct elf_file *elf, struct code *code, struct found *found)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	int r = elf_syms_load_some(elf, is_root, &syms, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (uint32_t i = 0; i < elf_syms_count(syms); i++) {
		struct elf_sym sym = elf_syms_at(syms, i);

		on_symbol(found, code, &sym);
	}
	return 0;
}

/* Nobody calls the first instruction. Its code ends where something is known, at the latest. */
static void find_entry(struct elf_file *elf, const struct code *code,
		       const struct rule_ranges *known, struct found *found)
{
	uint64_t entry = elf_file_entry(elf), end = entry + NAMED_ENTRY_BYTES;

	if (!entry || end < entry || rule_ranges_find(known, entry) != RULE_RANGE_HOLE)
		return;
	for (uint32_t i = 0; i < found->n_over; i++)
		if (found->over[i].start == entry)
			return;
	for (uint32_t i = 0; i < code->n_text; i++) {
		const struct code_range *x = &code->text[i];

		if (entry < x->start || entry >= x->end)
			continue;
		if (end > x->end)
			end = x->end;
		for (uint64_t at = entry; at < end; at++)
			if (rule_ranges_find(known, at) != RULE_RANGE_HOLE)
				end = at;
		add_range(found->under, &found->n_under, entry, end, MS_RULE_IX_END);
		return;
	}
}

/* The largest piece without rules, unless there were names in it. */
static void find_fp_hole(const struct rule_ranges *known, struct found *found)
{
	struct range hole = { 0 };

	for (uint32_t i = 0; i + 1 < known->n; i++) {
		struct range at = { known->m[i].vaddr, known->m[i + 1].vaddr, MS_RULE_IX_FP,
				    false };

		if (known->m[i].rule == RULE_RANGE_HOLE &&
		    at.end - at.start > hole.end - hole.start)
			hole = at;
	}
	for (uint32_t i = 0; i < found->n_under; i++)
		if (found->under[i].spans)
			return;
	if (hole.end - hole.start >= FP_HOLE_MIN)
		add_range(found->under, &found->n_under, hole.start, hole.end, hole.rule);
}

static int compare_ranges(const void *pa, const void *pb)
{
	const struct range *a = pa, *b = pb;

	return (a->start > b->start) - (a->start < b->start);
}

/* Of two that overlap, the one that begins first. */
static int to_rule_ranges(struct range *ranges, uint32_t n, struct rule_ranges *to)
{
	uint64_t end = 0;
	int r = 0;

	qsort(ranges, n, sizeof(*ranges), compare_ranges);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		if (i && ranges[i].start < end)
			continue;
		end = ranges[i].end;
		r = rule_ranges_add(to, ranges[i].start, ranges[i].rule);
		if (r == 0)
			r = rule_ranges_add(to, end, RULE_RANGE_HOLE);
	}
	return r;
}

int named_find(struct elf_file *elf, struct code *code, const struct rule_ranges *known,
	       bool symbols, struct named *ret_named)
{
	struct found found = { .n_over = 0 };
	struct named named = { 0 };
	int r = 0;

	if (symbols)
		r = find_symbols(elf, code, &found);
	if (found.fp_hole)
		find_fp_hole(known, &found);
	find_entry(elf, code, known, &found);
	if (r == 0)
		r = to_rule_ranges(found.over, found.n_over, &named.over);
	if (r == 0)
		r = to_rule_ranges(found.under, found.n_under, &named.under);
	if (r < 0) {
		named_fini(&named);
		return r;
	}
	*ret_named = named;
	return 0;
}

void named_fini(struct named *named)
{
	rule_ranges_fini(&named->over);
	rule_ranges_fini(&named->under);
}
