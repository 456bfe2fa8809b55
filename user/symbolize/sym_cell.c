/*
 * image_names_in_cell(): what a cell that names an image may have, and its answer, checked. The messages are in sym_cell_parts.h.
 */
#include "base/clock.h"
#include "symbolize/resolver.h"
#include "symbolize/sym_cell_parts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* --- what the cell may have ----------------------------------------------------------- */

static int send_file(struct sym_outside *o, int channel, int fd, uint64_t until_ns)
{
	int kept = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (fd >= 0 && kept < 0) {
		close(fd);
		fd = -EMFILE;
	}
	if (kept >= 0)
		o->files[o->n_files++] = kept;
	return cell_send_file(channel, fd, until_ns);
}

static const char *image_path(const struct image_question *q)
{
	return dict_str(q->d, dict_module_get(q->d, q->module)->path);
}

/* A descriptor, or -errno; *ret_wrong: it asks for what no reader asks for. */
static int open_path(struct sym_outside *o, const struct talk *t, bool *ret_wrong)
{
	const struct symbolize_opts *opts = o->q->opts;
	struct bytes b = talk_bytes(t), text;
	char path[4096];
	uint8_t host;

	*ret_wrong = bytes_u8(&b, &host) < 0 || take_text(&b, &text) < 0 ||
		     text.len >= sizeof(path) || memchr(text.data, '\0', text.len);
	if (*ret_wrong || !opts->open_debug)
		return -ENOENT;
	memcpy(path, text.data, text.len);
	path[text.len] = '\0';
	if (host && !debug_link_host_path_ok(path, image_path(o->q)))
		return -ENOENT;
	return opts->open_debug(opts->ctx, o->q->module, path, host != 0);
}

/* A build ID is hexadecimal: nothing in it means something in an address of the network. */
static int ask_servers(struct sym_outside *o, const struct talk *t, bool *ret_wrong)
{
	struct bytes b = talk_bytes(t), text;
	char build_id[2 * ELF_BUILD_ID_MAX + 1];

	*ret_wrong = take_text(&b, &text) < 0 || text.len >= sizeof(build_id) || !text.len;
	if (*ret_wrong)
		return -ENOENT;
	memcpy(build_id, text.data, text.len);
	build_id[text.len] = '\0';
	*ret_wrong = strspn(build_id, "0123456789abcdef") != text.len;
	return *ret_wrong || !o->q->servers ? -ENOENT : debuginfod_open(o->q->servers, build_id);
}

static int serve_file(struct sym_outside *o, int channel, const struct talk *t, uint64_t until_ns)
{
	bool wrong;
	int fd;

	if (o->n_opens++ >= OPENS_MAX)
		return -EBADMSG;
	if (o->n_files == FILES_MAX)
		return cell_send_file(channel, -EMFILE, until_ns);
	fd = t->what == OPEN ? open_path(o, t, &wrong) : ask_servers(o, t, &wrong);
	return wrong ? -EBADMSG : send_file(o, channel, fd, until_ns);
}

/* The addresses of the question; of code those that the cell has found, ascending. NULL and 0: they are none. */
static const uint64_t *take_vaddrs(const struct sym_outside *o, struct bytes b, uint64_t **ret_own,
				   uint32_t *ret_n)
{
	uint64_t *own;

	if (!(o->flags & CODE)) {
		*ret_n = b.len ? 0 : o->q->n;
		return o->q->vaddrs;
	}
	*ret_n = 0;
	own = b.len % sizeof(*own) ? NULL : malloc(b.len + 1);
	if (!own)
		return NULL;
	memcpy(own, b.data, b.len);
	*ret_own = own;
	*ret_n = (uint32_t)(b.len / sizeof(*own));
	for (uint32_t i = 1; i < *ret_n; i++)
		if (own[i] <= own[i - 1])
			*ret_n = 0;
	return own;
}

