/*
 * code_read(): the image is handed to a cell, which has what the one for names may have (sym_cell_parts.h), and its answer checked.
 *
 *   ▶ more      syntax:1, name×n
 *   ◀ answer    is_read:1 problem, functions n:4 { wanted:4 start:8 end:8 cut:1 no_lines, instructions n:4 {
 *               vaddr:8 size:4 jump:4 text target_name, SAME:1 | OTHERS:1 origins n:2 { function file line:4 }×n }×n }×n
 */
#include "base/fd_stat.h"
#include "symbolize/code_read.h"
#include "symbolize/sym_cell_parts.h"

#include <signal.h>
#include <sys/wait.h>

enum { SAME, OTHERS }; /* origins: those of the instruction before, or what follows */
enum { NAME_MAX_BYTES = 16 << 10, FILE_MAX_BYTES = 16 << 10 };
enum { CODE_BYTES_MAX = 32 << 20 }; /* forty functions of compilers' sizes have one or two */

/* --- the cell --- */

static void put_origins(struct strbuf *b, const struct code_instruction *in)
{
	put_u8(b, OTHERS);
	put_u16(b, (uint16_t)in->n_origins);
	for (uint32_t i = 0; i < in->n_origins; i++) {
		put_text(b, in->origins[i].function, NAME_MAX_BYTES);
		put_text(b, in->origins[i].file, FILE_MAX_BYTES);
		put_u32(b, in->origins[i].line);
	}
}

static void put_instructions(struct strbuf *b, const struct code_text *code)
{
	put_u32(b, code->n);
	for (uint32_t i = 0; i < code->n; i++) {
		const struct code_instruction *in = &code->instructions[i];

		put_u64(b, in->vaddr);
		put_u32(b, in->size);
		put_u32(b, in->jump);
		put_text(b, in->text, INSTRUCTION_TEXT_MAX);
		put_text(b, in->target_name, NAME_MAX_BYTES);
		if (i && in->origins == in[-1].origins && in->n_origins == in[-1].n_origins)
			put_u8(b, SAME);
		else
			put_origins(b, in);
	}
}

/* The one whose address is in a function. */
static uint32_t wanted_in(const struct image_question *q, const struct code_text *code)
{
	uint32_t i = 0;

	while (i < q->n && q->vaddrs[i] < code->start)
		i++;
	return i;
}

static void say(const struct sym_inside *in, const struct image_question *q,
		const struct code_answer *code)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	put_u8(&b, code->is_read);
	put_text(&b, code->problem, REASON_MAX);
	put_u32(&b, code->n);
	for (uint32_t i = 0; i < code->n; i++) {
		const struct code_text *f = &code->functions[i];

		put_u32(&b, wanted_in(q, f));
		put_u64(&b, f->start);
		put_u64(&b, f->end);
		put_u8(&b, f->cut);
		put_text(&b, f->no_lines, REASON_MAX);
		put_instructions(&b, f);
	}
	if (!strbuf_oom(&b))
		cell_answer(in->given, b.s, b.len);
}

void code_cell_say(struct sym_inside *in, const struct image_question *q)
{
	_cleanup_(freep) struct code_wanted *wanted = calloc(q->n + 1ul, sizeof(*wanted));
	_cleanup_(freep) struct code_answer *code = calloc(1, sizeof(*code));
	struct bytes b = in->more, text;
	uint8_t syntax;

	if (!wanted || !code || bytes_u8(&b, &syntax) < 0 || syntax > SYNTAX_INTEL)
		return;
	for (uint32_t i = 0; i < q->n; i++) {
		if (take_text(&b, &text) < 0)
			return;
		wanted[i].vaddr = q->vaddrs[i];
		wanted[i].name =
			dict_str(in->d, dict_string_n(in->d, (const char *)text.data, text.len));
	}
	if (code_read_here(q, wanted, syntax, code) == 0)
		say(in, q, code);
}

/* --- the answer --- */

