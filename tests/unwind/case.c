#include "case.h"

#include "base/cleanup.h"
#include "unwind/host_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { READS_MAX = 16384, EXTENT = 4096 };

static const char *const names[N_CASE_SHAPES] = {
	[CASE_RSP] = "rsp",
	[CASE_RBP] = "rbp",
	[CASE_OTHER] = "other",
	[CASE_DEREF] = "deref",
	[CASE_REALIGNED] = "realigned",
	[CASE_PLT] = "plt",
	[CASE_PLT_PUSHED] = "plt-pushed",
	[CASE_SIGNAL] = "signal",
	[CASE_RA_REG] = "ra-reg",
	[CASE_GAP] = "gap",
	[CASE_BELOW] = "below",
	[CASE_VDSO] = "vdso",
};

static const char *const regs[16] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
				      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

static const char *const verdicts[MS_N_VERDICTS] = {
	"complete", "truncated", "no-table", "unreadable", "guessed", "lost",
};

enum case_shape case_shape_find(const char *name)
{
	int i = 0;

	while (i < N_CASE_SHAPES && strcmp(names[i], name) != 0)
		i++;
	return (enum case_shape)i;
}

/* --- the walk, word by word --- */

struct reads {
	const struct sample *s;
	uint64_t at[READS_MAX];
	uint32_t n;
	bool below;
};

static bool read_word(void *ctx, void *dst, size_t size, uint64_t addr)
{
	struct reads *r = ctx;
	uint64_t off = addr - r->s->regs[7];

	if (size % 8 || size > 256) /* no windows, and no text */
		return false;
	r->below |= addr < r->s->regs[7];
	if (addr < r->s->regs[7] || off + size > r->s->stack_len || r->n + size / 8 > READS_MAX)
		return false;
	memcpy(dst, r->s->stack + off, size);
	for (size_t i = 0; i < size / 8; i++)
		r->at[r->n++] = addr + 8 * i;
	return true;
}

/* --- rules --- */

static bool is_shape(const struct ms_rule *rule, uint64_t pc, bool leaf, enum case_shape shape)
{
	bool cfa = rule->kind == MS_RULE_REG;

	switch (shape) {
	case CASE_RBP:
		return cfa && rule->reg == MS_X86_RBP;
	case CASE_OTHER:
		return cfa && rule->reg != MS_X86_RBP && rule->reg != MS_X86_RSP;
	case CASE_DEREF:
		return rule->kind == MS_RULE_DEREF;
	case CASE_REALIGNED:
		return rule->from_reg != 0;
	case CASE_PLT:
		return leaf && rule->kind == MS_RULE_PLT && (int64_t)(pc & 15) < rule->off2;
	case CASE_PLT_PUSHED:
		return leaf && rule->kind == MS_RULE_PLT && (int64_t)(pc & 15) >= rule->off2;
	case CASE_SIGNAL:
		return rule->kind == MS_RULE_SIGNAL;
	case CASE_RA_REG:
		return rule->flags & MS_RULE_RA_REG;
	case CASE_GAP:
		return rule->kind == MS_RULE_NONE;
	default:
		return false;
	}
}

static void write_rule(FILE *f, const struct ms_rule *rule)
{
	static const uint8_t saved[MS_N_SAVED_X86] = { MS_X86_RBX, MS_X86_RBP, 12, 13, 14, 15 };

	switch (rule->kind) {
	case MS_RULE_NONE:
		fprintf(f, " none");
		return;
	case MS_RULE_END:
		fprintf(f, " end");
		return;
	case MS_RULE_FP:
		fprintf(f, " fp");
		return;
	case MS_RULE_BAD:
		fprintf(f, " bad");
		return;
	case MS_RULE_SIGNAL:
		fprintf(f, " signal=%s%+d", regs[rule->reg], rule->off);
		return;
	case MS_RULE_DEREF:
		fprintf(f, " cfa=*(%s%+d)%+d", regs[rule->reg], rule->off, rule->off2);
		break;
	case MS_RULE_PLT:
		fprintf(f, " cfa=%s%+d,plt=%d", regs[rule->reg], rule->off, rule->off2);
		break;
	default:
		fprintf(f, " cfa=%s%+d", regs[rule->reg], rule->off);
	}
	if (rule->flags & MS_RULE_RA_REG)
		fprintf(f, " ra=%s", regs[rule->ra_reg]);
	else if (rule->flags & MS_RULE_RA_BASE)
		fprintf(f, " ra=(%s%+d)", regs[rule->base_reg], rule->ra_off);
	else if (rule->ra_off != -8)
		fprintf(f, " ra=%+d", rule->ra_off);
	for (int i = 0; i < MS_N_SAVED_X86; i++) {
		if (rule->lost >> i & 1)
			fprintf(f, " lost=%s", regs[saved[i]]);
		else if (rule->from_reg >> i & 1)
			fprintf(f, " %s=(%s%+d)", regs[saved[i]], regs[rule->base_reg],
				rule->save[i]);
		else if (rule->save[i])
			fprintf(f, " %s=%+d", regs[saved[i]], rule->save[i]);
	}
}

