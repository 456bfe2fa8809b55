/*
 * A file that somebody gave, read by a cell.
 *
 *   ▶ question  files:1 (may it ask for those that were mapped?) name; the file
 *   ◀ OPEN      path               ▶ a file
 *   ◀ answer    code:4, and if it is 0: format:1 skipped:8 others:8 changed:4 cut:1 addresses:1 no_mappings:1 damage; the profile
 *               (model/profile_wire.h). Else a sentence
 *
 * A text is its length (4) and its bytes, the last one of a message the rest of it.
 */
#include "base/cell_call.h"
#include "base/put.h"
#include "import/readers.h"
#include "model/profile_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { OPEN = CALL_OWN };

/* A heap profile of an hour may be a thousand million bytes; what takes longer than this has no end. */
#define MEMORY_MAX (16ull << 30)
enum { CPU_S = 1800, NAME_MAX_BYTES = 8192, OPENS_MAX = 4096, ANSWER_MAX = 0x7fffffff };

/* --- in the cell --- */

static int inside_open(void *ctx, const char *path)
{
	return cell_ask_file(ctx, OPEN, path, strlen(path));
}

static void put_info(struct strbuf *b, const struct import_info *info)
{
	uint8_t row = 0;

	while (readers[row].name && strcmp(readers[row].name, info->format) != 0)
		row++;
	put_u8(b, row);
	put_u64(b, info->skipped_lines);
	put_u64(b, info->other_events);
	put_u32(b, info->changed_files);
	put_u8(b, info->cut);
	put_u8(b, info->addresses);
	put_u8(b, info->no_mappings);
	put_text(b, info->damage, sizeof(info->damage));
}