static int serve_lines(struct sym_outside *o, int channel, const struct talk *t, uint64_t *until_ns)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	_cleanup_(freep) uint64_t *own = NULL;
	const struct image_question *q = o->q;
	struct dwarf_raw raw = { .status = -1 };
	struct bytes bytes = talk_bytes(t);
	uint64_t began = now_ns();
	const uint64_t *vaddrs;
	uint32_t file, alt, n;
	int r;

	if (bytes_u32(&bytes, &file) < 0 || bytes_u32(&bytes, &alt) < 0 || file >= o->n_files ||
	    (alt >= o->n_files && alt != NO_FILE) || o->n_lines++ >= LINES_MAX)
		return -EBADMSG;
	vaddrs = take_vaddrs(o, bytes, &own, &n);
	if (!n)
		return -EBADMSG;
	r = dwarf_raw_read(o->files[file], alt == NO_FILE ? -1 : o->files[alt], "", vaddrs, n,
			   *q->dwarf_ms_left, dwarf_budget_share(q->opts->lines_within), &raw,
			   NULL);
	*q->dwarf_ms_left -= (int64_t)((now_ns() - began) / 1000000);
	if (q->opts->lines_within)
		q->opts->lines_within->cpu_ns -= raw.cpu_ns;
	put_u32(&b, (uint32_t)r);
	put_u32(&b, raw.cut);
	put_u32(&b, (uint32_t)raw.status);
	put_u64(&b, (uint64_t)raw.cpu_ns);
	strbuf_add(&b, raw.text, raw.text ? raw.len : 0);
	free(raw.text);
	*until_ns += now_ns() - began;
	return strbuf_oom(&b) ? -ENOMEM : talk_send(channel, RAW, b.s, b.len, NULL, 0, *until_ns);
}

static int serve(void *ctx, int channel, const struct talk *t, uint64_t *until_ns)
{
	if (t->what == OPEN || t->what == SERVER)
		return serve_file(ctx, channel, t, *until_ns);
	return t->what == LINES ? serve_lines(ctx, channel, t, until_ns) : -EBADMSG;
}

/* --- the question ---------------------------------------------------------------------- */

/* `first`: descriptors, or -errno. Returns how many descriptors go with it. */
static uint32_t put_question(const struct image_question *q, uint32_t flags, const int first[2],
			     struct strbuf *b, int fds[2])
{
	const struct module *m = dict_module_get(q->d, q->module);
	const struct symbolize_opts *opts = q->opts;
	uint32_t n = 0;

	put_u32(b, m->kind);
	put_u32(b, flags | (opts->no_demangle ? NO_DEMANGLE : 0) | (opts->no_lines ? NO_LINES : 0) |
			   (opts->open_debug ? 0 : NO_DEBUG_FILES) |
			   (opts->lines_within ? HAS_BUDGET : 0));
	put_u64(b, opts->lines_within ? (uint64_t)opts->lines_within->cpu_ns : 0);
	put_u64(b, (uint64_t)*q->dwarf_ms_left);
	for (int i = 0; i < 2; i++) {
		put_u32(b, first[i] < 0 ? (uint32_t)first[i] : 0);
		if (first[i] >= 0)
			fds[n++] = first[i];
	}
	put_text(b, dict_str(q->d, m->path), TEXT_MAX);
	put_text(b, dict_str(q->d, m->build_id), TEXT_MAX);
	put_u32(b, q->n);
	strbuf_add(b, q->vaddrs, q->n * sizeof(*q->vaddrs));
	return n;
}

/* --- the answer ----------------------------------------------------------------------- */

struct answer {
	struct bytes b;
	struct dict *d;
	struct bytes *texts; /* from 1 */
	string_id *ids;      /* of those that are used, else 0 */
	uint32_t n_strings;
};

static void answer_fini(struct answer *a)
{
	free(a->texts);
	free(a->ids);
}

static int take_strings(struct answer *a)
{
	if (bytes_u32(&a->b, &a->n_strings) < 0 || a->n_strings > a->b.len / 4)
		return -EBADMSG;
	a->texts = calloc(a->n_strings + 1ul, sizeof(*a->texts));
	a->ids = calloc(a->n_strings + 1ul, sizeof(*a->ids));
	if (!a->texts || !a->ids)
		return -ENOMEM;
	for (uint32_t i = 1; i <= a->n_strings; i++)
		if (take_text(&a->b, &a->texts[i]) < 0)
			return -EBADMSG;
	return 0;
}

