/*
 * The kernel's walker over the stack of a process that puts there what it likes, by rules that a hostile file's tables may have: it ends,
 * in so many frames at most, whose first is the pc; it is complete only if each step is vouched for, asks for a table only where one is
 * missing, and finds the same again.
 *
 *   input:  pc:2  rbp:2  { kind:1  reg:1  flags:1  off:2  off2:1  ra_off:1  from_reg:1  save:1 } × 12  words of the stack:2 …
 *   word:   of its top two bits, 0: an address of code with rules, 1: of the stack, 2: a number, 3: of code without
 */
#include "unwind/host_walk.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
	POOL_WORDS = 2 * MS_POOL_PAGE_WORDS,
	DIR = 64,
	ROWS = 72,
	N_ROWS = 32,
	PAGES = 2,
	N_RULES = MS_RULE_FIRST + 12,
	STACK_WORDS = 512,
};

#define TEXT    0x401000ull /* … and two pages of it */
#define STACK   0x7ffd00000000ull
#define PENDING 0x700000ull

static uint32_t pool[POOL_WORDS];
static struct ms_table table;
static struct ms_rule rules[N_RULES];
static uint64_t stack[STACK_WORDS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_tables(void)
{
	static const struct ms_span spans[] = {
		{ TEXT, TEXT + 0x2000, 0x400000, 0, MS_SPAN_TABLE },
		{ 0x500000, 0x501000, 0, 0, MS_SPAN_FP },
		{ 0x600000, 0x601000, 0, 0, MS_SPAN_GUESS },
		{ PENDING, PENDING + 0x1000, 0, 1, MS_SPAN_PENDING },
	};

	memcpy(pool, spans, sizeof(spans));
	for (uint32_t i = 0; i <= PAGES; i++)
		pool[DIR + i] = i * N_ROWS / PAGES;
	for (uint32_t i = 0; i < N_ROWS; i++)
		pool[ROWS + i] = ms_row(i * 0x100, i % N_RULES);
	table = (struct ms_table){ .first_page = 1, .n_pages = PAGES, .dir = DIR, .rows = ROWS };
	rules[MS_RULE_IX_END].kind = MS_RULE_END;
	rules[MS_RULE_IX_FP].kind = MS_RULE_FP;
	rules[MS_RULE_IX_BAD].kind = MS_RULE_BAD;
}

static uint8_t next8(struct bytes *in)
{
	uint8_t v = 0;

	bytes_u8(in, &v);
	return v;
}

static uint16_t next16(struct bytes *in)
{
	uint16_t v = 0;

	bytes_u16(in, &v);
	return v;
}

static uint64_t word_of(uint16_t u)
{
	static const uint64_t without[] = { 0x500000, 0x600000, PENDING, 0x800000 };

	switch (u >> 14) {
	case 0:
		return TEXT + (u & 0x1fff);
	case 1:
		return STACK + (u & 0xfff);
	case 2:
		return u & 0x3fff;
	default:
		return without[u >> 12 & 3] + (u & 0xfff);
	}
}

/* As tables have them (row_format.c: rules_ok()). */
static void make_rules(struct bytes *in)
{
	for (uint32_t i = MS_RULE_FIRST; i < N_RULES; i++) {
		struct ms_rule *r = &rules[i];

		memset(r, 0, sizeof(*r));
		r->kind = next8(in) % MS_N_RULE_KINDS;
		r->reg = next8(in) % MS_N_REGS;
		r->flags = next8(in) & (MS_RULE_RA_REG | MS_RULE_RA_BASE);
		r->off = (int16_t)next16(in);
		r->off2 = (int8_t)next8(in);
		r->ra_off = (int16_t)((int8_t)next8(in) * 8);
		r->from_reg = next8(in);
		r->lost = r->from_reg >> 1 & 0x38;
		r->from_reg &= 7;
		for (int k = 0; k < MS_N_SAVED; k++)
			r->save[k] = (int16_t)((int8_t)next8(in) * 8);
		r->base_reg = r->reg;
		r->ra_reg = r->reg;
	}
}

static bool is_without_table(uint64_t pc)
{
	return pc < TEXT || pc >= TEXT + 0x2000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct publish_mem mem = { .pool = pool,
					 .n_words = POOL_WORDS,
					 .tables = &table,
					 .n_tables = 1,
					 .rules = rules,
					 .n_rules = N_RULES,
					 .rule_stride = sizeof(*rules) };
	const struct ms_space space = { .n_spans = 4 };
	static uint64_t frames[MS_MAX_FRAMES], again[MS_MAX_FRAMES];
	struct host_stack st = { .addr = STACK, .bytes = (uint8_t *)stack, .space = &space };
	struct bytes in = bytes_of(data, size);
	uint64_t regs[MS_N_REGS] = { 0 }, missing = 0, missing_again = 0;
	uint32_t n = 0, n_again = 0, guess;
	enum ms_verdict verdict;

	if (!table.n_pages)
		make_tables();
	st.pc = word_of(next16(&in));
	for (int i = 0; i < MS_N_REGS; i++)
		regs[i] = word_of((uint16_t)(0x4000 + 8 * i));
	regs[MS_X86_RBP] = word_of(next16(&in));
	make_rules(&in);
	while (st.len < sizeof(stack) && in.len > 1) {
		stack[st.len / 8] = word_of(next16(&in));
		st.len += 8;
	}
	st.regs = regs;
	verdict = host_walk(&mem, &st, frames, &n, &missing);
	if (verdict >= MS_N_VERDICTS || n > MS_MAX_FRAMES || (n && frames[0] != st.pc))
		abort();
	for (uint32_t i = 0; i < n; i++)
		if (frames[i] >> MS_FRAME_TAG_SHIFT > MS_FRAME_EXACT)
			abort();
	if (verdict == MS_NO_TABLE && !is_without_table(missing))
		abort();
	guess = host_first_guess(&mem, &space, frames, n);
	if (guess > n || (verdict == MS_COMPLETE && guess < n))
		abort();
	if (host_walk(&mem, &st, again, &n_again, &missing_again) != verdict || n != n_again ||
	    memcmp(frames, again, n * sizeof(*frames)) != 0)
		abort();
	return 0;
}
