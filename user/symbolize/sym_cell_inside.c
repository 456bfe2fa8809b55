/*
 * The cell that names an image (sym_cell_parts.h): the resolvers, over files that it asks for. And the one that reads its code, which has
 * the same files in the same way.
 */
#include "elf/disassembler.h"
#include "symbolize/resolver.h"
#include "symbolize/sym_cell_parts.h"

static int take_string(struct bytes *b, struct dict *d, string_id *ret)
{
	struct bytes text;

	if (take_text(b, &text) < 0)
		return -EBADMSG;
	*ret = dict_string_n(d, (const char *)text.data, text.len);
	return 0;
}

static int ask_file(struct sym_inside *in, uint32_t what, const struct strbuf *b)
{
	int fd = strbuf_oom(b) ? -ENOMEM : cell_ask_file(in->given, what, b->s, b->len);

	if (fd >= 0 && in->n_sent <= FILES_MAX)
		in->sent[in->n_sent++] = fd;
	return fd;
}

static int inside_module(void *ctx, module_id m, struct err *e)
{
	struct sym_inside *in = ctx;

	(void)m;
	(void)e;
	return in->first[0];
}

static int inside_jit(void *ctx, module_id m, enum jit_file what)
{
	struct sym_inside *in = ctx;

	(void)m;
	return in->first[what == JIT_DUMP];
}

static int inside_debug(void *ctx, module_id m, const char *path, bool host)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	(void)m;
	put_u8(&b, host);
	put_text(&b, path, TEXT_MAX);
	return ask_file(ctx, OPEN, &b);
}

static int inside_server(const struct sym_image *img, const char *build_id)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	put_text(&b, build_id, TEXT_MAX);
	return ask_file(img->opts->ctx, SERVER, &b);
}

static uint32_t number_of(const struct sym_inside *in, const struct elf_file *elf)
{
	for (uint32_t i = in->n_sent; elf && i-- > 0;)
		if (in->sent[i] == elf_file_fd(elf))
			return i;
	return NO_FILE;
}

static int inside_lines(const struct sym_image *img, struct elf_file *debug, struct elf_file *alt,
			int64_t max_cpu_ns, struct dwarf_raw *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct sym_inside *in = img->opts->ctx;
	struct bytes bytes;
	int32_t code = 0;
	int r;

	put_u32(&b, number_of(in, debug));
	put_u32(&b, number_of(in, alt));
	if (in->flags & CODE)
		strbuf_add(&b, img->vaddrs, img->n_vaddrs * sizeof(*img->vaddrs));
	(void)max_cpu_ns; /* who is asked knows */
	r = strbuf_oom(&b) ? -ENOMEM
			   : talk_send(in->given->channel, LINES, b.s, b.len, NULL, 0, UINT64_MAX);
	if (r == 0)
		r = talk_take(in->given->channel, CALL_QUESTION_MAX, false, UINT64_MAX, &t);
	if (r < 0)
		return r;
	bytes = talk_bytes(&t);
	*ret = (struct dwarf_raw){ 0 };
	if (t.what != RAW || bytes_u32(&bytes, (uint32_t *)&code) < 0 ||
	    bytes_u32(&bytes, &ret->cut) < 0 || bytes_u32(&bytes, (uint32_t *)&ret->status) < 0 ||
	    bytes_u64(&bytes, (uint64_t *)&ret->cpu_ns) < 0)
		return -EBADMSG;
	if (code < 0)
		return code;
	ret->text = malloc(bytes.len + 1);
	if (!ret->text)
		return -ENOMEM;
	memcpy(ret->text, bytes.data, bytes.len);
	ret->len = bytes.len;
	return 0;
}

static void note_place(void *ctx, const struct image_place *p)
{
	struct sym_inside *in = ctx;
	struct strbuf *b = &in->places;

	put_u32(b, p->ix);
	put_u8(b, (uint8_t)p->found);
	put_u8(b, p->unread);
	put_u16(b, (uint16_t)p->n_lines);
	for (uint32_t i = 0; i < p->n_lines; i++) {
		put_u32(b, p->lines[i].function.ix);
		put_u32(b, p->lines[i].system_name.ix);
		put_u32(b, p->lines[i].file.ix);
		put_u32(b, p->lines[i].line);
		put_u32(b, p->lines[i].start_line);
	}
	in->n_places++;
}

static void answer(struct sym_inside *in, const struct image_end *end, bool ran_out)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	put_u32(&b, dict_string_count(in->d));
	for (uint32_t i = 1; i <= dict_string_count(in->d); i++)
		put_text(&b, dict_str(in->d, (string_id){ i }), TEXT_MAX);
	put_u32(&b, in->n_places);
	strbuf_add(&b, in->places.s, in->places.len);
	put_u8(&b, ran_out);
	put_text(&b, end->why_unnamed, TEXT_MAX);
	put_text(&b, end->lines_problem, TEXT_MAX);
	if (!strbuf_oom(&b) && !strbuf_oom(&in->places) && !dict_oom(in->d))
		cell_answer(in->given, b.s, b.len);
}

