/*
 * Walks one recorded stack with the kernel's walker, compiled for the host, and compares.
 *
 *     replay CASE        exit status: 0 as expected, 1 not, 2 the case cannot be read
 *
 * A case is text; numbers are hexadecimal, `N*WORD` stands for N of them (N in decimal):
 *
 *     # for people
 *     arch x86_64                        or arm64: the walker has to be compiled for it
 *     pc 401136
 *     reg rsp 7ffc0000 …                 those that matter; all others are 0
 *     module START END BIAS              an executable mapping of a file …
 *     rule START END RULE                … and its rules, by the file's addresses; else there is none
 *     span START END fp|guess|pending    an executable mapping without rows
 *     stack ADDR WORD…                   8-byte words; several lines are several places
 *     code ADDR WORD…                    the same: what the walker reads of the text
 *     trampoline ADDR                    what return probes put in place of a return address
 *     return SP RA                       … of which call (where sp was on entry); innermost first
 *     frame ADDR…  signal ADDR           expected, leaf first; `signal`: it was interrupted
 *     verdict WORD                       complete, truncated, no-table, unreadable, guessed
 *
 * RULE is a kind (none, end, fp, bad) or words of
 *     cfa=REG+OFF[,plt=N]   cfa=*(REG+OFF)+OFF   signal=REG+OFF
 *     ra=OFF (from the CFA; x86_64: else -8)   ra=REG   ra=(REG+OFF)
 *     REG=OFF (saved at the CFA + OFF)   REG=(REG+OFF) (saved at another register's)   lost=REG
 */
#include "base/cleanup.h"
#include "unwind/host_walk.h"
#include "unwind/publish.h"
#include "unwind/rule_ranges.h"
#include "unwind/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_WORDS = 1 << 16, TABLES = 64, RULES = 1 << 10, SPANS = 64, PLACES = 64, RETURNS = 64 };

/* Memory of the recorded process. */
struct place {
	uint64_t addr;
	uint64_t *words;
	size_t n;
};

struct module {
	struct ms_span span;
	struct rule_ranges marks;
	struct rule_set rules;
};

struct replay {
	bool arm64;
	uint64_t pc, regs[MS_N_REGS];
	struct module modules[SPANS];
	uint32_t n_modules;
	struct ms_span spans[SPANS];
	uint32_t n_spans;
	struct place places[PLACES];
	uint32_t n_places;
	uint64_t trampoline;
	struct host_return returns[RETURNS];
	uint32_t n_returns;
	uint64_t expected[MS_MAX_FRAMES];
	uint32_t n_expected;
	enum ms_verdict verdict;
	const char *path;
	unsigned line;
};

static const char *const verdicts[MS_N_VERDICTS] = {
	"complete", "truncated", "no-table", "unreadable", "guessed", "lost",
};

