#include "unwind/table_cell.h"
#include "base/cell_call.h"
#include "base/clock.h"
#include "unwind/row_format.h"

#include <errno.h>
#include <string.h>

enum { SECONDS_MAX = 60, NAME_BYTES_MAX = 4096 };

/* A message before the answer: CPU time that it took, ns:8. */
enum { TOOK = CALL_OWN };

/* --- in the cell: the file's name in; out the table; or a NUL, code:4 and a sentence --- */

static void say_none(const struct cell_given *given, int code, const struct err *e)
{
	char answer[1 + sizeof(int32_t) + sizeof(e->msg)] = { 0 };
	size_t len = strnlen(e->msg, sizeof(e->msg));

	memcpy(answer + 1, &(int32_t){ code }, sizeof(int32_t));
	memcpy(answer + 1 + sizeof(int32_t), e->msg, len);
	cell_answer(given, answer, 1 + sizeof(int32_t) + len);
}

static void work(const struct cell_given *given)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(talk_fini) struct talk q = { .fds = { -1, -1, -1 } };
	_cleanup_(freep) uint8_t *data = NULL;
	struct row_digest none = { 0 };
	struct err e = { 0 };
	uint64_t took;
	size_t len;
	int r = cell_question(given, &q);

	if (r < 0)
		return;
	r = elf_file_open(q.fds[0], q.data, &elf, &e);
	if (r == 0)
		r = unwind_table_build(elf, &table, &e);
	if (r == 0)
		r = row_format_write(table, &none, &data, &len);
	took = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	talk_send(given->channel, TOOK, &took, sizeof(took), NULL, 0, UINT64_MAX);
	if (r < 0)
		say_none(given, r, &e);
	else
		cell_answer(given, data, len);
}

static const struct cell_kind cell = {
	.name = "unwind table",
	.work = work,
	.data_bytes = 1 << 30,
	.cpu_s = SECONDS_MAX,
	.files = 8,
};
CELL_KIND(cell);

/* --- who asks --- */

/* Its reasons are among those of unwind_table_build(); its sentence is shown as any text of others is. */
static int why_none(struct bytes b, const char *name, struct err *e)
{
	static const int codes[] = { -EOPNOTSUPP, -ENOENT, -EFBIG, -ENOMEM, -ENOEXEC, -ENODATA };
	int32_t code;

	if (bytes_u32(&b, (uint32_t *)&code) < 0)
		code = -EBADMSG;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (code == codes[i])
			return b.len ? err_set(e, code, "%.*s", (int)b.len, (const char *)b.data)
				     : err_set(e, code, "%s: %s", name, strerror(-code));
	return err_set(e, -EBADMSG, "%s: its unwind information is damaged", name);
}

/* No table begins with a NUL (row_format.c has the magic). */
static int take_table(struct bytes b, const char *name, struct unwind_table **ret_table,
		      struct err *e)
{
	struct bytes none = b;
	uint8_t first;
	int r;

	if (bytes_u8(&none, &first) < 0 || !first)
		return why_none(none, name, e);
	r = row_format_read(b.data, b.len, NULL, ret_table);
	return r < 0 ? err_set(e, r, "%s: its unwind table is none", name) : 0;
}

/* What it says that it took is the cell's word: no more than there was time for. */
static int serve(void *ctx, int channel, const struct talk *t, uint64_t *until_ns)
{
	struct bytes b = talk_bytes(t);
	uint64_t *took = ctx;

	if (t->what != TOOK || bytes_u64(&b, took) < 0 || *took > SECONDS_MAX * 2000000000ull)
		return -EBADMSG;
	return 0;
}

int unwind_table_in_cell(struct elf_file *elf, struct unwind_table **ret_table, struct err *e)
{
	static struct cell_patience patience;
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	const char *name = elf_file_name(elf);
	int fd = elf_file_fd(elf), r;
	uint64_t took = 0;
	struct cell_call call = { .kind = &cell,
				  .question = name,
				  .len = strnlen(name, NAME_BYTES_MAX),
				  .fds = &fd,
				  .n_fds = 1,
				  .answer_max = ROW_FORMAT_BYTES_MAX,
				  .seconds = SECONDS_MAX,
				  .patience = &patience,
				  .serve = serve,
				  .ctx = &took };

	if (fd < 0)
		return unwind_table_build(elf, ret_table, e);
	r = cell_call(&call, &t, NULL);
	if (r == -ETIMEDOUT)
		return err_set(e, r, "%s: its unwind information takes too long to read", name);
	if (r == -EPIPE || r == -EBADMSG)
		return err_set(e, -EBADMSG,
			       "%s: the process that read its unwind information ended early",
			       name);
	if (r < 0)
		return err_set(e, r, "%s: no process to read its unwind information: %s", name,
			       strerror(-r));
	r = take_table(talk_bytes(&t), name, ret_table, e);
	if (r == 0)
		(*ret_table)->cpu_ns = (int64_t)took;
	return r;
}