/* The question, as opts and a dict of one module. */
static int take_question(struct sym_inside *in, struct talk *t, struct symbolize_opts *opts,
			 struct dwarf_budget *budget, struct image_question *q, int64_t *ms_left)
{
	struct bytes b = talk_bytes(t);
	struct module m = { 0 };
	uint32_t kind;
	int r = 0;

	if (bytes_u32(&b, &kind) < 0 || bytes_u32(&b, &in->flags) < 0 ||
	    bytes_u64(&b, (uint64_t *)&budget->cpu_ns) < 0 ||
	    bytes_u64(&b, (uint64_t *)ms_left) < 0)
		return -EBADMSG;
	for (int i = 0, n = 0; i < 2; i++) {
		int32_t code;

		if (bytes_u32(&b, (uint32_t *)&code) < 0)
			return -EBADMSG;
		in->first[i] = code < 0 ? code : TAKE_FD(t->fds[n++]);
	}
	if (in->first[0] >= 0)
		in->sent[in->n_sent++] = in->first[0];
	m.kind = kind;
	r = take_string(&b, in->d, &m.path);
	if (r == 0)
		r = take_string(&b, in->d, &m.build_id);
	if (r < 0 || bytes_u32(&b, &q->n) < 0 || b.len / sizeof(uint64_t) < q->n)
		return -EBADMSG;
	in->vaddrs = calloc(q->n + 1ul, sizeof(*in->vaddrs));
	if (!in->vaddrs)
		return -ENOMEM;
	bytes_copy(&b, in->vaddrs, q->n * sizeof(*in->vaddrs));
	q->vaddrs = in->vaddrs;
	in->more = b;
	q->d = in->d;
	q->module = dict_module(in->d, &m);
	*opts = (struct symbolize_opts){
		.open_module = inside_module,
		.open_debug = in->flags & NO_DEBUG_FILES ? NULL : inside_debug,
		.open_jit = inside_jit,
		.ctx = in,
		.no_demangle = in->flags & NO_DEMANGLE,
		.no_lines = in->flags & NO_LINES,
		.lines_within = in->flags & HAS_BUDGET ? budget : NULL,
	};
	q->opts = opts;
	q->dwarf_ms_left = ms_left;
	q->ask_lines = inside_lines;
	q->ask_server = inside_server;
	return 0;
}

static void say_which_files(struct sym_inside *in, const struct image_question *q)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct elf_file *elf = NULL, *debug = NULL, *alt = NULL;
	struct sym_image img;
	const char *why;
	int r;

	sym_image_init(&img, q->opts, q->d, q->module);
	img.ask_server = q->ask_server;
	r = sym_image_elf(&img, &elf, &why);
	if (r == 0 && sym_image_debug(&img, &debug, &why) < 0)
		debug = NULL;
	if (r == 0 && sym_image_alt(&img, debug ? debug : elf, &alt) < 0)
		alt = NULL;
	put_u8(&b, r == 0);
	put_u32(&b, number_of(in, debug));
	put_u32(&b, number_of(in, alt));
	if (!strbuf_oom(&b))
		cell_answer(in->given, b.s, b.len);
	sym_image_fini(&img);
}

static void work(const struct cell_given *given)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct sym_inside in = { .given = given, .d = dict_new() };
	struct dwarf_budget budget = { 0 };
	struct image_question q = { 0 };
	struct symbolize_opts opts;
	struct image_end end;
	int64_t ms_left;

	if (!in.d || cell_question(given, &t) < 0 ||
	    take_question(&in, &t, &opts, &budget, &q, &ms_left) < 0)
		return;
	if (in.flags & CODE)
		code_cell_say(&in, &q);
	else if (in.flags & WHICH_FILES)
		say_which_files(&in, &q);
	else if (image_names_here(&q, note_place, &in, &end) == 0)
		answer(&in, &end, budget.ran_out);
}

const struct cell_kind sym_cell = {
	.name = "names",
	.work = work,
	.data_bytes = MEMORY_MAX,
	.cpu_s = CPU_S,
	.files = 2 * FILES_MAX,
};
CELL_KIND(sym_cell);

const struct cell_kind code_cell = {
	.name = "code",
	.work = work,
	.prepare = disassembler_prepare,
	.data_bytes = MEMORY_MAX,
	.cpu_s = CPU_S,
	.files = 2 * FILES_MAX,
};
CELL_KIND(code_cell);
