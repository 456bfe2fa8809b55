#include "symbolize/code_read.h"

#include "base/grow.h"
#include "base/library.h"
#include "elf/cfi.h"
#include "elf/demangle.h"
#include "elf/dwarf.h"
#include "elf/elf_syms.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Where functions begin and end: what is there of the three. */
struct ranges {
	struct elf_syms *own, *debug;
	struct cfi *cfi;
};

static void ranges_fini(struct ranges *r)
{
	elf_syms_free(r->own);
	elf_syms_free(r->debug);
	cfi_free(r->cfi);
}

static int ranges_load(struct ranges *r, struct sym_image *img, struct elf_file *elf)
{
	struct elf_file *debug;
	const char *why;

	if (elf_syms_load_at(elf, img->vaddrs, img->n_vaddrs, &r->own, NULL) == -ENOMEM)
		return -ENOMEM;
	if ((!r->own || elf_syms_exported_only(r->own)) &&
	    sym_image_debug(img, &debug, &why) == 0 &&
	    elf_syms_load_at(debug, img->vaddrs, img->n_vaddrs, &r->debug, NULL) == -ENOMEM)
		return -ENOMEM;
	return cfi_open(elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &r->cfi, NULL) == -ENOMEM ? -ENOMEM
										       : 0;
}

/* As the profile has it, or as the linker has it. */
static bool is_called(const struct elf_sym *sym, const char *name)
{
	char shown[DEMANGLE_OUT_MAX];
	size_t len = strlen(name);

	return (len == sym->name_len && memcmp(name, sym->name, len) == 0) ||
	       (demangle(sym->name, sym->name_len, shown) && strcmp(shown, name) == 0);
}

static bool find_symbol(const struct ranges *r, uint64_t vaddr, struct elf_sym *ret_sym)
{
	return (r->debug && elf_syms_find(r->debug, vaddr, ret_sym) == 0) ||
	       (r->own && elf_syms_find(r->own, vaddr, ret_sym) == 0);
}

/* [start, end) of the function. NULL, or why it cannot be shown. */
static const char *find_range(const struct ranges *r, const struct code_wanted *w,
			      uint64_t *ret_start, uint64_t *ret_end)
{
	struct elf_sym sym;
	struct cfi_fde fde;
	uint32_t i;

	if (find_symbol(r, w->vaddr, &sym)) {
		if (!is_called(&sym, w->name))
			return "the profile's addresses are not those of the file";
		*ret_start = sym.vaddr;
		*ret_end = sym.vaddr + sym.size;
		return NULL;
	}
	if (!r->cfi || cfi_find(r->cfi, w->vaddr, &i) < 0)
		return "nothing says where its functions begin and end";
	fde = cfi_fde_at(r->cfi, i);
	*ret_start = fde.start;
	*ret_end = fde.end;
	return NULL;
}

/* --- instructions --- */

static int add_instruction(struct code_text *code, uint32_t *cap, const struct instruction *in)
{
	const char *text = arena_strndup(&code->memory, in->text, strlen(in->text));

	if (!text || !GROW(code->instructions, code->n, *cap))
		return -ENOMEM;
	code->instructions[code->n++] =
		(struct code_instruction){ .vaddr = in->vaddr, .size = in->size, .text = text };
	return 0;
}

/* Targets outside, which are named together. */
struct target {
	uint64_t vaddr;
	struct code_text *code;
	uint32_t instruction;
};
struct targets {
	struct target *at;
	uint32_t n, cap;
};

static int add_target(struct targets *t, struct code_text *code, uint32_t instruction,
		      uint64_t vaddr)
{
	if (!GROW(t->at, t->n, t->cap))
		return -ENOMEM;
	t->at[t->n++] = (struct target){ vaddr, code, instruction };
	return 0;
}

static int disassemble(struct disassembler *dis, const uint8_t *bytes, size_t len,
		       struct code_text *code, struct targets *targets)
{
	uint32_t cap = 0, first = targets->n;
	size_t at = 0;

	while (at < len && code->n < CODE_INSTRUCTIONS_MAX) {
		struct instruction in;
		int r;

		disassembler_read(dis, bytes + at, len - at, code->start + at, &in);
		r = add_instruction(code, &cap, &in);
		if (r == 0 && in.branches)
			r = add_target(targets, code, code->n - 1, in.target);
		if (r < 0)
			return r;
		at += in.size;
	}
	code->cut = at < len;
	for (uint32_t i = first; i < targets->n; i++) {
		struct target *t = &targets->at[i];
		uint32_t there = t->vaddr >= code->start && t->vaddr < code->end
					 ? code_text_find(code, t->vaddr)
					 : 0;

		/* A jump into the middle of an instruction is of code that is no such. */
		if (there && code->instructions[there - 1].vaddr == t->vaddr)
			code->instructions[t->instruction].jump = there;
	}
	return 0;
}

