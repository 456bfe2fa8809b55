/*
 * Ruby (MRI) in an image: a shared libruby, or a program that it is linked into. What exports rb_thread_current(),
 * rb_iseq_eval() and ruby_version has it. What has no symbol is found in the code of what has:
 *
 *   rb_vm_exec()       exported up to 3.2; else rb_iseq_eval()'s last call
 *   vm_exec_core()     what rb_vm_exec() calls that has most of its jumps through memory (direct threading)
 *   its frame register what it loads from the execution context (rb_execution_context_t.cfp) first
 *   the names of IDs   a variable that rb_id2str(), or what that jumps to, reads
 *   a thread's state   by rb_thread_current()
 */
#include "lang/ruby.h"

#include "elf/cfi.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const ruby_symbols[RB_N_SYMBOLS] = {
	[RB_VERSION] = "ruby_version", [RB_EXEC] = "rb_vm_exec",
	[RB_EVAL] = "rb_iseq_eval",    [RB_THREAD_CURRENT] = "rb_thread_current",
	[RB_ID2STR] = "rb_id2str",     [RB_CURRENT_EC] = "ruby_current_execution_context_ptr",
};

enum {
	CODE_MAX = 1 << 20,
	CORE_LEAST = 4096,     /* bytes: it has some 200 instructions of Ruby's in it */
	CORE_JUMPS_LEAST = 40, /* through memory: at the end of each of those          */
	CALLS_MAX = 128,
	EC_CFP = 16,
	READY_MAX = 256,
	NAMES_CODE = 256,
	/* "r15" by the ABI's and by DWARF's number. */
	X86_R15 = 15,
};

/* --- version --- */

/* "3.1.7" → 0x030107; 0: that is none. */
static uint32_t read_version(struct elf_file *elf, const struct elf_export *sym)
{
	char text[16] = "";
	uint32_t part[3] = { 0 };
	const char *p = text;

	if (sym->type != STT_OBJECT || sym->size < 6 || sym->size > sizeof(text) ||
	    !elf_file_read_vaddr(elf, sym->vaddr, text, (size_t)sym->size - 1))
		return 0;
	for (int i = 0; i < 3; i++) {
		int digits = 0;

		for (; isdigit((unsigned char)*p) && digits < 2; p++, digits++)
			part[i] = part[i] * 10 + (uint32_t)(*p - '0');
		if (!digits || (i < 2 && *p++ != '.'))
			return 0;
	}
	return *p ? 0 : part[0] << 16 | part[1] << 8 | part[2];
}

/* --- code --- */

struct sweep {
	/* After each instruction at `at`. false: that is enough. */
	bool (*each)(void *ctx, uint64_t at, const struct accessor_insn *in,
		     const struct accessor_state *s);
	void *ctx;
};

/* One instruction after the other, whatever they lead to. */
static int sweep(struct elf_file *elf, uint64_t vaddr, size_t len, const struct sweep *sw,
		 struct err *e)
{
	bool x86 = elf_file_machine(elf) == EM_X86_64;
	_cleanup_(freep) uint8_t *code = malloc(len);
	struct accessor_state state = { 0 };
	size_t at = 0;

	if (!code)
		return err_set(e, -ENOMEM, "%s: out of memory for code", elf_file_name(elf));
	while (len && !elf_file_read_vaddr(elf, vaddr, code, len))
		len /= 2;
	while (at < len) {
		struct accessor_insn in = { 0 };

		if (!(x86 ? accessor_step_x86 : accessor_step_arm64)(&state, code + at, len - at,
								     vaddr + at, &in)) {
			at += x86 ? 1 : 4;
			continue;
		}
		if (!sw->each(sw->ctx, vaddr + at, &in, &state))
			return 0;
		at += in.len;
	}
	return 0;
}

/* --- rb_vm_exec() --- */

struct calls {
	uint64_t target[CALLS_MAX];
	uint32_t n;
	uint64_t last_jump; /* out of [start, end) */
	uint64_t start, end;
	uint32_t indirect; /* jumps through memory or a register */
};

static bool note_calls(void *ctx, uint64_t at, const struct accessor_insn *in,
		       const struct accessor_state *s)
{
	struct calls *c = ctx;
	bool out = in->target < c->start || in->target >= c->end;

	(void)at;
	(void)s;
	if (in->flow == FLOW_JUMP && in->target == ~0ULL)
		c->indirect++;
	else if (in->flow == FLOW_JUMP && out)
		c->last_jump = in->target;
	else if (in->flow == FLOW_CALL && in->target && in->target != ~0ULL && out &&
		 c->n < CALLS_MAX)
		c->target[c->n++] = in->target;
	return true;
}

