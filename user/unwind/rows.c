#include "unwind/rows.h"
#include "unwind/code.h"
#include "unwind/marks.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* A table in the making. */
struct build {
	struct elf_file *elf;
	const struct rule_machine *machine;
	struct unwind_table *table;
	struct rule_set rules;
	struct marks marks;
	struct code code;
	/* of the function whose rows are being made */
	struct cfi_fde fde;
	enum rule_why why;
};

DEFINE_CLEANUP(struct marks *, marks_finip, marks_fini)

/* --- CFI --- */

static int add_rule(struct build *b, uint64_t vaddr, const struct ms_rule *rule, struct marks *to)
{
	uint32_t ix;
	int r = rule_set_add(&b->rules, rule, &ix);

	if (r == -EFBIG) {
		ix = MS_RULE_IX_BAD;
		b->why = RULE_TOO_MANY;
		r = 0;
	}
	return r < 0 ? r : marks_add(to, vaddr, ix);
}

static int on_cfi_row(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules)
{
	struct build *b = arg;
	struct ms_rule rule;
	enum rule_why why = rule_of_cfi(b->machine, &b->fde, rules, &rule);

	if (why != RULE_OK && b->why == RULE_OK)
		b->why = why;
	return add_rule(b, start, &rule, &b->marks);
}

static int add_cfi_rows(struct build *b, const struct cfi *cfi)
{
	uint64_t end = 0;
	int r = 0;

	for (uint32_t i = 0; i < cfi_n_fdes(cfi) && r == 0; i++) {
		b->fde = cfi_fde_at(cfi, i);
		b->why = RULE_OK;
		/* Padding stays with the function before it. */
		if (i && b->fde.start > end && !code_is_padding(&b->code, end, b->fde.start))
			r = marks_add(&b->marks, end, MARK_HOLE);
		if (r == 0)
			r = cfi_rows(cfi, i, on_cfi_row, b);
		end = b->fde.end;
		b->table->counts.functions++;
		b->table->counts.bad[b->why] += b->why != RULE_OK;
	}
	b->table->counts.damaged = cfi_counts(cfi).bad;
	return r < 0 ? r : marks_add(&b->marks, end, MARK_HOLE);
}

static int add_cfi(struct build *b, struct err *e)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	int r = cfi_open(b->elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &cfi, e);

	if (r == -ENOENT || r == -ENODATA) {
		b->table->kind = UNWIND_GUESS;
		return 0;
	}
	if (r < 0)
		return r;
	return add_cfi_rows(b, cfi);
}

/* --- signals --- */

/* In what CFI leaves open. The row begins a byte early: a return address is looked up before itself. */
static int add_sigreturns(struct build *b)
{
	_cleanup_(marks_finip) struct marks *over = &(struct marks){ 0 };
	const struct ms_rule rule = rule_of_signal(b->machine);
	int r = 0;

	for (uint32_t i = 0; i < b->code.n_ranges; i++) {
		uint64_t at = b->code.ranges[i].start, found;
		uint32_t len;

		while (r == 0 &&
		       code_find_sigreturn(&b->code, at, b->code.ranges[i].end, &found, &len)) {
			at = found + len;
			if (marks_find(&b->marks, found) != MARK_HOLE)
				continue;
			r = add_rule(b, found - (found > b->code.ranges[i].start), &rule, over);
			if (r == 0)
				r = marks_add(over, at, MARK_HOLE);
		}
	}
	return r < 0 ? r : marks_overlay(&b->marks, over);
}

/* --- the whole --- */

/* MS_RULE_NONE wherever nothing is known, from the first page to the last. */
static int fill_holes(struct build *b)
{
	struct marks base = { 0 };
	int r = marks_add(&base, b->table->first_page << MS_ROW_PAGE_SHIFT, MS_RULE_IX_NONE);

	if (r == 0)
		r = marks_overlay(&base, &b->marks);
	if (r < 0) {
		marks_fini(&base);
		return r;
	}
	marks_fini(&b->marks);
	b->marks = base;
	return 0;
}

static int set_pages(struct build *b, struct err *e)
{
	const struct code *c = &b->code;
	uint64_t first = c->ranges[0].start >> MS_ROW_PAGE_SHIFT;
	uint64_t last = (c->ranges[c->n_ranges - 1].end - 1) >> MS_ROW_PAGE_SHIFT;

	if (last - first >= UNWIND_PAGES_MAX)
		return err_set(e, -EFBIG,
			       "%s: its code is spread over %" PRIu64 " MiB, more than the %d for "
			       "which there can be unwind tables",
			       elf_file_name(b->elf), (last - first) >> 8, UNWIND_PAGES_MAX >> 8);
	b->table->first_page = first;
	b->table->n_pages = (uint32_t)(last - first + 1);
	return 0;
}

