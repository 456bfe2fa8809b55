#include "lang/accessor.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS_MAX = 16 };

/* --- values --- */

struct place place_number(uint64_t n)
{
	return (struct place){ .base = PLACE_NUMBER, .off = { (int64_t)n } };
}

struct place place_add(struct place p, uint64_t n)
{
	if (p.base != PLACE_UNKNOWN)
		p.off[p.reads] = (int64_t)((uint64_t)p.off[p.reads] + n);
	return p;
}

static bool is_number(const struct place *p)
{
	return p->base == PLACE_NUMBER && p->reads == 0;
}

struct place place_sum(struct place a, struct place b)
{
	if (is_number(&b))
		return place_add(a, (uint64_t)b.off[0]);
	if (is_number(&a))
		return place_add(b, (uint64_t)a.off[0]);
	return (struct place){ 0 };
}

struct place place_read(struct place p, unsigned bytes)
{
	if (p.base == PLACE_UNKNOWN || p.reads == ACCESSOR_READS_MAX || (bytes != 4 && bytes != 8))
		return (struct place){ 0 };
	/* What was read as half a word is no address. */
	if (p.reads && p.last_bytes != 8)
		return (struct place){ 0 };
	p.off[++p.reads] = 0;
	p.last_bytes = (uint8_t)bytes;
	return p;
}

/* --- code --- */

int accessor_load(struct elf_file *elf, uint64_t vaddr, uint64_t size, struct accessor *ret_code,
		  struct err *e)
{
	struct accessor code = { .machine = elf_file_machine(elf), .vaddr = vaddr };
	const struct elf_segment *segs;
	uint64_t off;
	uint32_t n;
	int r;

	segs = elf_file_segments(elf, &n);
	if (!elf_segments_vaddr_to_off(segs, n, vaddr, &off))
		return err_set(e, -EBADMSG, "%s: a function is outside of the file",
			       elf_file_name(elf));
	code.len = size && size < ACCESSOR_BYTES_MAX ? (uint16_t)size : ACCESSOR_BYTES_MAX;
	if (code.len > elf_file_size(elf) - off)
		code.len = (uint16_t)(elf_file_size(elf) - off);
	r = elf_file_read(elf, off, code.bytes, code.len, e);
	if (r < 0)
		return r;
	*ret_code = code;
	return 0;
}

static void forget_lost(struct accessor_state *s, uint32_t kept)
{
	for (int i = 0; i < ACCESSOR_REGS; i++)
		if (!(kept >> i & 1))
			s->reg[i] = (struct place){ 0 };
	s->left = s->right = (struct place){ 0 };
}

static void note_made(const struct accessor_fn *fn, const struct accessor_state *before,
		      const struct accessor_state *s)
{
	for (int i = 0; fn->makes && i < ACCESSOR_REGS; i++)
		if (memcmp(&before->reg[i], &s->reg[i], sizeof(s->reg[i])) != 0)
			fn->makes(fn->ctx, &s->reg[i]);
}

/* Ways that are still to be followed. */
struct ways {
	struct {
		struct accessor_state state;
		uint64_t at;
	} way[WAYS_MAX];
	uint32_t n;
};

static bool is_inside(const struct accessor *code, uint64_t at)
{
	return at >= code->vaddr && at - code->vaddr < code->len;
}

static void add_way(struct ways *ways, const struct accessor *code,
		    const struct accessor_state *state, uint64_t at)
{
	if (ways->n == WAYS_MAX || !is_inside(code, at))
		return;
	ways->way[ways->n].state = *state;
	ways->way[ways->n++].at = at;
}

/* One instruction of the last way. */
static void step(const struct accessor *code, struct ways *ways, const struct accessor_fn *fn)
{
	bool x86 = code->machine == EM_X86_64;
	struct accessor_state s = ways->way[--ways->n].state, before = s;
	uint64_t at = ways->way[ways->n].at;
	const uint8_t *bytes = code->bytes + (at - code->vaddr);
	size_t len = code->len - (at - code->vaddr);
	struct accessor_insn in = { .taken = -1 };

	if (!(x86 ? accessor_step_x86 : accessor_step_arm64)(&s, bytes, len, at, &in))
		return;
	note_made(fn, &before, &s);
	switch (in.flow) {
	case FLOW_NEXT:
		add_way(ways, code, &s, at + in.len);
		break;
	case FLOW_RETURN:
		if (fn->returns)
			fn->returns(fn->ctx, &s.reg[x86 ? X86_RESULT : ARM64_RESULT]);
		break;
	case FLOW_BRANCH:
		if (in.taken != 1)
			add_way(ways, code, &s, at + in.len);
		if (in.taken == 0)
			break;
		/* To a part of it that is elsewhere, or a last call on a condition (clang). */
		if (!is_inside(code, in.target) && fn->calls)
			fn->calls(fn->ctx, &s.reg[x86 ? X86_ARG : ARM64_ARG]);
		add_way(ways, code, &s, in.target);
		break;
	case FLOW_JUMP:
		if (is_inside(code, in.target))
			add_way(ways, code, &s, in.target);
		else if (fn->calls)
			fn->calls(fn->ctx, &s.reg[x86 ? X86_ARG : ARM64_ARG]);
		break;
	case FLOW_CALL:
		if (fn->calls)
			fn->calls(fn->ctx, &s.reg[x86 ? X86_ARG : ARM64_ARG]);
		forget_lost(&s, x86 ? X86_KEPT : ARM64_KEPT);
		add_way(ways, code, &s, at + in.len);
		break;
	default:
		break;
	}
}

void accessor_follow(const struct accessor *code, uint64_t arg, const struct accessor_fn *fn)
{
	bool x86 = code->machine == EM_X86_64;
	_cleanup_(freep) struct ways *ways = NULL;
	struct accessor_state s = { 0 };

	if (!x86 && code->machine != EM_AARCH64)
		return;
	ways = malloc(sizeof(*ways));
	if (!ways)
		return;
	ways->n = 0;
	s.reg[x86 ? X86_ARG : ARM64_ARG] = place_number(arg);
	add_way(ways, code, &s, code->vaddr);
	for (uint32_t i = 0; i < ACCESSOR_STEPS_MAX && ways->n; i++)
		step(code, ways, fn);
}
