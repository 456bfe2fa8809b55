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

struct outside {
	const struct image_question *q;
	int files[FILES_MAX];
	uint32_t n_files, n_opens, n_lines;
};

/* It stays open here, too: lines are asked for by its number. */
static int send_file(struct outside *o, int channel, int fd, uint64_t until_ns)
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
static int open_path(struct outside *o, const struct talk *t, bool *ret_wrong)
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
static int ask_servers(struct outside *o, const struct talk *t, bool *ret_wrong)
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

static int serve_file(struct outside *o, int channel, const struct talk *t, uint64_t until_ns)
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

static int serve_lines(struct outside *o, int channel, const struct talk *t, uint64_t *until_ns)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	const struct image_question *q = o->q;
	struct dwarf_raw raw = { .status = -1 };
	struct bytes bytes = talk_bytes(t);
	uint64_t began = now_ns();
	uint32_t file, alt;
	int r;

	if (bytes_u32(&bytes, &file) < 0 || bytes_u32(&bytes, &alt) < 0 || file >= o->n_files ||
	    (alt >= o->n_files && alt != NO_FILE) || o->n_lines++ >= LINES_MAX)
		return -EBADMSG;
	r = dwarf_raw_read(o->files[file], alt == NO_FILE ? -1 : o->files[alt], "", q->vaddrs, q->n,
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

/* Shown to people as it is: plain words, or none. */
static const char *take_reason(struct answer *a)
{
	struct bytes text;

	if (take_text(&a->b, &text) < 0 || !text.len || text.len > REASON_MAX)
		return NULL;
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < ' ' || text.data[i] > '~')
			return NULL;
	return dict_str(a->d, dict_string_n(a->d, (const char *)text.data, text.len));
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
	ret->why_unnamed = take_reason(&a);
	ret->lines_problem = take_reason(&a);
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

/* Of names, and of which files have them. */
static struct cell_patience patience;

int image_names_in_cell(const struct image_question *q, image_place_fn fn, void *ctx,
			struct image_end *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct outside o = { .q = q };
	int first[2] = { -ENOENT, -ENOENT }, fds[2];
	struct cell_call call = { .kind = &sym_cell,
				  .fds = fds,
				  .answer_max = ANSWER_BYTES_MAX,
				  .seconds = WALL_S,
				  .patience = &patience,
				  .serve = serve,
				  .ctx = &o };
	struct cell_end end = { .status = -1 };
	uint32_t named = 0;
	int r = -ENOMEM;

	/* No file, no foreign bytes: what is said of that is said here. */
	if (!open_first(q, first))
		return image_names_here(q, fn, ctx, ret);
	*ret = (struct image_end){ 0 };
	call.n_fds = put_question(q, 0, first, &b, fds);
	call.question = b.s;
	call.len = b.len;
	if (first[0] >= 0)
		o.files[o.n_files++] = first[0];
	if (!strbuf_oom(&b))
		r = cell_call(&call, &t, &end);
	if (r == 0)
		named = image_names_take(q, talk_bytes(&t), fn, ctx, ret);
	if (named < q->n) {
		make_up(q, named, q->n, fn, ctx);
		ret->why_unnamed = why_ended(&end, r);
	}
	if (!ret->why_unnamed)
		ret->why_unnamed = "its names cannot be read";
	for (uint32_t i = 0; i < o.n_files; i++)
		close(o.files[i]);
	closep(&first[1]);
	return 0;
}

/* --- which files ------------------------------------------------------------------------------- */

static int take_file(struct outside *o, uint32_t number)
{
	return number < o->n_files ? TAKE_FD(o->files[number]) : -1;
}

int image_files_find(const struct symbolize_opts *opts, struct dict *d, module_id m,
		     struct image_files *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	int64_t ms_left = 0;
	struct image_question q = { .d = d, .module = m, .opts = opts, .dwarf_ms_left = &ms_left };
	struct outside o = { .q = &q };
	int first[2] = { -ENOENT, -ENOENT }, fds[2];
	struct cell_call call = { .kind = &sym_cell,
				  .fds = fds,
				  .answer_max = CALL_REQUEST_MAX,
				  .seconds = WALL_S,
				  .patience = &patience,
				  .serve = serve,
				  .ctx = &o };
	uint32_t debug = NO_FILE, alt = NO_FILE;
	struct bytes answer;
	uint8_t ok = 0;
	int r = -ENOENT;

	*ret = (struct image_files){ -1, -1, -1 };
	if (!open_first(&q, first))
		return -ENOENT;
	call.n_fds = put_question(&q, WHICH_FILES, first, &b, fds);
	call.question = b.s;
	call.len = b.len;
	o.files[o.n_files++] = first[0];
	if (!strbuf_oom(&b))
		r = cell_call(&call, &t, NULL);
	answer = talk_bytes(&t);
	if (r == 0 && (bytes_u8(&answer, &ok) < 0 || bytes_u32(&answer, &debug) < 0 ||
		       bytes_u32(&answer, &alt) < 0 || !ok))
		r = -EBADMSG;
	if (r == 0)
		*ret = (struct image_files){ take_file(&o, 0), take_file(&o, debug),
					     take_file(&o, alt) };
	for (uint32_t i = 0; i < o.n_files; i++)
		closep(&o.files[i]);
	return r;
}

void image_files_close(struct image_files *f)
{
	closep(&f->image);
	closep(&f->debug);
	closep(&f->alt);
	*f = (struct image_files){ -1, -1, -1 };
}
