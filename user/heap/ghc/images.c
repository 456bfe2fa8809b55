#include "heap/ghc/images.h"

#include "elf/demangle.h"
#include "elf/elf_objects.h"
#include "elf/elf_syms.h"
#include "elf/ghc_version.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES_MAX = 4096 };

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
static struct elf_file *open_image(const struct ghc_images *x, const struct ghc_image *image,
				   int *ret_fd)
{
	struct elf_file *elf = NULL;

	*ret_fd = ns_open_mapped(x->pid, image->start, image->end);
	if (*ret_fd < 0)
		*ret_fd = ns_open_seen(x->pid, image->path);
	if (*ret_fd >= 0)
		elf_file_open(*ret_fd, image->path, &elf, NULL);
	return elf;
}

/* What to add to an address of its code to get the file's own. */
static bool bias_of(const struct elf_file *elf, const struct ghc_image *image, uint64_t *ret)
{
	uint32_t n;
	const struct elf_segment *segs = elf_file_segments(elf, &n);

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
	for (uint32_t i = 0; i < x->n; i++) {
		_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
		_cleanup_(closep) int fd = -1;
		uint32_t version;

		if (i && !strstr(x->rows[i].path, "libHSrts"))
			continue;
		elf = open_image(x, &x->rows[i], &fd);
		version = elf ? ghc_version_read(elf) : 0;
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

	for (uint32_t i = 0; i < x->n; i++) {
		_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
		_cleanup_(closep) int fd = -1;
		struct elf_object object;
		uint64_t bias;

		if (x->rows[i].is_libc || (i && !strstr(x->rows[i].path, "libHSrts")))
			continue;
		elf = open_image(x, &x->rows[i], &fd);
		if (elf && bias_of(elf, &x->rows[i], &bias) &&
		    elf_object_find(elf, names, &object) == 0)
			return object.vaddr + bias;
	}
	return 0;
}

/* --- names --- */

static bool decode(const struct elf_sym *sym, char *text)
{
	char name[DEMANGLE_IN_MAX], plain[DEMANGLE_OUT_MAX];
	size_t len;

	if (sym->name_len >= sizeof(name))
		return false;
	memcpy(name, sym->name, sym->name_len);
	name[sym->name_len] = '\0';
	if (demangle_ghc(name, sym->name_len, plain)) {
		snprintf(text, GHC_NAME_MAX, "%.*s", GHC_NAME_MAX - 1, plain);
		return true;
	}
	/* The run-time system's own: stg_ap_2_upd_info. */
	len = strlen(name);
	if (len > 5 && strcmp(name + len - 5, "_info") == 0)
		name[len - 5] = '\0';
	snprintf(text, GHC_NAME_MAX, "%.*s", GHC_NAME_MAX - 1, name);
	return false;
}

/* The index of the first symbol behind `vaddr`. */
static uint32_t first_behind(const struct elf_syms *syms, uint64_t vaddr)
{
	uint32_t low = 0, high = elf_syms_count(syms);

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (elf_syms_at(syms, mid).vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* What is local to a function lies right before it. */
static bool next_function(const struct elf_syms *syms, uint64_t vaddr, char *text)
{
	uint32_t i = syms ? first_behind(syms, vaddr) : 0;
	struct elf_sym sym;

	if (!syms || i >= elf_syms_count(syms))
		return false;
	sym = elf_syms_at(syms, i);
	return decode(&sym, text);
}

struct naming {
	const struct ghc_image *image;
	const struct elf_syms *syms; /* NULL: it has none */
	uint64_t bias;
};

static void name_one(const struct naming *x, uint64_t addr, char name[GHC_NAME_MAX])
{
	char text[GHC_NAME_MAX];
	struct elf_sym sym;
	uint64_t vaddr = addr - x->bias;
	const char *file = strrchr(x->image->path, '/');

	if (x->syms && elf_syms_find(x->syms, vaddr, &sym) == 0 && sym.vaddr == vaddr) {
		decode(&sym, name);
		return;
	}
	if (next_function(x->syms, vaddr, text))
		snprintf(name, GHC_NAME_MAX, "before %.200s, %.24s+0x%llx", text,
			 file ? file + 1 : "", (unsigned long long)vaddr);
	else
		snprintf(name, GHC_NAME_MAX, "%.200s+0x%llx", file ? file + 1 : "",
			 (unsigned long long)vaddr);
}

/* Those of one image. */
static void name_some(const struct ghc_images *x, const struct ghc_image *image,
		      const uint64_t *addrs, uint32_t from, uint32_t to,
		      void (*fn)(void *ctx, uint32_t i, const char *name), void *ctx)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct naming naming = { .image = image };
	char name[GHC_NAME_MAX];

	elf = open_image(x, image, &fd);
	if (!elf || !bias_of(elf, image, &naming.bias))
		return;
	elf_syms_load(elf, &syms, NULL);
	naming.syms = syms;
	for (; from < to; from++) {
		name_one(&naming, addrs[from], name);
		fn(ctx, from, name);
	}
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