static __attribute__((noreturn, format(printf, 2, 3))) void bad(const struct replay *r,
								const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%u: ", r->path, r->line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

/* --- words --- */

static int reg_number(const struct replay *r, const char *name, size_t len)
{
	static const char *const x86[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					   "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

	for (int i = 0; !r->arm64 && i < 16; i++)
		if (strlen(x86[i]) == len && !strncmp(name, x86[i], len))
			return i;
	if (r->arm64 && len == 2 && !strncmp(name, "sp", 2))
		return MS_A64_SP;
	if (r->arm64 && len > 1 && name[0] == 'x' && atoi(name + 1) < MS_A64_SP)
		return atoi(name + 1);
	bad(r, "no register %.*s", (int)len, name);
}

/* REG+OFF or REG-OFF, OFF in decimal as CFI is shown everywhere. Returns what follows. */
static const char *reg_and_off(const struct replay *r, const char *s, int *ret_reg, long *ret_off)
{
	size_t len = strcspn(s, "+-");
	char *end;

	*ret_reg = reg_number(r, s, len);
	*ret_off = strtol(s + len, &end, 10);
	if (end == s + len)
		bad(r, "no offset: %s", s);
	return end;
}

static int saved_index(const struct replay *r, int reg)
{
	const struct rule_machine *m =
		rule_machine(r->arm64 ? 183 : 62); /* EM_AARCH64, EM_X86_64 */

	for (int i = 0; i < m->n_saved; i++)
		if (m->saved[i] == reg)
			return i;
	bad(r, "register %d is not one that functions save", reg);
}

static uint64_t number(const struct replay *r, const char *s)
{
	char *end;
	uint64_t v = strtoull(s, &end, 16);

	if (end == s || *end)
		bad(r, "no hexadecimal number: %s", s);
	return v;
}

static bool starts(const char *s, const char *with, const char **ret_rest)
{
	size_t n = strlen(with);

	*ret_rest = s + n;
	return !strncmp(s, with, n);
}

/* --- rules --- */

static void rule_cfa(const struct replay *r, const char *s, struct ms_rule *rule)
{
	bool deref = s[0] == '*';
	const char *rest;
	long off;
	int reg;

	rest = reg_and_off(r, deref ? s + 2 : s, &reg, &off);
	rule->kind = deref ? MS_RULE_DEREF : MS_RULE_REG;
	rule->reg = (uint8_t)reg;
	rule->off = (int32_t)off;
	if (deref)
		rule->off2 = atoi(rest + 1);
	else if (starts(rest, ",plt=", &rest)) {
		rule->kind = MS_RULE_PLT;
		rule->off2 = atoi(rest);
	}
}

static void rule_saved(const struct replay *r, const char *s, struct ms_rule *rule)
{
	const char *value = strchr(s, '=');
	int i, base;
	long off;

	if (!value)
		bad(r, "no rule: %s", s);
	i = saved_index(r, reg_number(r, s, (size_t)(value - s)));
	value++;
	if (*value != '(') {
		rule->save[i] = (int16_t)atoi(value);
		return;
	}
	reg_and_off(r, value + 1, &base, &off);
	rule->from_reg |= (uint16_t)(1 << i);
	rule->base_reg = (uint8_t)base;
	rule->save[i] = (int16_t)off;
}

static void rule_ra(const struct replay *r, const char *s, struct ms_rule *rule)
{
	long off;
	int reg;

	if (s[0] == '-' || s[0] == '+') {
		rule->ra_off = (int16_t)atoi(s);
		return;
	}
	if (s[0] == '(') {
		reg_and_off(r, s + 1, &reg, &off);
		rule->flags |= MS_RULE_RA_BASE;
		rule->base_reg = (uint8_t)reg;
		rule->ra_off = (int16_t)off;
		return;
	}
	rule->flags |= MS_RULE_RA_REG;
	rule->ra_reg = (uint8_t)reg_number(r, s, strlen(s));
	rule->ra_off = 0;
}

static struct ms_rule rule_read(const struct replay *r, char *words)
{
	struct ms_rule rule = { .ra_off = r->arm64 ? 0 : -8 };
	static const struct {
		const char *word;
		uint8_t kind;
	} plain[] = { { "none", MS_RULE_NONE },
		      { "end", MS_RULE_END },
		      { "fp", MS_RULE_FP },
		      { "bad", MS_RULE_BAD } };

	for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) {
		const char *rest;
		long off;
		int reg;

		for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
			if (!strcmp(w, plain[i].word))
				return (struct ms_rule){ .kind = plain[i].kind };
		if (starts(w, "cfa=", &rest)) {
			rule_cfa(r, rest, &rule);
		} else if (starts(w, "signal=", &rest)) {
			reg_and_off(r, rest, &reg, &off);
			return (struct ms_rule){ .kind = MS_RULE_SIGNAL,
						 .reg = (uint8_t)reg,
						 .off = (int32_t)off };
		} else if (starts(w, "ra=", &rest)) {
			rule_ra(r, rest, &rule);
		} else if (starts(w, "lost=", &rest)) {
			reg = reg_number(r, rest, strlen(rest));
			rule.lost |= (uint16_t)(1 << saved_index(r, reg));
		} else {
			rule_saved(r, w, &rule);
		}
	}
	return rule;
}

/* --- lines --- */

static void line_module(struct replay *r, char *words)
{
	struct module *m = &r->modules[r->n_modules];
	unsigned long start, end, bias;

	if (r->n_modules == SPANS || sscanf(words, "%lx %lx %lx", &start, &end, &bias) != 3)
		bad(r, "module START END BIAS");
	m->span = (struct ms_span){ .start = start, .end = end, .bias = bias };
	if (rule_set_init(&m->rules) < 0)
		bad(r, "out of memory");
	r->n_modules++;
}

static void line_rule(struct replay *r, char *words)
{
	struct module *m = &r->modules[r->n_modules - 1];
	unsigned long start, end;
	struct ms_rule rule;
	uint32_t ix;
	int len = 0;

	if (!r->n_modules || sscanf(words, "%lx %lx %n", &start, &end, &len) < 2 || !len)
		bad(r, "rule START END RULE, behind a module");
	rule = rule_read(r, words + len);
	if (rule_set_add(&m->rules, &rule, &ix) < 0 || rule_ranges_add(&m->marks, start, ix) < 0 ||
	    rule_ranges_add(&m->marks, end, MS_RULE_IX_NONE) < 0)
		bad(r, "out of memory, or rules that are not in the order of their addresses");
}

static void line_span(struct replay *r, char *words)
{
	unsigned long start, end;
	char kind[16];

	if (r->n_spans == SPANS || sscanf(words, "%lx %lx %15s", &start, &end, kind) != 3)
		bad(r, "span START END fp|guess|pending");
	r->spans[r->n_spans++] = (struct ms_span){
		.start = start,
		.end = end,
		.kind = !strcmp(kind, "fp")      ? MS_SPAN_FP
			: !strcmp(kind, "guess") ? MS_SPAN_GUESS
						 : MS_SPAN_PENDING,
	};
}

/* Calls `fn` with each number of a line. */
static void each(struct replay *r, char *words, void (*fn)(struct replay *, uint64_t))
{
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) {
		char *times = strchr(w, '*');
		unsigned long n = times ? strtoul(w, NULL, 10) : 1;

		while (n--)
			fn(r, number(r, times ? times + 1 : w));
	}
}