static int read_function(struct elf_file *elf, struct disassembler *dis, struct code_text *code,
			 struct targets *targets)
{
	uint64_t size = code->end - code->start;
	size_t len = size < CODE_INSTRUCTIONS_MAX * 15ul ? size : CODE_INSTRUCTIONS_MAX * 15ul;
	_cleanup_(freep) uint8_t *bytes = malloc(len ? len : 1);
	int r;

	if (!bytes)
		return -ENOMEM;
	if (!len || !elf_file_read_vaddr(elf, code->start, bytes, len))
		return -EBADMSG;
	r = disassemble(dis, bytes, len, code, targets);
	code->cut |= len < size;
	return r;
}

/* --- names of what is called --- */

static int by_target(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int name_target(const struct target *t, const struct sym_answer *answer)
{
	const struct sym_frame *f = &answer->frames[answer->n - 1];
	struct code_instruction *in = &t->code->instructions[t->instruction];
	char shown[DEMANGLE_OUT_MAX], whole[DEMANGLE_OUT_MAX + 16];
	bool nice = f->name && demangle(f->name, f->len, shown);
	int len;

	if (!f->name)
		return 0;
	len = snprintf(whole, sizeof(whole), "%.*s%s", nice ? (int)strlen(shown) : (int)f->len,
		       nice ? shown : f->name, f->suffix ? f->suffix : "");
	if (len >= (int)sizeof(whole))
		len = sizeof(whole) - 1;
	in->target_name = arena_strndup(&t->code->memory, whole, (size_t)len);
	return in->target_name ? 0 : -ENOMEM;
}

static int name_targets(struct sym_image *img, struct targets *targets)
{
	static const struct resolver *const by[] = { &sym_elf, &sym_plt };
	_cleanup_(freep) uint64_t *vaddrs = calloc(targets->n + 1ul, sizeof(*vaddrs));
	struct sym_answer answer;
	const char *why;
	int r = 0;

	if (!vaddrs)
		return -ENOMEM;
	if (targets->n)
		qsort(targets->at, targets->n, sizeof(*targets->at), by_target);
	for (uint32_t i = 0; i < targets->n; i++)
		vaddrs[i] = targets->at[i].vaddr;
	img->vaddrs = vaddrs;
	img->n_vaddrs = targets->n;
	for (size_t k = 0; targets->n && k < sizeof(by) / sizeof(*by) && r == 0; k++) {
		void *state;

		if (by[k]->open(img, &state, &why) < 0)
			continue;
		for (uint32_t i = 0; i < targets->n && r == 0; i++) {
			const struct target *t = &targets->at[i];
			const struct code_instruction *in = &t->code->instructions[t->instruction];

			if (!in->jump && !in->target_name &&
			    by[k]->find(state, t->vaddr, &answer) && answer.n)
				r = name_target(t, &answer);
		}
		by[k]->close(state);
	}
	img->vaddrs = NULL;
	img->n_vaddrs = 0;
	return r;
}

/* --- lines --- */

static bool same_origins(const struct dwarf_frame *a, uint32_t n_a, const struct dwarf_frame *b,
			 uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		/* Strings of one answer are one where they are equal, or are written again: a second copy costs memory only. */
		if (a[i].line != b[i].line || a[i].function != b[i].function ||
		    a[i].file != b[i].file)
			return false;
	return true;
}

static const char *copy_text(struct code_text *code, const char *s, bool name, bool *oom)
{
	char shown[DEMANGLE_OUT_MAX];
	const char *copy;

	if (!s)
		return NULL;
	if (name && demangle(s, strlen(s), shown))
		s = shown;
	copy = arena_strndup(&code->memory, s, strlen(s));
	*oom |= !copy;
	return copy;
}

static struct code_origin *copy_origins(struct code_text *code, const struct dwarf_frame *frames,
					uint32_t n)
{
	struct code_origin *to = arena_alloc(&code->memory, n * sizeof(*to));
	bool oom = !to;

	for (uint32_t i = 0; i < n && !oom; i++)
		to[i] = (struct code_origin){ copy_text(code, frames[i].function, true, &oom),
					      copy_text(code, frames[i].file, false, &oom),
					      frames[i].line };
	return oom ? NULL : to;
}

static int add_lines(struct code_text *code, const struct dwarf_lines *lines)
{
	const struct dwarf_frame *before = NULL;
	uint32_t n_before = 0;

	for (uint32_t i = 0; i < code->n; i++) {
		struct code_instruction *in = &code->instructions[i];
		const struct dwarf_frame *frames;
		uint32_t n = dwarf_lines_find(lines, in->vaddr, &frames);

		if (!n) {
			before = NULL;
			continue;
		}
		n = n > CODE_ORIGINS_MAX ? CODE_ORIGINS_MAX : n;
		if (before && same_origins(before, n_before, frames, n))
			in->origins = in[-1].origins;
		else
			in->origins = copy_origins(code, frames, n);
		if (!in->origins)
			return -ENOMEM;
		in->n_origins = n;
		before = frames;
		n_before = n;
	}
	return 0;
}

static int ask_lines(struct sym_image *img, struct elf_file *debug, const uint64_t *vaddrs,
		     uint32_t n, struct dwarf_lines **ret_lines)
{
	struct elf_file *alt = NULL;
	struct dwarf_raw raw = { 0 };
	bool ran_out;
	int r;

	sym_image_alt(img, debug, &alt);
	img->vaddrs = vaddrs;
	img->n_vaddrs = n;
	r = sym_image_raw_lines(img, debug, alt, 0, &raw);
	return r < 0 ? r : dwarf_lines_of(&raw, elf_file_name(debug), ret_lines, &ran_out, NULL);
}

static int read_lines(struct sym_image *img, struct elf_file *elf, struct code_answer *ret)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *lines = NULL;
	_cleanup_(freep) uint64_t *vaddrs = NULL;
	struct elf_file *debug = elf;
	const char *why = NULL;
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < ret->n; i++)
		n += ret->functions[i].n;
	vaddrs = calloc(n + 1ul, sizeof(*vaddrs));
	if (!vaddrs)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < ret->n; i++)
		for (uint32_t k = 0; k < ret->functions[i].n; k++)
			vaddrs[n++] = ret->functions[i].instructions[k].vaddr;
	if (!dwarf_present(elf) &&
	    (sym_image_debug(img, &debug, &why) < 0 || !dwarf_present(debug)))
		why = "it has no debug info, and none was found for it";
	else if (n) {
		r = ask_lines(img, debug, vaddrs, n, &lines);
		why = r < 0 ? "its debug info cannot be read, or says nothing of it"
			    : dwarf_lines_cut_short(lines);
	}
	if (r == -ENOMEM)
		return r;
	for (uint32_t i = 0; i < ret->n; i++) {
		r = lines ? add_lines(&ret->functions[i], lines) : 0;
		if (r < 0)
			return r;
		ret->functions[i].no_lines = why;
	}
	return 0;
}