static int calls_of(struct elf_file *elf, uint64_t start, uint64_t end, struct calls *ret,
		    struct err *e)
{
	*ret = (struct calls){ .start = start, .end = end };
	return sweep(elf, start, end - start, &(struct sweep){ note_calls, ret }, e);
}

static bool fde_of(const struct cfi *cfi, uint64_t vaddr, struct lang_range *ret)
{
	struct cfi_fde fde;
	uint32_t i;

	if (cfi_find(cfi, vaddr, &i) < 0)
		return false;
	fde = cfi_fde_at(cfi, i);
	*ret = (struct lang_range){ fde.start, fde.end };
	return fde.start == vaddr && fde.end - fde.start <= CODE_MAX;
}

static int find_exec(struct elf_file *elf, const struct cfi *cfi, const struct elf_export *syms,
		     struct elf_export *ret_exec, struct err *e)
{
	struct lang_range eval;
	struct calls calls;
	int r;

	*ret_exec = syms[RB_EXEC];
	if (ret_exec->vaddr)
		return 0;
	if (!fde_of(cfi, syms[RB_EVAL].vaddr, &eval))
		return -ENOENT;
	r = calls_of(elf, eval.start, eval.end, &calls, e);
	if (r < 0)
		return r;
	if (!calls.last_jump || !fde_of(cfi, calls.last_jump, &eval))
		return -ENOENT;
	*ret_exec = (struct elf_export){ .vaddr = eval.start, .size = eval.end - eval.start };
	return 0;
}

/* Of what the ranges in `outer` call, what has the most jumps through memory. -ENOENT: none has enough. */
static int find_core(struct elf_file *elf, const struct cfi *cfi, const struct lang_image *outer,
		     struct elf_export *ret_core, struct err *e)
{
	uint32_t most = CORE_JUMPS_LEAST - 1;
	struct lang_range range;
	struct calls calls, of;
	int r;

	ret_core->vaddr = 0;
	for (uint32_t i = 0; i < outer->n_ranges; i++) {
		r = calls_of(elf, outer->range[i].start, outer->range[i].end, &calls, e);
		for (uint32_t k = 0; r == 0 && k < calls.n; k++) {
			if (!fde_of(cfi, calls.target[k], &range) ||
			    range.end - range.start < CORE_LEAST)
				continue;
			r = calls_of(elf, range.start, range.end, &of, e);
			if (r < 0 || of.indirect <= most)
				continue;
			most = of.indirect;
			*ret_core = (struct elf_export){ .vaddr = range.start,
							 .size = range.end - range.start };
		}
		if (r < 0)
			return r;
	}
	return ret_core->vaddr ? 0 : -ENOENT;
}

/* Where the frame register is set: mov 16(%reg),%r15. */
static void find_register(struct elf_file *elf, uint64_t core, struct ruby_image *rb)
{
	uint8_t code[READY_MAX];

	rb->cfp_reg = UINT8_MAX;
	if (elf_file_machine(elf) != EM_X86_64 ||
	    !elf_file_read_vaddr(elf, core, code, sizeof(code)))
		return;
	for (uint32_t i = 0; i + 4 <= sizeof(code); i++)
		/* REX.WR(B), mod 1 with r15; not by rsp or r12, which have another byte. */
		if ((code[i] & 0xfe) == 0x4c && code[i + 1] == 0x8b &&
		    (code[i + 2] & 0xf8) == 0x78 && (code[i + 2] & 7) != 4 &&
		    code[i + 3] == EC_CFP) {
			rb->cfp_reg = X86_R15;
			rb->ready = (uint16_t)(i + 4);
			return;
		}
}

static bool add_range(struct lang_image *image, struct lang_range range)
{
	if (image->n_ranges == MS_LANG_RANGES)
		return false;
	image->range[image->n_ranges++] = range;
	return true;
}

/* The interpreter's function first, its caller behind it, then the parts of both that are elsewhere. */
static int find_ranges(struct elf_file *elf, const struct elf_export *syms, struct ruby_image *rb,
		       struct lang_image *image, struct err *e)
{
	_cleanup_(freep) struct lang_image *outer = calloc(1, sizeof(*outer)),
					   *inner = calloc(1, sizeof(*inner));
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	struct elf_export exec, core;
	int r;