/* A text of at most `max` bytes, none of them a NUL, and with `plain` nothing but what a terminal shows; NULL of an empty one. */
static int take_copy(struct bytes *b, uint32_t max, bool plain, struct arena *memory,
		     const char **ret)
{
	struct bytes text;

	*ret = NULL;
	if (take_text(b, &text) < 0 || text.len > max || memchr(text.data, '\0', text.len))
		return -EBADMSG;
	for (size_t i = 0; plain && i < text.len; i++)
		if (text.data[i] < ' ' || text.data[i] > '~')
			return -EBADMSG;
	if (!text.len)
		return 0;
	*ret = arena_strndup(memory, (const char *)text.data, text.len);
	return *ret ? 0 : -ENOMEM;
}

static int take_new_origins(struct bytes *b, struct code_text *code, struct code_instruction *in)
{
	struct code_origin *to;
	uint16_t n;

	if (bytes_u16(b, &n) < 0 || n > CODE_ORIGINS_MAX)
		return -EBADMSG;
	if (!n)
		return 0;
	to = arena_alloc(&code->memory, n * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		int r = take_copy(b, NAME_MAX_BYTES, false, &code->memory, &to[i].function);

		if (r == 0)
			r = take_copy(b, FILE_MAX_BYTES, false, &code->memory, &to[i].file);
		if (r == 0)
			r = bytes_u32(b, &to[i].line);
		if (r < 0)
			return r;
	}
	in->origins = to;
	in->n_origins = n;
	return 0;
}

static int take_origins(struct bytes *b, struct code_text *code, struct code_instruction *in)
{
	uint8_t how;

	if (bytes_u8(b, &how) < 0 || how > OTHERS || (how == SAME && in == code->instructions))
		return -EBADMSG;
	if (how == OTHERS)
		return take_new_origins(b, code, in);
	in->origins = in[-1].origins;
	in->n_origins = in[-1].n_origins;
	return 0;
}

/* One behind the other from the function's begin, as far as its end. */
static int take_instructions(struct bytes *b, struct code_text *code)
{
	uint64_t at = code->start;
	uint32_t n;

	if (bytes_u32(b, &n) < 0 || n > CODE_INSTRUCTIONS_MAX)
		return -EBADMSG;
	code->instructions = calloc(n + 1ul, sizeof(*code->instructions));
	if (!code->instructions)
		return -ENOMEM;
	for (; code->n < n; code->n++) {
		struct code_instruction *in = &code->instructions[code->n];
		int r = bytes_u64(b, &in->vaddr);

		if (r < 0 || bytes_u32(b, &in->size) < 0 || bytes_u32(b, &in->jump) < 0 ||
		    in->vaddr != at || !in->size || in->size > code->end - at || in->jump > n)
			return -EBADMSG;
		at += in->size;
		r = take_copy(b, INSTRUCTION_TEXT_MAX, true, &code->memory, &in->text);
		if (r == 0)
			r = take_copy(b, NAME_MAX_BYTES, false, &code->memory, &in->target_name);
		if (r == 0)
			r = take_origins(b, code, in);
		if (r < 0)
			return r;
		if (!in->text)
			return -EBADMSG;
	}
	return 0;
}

/* Each of them has an address in it that was wanted, and is behind the one before. */
static int take_function(const struct image_question *q, const struct code_wanted *wanted,
			 struct bytes *b, uint64_t behind, struct code_text *code)
{
	uint32_t i;
	uint8_t cut;

	if (bytes_u32(b, &i) < 0 || bytes_u64(b, &code->start) < 0 ||
	    bytes_u64(b, &code->end) < 0 || bytes_u8(b, &cut) < 0 || cut > 1 || i >= q->n ||
	    code->start < behind || code->start > wanted[i].vaddr || code->end <= wanted[i].vaddr)
		return -EBADMSG;
	code->module = q->module;
	code->cut = cut != 0;
	code->no_lines = sym_take_reason(b, q->d);
	code->name = arena_strndup(&code->memory, wanted[i].name, strlen(wanted[i].name));
	return code->name ? take_instructions(b, code) : -ENOMEM;
}