static int take_id(struct answer *a, string_id *ret)
{
	uint32_t i;

	if (bytes_u32(&a->b, &i) < 0 || i > a->n_strings)
		return -EBADMSG;
	if (i && !a->ids[i].ix && a->texts[i].len)
		a->ids[i] = dict_string_n(a->d, (const char *)a->texts[i].data, a->texts[i].len);
	*ret = a->ids[i];
	return 0;
}

static int take_line(struct answer *a, struct line *ret)
{
	if (take_id(a, &ret->function) < 0 || take_id(a, &ret->system_name) < 0 ||
	    take_id(a, &ret->file) < 0 || bytes_u32(&a->b, &ret->line) < 0 ||
	    bytes_u32(&a->b, &ret->start_line) < 0 || !ret->function.ix)
		return -EBADMSG;
	return 0;
}

static int take_place(struct answer *a, struct image_place *ret, struct line lines[SYM_FRAMES_MAX])
{
	uint8_t found, unread;
	uint16_t n;

	if (bytes_u32(&a->b, &ret->ix) < 0 || bytes_u8(&a->b, &found) < 0 ||
	    bytes_u8(&a->b, &unread) < 0 || bytes_u16(&a->b, &n) < 0 || found > FOUND_NOTHING ||
	    !n || n > SYM_FRAMES_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++)
		if (take_line(a, &lines[i]) < 0)
			return -EBADMSG;
	ret->found = found;
	ret->unread = unread != 0;
	ret->lines = lines;
	ret->n_lines = n;
	return 0;
}

const char *sym_take_reason(struct bytes *b, struct dict *d)
{
	struct bytes text;

	if (take_text(b, &text) < 0 || !text.len || text.len > REASON_MAX)
		return NULL;
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < ' ' || text.data[i] > '~')
			return NULL;
	return dict_str(d, dict_string_n(d, (const char *)text.data, text.len));
}

/* Those that nothing was said of. */
static void make_up(const struct image_question *q, uint32_t from, uint32_t to, image_place_fn fn,
		    void *ctx)
{
	const struct module *m = dict_module_get(q->d, q->module);

	for (uint32_t i = from; i < to; i++) {
		struct line line = { .function = image_made_up_name(q->d, m, q->vaddrs[i]) };

		fn(ctx, &(struct image_place){
				.ix = i, .found = FOUND_NOTHING, .lines = &line, .n_lines = 1 });
	}
}

uint32_t image_names_take(const struct image_question *q, struct bytes data, image_place_fn fn,
			  void *ctx, struct image_end *ret)
{
	_cleanup_(answer_fini) struct answer a = { .b = data, .d = q->d };
	_cleanup_(freep) struct line *lines = calloc(SYM_FRAMES_MAX, sizeof(*lines));
	uint32_t next = 0, n;
	uint8_t ran_out;

	if (!lines || take_strings(&a) < 0 || bytes_u32(&a.b, &n) < 0)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		struct image_place p;

		if (take_place(&a, &p, lines) < 0 || p.ix < next || p.ix >= q->n)
			return next;
		make_up(q, next, p.ix, fn, ctx);
		fn(ctx, &p);
		next = p.ix + 1;
	}
	if (bytes_u8(&a.b, &ran_out) < 0)
		return next;
	if (q->opts->lines_within && ran_out)
		q->opts->lines_within->ran_out = true;
	ret->why_unnamed = sym_take_reason(&a.b, a.d);
	ret->lines_problem = sym_take_reason(&a.b, a.d);
	make_up(q, next, q->n, fn, ctx);
	return q->n;
}

static const char *why_ended(const struct cell_end *end, int code)
{
	if (code == -ETIMEDOUT ||
	    (end->status != -1 && WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGXCPU))
		return "its names take too long to read";
	return "the process that read its names ended early";
}

static int open_first(const struct image_question *q, int first[2])
{
	const struct symbolize_opts *o = q->opts;

	if (dict_module_get(q->d, q->module)->kind == MODULE_ELF) {
		first[0] = o->open_module ? o->open_module(o->ctx, q->module, NULL) : -ENOENT;
	} else if (o->open_jit) {
		first[0] = o->open_jit(o->ctx, q->module, JIT_PERF_MAP);
		first[1] = o->open_jit(o->ctx, q->module, JIT_DUMP);
	}
	return first[0] >= 0 || first[1] >= 0;
}