static void add_word(struct replay *r, uint64_t word)
{
	struct place *p = &r->places[r->n_places - 1];

	if ((p->n & (p->n - 1)) == 0) {
		p->words = realloc(p->words, (p->n ? 2 * p->n : 1) * sizeof(*p->words));
		if (!p->words)
			bad(r, "out of memory");
	}
	p->words[p->n++] = word;
}

static void add_frame(struct replay *r, uint64_t frame)
{
	if (r->n_expected == MS_MAX_FRAMES)
		bad(r, "too many frames");
	r->expected[r->n_expected++] = frame;
}

static void line_memory(struct replay *r, char *words)
{
	size_t len = strcspn(words, " ");

	if (r->n_places == PLACES || !words[len])
		bad(r, "stack ADDR WORD…");
	words[len] = '\0';
	r->places[r->n_places++].addr = number(r, words);
	each(r, words + len + 1, add_word);
}

static void line_return(struct replay *r, const char *words)
{
	struct host_return *ret = &r->returns[r->n_returns];

	if (r->n_returns++ == RETURNS ||
	    sscanf(words, "%" SCNx64 " %" SCNx64, &ret->at, &ret->ra) != 2)
		bad(r, "return SP RA");
}

static void line_reg(struct replay *r, char *words)
{
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) {
		char *value = strtok(NULL, " ");

		if (!value)
			bad(r, "reg NAME VALUE …");
		r->regs[reg_number(r, w, strlen(w))] = number(r, value);
	}
}

static void line_verdict(struct replay *r, const char *word)
{
	for (int i = 0; i < MS_N_VERDICTS; i++)
		if (!strcmp(word, verdicts[i])) {
			r->verdict = (enum ms_verdict)i;
			return;
		}
	bad(r, "no verdict: %s", word);
}

static void line(struct replay *r, char *s)
{
	size_t len = strcspn(s, " ");
	char *words = s[len] ? s + len + 1 : s + len;

	s[len] = '\0';
	if (!strcmp(s, "arch"))
		r->arm64 = !strcmp(words, "arm64");
	else if (!strcmp(s, "pc"))
		r->pc = number(r, words);
	else if (!strcmp(s, "reg"))
		line_reg(r, words);
	else if (!strcmp(s, "module"))
		line_module(r, words);
	else if (!strcmp(s, "rule"))
		line_rule(r, words);
	else if (!strcmp(s, "span"))
		line_span(r, words);
	else if (!strcmp(s, "stack") || !strcmp(s, "code"))
		line_memory(r, words);
	else if (!strcmp(s, "trampoline"))
		r->trampoline = number(r, words);
	else if (!strcmp(s, "return"))
		line_return(r, words);
	else if (!strcmp(s, "frame"))
		each(r, words, add_frame);
	else if (!strcmp(s, "signal"))
		add_frame(r, number(r, words) | MS_FRAME_EXACT << MS_FRAME_TAG_SHIFT);
	else if (!strcmp(s, "verdict"))
		line_verdict(r, words);
	else if (s[0] && s[0] != '#')
		bad(r, "unknown: %s", s);
}