static int pack(struct build *b)
{
	struct unwind_table *t = b->table;
	const struct mark *m = b->marks.m;
	uint32_t page = 0;

	t->n_rows = b->marks.n;
	t->rows = malloc(t->n_rows * sizeof(*t->rows));
	t->dir = malloc((t->n_pages + (size_t)1) * sizeof(*t->dir));
	if (!t->rows || !t->dir)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_rows; i++) {
		uint64_t of = (m[i].vaddr >> MS_ROW_PAGE_SHIFT) - t->first_page;

		/* What ends with the last page has a row behind it. */
		if (of >= t->n_pages) {
			t->n_rows = i;
			break;
		}
		while (page <= of)
			t->dir[page++] = i;
		t->rows[i] = ms_row(m[i].vaddr, m[i].rule);
	}
	while (page <= t->n_pages)
		t->dir[page++] = t->n_rows;
	return 0;
}

static void count_bytes(struct build *b)
{
	struct unwind_counts *counts = &b->table->counts;
	const struct marks *list = &b->marks;
	uint32_t i = 0;

	for (uint32_t k = 0; k < b->code.n_ranges; k++) {
		const struct code_range *x = &b->code.ranges[k];

		counts->code_bytes += x->end - x->start;
		while (i + 1 < list->n && list->m[i + 1].vaddr <= x->start)
			i++;
		for (; i < list->n && list->m[i].vaddr < x->end; i++) {
			uint64_t from = list->m[i].vaddr, to = x->end;

			if (i + 1 < list->n && list->m[i + 1].vaddr < to)
				to = list->m[i + 1].vaddr;
			if (from < x->start)
				from = x->start;
			if (list->m[i].rule == MS_RULE_IX_NONE)
				counts->none_bytes += to - from;
			/* The row that reaches into the next range is looked at again there. */
			if (i + 1 == list->n || list->m[i + 1].vaddr >= x->end)
				break;
		}
	}
}

static int build(struct build *b, struct err *e)
{
	int r = code_init(&b->code, b->elf, e);

	if (r == 0)
		r = set_pages(b, e);
	if (r < 0)
		return r;
	if (rule_set_init(&b->rules) < 0)
		return -ENOMEM;
	r = add_cfi(b, e);
	if (r == 0)
		r = add_sigreturns(b);
	if (r == 0)
		r = fill_holes(b);
	if (r == 0)
		r = pack(b);
	if (r < 0)
		return r;
	count_bytes(b);
	b->table->rules = TAKE_PTR(b->rules.rules);
	b->table->n_rules = b->rules.n;
	return 0;
}

int unwind_table_build(struct elf_file *elf, struct unwind_table **ret_table, struct err *e)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = calloc(1, sizeof(*table));
	_cleanup_(freep) struct build *b = calloc(1, sizeof(*b));
	int r;

	if (!table || !b)
		return err_set(e, -ENOMEM, "%s: out of memory for its unwind table",
			       elf_file_name(elf));
	*b = (struct build){ .elf = elf,
			     .machine = rule_machine(elf_file_machine(elf)),
			     .table = table };
	table->machine = elf_file_machine(elf);
	if (!elf_file_is64(elf) || !b->machine)
		return err_set(e, -EOPNOTSUPP,
			       "%s: its code is neither x86-64 nor arm64, whose stacks are walked",
			       elf_file_name(elf));
	r = build(b, e);
	rule_set_fini(&b->rules);
	marks_fini(&b->marks);
	if (r == -ENOMEM)
		return err_set(e, r, "%s: out of memory for its unwind table", elf_file_name(elf));
	if (r == -EFBIG && e && !e->code)
		return err_set(e, r, "%s: too many rows for an unwind table", elf_file_name(elf));
	if (r < 0)
		return r;
	*ret_table = TAKE_PTR(table);
	return 0;
}

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	free(table->dir);
	free(table->rows);
	free(table->rules);
	free(table);
}

const struct ms_rule *unwind_table_find(const struct unwind_table *table, uint64_t vaddr)
{
	uint64_t page = (vaddr >> MS_ROW_PAGE_SHIFT) - table->first_page;
	uint32_t key = ms_row(vaddr, MS_ROW_RULE_MASK), lo, hi;

	if (page >= table->n_pages)
		return &table->rules[MS_RULE_IX_NONE];
	lo = table->dir[page];
	hi = table->dir[page + 1];
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (table->rows[mid] <= key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &table->rules[lo ? table->rows[lo - 1] & MS_ROW_RULE_MASK : MS_RULE_IX_NONE];
}

uint64_t unwind_table_words(const struct unwind_table *table)
{
	return (uint64_t)table->n_pages + 1 + table->n_rows;
}