/* Of names, of which files have them, and of code. */
static struct cell_patience patience;

int sym_cell_ask(const struct cell_kind *kind, const struct image_question *q, uint32_t flags,
		 const struct strbuf *more, size_t answer_max, struct sym_outside *o,
		 struct talk *ret, struct cell_end *ret_end)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	int first[2] = { -ENOENT, -ENOENT }, fds[2], r = -ENOMEM;
	struct cell_call call = { .kind = kind,
				  .fds = fds,
				  .answer_max = answer_max,
				  .request_max = flags & CODE ? CODE_REQUEST_MAX : 0,
				  .seconds = WALL_S,
				  .patience = &patience,
				  .serve = serve,
				  .ctx = o };

	*ret = (struct talk){ .fds = { -1, -1, -1 } };
	*o = (struct sym_outside){ .q = q, .flags = flags };
	if (!open_first(q, first))
		return -ENXIO;
	call.n_fds = put_question(q, flags, first, &b, fds);
	if (more)
		strbuf_add(&b, more->s, more->len);
	call.question = b.s;
	call.len = b.len;
	if (first[0] >= 0)
		o->files[o->n_files++] = first[0];
	if (!strbuf_oom(&b) && (!more || !strbuf_oom(more)))
		r = cell_call(&call, ret, ret_end);
	closep(&first[1]);
	return r;
}

void sym_outside_fini(struct sym_outside *o)
{
	for (uint32_t i = 0; i < o->n_files; i++)
		closep(&o->files[i]);
	o->n_files = 0;
}

int image_names_in_cell(const struct image_question *q, image_place_fn fn, void *ctx,
			struct image_end *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(sym_outside_fini) struct sym_outside o = { 0 };
	struct cell_end end = { .status = -1 };
	uint32_t named = 0;
	int r = sym_cell_ask(&sym_cell, q, 0, NULL, ANSWER_BYTES_MAX, &o, &t, &end);

	/* No file, no foreign bytes: what is said of that is said here. */
	if (r == -ENXIO)
		return image_names_here(q, fn, ctx, ret);
	*ret = (struct image_end){ 0 };
	if (r == 0)
		named = image_names_take(q, talk_bytes(&t), fn, ctx, ret);
	if (named < q->n) {
		make_up(q, named, q->n, fn, ctx);
		ret->why_unnamed = why_ended(&end, r);
	}
	if (!ret->why_unnamed)
		ret->why_unnamed = "its names cannot be read";
	return 0;
}

/* --- which files ------------------------------------------------------------------------------- */

static int take_file(struct sym_outside *o, uint32_t number)
{
	return number < o->n_files ? TAKE_FD(o->files[number]) : -1;
}

int image_files_find(const struct symbolize_opts *opts, struct dict *d, module_id m,
		     struct image_files *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(sym_outside_fini) struct sym_outside o = { 0 };
	int64_t ms_left = 0;
	struct image_question q = { .d = d, .module = m, .opts = opts, .dwarf_ms_left = &ms_left };
	uint32_t debug = NO_FILE, alt = NO_FILE;
	struct bytes answer;
	uint8_t ok = 0;
	int r = sym_cell_ask(&sym_cell, &q, WHICH_FILES, NULL, CALL_REQUEST_MAX, &o, &t, NULL);

	*ret = (struct image_files){ -1, -1, -1 };
	answer = talk_bytes(&t);
	if (r == 0 && (bytes_u8(&answer, &ok) < 0 || bytes_u32(&answer, &debug) < 0 ||
		       bytes_u32(&answer, &alt) < 0 || !ok))
		r = -EBADMSG;
	if (r == 0)
		*ret = (struct image_files){ take_file(&o, 0), take_file(&o, debug),
					     take_file(&o, alt) };
	return r == -ENXIO ? -ENOENT : r;
}

void image_files_close(struct image_files *f)
{
	closep(&f->image);
	closep(&f->debug);
	closep(&f->alt);
	*f = (struct image_files){ -1, -1, -1 };
}