static void read_case(struct replay *r, const char *path)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	_cleanup_(freep) char *text = NULL;
	size_t cap = 0;
	ssize_t n;

	r->path = path;
	if (!f)
		bad(r, "%s", strerror(errno));
	while ((n = getline(&text, &cap, f)) >= 0) {
		r->line++;
		while (n > 0 && strchr(" \n", text[n - 1]))
			text[--n] = '\0';
		line(r, text);
	}
}

/* --- the walk --- */

static int put(void *ctx, uint32_t pid, const struct ms_space *space)
{
	return 0;
}

static void drop(void *ctx, uint32_t pid)
{
}

/* Borrowed from the module, but for what is allocated for dir and rows. */
static struct unwind_table table_of(const struct replay *r, const struct module *m)
{
	const struct rule_range *k = m->marks.m;
	uint64_t first = (m->span.start - m->span.bias) >> MS_ROW_PAGE_SHIFT;
	uint64_t last = (m->span.end - 1 - m->span.bias) >> MS_ROW_PAGE_SHIFT;
	struct unwind_table t = { .first_page = first,
				  .n_pages = (uint32_t)(last - first + 1),
				  .rules = m->rules.rules,
				  .n_rules = m->rules.n };
	uint32_t page = 0;

	t.dir = calloc(t.n_pages + 1, sizeof(*t.dir));
	t.rows = calloc(m->marks.n + 1, sizeof(*t.rows));
	if (!t.dir || !t.rows)
		bad(r, "out of memory");
	t.rows[t.n_rows++] = ms_row(first << MS_ROW_PAGE_SHIFT, MS_RULE_IX_NONE);
	for (uint32_t i = 0; i < m->marks.n; i++) {
		uint64_t of = (k[i].vaddr >> MS_ROW_PAGE_SHIFT) - first;

		if (of >= t.n_pages)
			break;
		while (page < of)
			t.dir[++page] = t.n_rows;
		t.rows[t.n_rows++] = ms_row(k[i].vaddr, k[i].rule);
	}
	while (page < t.n_pages)
		t.dir[++page] = t.n_rows;
	return t;
}

static struct publish *publish_case(struct replay *r, const struct ms_proc *proc)
{
	struct publish_mem mem = {
		.pool = calloc(POOL_WORDS, sizeof(uint32_t)),
		.n_words = POOL_WORDS,
		.tables = calloc(TABLES, sizeof(struct ms_table)),
		.n_tables = TABLES,
		.rules = calloc(RULES, sizeof(struct ms_rule)),
		.n_rules = RULES,
		.rule_stride = sizeof(struct ms_rule),
	};
	const struct space_sink sink = { .put = put, .drop = drop };
	struct ms_span spans[2 * SPANS];
	struct publish *p = NULL;
	uint32_t n = 0;

	if (!mem.pool || !mem.tables || !mem.rules || publish_new(&mem, &sink, &p, NULL) < 0)
		bad(r, "out of memory");
	for (uint32_t i = 0; i < r->n_modules; i++) {
		struct publish_key key = { .len = sizeof(i) };
		struct unwind_table t = table_of(r, &r->modules[i]);

		memcpy(key.bytes, &i, sizeof(i));
		spans[n] = r->modules[i].span;
		if (publish_table(p, &key, 1, &spans[n].table) < 0 ||
		    publish_table_put(p, spans[n].table, &t, true, 1, NULL) < 0)
			bad(r, "a table cannot be published");
		n++;
		free(t.dir);
		free(t.rows);
	}
	memcpy(spans + n, r->spans, r->n_spans * sizeof(*spans));
	if (publish_space_put(p, proc, 1, spans, n + r->n_spans, false, 1) < 0)
		bad(r, "the spans cannot be published");
	return p;
}

