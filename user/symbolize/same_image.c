#include "symbolize/same_image.h"

#include "symbolize/sym_image.h"

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
	const struct dict *d;
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

static const char *base_name(const struct sym_image *img)
{
	const char *path = sym_image_path(img), *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool same_alt(struct comparison *c, struct sym_image *a, struct elf_file *elf_a,
		     struct sym_image *b, struct elf_file *elf_b)
{
	struct elf_file *alt_a, *alt_b;
	int ra = sym_image_alt(a, elf_a, &alt_a), rb = sym_image_alt(b, elf_b, &alt_b);

	if (ra < 0 || rb < 0)
		return ra < 0 && rb < 0;
	return same_file(c, a->alt->fd, b->alt->fd);
}

static bool same_image(struct comparison *c, struct sym_image *a, struct sym_image *b)
{
	struct elf_file *elf_a, *elf_b, *debug_a, *debug_b;
	const char *why;
	int ra, rb;

	if (strcmp(base_name(a), base_name(b)) != 0 || sym_image_elf(a, &elf_a, &why) < 0 ||
	    sym_image_elf(b, &elf_b, &why) < 0 || !same_file(c, a->fd, b->fd))
		return false;
	ra = sym_image_debug(a, &debug_a, &why);
	rb = sym_image_debug(b, &debug_b, &why);
	if (ra < 0 && rb < 0)
		return same_alt(c, a, elf_a, b, elf_b);
	return ra == 0 && rb == 0 && same_file(c, a->debug->fd, b->debug->fd) &&
	       same_alt(c, a, debug_a, b, debug_b);
}

/* Modules of one build ID: each is compared with those before it that are different images. */
static void find_among(struct comparison *c, const struct candidate *of, uint32_t n,
		       uint32_t *first)
{
	struct sym_image known[DIFFERENT_MAX];
	uint32_t n_known = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct sym_image img;
		uint32_t k = 0;

		sym_image_init(&img, c->opts, c->d, (module_id){ of[i].module });
		while (k < n_known && !same_image(c, &known[k], &img))
			k++;
		if (k == n_known && n_known < DIFFERENT_MAX) {
			known[n_known++] = img; /* kept open */
			continue;
		}
		if (k < n_known)
			first[of[i].module] = known[k].module.ix;
		sym_image_fini(&img);
	}
	for (uint32_t k = 0; k < n_known; k++)
		sym_image_fini(&known[k]);
}

int same_images_find(const struct symbolize_opts *opts, const struct dict *d, uint32_t *first)
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