/* --- */

static int read_all(struct sym_image *img, struct elf_file *elf, const struct code_wanted *wanted,
		    uint32_t n, enum disassembly_syntax syntax, struct code_answer *ret)
{
	_cleanup_(disassembler_closep) struct disassembler *dis = NULL;
	_cleanup_(ranges_fini) struct ranges ranges = { 0 };
	struct targets targets = { 0 };
	int r = disassembler_open(elf_file_machine(elf), syntax, &dis);

	if (r < 0) {
		ret->problem =
			r == -ENOENT
				? "code of its machine is read by libcapstone, " LIBRARY_MISSING(
					  "libcapstone4")
				: "this build does not disassemble code of its machine";
		return r == -ENOMEM ? r : 0;
	}
	r = ranges_load(&ranges, img, elf);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct code_text *before = ret->n ? &ret->functions[ret->n - 1] : NULL;
		struct code_text *code = &ret->functions[ret->n];
		uint64_t start, end;
		const char *why;

		if (before && wanted[i].vaddr < before->end)
			continue;
		if (ret->n == CODE_FUNCTIONS_MAX)
			break;
		why = find_range(&ranges, &wanted[i], &start, &end);
		if (why || (before && start < before->end)) {
			ret->problem = why ? why : ret->problem;
			continue;
		}
		*code = (struct code_text){ .module = img->module, .start = start, .end = end };
		code->name = arena_strndup(&code->memory, wanted[i].name, strlen(wanted[i].name));
		r = code->name ? read_function(elf, dis, code, &targets) : -ENOMEM;
		ret->n++;
		if (r == -EBADMSG) {
			code_text_fini(code);
			ret->n--;
			ret->problem = "the file is damaged";
			r = 0;
		}
	}
	if (r == 0)
		r = name_targets(img, &targets);
	free(targets.at);
	return r;
}

int code_read_here(const struct image_question *q, const struct code_wanted *wanted,
		   enum disassembly_syntax syntax, struct code_answer *ret)
{
	struct elf_file *elf;
	struct sym_image img;
	int r = 0;

	sym_image_init(&img, q->opts, q->d, q->module);
	img.vaddrs = q->vaddrs;
	img.n_vaddrs = q->n;
	img.dwarf_ms_left = q->dwarf_ms_left;
	img.ask_lines = q->ask_lines;
	img.ask_server = q->ask_server;
	if (sym_image_elf(&img, &elf, &ret->problem) == 0) {
		ret->is_read = true;
		r = read_all(&img, elf, wanted, q->n, syntax, ret);
		if (r == 0)
			r = read_lines(&img, elf, ret);
	}
	sym_image_fini(&img);
	return r;
}

void code_answer_fini(struct code_answer *answer)
{
	for (uint32_t i = 0; i < answer->n; i++)
		code_text_fini(&answer->functions[i]);
	answer->n = 0;
}