/* --- the file --- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t lookup_of(uint64_t frame, bool leaf)
{
	uint64_t pc = frame & MS_FRAME_ADDR_MASK;

	return leaf || frame >> MS_FRAME_TAG_SHIFT == MS_FRAME_EXACT ? pc : pc - 1;
}

/* The rules at the places of one mapping, in the order of their addresses. */
static void write_module(FILE *f, const struct mapping *m, uint64_t *vaddrs, uint32_t n)
{
	const struct unwind_table *t = m->image->table;
	const char *name = strrchr(m->image->name, '/');
	uint64_t done = 0;

	fprintf(f, "\n# %s\nmodule %" PRIx64 " %" PRIx64 " %" PRIx64 "\n",
		name ? name + 1 : m->image->name, m->start, m->end, m->bias);
	qsort(vaddrs, n, sizeof(*vaddrs), by_value);
	for (uint32_t i = 0; i < n; i++) {
		const struct ms_rule *rule = unwind_table_find(t, vaddrs[i]);
		uint64_t start = vaddrs[i], end = vaddrs[i] + 1;

		if (vaddrs[i] < done)
			continue;
		while (start > done && vaddrs[i] - start < EXTENT &&
		       unwind_table_find(t, start - 1) == rule)
			start--;
		while (end - vaddrs[i] < EXTENT && unwind_table_find(t, end) == rule)
			end++;
		fprintf(f, "rule %" PRIx64 " %" PRIx64, start, end);
		write_rule(f, rule);
		fputc('\n', f);
		done = end;
	}
}

static void write_modules(FILE *f, const struct process *p, const uint64_t *frames, uint32_t n)
{
	for (uint32_t k = 0; k < p->n; k++) {
		const struct mapping *m = &p->maps[k];
		uint64_t vaddrs[MS_MAX_FRAMES];
		uint32_t found = 0;

		for (uint32_t i = 0; i < n; i++) {
			uint64_t pc = lookup_of(frames[i], i == 0);

			if (pc >= m->start && pc < m->end)
				vaddrs[found++] = pc - m->bias;
		}
		if (found && m->image && m->image->table)
			write_module(f, m, vaddrs, found);
		else if (found)
			fprintf(f, "\nspan %" PRIx64 " %" PRIx64 " guess\n", m->start, m->end);
	}
}

static void write_words(FILE *f, struct reads *r)
{
	uint64_t last = 0;

	qsort(r->at, r->n, sizeof(*r->at), by_value);
	fprintf(f, "\n# what the walk reads of the stack");
	for (uint32_t i = 0; i < r->n; i++) {
		uint64_t word;

		if (i && r->at[i] == last)
			continue;
		memcpy(&word, r->s->stack + (r->at[i] - r->s->regs[7]), 8);
		if (!i || r->at[i] != last + 8)
			fprintf(f, "\nstack %" PRIx64, r->at[i]);
		fprintf(f, " %" PRIx64, word);
		last = r->at[i];
	}
	fputc('\n', f);
}

static bool wanted(enum case_shape shape, const struct process *p, const struct reads *r,
		   const uint64_t *frames, uint32_t n)
{
	bool found = false, only_rsp = true;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t pc = lookup_of(frames[i], i == 0);
		const struct mapping *m = process_at(p, pc);
		const struct ms_rule *rule;

		if (!m || !m->image || !m->image->table)
			return false;
		rule = unwind_table_find(m->image->table, pc - m->bias);
		found |= is_shape(rule, pc, i == 0, shape);
		if (shape == CASE_VDSO && i == 0)
			found |= !strcmp(m->image->name, "[vdso]");
		only_rsp &= rule->kind == MS_RULE_END ||
			    (rule->kind == MS_RULE_REG && rule->reg == MS_X86_RSP);
	}
	return shape == CASE_RSP ? only_rsp : shape == CASE_BELOW ? r->below : found;
}

int case_write(const char *path, enum case_shape shape, struct world *w, const struct process *p,
	       const struct sample *s, const struct ms_space *space, struct err *e)
{
	static struct reads r;
	static uint64_t frames[MS_MAX_FRAMES];
	uint64_t all[MS_N_REGS] = { 0 }, missing;
	struct host_stack stack = {
		.pc = s->regs[16], .regs = all, .space = space, .read = read_word, .ctx = &r
	};
	_cleanup_(fclosep) FILE *f = NULL;
	enum ms_verdict verdict;
	uint32_t n;

	r = (struct reads){ .s = s };
	memcpy(all, s->regs, 16 * sizeof(*all));
	verdict = host_walk(&w->mem, &stack, frames, &n, &missing);
	if (!wanted(shape, p, &r, frames, n))
		return 0;
	f = fopen(path, "we");
	if (!f)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	fprintf(f, "arch x86_64\npc %" PRIx64 "\n", s->regs[16]);
	for (int i = 0; i < 16; i++)
		fprintf(f, "%s %s %" PRIx64 "%s", i % 4 ? "" : "reg", regs[i], s->regs[i],
			i % 4 == 3 ? "\n" : "");
	write_modules(f, p, frames, n);
	write_words(f, &r);
	fputc('\n', f);
	for (uint32_t i = 0; i < n; i++)
		fprintf(f, "%s %" PRIx64 "\n",
			i && frames[i] >> MS_FRAME_TAG_SHIFT ? "signal" : "frame",
			(uint64_t)(frames[i] & MS_FRAME_ADDR_MASK));
	fprintf(f, "verdict %s\n", verdicts[verdict]);
	return ferror(f) ? err_set(e, -EIO, "%s: cannot be written", path) : 1;
}