	if (!outer || !inner)
		return err_set(e, -ENOMEM, "%s: out of memory for code", elf_file_name(elf));
	r = cfi_open(elf, CFI_EH_FRAME, &cfi, e);
	if (r == 0)
		r = find_exec(elf, cfi, syms, &exec, e);
	if (r == 0)
		r = lang_ranges(elf, &exec, outer, e);
	if (r < 0)
		return r;
	image->n_ranges = 0;
	r = find_core(elf, cfi, outer, &core, e);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT) {
		/* They are one function. */
		find_register(elf, exec.vaddr, rb);
		for (uint32_t i = 0; i < outer->n_ranges; i++)
			add_range(image, outer->range[i]);
		return 0;
	}
	r = lang_ranges(elf, &core, inner, e);
	if (r < 0)
		return r;
	find_register(elf, core.vaddr, rb);
	add_range(image, inner->range[0]);
	rb->outer = 1 << 1;
	add_range(image, outer->range[0]);
	for (uint32_t i = 1; i < inner->n_ranges && image->n_ranges < MS_LANG_RANGES - 1; i++)
		add_range(image, inner->range[i]);
	for (uint32_t i = 1; i < outer->n_ranges; i++)
		if (add_range(image, outer->range[i]))
			rb->outer |= (uint8_t)(1 << (image->n_ranges - 1));
	return 0;
}

/* --- names of IDs --- */

struct names {
	struct ruby_image *rb;
	uint64_t jump; /* the first out of the function */
	uint64_t start, end;
};

static bool note_names(void *ctx, uint64_t at, const struct accessor_insn *in,
		       const struct accessor_state *s)
{
	struct names *n = ctx;

	(void)at;
	if ((in->flow == FLOW_JUMP || in->flow == FLOW_CALL) && !n->jump && in->target != ~0ULL &&
	    (in->target < n->start || in->target >= n->end))
		n->jump = in->target;
	for (int i = 0; i < ACCESSOR_REGS; i++) {
		const struct place *p = &s->reg[i];
		uint64_t vaddr = (uint64_t)p->off[0];
		bool known =
			p->base != PLACE_IMAGE || p->reads != 1 || p->last_bytes != 8 || p->off[1];

		for (uint32_t k = 0; k < n->rb->n_names; k++)
			known |= n->rb->names[k] == vaddr;
		if (!known && n->rb->n_names < RUBY_CANDIDATES)
			n->rb->names[n->rb->n_names++] = vaddr;
	}
	return true;
}

static int find_names(struct elf_file *elf, const struct elf_export *id2str, struct ruby_image *rb,
		      struct err *e)
{
	uint64_t size = id2str->size && id2str->size < NAMES_CODE ? id2str->size : NAMES_CODE;
	struct names n = { rb, 0, id2str->vaddr, id2str->vaddr + size };
	struct sweep sw = { note_names, &n };
	int r;

	if (!id2str->vaddr)
		return 0;
	r = sweep(elf, id2str->vaddr, (size_t)size, &sw, e);
	if (r == 0 && n.jump)
		r = sweep(elf, n.jump, NAMES_CODE, &sw, e);
	return r;
}

int ruby_image_read(struct elf_file *elf, const struct elf_export syms[RB_N_SYMBOLS],
		    struct lang_image *image, struct err *e)
{
	struct ruby_image *rb = &image->ruby;
	const struct elf_export *current = &syms[RB_THREAD_CURRENT];
	int r;

	if (!syms[RB_VERSION].vaddr || !syms[RB_EVAL].vaddr || !current->vaddr ||
	    !elf_file_is64(elf))
		return -ENOENT;
	rb->version = read_version(elf, &syms[RB_VERSION]);
	if (!rb->version)
		return -ENOENT;
	rb->current_ec = syms[RB_CURRENT_EC].vaddr;
	r = accessor_load(elf, current->vaddr, current->size, &rb->current, e);
	if (r == 0)
		r = find_names(elf, &syms[RB_ID2STR], rb, e);
	if (r == 0)
		r = find_ranges(elf, syms, rb, image, e);
	return r == -ENOENT ? err_set(e, -EOPNOTSUPP,
				      "%s: where its interpreter's code is cannot be found",
				      elf_file_name(elf))
			    : r;
}
