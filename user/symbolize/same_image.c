#include "symbolize/same_image.h"

#include "symbolize/image_names.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum {
	PIECE_BYTES = 64 << 10,
	DIFFERENT_MAX = 8, /* images of one build ID that others are compared with */
};

struct candidate {
	uint32_t build_id, module;
};

struct comparison {
	const struct symbolize_opts *opts;
	struct dict *d;
	uint64_t bytes_left;
	uint8_t a[PIECE_BYTES], b[PIECE_BYTES];
};

static int compare_candidates(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->build_id != b->build_id)
		return a->build_id < b->build_id ? -1 : 1;
	return a->module < b->module ? -1 : 1;
}

static bool equal_bytes(struct comparison *c, int a, int b, uint64_t size)
{
	for (uint64_t off = 0; off < size;) {
		ssize_t n = pread(a, c->a, PIECE_BYTES, (off_t)off), m;

		if (n <= 0)
			return false;
		m = pread(b, c->b, (size_t)n, (off_t)off);
		if (n != m || memcmp(c->a, c->b, (size_t)n) != 0)
			return false;
		off += (uint64_t)n;
		c->bytes_left -= 2 * (uint64_t)n;
	}
	return true;
}

static bool same_file(struct comparison *c, int a, int b)
{
	struct stat sa, sb;

	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return false;
	if (sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino)
		return true;
	if (sa.st_size != sb.st_size || (uint64_t)sa.st_size > c->bytes_left / 2)
		return false;
	return equal_bytes(c, a, b, (uint64_t)sa.st_size);
}

/* A module that others are compared with. */
struct known {
	module_id module;
	struct image_files files;
	int fd;      /* the image alone, as long as nothing else is known of it */
	bool sought; /* `files` are known                                        */
	bool broken; /* … and it is an image of its own, whatever they are       */
};

static void known_fini(struct known *k)
{
	image_files_close(&k->files);
	closep(&k->fd);
}

static const char *base_name(const struct dict *d, module_id m)
{
	const char *path = dict_str(d, dict_module_get(d, m)->path), *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool find_files(struct comparison *c, struct known *k)
{
	if (!k->sought)
		k->broken = image_files_find(c->opts, c->d, k->module, &k->files) < 0;
	k->sought = true;
	return !k->broken;
}

/* Both are missing, or both are the same. */
static bool same_or_none(struct comparison *c, int a, int b)
{
	return a < 0 || b < 0 ? a < 0 && b < 0 : same_file(c, a, b);
}

static bool same_image(struct comparison *c, struct known *a, struct known *b)
{
	return strcmp(base_name(c->d, a->module), base_name(c->d, b->module)) == 0 && a->fd >= 0 &&
	       b->fd >= 0 && same_file(c, a->fd, b->fd) && find_files(c, a) && find_files(c, b) &&
	       same_or_none(c, a->files.debug, b->files.debug) &&
	       same_or_none(c, a->files.alt, b->files.alt);
}

/* Modules of one build ID: each is compared with those before it that are different images. */
static void find_among(struct comparison *c, const struct candidate *of, uint32_t n,
		       uint32_t *first)
{
	struct known known[DIFFERENT_MAX];
	uint32_t n_known = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct known one = { .module = { of[i].module }, .files = { -1, -1, -1 } };
		uint32_t k = 0;

		one.fd = c->opts->open_module ? c->opts->open_module(c->opts->ctx, one.module, NULL)
					      : -ENOENT;
		while (k < n_known && !same_image(c, &known[k], &one))
			k++;
		if (k == n_known && n_known < DIFFERENT_MAX) {
			known[n_known++] = one; /* kept open */
			continue;
		}
		if (k < n_known)
			first[of[i].module] = known[k].module.ix;
		known_fini(&one);
	}
	for (uint32_t k = 0; k < n_known; k++)
		known_fini(&known[k]);
}

int same_images_find(const struct symbolize_opts *opts, struct dict *d, uint32_t *first)
{
	uint32_t count = dict_module_count(d), n = 0;
	_cleanup_(freep) struct candidate *of = calloc(count + 1ul, sizeof(*of));
	_cleanup_(freep) struct comparison *c = malloc(sizeof(*c));

	if (!of || !c)
		return -ENOMEM;
	c->opts = opts;
	c->d = d;
	c->bytes_left = SAME_IMAGE_BYTES_MAX;
	for (uint32_t i = 1; i <= count; i++) {
		const struct module *m = dict_module_get(d, (module_id){ i });

		if (first[i] && m->kind == MODULE_ELF && dict_str(d, m->build_id)[0])
			of[n++] = (struct candidate){ m->build_id.ix, i };
	}
	qsort(of, n, sizeof(*of), compare_candidates);
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && of[end].build_id == of[i].build_id; end++)
			;
		if (end - i > 1)
			find_among(c, of + i, end - i, first);
	}
	return 0;
}