static int read_file(const struct cell_given *given, const struct talk *q, struct strbuf *answer,
		     struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct import_opts opts = { .ctx = (void *)given };
	struct bytes b = talk_bytes(q);
	struct import_info info = { 0 };
	uint8_t files;
	int r;

	if (!d || bytes_u8(&b, &files) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	if (files)
		opts.open_image = inside_open;
	r = import_fd(d, q->fds[0], (const char *)b.data, &opts, &p, &info, e);
	if (r < 0)
		return r;
	put_u32(answer, 0);
	put_info(answer, &info);
	profile_wire_write(p, answer);
	if (strbuf_oom(answer) || answer->len > ANSWER_MAX)
		return err_set(e, strbuf_oom(answer) ? -ENOMEM : -EFBIG,
			       "%s: needs more memory than it may have", (const char *)b.data);
	return 0;
}

static void work(const struct cell_given *given)
{
	_cleanup_(talk_fini) struct talk q = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf answer = { 0 };
	struct err e = { 0 };
	int r;

	if (cell_question(given, &q) < 0)
		return;
	r = read_file(given, &q, &answer, &e);
	if (r < 0) {
		strbuf_free(&answer);
		put_u32(&answer, (uint32_t)r);
		strbuf_puts(&answer, e.msg);
	}
	cell_answer(given, answer.s, answer.len);
}

static const struct cell_kind cell = {
	.name = "profile", .work = work, .data_bytes = MEMORY_MAX, .cpu_s = CPU_S, .files = 8
};
CELL_KIND(cell);

/* --- who asks --- */

struct asking {
	const struct import_opts *opts; /* NULL: it may open nothing */
	uint32_t opens;
};

static int serve(void *ctx, int channel, const struct talk *t, uint64_t *until_ns)
{
	struct asking *a = ctx;
	const struct import_opts *o = a->opts;

	if (t->what != OPEN || a->opens++ >= OPENS_MAX || strlen(t->data) != t->len || !o ||
	    !o->open_image)
		return -EBADMSG;
	return cell_send_file(channel, o->open_image(o->ctx, t->data), *until_ns);
}

static int take_info(struct bytes *b, struct import_info *ret)
{
	uint8_t row, bits[3], n_rows = 0;
	struct bytes damage;
	uint32_t len;

	while (readers[n_rows].name)
		n_rows++;
	if (bytes_u8(b, &row) < 0 || row >= n_rows || bytes_u64(b, &ret->skipped_lines) < 0 ||
	    bytes_u64(b, &ret->other_events) < 0 || bytes_u32(b, &ret->changed_files) < 0 ||
	    bytes_copy(b, bits, sizeof(bits)) < 0 || bytes_u32(b, &len) < 0 ||
	    bytes_take(b, len, &damage) < 0)
		return -EBADMSG;
	ret->format = readers[row].name;
	ret->cut = bits[0];
	ret->addresses = bits[1];
	ret->no_mappings = bits[2];
	snprintf(ret->damage, sizeof(ret->damage), "%.*s", (int)damage.len,
		 (const char *)damage.data);
	return 0;
}

static int no_sense(const char *name, struct err *e)
{
	return err_set(e, -EBADMSG, "%s: the process that read it said nothing that makes sense",
		       name);
}

static int take_profile(struct dict *d, struct bytes b, const char *name,
			struct profile **ret_profile, struct import_info *ret_info, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct import_info info = { 0 };
	int32_t code;
	int r;

	if (bytes_u32(&b, (uint32_t *)&code) < 0 || code > 0 || code < -4095)
		return no_sense(name, e);
	if (code < 0)
		return err_set(e, code, "%.*s", (int)b.len, (const char *)b.data);
	r = take_info(&b, &info);
	if (r == 0)
		r = profile_wire_read(d, &b, &p);
	if (r < 0)
		return r == -ENOMEM ? err_set(e, r, "%s: out of memory while reading it", name)
				    : no_sense(name, e);
	r = import_check_depths(d, p, name, e);
	if (r < 0)
		return r;
	if (ret_info)
		*ret_info = info;
	*ret_profile = TAKE_PTR(p);
	return 0;
}

static int ended(const struct cell_end *end, int code, const char *name, struct err *e)
{
	bool signaled = end->status != -1 && WIFSIGNALED(end->status);

	if (code == -ETIMEDOUT || (signaled && WTERMSIG(end->status) == SIGXCPU))
		return err_set(e, -EBADMSG, "%s: takes too long to read", name);
	if (code == -EPIPE && signaled)
		return err_set(e, -EBADMSG, "%s: breaks the process that reads it (SIG%s)", name,
			       sigabbrev_np(WTERMSIG(end->status)));
	if (code == -EPIPE || code == -EBADMSG)
		return no_sense(name, e);
	return err_set(e, code, "%s: no process to read it: %s", name, strerror(-code));
}

static int read_in_cell(struct dict *d, int fd, const char *name, const struct import_opts *opts,
			struct profile **ret_profile, struct import_info *ret_info, struct err *e)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	struct asking asking = { opts, 0 };
	struct cell_call call = { .kind = &cell,
				  .fds = &fd,
				  .n_fds = 1,
				  .answer_max = ANSWER_MAX,
				  .seconds = 2 * CPU_S,
				  .serve = serve,
				  .ctx = &asking };
	struct cell_end end;
	int r;

	put_u8(&q, opts && opts->open_image);
	strbuf_add(&q, name, strnlen(name, NAME_MAX_BYTES));
	if (strbuf_oom(&q))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	call.question = q.s;
	call.len = q.len;
	r = cell_call(&call, &t, &end);
	return r < 0 ? ended(&end, r, name, e)
		     : take_profile(d, talk_bytes(&t), name, ret_profile, ret_info, e);
}

int import_read(struct dict *d, const char *path, const struct import_opts *opts,
		struct profile **ret_profile, struct import_info *ret_info, struct err *e)
{
	_cleanup_(closep) int own_fd = -1;
	bool from_stdin = !strcmp(path, "-");
	const char *name = from_stdin ? "standard input" : path;
	struct stat st;

	if (!from_stdin) {
		own_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (own_fd < 0)
			return err_set(e, -errno, "%s: cannot be opened: %m", name);
		if (fstat(own_fd, &st) == 0 && S_ISDIR(st.st_mode))
			return err_set(
				e, -EISDIR,
				"%s: is a directory; name a profile in it, as in %s/oncpu.pb.gz",
				name, name);
	}
	return read_in_cell(d, from_stdin ? STDIN_FILENO : own_fd, name, opts, ret_profile,
			    ret_info, e);
}
