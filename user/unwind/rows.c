#include "unwind/rows.h"
#include "unwind/go_rows.h"
#include "unwind/leaf_code.h"
#include "unwind/named.h"

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
	struct rule_ranges marks;
	struct code code;
	/* of the function whose rows are being made */
	struct cfi_fde fde;
	enum rule_why why;
};

/* --- CFI --- */

static int add_rule(struct build *b, uint64_t vaddr, const struct ms_rule *rule,
		    struct rule_ranges *to)
{
	uint32_t ix;
	int r = rule_set_add(&b->rules, rule, &ix);

	if (r == -EFBIG) {
		ix = MS_RULE_IX_BAD;
		b->why = RULE_TOO_MANY;
		r = 0;
	}
	return r < 0 ? r : rule_ranges_add(to, vaddr, ix);
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

/*
 * glibc's __start_context, to which functions of makecontext() return: nobody has called it, its CFI
 * does not say so, and a return address there is looked up in the byte before it. It begins by taking
 * its stack from rbx, which no compiler's code does; libc's file has no name for it.
 */
static bool begins_context(struct build *b)
{
	static const uint8_t code[] = { 0x48, 0x89, 0xdc,         /* mov %rbx,%rsp   */
					0x48, 0x8b, 0x3c, 0x24 }; /* mov (%rsp),%rdi */
	const uint8_t *p;

	if (b->machine->machine != EM_X86_64 || b->fde.start == 0)
		return false;
	p = code_at(&b->code, b->fde.start, sizeof(code));
	return p && !memcmp(p, code, sizeof(code));
}

/* The byte before `start`, where a return address that is `start` is looked up; not outside the code. */
static uint64_t before_or_at(struct build *b, uint64_t start)
{
	return start - (code_at(&b->code, start - 1, 1) != NULL);
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
			r = rule_ranges_add(&b->marks, end, RULE_RANGE_HOLE);
		if (r == 0 && begins_context(b))
			r = rule_ranges_add(&b->marks, before_or_at(b, b->fde.start),
					    MS_RULE_IX_END);
		else if (r == 0)
			r = cfi_rows(cfi, i, on_cfi_row, b);
		end = b->fde.end;
		b->table->counts.functions++;
		b->table->counts.bad[b->why] += b->why != RULE_OK;
	}
	b->table->counts.damaged = cfi_counts(cfi).bad;
	return r < 0 ? r : rule_ranges_add(&b->marks, end, RULE_RANGE_HOLE);
}

/* -ENOENT: there is none. */
static int add_cfi(struct build *b, unsigned from, struct err *e)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	int r = cfi_open(b->elf, from, &cfi, e);

	return r < 0 ? r : add_cfi_rows(b, cfi);
}

/* --- Go --- */

static int add_go(struct build *b, const struct gopclntab *tab)
{
	struct rule_ranges under = { 0 };
	int r = go_rows(tab, b->machine, &b->code, &b->rules, &under);

	if (r == 0)
		r = rule_ranges_underlay(&b->marks, &under);
	rule_ranges_fini(&under);
	b->table->counts.functions += gopclntab_n_funcs(tab);
	return r;
}

/* All of Go's code keeps frame pointers. */
static int add_fp(struct build *b)
{
	struct rule_ranges under = { 0 };
	int r = 0;

	for (uint32_t i = 0; i < b->code.n_text && r == 0; i++) {
		r = rule_ranges_add(&under, b->code.text[i].start, MS_RULE_IX_FP);
		if (r == 0)
			r = rule_ranges_add(&under, b->code.text[i].end, RULE_RANGE_HOLE);
	}
	if (r == 0)
		r = rule_ranges_underlay(&b->marks, &under);
	rule_ranges_fini(&under);
	return r;
}

/* --- what is known so far --- */

typedef int (*range_fn)(void *arg, uint64_t start, uint64_t end);

/* Every stretch of the executable sections for which `rule` holds. Returns what `fn` did, if not 0. */
static int each_range(const struct build *b, uint32_t rule, range_fn fn, void *arg)
{
	const struct rule_ranges *list = &b->marks;
	uint32_t k = 0;
	int r = 0;

	for (uint32_t i = 0; i < b->code.n_text && r == 0; i++) {
		const struct code_range *x = &b->code.text[i];
		uint64_t at = x->start;

		for (; k < list->n && list->m[k].vaddr <= x->start; k++)
			;
		/* The k-th mark is the first behind `at`. */
		while (at < x->end && r == 0) {
			bool more = k < list->n && list->m[k].vaddr < x->end;
			uint64_t to = more ? list->m[k].vaddr : x->end;

			if ((k ? list->m[k - 1].rule : RULE_RANGE_HOLE) == rule)
				r = fn(arg, at, to);
			at = to;
			k += more;
		}
	}
	return r;
}

static int add_bytes(void *sum, uint64_t start, uint64_t end)
{
	*(uint64_t *)sum += end - start;
	return 0;
}

static uint64_t bytes_of_rule(const struct build *b, uint32_t rule)
{
	uint64_t sum = 0;

	each_range(b, rule, add_bytes, &sum);
	return sum;
}

/* --- signals --- */

/* Looks at what CFI leaves open. */
struct known_holes {
	struct build *b;
	struct rule_ranges *over;
};

/*
 * The row begins a byte early: a return address is looked up before itself. It ends a byte late: a
 * thread that is in the system call has its pc behind it. So does one of which CFI speaks (glibc's
 * __restore_rt), but that ends with the function.
 */
