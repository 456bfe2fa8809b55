#include "heap/ghc/images.h"

#include "elf/elf_file.h"
#include "heap/image_cell.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES_MAX = 4096, LIBRARIES_MAX = 16 }; /* of the run-time system's: a program has one */

struct ghc_image {
	uint64_t start, end, file_off;
	char *path; /* as the process has it */
	bool is_libc;
};

static bool is_libc(const char *path)
{
	static const char *const names[] = { "libc.", "libc-", "ld-", "libpthread", "ld.so" };
	const char *name = strrchr(path, '/');

	for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(name + 1, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static int on_map(void *ctx, const struct proc_map *m)
{
	struct ghc_images *x = ctx;
	struct ghc_image *rows;
	struct heap_range *code;

	if (!(m->perms & PROC_MAP_EXEC) || m->path[0] != '/' || x->n == IMAGES_MAX)
		return 0;
	rows = reallocarray(x->rows, x->n + 1, sizeof(*rows));
	if (rows)
		x->rows = rows;
	code = reallocarray(x->code, x->n + 1, sizeof(*code));
	if (code)
		x->code = code;
	if (!rows || !code)
		return -ENOMEM;
	rows[x->n] = (struct ghc_image){ m->start, m->end, m->file_off, strdup(m->path),
					 is_libc(m->path) };
	code[x->n] = (struct heap_range){ m->start, m->end };
	return rows[x->n++].path ? 0 : -ENOMEM;
}

/* The file as it is mapped, even where its name has gone meanwhile; else by its name. */
static int open_image(const struct ghc_images *x, const struct ghc_image *image)
{
	int fd = ns_open_mapped(x->pid, image->start, image->end);

	return fd >= 0 ? fd : ns_open_seen(x->pid, image->path);
}

/* What to add to an address of its code to get the file's own. */
static bool bias_of(int fd, const struct ghc_image *image, uint64_t *ret)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const struct elf_segment *segs;
	uint32_t n;

	if (elf_file_open(fd, image->path, &elf, NULL) < 0)
		return false;
	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n; i++)
		if (segs[i].flags & 1 /* PF_X */ &&
		    image->file_off <= segs[i].off + segs[i].filesz &&
		    segs[i].off < image->file_off + (image->end - image->start)) {
			*ret = image->start - image->file_off - (segs[i].vaddr - segs[i].off);
			return true;
		}
	return false;
}

/* The program's own, and if that does not say so a library of the run-time system's. */
static uint32_t find_version(const struct ghc_images *x)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->n && n <= LIBRARIES_MAX; i++) {
		_cleanup_(closep) int fd = -1;
		uint32_t version;

		if (i && !strstr(x->rows[i].path, "libHSrts"))
			continue;
		n++;
		fd = open_image(x, &x->rows[i]);
		version = fd < 0 ? 0 : heap_image_ghc_version(fd, x->rows[i].path);
		if (version)
			return version;
	}
	return 0;
}

int ghc_images_open(pid_t pid, struct ghc_images *ret_images)
{
	struct ghc_images x = { .pid = pid };
	int r = proc_maps_each(pid, on_map, &x, NULL);

	if (r == 0 && !x.n)
		r = -ENOENT;
	if (r == 0)
		x.version = find_version(&x);
	if (r < 0) {
		ghc_images_close(&x);
		return r;
	}
	*ret_images = x;
	return 0;
}

void ghc_images_close(struct ghc_images *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		free(x->rows[i].path);
	free(x->rows);
	free(x->code);
	*x = (struct ghc_images){ 0 };
}

static const struct ghc_image *image_at(const struct ghc_images *x, uint64_t addr)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (addr >= x->rows[i].start && addr < x->rows[i].end)
			return &x->rows[i];
	return NULL;
}

bool ghc_images_is_own(const struct ghc_images *x, uint64_t addr)
{
	const struct ghc_image *image = image_at(x, addr);

	return image && !image->is_libc;
}

uint64_t ghc_images_variable(const struct ghc_images *x, const char *name)
{
	const char *const names[] = { name, NULL };
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->n && n <= LIBRARIES_MAX; i++) {
		_cleanup_(closep) int fd = -1;
		uint64_t bias, vaddr;

		if (x->rows[i].is_libc || (i && !strstr(x->rows[i].path, "libHSrts")))
			continue;
		n++;
		fd = open_image(x, &x->rows[i]);
		vaddr = fd < 0 ? 0 : heap_image_variable(fd, x->rows[i].path, names);
		if (vaddr && bias_of(fd, &x->rows[i], &bias))
			return vaddr + bias;
	}
	return 0;
}

/* --- names --- */

struct naming {
	void (*fn)(void *ctx, uint32_t i, const char *name);
	void *ctx;
	uint32_t from;
};

static void on_name(void *ctx, uint32_t i, const char *name)
{
	const struct naming *x = ctx;
	char cut[GHC_NAME_MAX];

	snprintf(cut, sizeof(cut), "%.*s", GHC_NAME_MAX - 1, name);
	x->fn(x->ctx, x->from + i, cut);
}

/* Those of one image. */
static void name_some(const struct ghc_images *x, const struct ghc_image *image,
		      const uint64_t *addrs, uint32_t from, uint32_t to,
		      void (*fn)(void *ctx, uint32_t i, const char *name), void *ctx)
{
	_cleanup_(freep) uint64_t *vaddrs = calloc(to - from + 1ul, sizeof(*vaddrs));
	_cleanup_(closep) int fd = open_image(x, image);
	struct naming naming = { fn, ctx, from };
	uint64_t bias;

	if (!vaddrs || fd < 0 || !bias_of(fd, image, &bias))
		return;
	for (uint32_t i = from; i < to; i++)
		vaddrs[i - from] = addrs[i] - bias;
	heap_image_ghc_names(fd, image->path, vaddrs, to - from, on_name, &naming);
}

void ghc_images_names(const struct ghc_images *x, const uint64_t *addrs, uint32_t n,
		      void (*fn)(void *ctx, uint32_t i, const char *name), void *ctx)
{
	for (uint32_t i = 0, end; i < n; i = end) {
		const struct ghc_image *image = image_at(x, addrs[i]);

		for (end = i + 1; end < n && image && addrs[end] < image->end;)
			end++;
		if (image)
			name_some(x, image, addrs, i, end, fn, ctx);
	}
}
