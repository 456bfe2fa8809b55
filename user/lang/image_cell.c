#include "lang/image_cell.h"

#include "base/file_cell.h"
#include "base/put.h"
#include "lang/go.h"
#include "lang/image.h"
#include "lang/v8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS_MAX = 8, CPU_S = 5 };
enum {
	HEAD_BYTES = sizeof(int32_t) + 1,
	ANSWER_BYTES_MAX = HEAD_BYTES + sizeof(struct lang_image)
};

/* --- in the cell --- */

static void put_answer(struct strbuf *b, int code, bool is_go, const struct lang_image *image,
		       const struct err *e)
{
	put_u32(b, (uint32_t)code);
	put_u8(b, is_go);
	if (image)
		strbuf_add(b, image, sizeof(*image));
	else
		strbuf_add(b, e->msg, strnlen(e->msg, sizeof(e->msg)));
}

static int read_image(void *ctx, const struct file_in_cell *f, struct strbuf *answer)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	bool is_go = false;
	struct err e = { 0 };
	int r = elf_file_open(f->fd, f->name, &elf, &e);

	(void)ctx;
	if (r == 0) {
		is_go = go_version(elf) != 0;
		r = lang_image_read(elf, &image, &e);
	}
	put_answer(answer, r, is_go, image, &e);
	return 0;
}

static void work(const struct cell_given *given)
{
	file_cell_work(given, read_image, NULL);
}

static const struct cell_kind cell = {
	.name = "languages",
	.work = work,
	.data_bytes = 1 << 30,
	.cpu_s = CPU_S,
	.files = 8,
};
CELL_KIND(cell);

/* --- who asks --- */

/* A bool is one of two bytes: with another one, what reads it may do anything. */
static bool is_bool(const bool *b)
{
	uint8_t v;

	memcpy(&v, b, sizeof(v));
	return v <= 1;
}

static bool is_code(const struct accessor *a)
{
	return a->len <= ACCESSOR_BYTES_MAX;
}

/* As v8_layout_read() makes them. */
static bool is_v8(const struct v8_image *v8)
{
	return is_bool(&v8->untested) && is_bool(&v8->is_opaque) && v8->rt.n_bytecodes <= 256 &&
	       v8->rt.function_shared % 8 == 0 && v8->rt.function_shared <= MS_LANG_BYTES - 8 &&
	       v8->rt.shared_numbers % 8 == 0;
}

static bool holds_together(const struct lang_image *image)
{
	return (uint32_t)image->lang < MS_N_LANGS && is_bool(&image->libc) &&
	       (image->lang != MS_LANG_NONE || image->libc) && image->n_ranges <= MS_LANG_RANGES &&
	       is_code(&image->getspecific) && is_code(&image->self) &&
	       is_code(&image->python.tstate) && is_code(&image->php.storage) &&
	       is_code(&image->php.version) && is_code(&image->ruby.current) &&
	       is_bool(&image->ghc.has_offsets) && is_bool(&image->php.has_registers) &&
	       image->ruby.n_names <= RUBY_CANDIDATES && is_v8(&image->v8);
}

/* What of an image is a pointer, and its name, are put there by whoever has it. */
static void point(struct lang_image *image, const char *name)
{
	struct v8_image *v8 = &image->v8;

	snprintf(image->name, sizeof(image->name), "%s", name);
	v8->rt.deopts = v8->is_opaque ? NULL : v8_deopt_layout(v8->version);
}

static int take_image(struct bytes b, const char *name, struct lang_image **ret_image,
		      struct err *e)
{
	_cleanup_(lang_image_freep) struct lang_image *image = malloc(sizeof(*image));

	if (!image)
		return err_set(e, -ENOMEM, "%s: out of memory for a language's runtime", name);
	if (b.len != sizeof(*image))
		return -EBADMSG;
	memcpy(image, b.data, sizeof(*image));
	if (!holds_together(image))
		return -EBADMSG;
	point(image, name);
	*ret_image = TAKE_PTR(image);
	return 0;
}

int lang_image_take(struct bytes answer, const char *name, struct lang_image **ret_image,
		    bool *ret_is_go, struct err *e)
{
	uint32_t code;
	uint8_t is_go;

	if (bytes_u32(&answer, &code) < 0 || bytes_u8(&answer, &is_go) < 0 || is_go > 1)
		return -EBADMSG;
	if (ret_is_go)
		*ret_is_go = is_go != 0;
	return code ? file_cell_code((int)code, answer, e) : take_image(answer, name, ret_image, e);
}

int lang_image_ask(int fd, const char *name, struct lang_image **ret_image, bool *ret_is_go,
		   struct err *e)
{
	static struct cell_patience patience;
	static const struct file_cell c = { .kind = &cell,
					    .what = "a language's runtime in it",
					    .answer_max = ANSWER_BYTES_MAX,
					    .seconds = SECONDS_MAX,
					    .patience = &patience };
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct err why = { 0 };
	int r = file_cell_ask(&c, fd, name, NULL, &t, e);

	if (ret_is_go)
		*ret_is_go = false;
	if (r < 0)
		return r;
	r = lang_image_take(talk_bytes(&t), name, ret_image, ret_is_go, &why);
	if (r == -EBADMSG && !why.code)
		return file_cell_lied(&c, name, e);
	if (e)
		*e = why;
	return r;
}