static int take_all(const struct image_question *q, const struct code_wanted *wanted,
		    struct bytes data, struct code_answer *ret)
{
	uint64_t behind = 0;
	uint8_t is_read;
	uint32_t n;
	int r = bytes_u8(&data, &is_read);

	if (r < 0 || is_read > 1)
		return -EBADMSG;
	ret->is_read = is_read != 0;
	ret->problem = sym_take_reason(&data, q->d);
	if (bytes_u32(&data, &n) < 0 || n > CODE_FUNCTIONS_MAX || (n && !is_read))
		return -EBADMSG;
	while (r == 0 && ret->n < n) {
		struct code_text *code = &ret->functions[ret->n++];

		r = take_function(q, wanted, &data, behind, code);
		behind = code->end;
	}
	return r == 0 && data.len ? -EBADMSG : r;
}

int code_take(const struct image_question *q, const struct code_wanted *wanted, struct bytes data,
	      struct code_answer *ret)
{
	int r;

	*ret = (struct code_answer){ 0 };
	r = take_all(q, wanted, data, ret);
	if (r < 0) {
		code_answer_fini(ret);
		*ret = (struct code_answer){ 0 };
	}
	return r;
}

/* --- who asks --- */

static void put_wanted(struct strbuf *b, const struct code_wanted *wanted, uint32_t n,
		       enum disassembly_syntax syntax)
{
	put_u8(b, (uint8_t)syntax);
	for (uint32_t i = 0; i < n; i++)
		put_text(b, wanted[i].name, TEXT_MAX);
}

static const char *why_ended(const struct cell_end *end, int code)
{
	if (code == -ETIMEDOUT ||
	    (end->status != -1 && WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGXCPU))
		return "its code takes too long to read";
	return "the process that read its code ended early";
}

static int ask(const struct image_question *q, const struct code_wanted *wanted,
	       enum disassembly_syntax syntax, struct code_answer *ret)
{
	_cleanup_(sym_outside_fini) struct sym_outside o = { 0 };
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf more = { 0 };
	struct cell_end end = { .status = -1 };
	struct stat st;
	int r;

	put_wanted(&more, wanted, q->n, syntax);
	r = sym_cell_ask(&code_cell, q, CODE, &more, CODE_BYTES_MAX, &o, &t, &end);
	/* No file, no foreign bytes: what is said of that is said here. */
	if (r == -ENXIO)
		return code_read_here(q, wanted, syntax, ret);
	if (r == 0)
		r = code_take(q, wanted, talk_bytes(&t), ret);
	if (r < 0 && r != -ENOMEM)
		ret->problem = why_ended(&end, r);
	/* Whose file it is, nobody in a cell is asked. */
	if (ret->is_read && o.n_files && fd_stat(o.files[0], &st) == 0) {
		ret->mtime_s = st.st_mtime;
		ret->owner = st.st_uid;
	}
	return r == -ENOMEM ? r : 0;
}

int code_read(struct dict *d, const struct symbolize_opts *files, module_id m,
	      const struct code_wanted *wanted, uint32_t n, enum disassembly_syntax syntax,
	      int64_t max_ms, struct code_answer *ret)
{
	_cleanup_(freep) uint64_t *vaddrs = calloc(n + 1ul, sizeof(*vaddrs));
	struct symbolize_opts opts = *files;
	struct image_question q = { .d = d,
				    .module = m,
				    .opts = &opts,
				    .vaddrs = vaddrs,
				    .n = n,
				    .dwarf_ms_left = &max_ms };
	int r;

	*ret = (struct code_answer){ 0 };
	if (!vaddrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		vaddrs[i] = wanted[i].vaddr;
	opts.lines_within = NULL;
	r = ask(&q, wanted, syntax, ret);
	ret->by_build_id = ret->is_read && dict_str(d, dict_module_get(d, m)->build_id)[0] != 0;
	return r;
}