static int find_sigreturns(void *arg, uint64_t start, uint64_t end)
{
	struct known_holes *s = arg;
	const struct ms_rule rule = rule_of_signal(s->b->machine);
	uint64_t found;
	uint64_t at = start;
	uint32_t len;
	int r = 0;

	if (start < end && code_sigreturn_ends_at(&s->b->code, start)) {
		r = add_rule(s->b, start, &rule, s->over);
		if (r == 0)
			r = rule_ranges_add(s->over, ++at, RULE_RANGE_HOLE);
	}
	while (r == 0 && code_find_sigreturn(&s->b->code, at, end, &found, &len)) {
		at = found + len + (found + len < end);
		r = add_rule(s->b, before_or_at(s->b, found), &rule, s->over);
		if (r == 0)
			r = rule_ranges_add(s->over, at, RULE_RANGE_HOLE);
	}
	return r;
}

/* --- clone --- */

/*
 * glibc's clone() and clone3() on x86-64 have no CFI from the system call to where parent and child
 * part, because it could only be right for one of them: syscall, test, jl, je, ret. A thread that
 * waits there is a parent whose child has its memory (posix_spawn), and its frame is as it was.
 */
static int find_clone(void *arg, uint64_t start, uint64_t end)
{
	static const uint8_t call[] = { 0x0f, 0x05 }, test[] = { 0x48, 0x85, 0xc0, 0x7c };
	const struct ms_rule rule = {
		.kind = MS_RULE_REG, .reg = MS_X86_RSP, .off = 8, .ra_off = -8
	};
	struct known_holes *s = arg;
	const uint8_t *p = end - start == 10 ? code_at(&s->b->code, start, 10) : NULL;
	int r;

	if (!p || memcmp(p, call, 2) != 0 || memcmp(p + 2, test, 4) != 0 || p[7] != 0x74 ||
	    p[9] != 0xc3)
		return 0;
	r = add_rule(s->b, start, &rule, s->over);
	return r < 0 ? r : rule_ranges_add(s->over, end, RULE_RANGE_HOLE);
}

/* --- assembly --- */

static int find_leaf_code(void *arg, uint64_t start, uint64_t end)
{
	const struct ms_rule rule = {
		.kind = MS_RULE_REG, .reg = MS_X86_RSP, .off = 8, .ra_off = -8
	};
	struct known_holes *s = arg;
	int r;

	if (!leaf_code(&s->b->code, start, end))
		return 0;
	r = add_rule(s->b, start, &rule, s->over);
	return r < 0 ? r : rule_ranges_add(s->over, end, RULE_RANGE_HOLE);
}

static int add_known_holes(struct build *b, int (*find)(void *arg, uint64_t start, uint64_t end))
{
	struct rule_ranges over = { 0 };
	struct known_holes s = { b, &over };
	int r = each_range(b, RULE_RANGE_HOLE, find, &s);

	if (r == 0)
		r = rule_ranges_overlay(&b->marks, &over);
	rule_ranges_fini(&over);
	return r;
}

/* --- the whole --- */

/* MS_RULE_NONE wherever nothing is known, from the first page to the last. */
static int fill_holes(struct build *b)
{
	struct rule_range first = { b->table->first_page << MS_ROW_PAGE_SHIFT, MS_RULE_IX_NONE };

	return rule_ranges_underlay(&b->marks, &(struct rule_ranges){ .m = &first, .n = 1 });
}

static int set_pages(struct build *b, struct err *e)
{
	const struct code *c = &b->code;
	uint64_t first = c->segments[0].start >> MS_ROW_PAGE_SHIFT;
	uint64_t last = (c->segments[c->n_segments - 1].end - 1) >> MS_ROW_PAGE_SHIFT;

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
	const struct rule_range *m = b->marks.m;
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

static int add_names(struct build *b)
{
	/* Most files have some bytes of hand-written start code, and nothing to look up. */
	bool holes = bytes_of_rule(b, RULE_RANGE_HOLE) > NAMED_HOLE_MIN;
	struct named named = { 0 };
	int r = named_find(b->elf, &b->code, &b->marks, holes, &named);

	if (r == 0)
		r = rule_ranges_overlay(&b->marks, &named.over);
	if (r == 0)
		r = rule_ranges_underlay(&b->marks, &named.under);
	named_fini(&named);
	return r;
}

static int add_all(struct build *b, struct err *e)
{
	_cleanup_(gopclntab_freep) struct gopclntab *go = NULL;
	int r = gopclntab_open(b->elf, &go, NULL);

	if (r == -ENOMEM)
		return r;
	/* Go's own .debug_frame does not say where the frame pointer is. */
	r = add_cfi(b, go ? CFI_EH_FRAME : CFI_EH_FRAME | CFI_DEBUG_FRAME, e);
	if (r == -ENOENT)
		b->table->kind = UNWIND_GUESS;
	else if (r < 0)
		return r;
	r = add_known_holes(b, find_sigreturns);
	if (r == 0 && b->machine->machine == EM_X86_64)
		r = add_known_holes(b, find_clone);
	if (r == 0)
		r = add_known_holes(b, find_leaf_code);
	if (r == 0 && go) {
		b->table->kind = UNWIND_GO;
		r = add_go(b, go);
	} else if (r == 0 && elf_is_go(b->elf)) {
		b->table->kind = UNWIND_FP;
		r = add_fp(b);
	}
	return r < 0 ? r : add_names(b);
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
	r = add_all(b, e);
	if (r == 0)
		r = fill_holes(b);
	if (r == 0)
		r = pack(b);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < b->code.n_text; i++)
		b->table->counts.code_bytes += b->code.text[i].end - b->code.text[i].start;
	b->table->counts.none_bytes = bytes_of_rule(b, MS_RULE_IX_NONE);
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
	rule_ranges_fini(&b->marks);
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