static bool read_memory(void *ctx, void *dst, size_t size, uint64_t addr)
{
	const struct replay *r = ctx;

	for (uint32_t i = 0; i < r->n_places; i++) {
		const struct place *p = &r->places[i];
		uint64_t len = p->n * 8, off = addr - p->addr;

		if (addr >= p->addr && off <= len && size <= len - off) {
			memcpy(dst, (const char *)p->words + off, size);
			return true;
		}
	}
	return false;
}

static bool compare(const struct replay *r, const uint64_t *frames, uint32_t n,
		    enum ms_verdict verdict)
{
	bool same = n == r->n_expected && verdict == r->verdict;

	for (uint32_t i = 0; same && i < n; i++)
		same = frames[i] == r->expected[i];
	if (same)
		return true;
	fprintf(stderr, "%s: %s, expected %s\n", r->path, verdicts[verdict], verdicts[r->verdict]);
	for (uint32_t i = 0; i < n || i < r->n_expected; i++) {
		bool here = i < n, there = i < r->n_expected;

		if (here && there && frames[i] == r->expected[i])
			continue;
		fprintf(stderr, "  frame %u: %016" PRIx64 ", expected %016" PRIx64 "\n", i,
			here ? frames[i] : 0, there ? r->expected[i] : 0);
	}
	return false;
}

/*
 * What a walk has noted is all that it depends on, if it says so: with other words in all other places
 * of the stack, and other registers, it is the same. Not so where another place is 0 or too far: those
 * were not read.
 */
static bool depends_on_its_notes(struct replay *r, const struct publish_mem *mem,
				 struct host_stack *stack, const uint64_t *frames, uint32_t n,
				 enum ms_verdict verdict)
{
	struct ms_notes notes = *host_notes();
	uint32_t sp = r->arm64 ? MS_A64_SP : MS_X86_RSP, fp = r->arm64 ? MS_A64_FP : MS_X86_RBP;
	static uint64_t again[MS_MAX_FRAMES];
	uint64_t missing;
	uint32_t n_again;

	if (!notes.kept || verdict != MS_COMPLETE)
		return true;
	for (uint32_t i = 0; i < MS_N_REGS; i++)
		if (i != sp && (i != fp || !notes.needs_fp))
			r->regs[i] ^= 0x5a5a5a5a5a50;
	for (uint32_t i = 0; i < r->n_places; i++)
		for (size_t k = 0; k < r->places[i].n; k++) {
			uint64_t off = r->places[i].addr + 8 * k - (notes.sp & ~7ULL);
			bool noted = false;

			for (uint32_t j = 0; j < notes.n && !noted; j++)
				noted = off == (notes.at[j] < MS_WINDOW_WORDS
							? 8ULL * notes.at[j]
							: notes.far + 8ULL * (notes.at[j] -
									      MS_WINDOW_WORDS));
			if (!noted)
				r->places[i].words[k] ^= 0x5a5a5a5a5a50;
		}
	if (host_walk(mem, stack, again, &n_again, &missing) == verdict && n_again == n &&
	    !memcmp(again, frames, n * sizeof(*frames)))
		return true;
	fprintf(stderr, "%s: what was not noted changes it\n", r->path);
	return false;
}

int main(int argc, char **argv)
{
	static struct replay r;
	static uint64_t frames[MS_MAX_FRAMES];
	const struct ms_proc proc = { .tgid = 1, .start_ns = 1 };
	struct host_stack stack = { .regs = r.regs, .read = read_memory, .ctx = &r };
	struct ms_space space;
	struct publish *p;
	enum ms_verdict verdict;
	uint64_t missing;
	uint32_t n;

	if (argc != 2)
		return 2;
	read_case(&r, argv[1]);
	p = publish_case(&r, &proc);
	if (!publish_space(p, &proc, &space))
		bad(&r, "the spans are not there");
	stack.pc = r.pc;
	stack.trampoline = r.trampoline;
	stack.returns = r.returns;
	stack.n_returns = r.n_returns;
	stack.space = &space;
	verdict = host_walk(publish_memory(p), &stack, frames, &n, &missing);
	if (!compare(&r, frames, n, verdict))
		return 1;
	return depends_on_its_notes(&r, publish_memory(p), &stack, frames, n, verdict) ? 0 : 1;
}
