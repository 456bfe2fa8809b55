#include "base/file_cell.h"

#include "base/put.h"

#include <errno.h>
#include <string.h>

enum { ERRNO_MAX = 4095 };

static int take_name(struct bytes *b, char name[FILE_CELL_NAME_MAX])
{
	struct bytes text;
	uint32_t len;

	if (bytes_u32(b, &len) < 0 || len >= FILE_CELL_NAME_MAX || bytes_take(b, len, &text) < 0)
		return -EBADMSG;
	memcpy(name, text.data, len);
	name[len] = '\0';
	return 0;
}

void file_cell_work(const struct cell_given *given, file_cell_read_fn read, void *ctx)
{
	_cleanup_(talk_fini) struct talk q = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf answer = { 0 };
	char name[FILE_CELL_NAME_MAX];
	struct file_in_cell f = { .name = name, .given = given };

	if (cell_question(given, &q) < 0)
		return;
	f.fd = q.fds[0];
	f.question = talk_bytes(&q);
	if (take_name(&f.question, name) == 0 && read(ctx, &f, &answer) == 0 &&
	    !strbuf_oom(&answer))
		cell_answer(given, answer.s, answer.len);
}

static int say_why(const struct file_cell *c, const char *name, int r, struct err *e)
{
	if (r == -ETIMEDOUT)
		return err_set(e, r, "%s: %s takes too long to find", name, c->what);
	if (r == -EPIPE || r == -EBADMSG)
		return err_set(e, -EBADMSG, "%s: the process that was to find %s ended early", name,
			       c->what);
	return err_set(e, r, "%s: no process to find %s: %s", name, c->what, strerror(-r));
}

int file_cell_ask(const struct file_cell *c, int fd, const char *name,
		  const struct strbuf *question, struct talk *ret, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct cell_call call = { .kind = c->kind,
				  .fds = &fd,
				  .n_fds = 1,
				  .answer_max = c->answer_max,
				  .seconds = c->seconds,
				  .patience = c->patience,
				  .serve = c->serve,
				  .ctx = c->ctx };
	int r = -ENOMEM;

	*ret = (struct talk){ .fds = { -1, -1, -1 } };
	put_text(&b, name, FILE_CELL_NAME_MAX - 1);
	if (question)
		strbuf_add(&b, question->s, question->len);
	call.question = b.s;
	call.len = b.len;
	if (!strbuf_oom(&b) && (!question || !strbuf_oom(question)))
		r = cell_call(&call, ret, NULL);
	return r < 0 ? say_why(c, name, r, e) : 0;
}

int file_cell_code(int code, struct bytes sentence, struct err *e)
{
	if (code >= 0 || code < -ERRNO_MAX || code == -EAGAIN || code == -ETIMEDOUT)
		return -EBADMSG;
	return sentence.len
		       ? err_set(e, code, "%.*s", (int)sentence.len, (const char *)sentence.data)
		       : code;
}

int file_cell_lied(const struct file_cell *c, const char *name, struct err *e)
{
	return err_set(e, -EBADMSG, "%s: the process that was to find %s said what cannot be", name,
		       c->what);
}
