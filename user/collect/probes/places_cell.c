#include "collect/probes/places_cell.h"

#include "base/fd_stat.h"

#include <errno.h>
#include <string.h>

enum { OPEN = CALL_OWN };

enum {
	WALL_S = 20,
	OPENS_MAX = 64,
	PATH_BYTES_MAX = 4096,
};

int places_take_text(struct bytes *b, char *buf, size_t cap)
{
	struct bytes text;
	uint32_t len;

	if (bytes_u32(b, &len) < 0 || len >= cap || bytes_take(b, len, &text) < 0 ||
	    memchr(text.data, '\0', len))
		return -EBADMSG;
	memcpy(buf, text.data, len);
	buf[len] = '\0';
	return 0;
}

int places_take_bool(struct bytes *b, bool *ret)
{
	uint8_t v;

	if (bytes_u8(b, &v) < 0 || v > 1)
		return -EBADMSG;
	*ret = v != 0;
	return 0;
}

/* --- in the cell --- */

static int inside_debug(void *ctx, const char *path, bool host)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	put_u8(&b, host);
	put_text(&b, path, PATH_BYTES_MAX);
	return strbuf_oom(&b) ? -ENOMEM : cell_ask_file(ctx, OPEN, b.s, b.len);
}

struct reading {
	places_read_fn read;
};

static int read_file(void *ctx, const struct file_in_cell *f, struct strbuf *answer)
{
	const struct reading *r = ctx;
	struct alloc_image im = {
		.fd = f->fd, .path = f->name, .open_debug = inside_debug, .ctx = (void *)f->given
	};

	return r->read(&im, f->question, answer);
}

void places_cell_work(const struct cell_given *given, places_read_fn read)
{
	file_cell_work(given, read_file, &(struct reading){ read });
}

/* --- who asks --- */

struct outside {
	const struct alloc_image *im;
	uint32_t n_opens, n_files;
};

/* A descriptor, or -errno. In the target's root a cell has no more business than in ours: no debug info is found elsewhere. */
static int open_debug(struct outside *o, const char *path, bool host)
{
	const struct alloc_image *im = o->im;
	int fd;

	if (!im->open_debug || !debug_link_host_path_ok(path, im->path))
		return -ENOENT;
	if (o->n_files == PLACES_FILES_MAX)
		return -EMFILE;
	fd = im->open_debug(im->ctx, path, host);
	o->n_files += fd >= 0;
	return fd;
}

static int serve(void *ctx, int channel, const struct talk *t, uint64_t *until_ns)
{
	struct bytes b = talk_bytes(t);
	struct outside *o = ctx;
	char path[PATH_BYTES_MAX];
	bool host;

	if (t->what != OPEN || places_take_bool(&b, &host) < 0 ||
	    places_take_text(&b, path, sizeof(path)) < 0 || o->n_opens++ >= OPENS_MAX)
		return -EBADMSG;
	return cell_send_file(channel, open_debug(o, path, host), *until_ns);
}

static struct file_cell places(const struct cell_kind *kind, size_t answer_max, struct outside *o)
{
	static struct cell_patience patience;

	return (struct file_cell){ .kind = kind,
				   .what = "where probes go in it",
				   .answer_max = answer_max,
				   .seconds = WALL_S,
				   .patience = &patience,
				   .serve = serve,
				   .ctx = o };
}

int places_cell_ask(const struct cell_kind *kind, const struct alloc_image *im,
		    const struct strbuf *question, size_t answer_max, struct talk *ret,
		    struct err *e)
{
	struct outside o = { .im = im };
	const struct file_cell c = places(kind, answer_max, &o);

	return file_cell_ask(&c, im->fd, im->path, question, ret, e);
}

int places_cell_lied(const struct alloc_image *im, struct err *e)
{
	const struct file_cell c = places(NULL, 0, NULL);

	return file_cell_lied(&c, im->path, e);
}

uint64_t places_file_bytes(const struct alloc_image *im)
{
	struct stat st;

	return fd_stat(im->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}
