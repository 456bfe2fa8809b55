#include "import/mapped.h"

#include "base/fd_stat.h"
#include "base/grow.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <stdlib.h>

enum { LINE_MAX_BYTES = 4 * 4096 + 256 };

void mapped_fini(struct mapped *m)
{
	for (uint32_t i = 0; i < m->n_images; i++) {
		free(m->images[i].path);
		free(m->images[i].segs);
	}
	free(m->images);
	free(m->maps);
	*m = (struct mapped){ 0 };
}

/* Mappings of one file follow each other, so the last few are looked at. */
static int find_image(struct mapped *m, const struct proc_map *map, uint32_t *ret_image)
{
	for (uint32_t i = m->n_images; i > 0 && i + 16 > m->n_images; i--) {
		if (m->images[i - 1].deleted == map->deleted &&
		    strcmp(m->images[i - 1].path, map->path) == 0) {
			*ret_image = i;
			return 0;
		}
	}
	if (!GROW(m->images, m->n_images, m->cap_images))
		return -ENOMEM;
	m->images[m->n_images] = (struct mapped_image){
		.path = strdup(map->path),
		.deleted = map->deleted,
		.ino = map->ino,
	};
	if (!m->images[m->n_images].path)
		return -ENOMEM;
	*ret_image = ++m->n_images;
	return 0;
}

static int add_mapping(struct mapped *m, const struct proc_map *map)
{
	uint32_t image = 0;
	int r = 0;

	if (m->n == MAPPED_MAX)
		return 0;
	if (map->path[0])
		r = find_image(m, map, &image);
	if (r < 0 || !GROW(m->maps, m->n, m->cap))
		return -ENOMEM;
	m->maps[m->n++] = (struct mapping){ map->start, map->end, map->file_off, image, { 0 } };
	return 0;
}

static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

int mapped_read(struct mapped *m, struct bytes text)
{
	char copy[LINE_MAX_BYTES + 1];
	struct bytes line;

	while (bytes_line(&text, &line)) {
		struct proc_map map;

		if (line.len > LINE_MAX_BYTES)
			continue;
		memcpy(copy, line.data, line.len);
		if (proc_maps_parse(copy, line.len, &map) == 0 && add_mapping(m, &map) < 0)
			return -ENOMEM;
	}
	if (m->n)
		qsort(m->maps, m->n, sizeof(*m->maps), compare_mappings);
	return 0;
}

static struct mapping *find_mapping(const struct mapped *m, uint64_t addr)
{
	uint32_t from = 0, to = m->n;

	/* The last that begins at or below. */
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (m->maps[middle].start <= addr)
			from = middle + 1;
		else
			to = middle;
	}
	return from && addr < m->maps[from - 1].end ? &m->maps[from - 1] : NULL;
}

/* Reads segments and build ID. A file that cannot be read, or is no ELF file, has neither. */
static int look(struct mapped *m, struct mapped_image *img)
{
	_cleanup_(closep) int fd = -1;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const struct elf_segment *segs;
	struct stat st;

	img->looked = true;
	if (img->deleted || img->path[0] != '/' || !m->opts->open_image)
		return 0;
	fd = m->opts->open_image(m->opts->ctx, img->path);
	if (fd < 0)
		return 0;
	if (fd_stat(fd, &st) == 0 && img->ino && st.st_ino != img->ino) {
		img->changed = true;
		m->changed++;
	}
	if (elf_file_open(fd, img->path, &elf, NULL) < 0)
		return 0;
	segs = elf_file_segments(elf, &img->n_segs);
	img->segs = reallocarray(NULL, img->n_segs + 1ul, sizeof(*segs));
	if (!img->segs)
		return -ENOMEM;
	memcpy(img->segs, segs, img->n_segs * sizeof(*segs));
	img->build_id = dict_string(m->d, elf_file_build_id(elf));
	return 0;
}

static module_id add_module(struct mapped *m, const struct mapping *map,
			    const struct mapped_image *img, uint64_t bias)
{
	struct module module = {
		.kind = MODULE_ELF,
		.path = dict_string(m->d, img->path),
		.build_id = img->build_id,
		.start = map->start - bias,
		.limit = map->end - bias,
		.file_off = map->file_off,
	};

	return dict_module(m->d, &module);
}

location_id mapped_location(struct mapped *m, uint64_t addr)
{
	struct mapping *map = find_mapping(m, addr);
	struct mapped_image *img;
	uint64_t off, vaddr;

	if (!map)
		return dict_location(m->d, (module_id){ 0 }, addr);
	if (!map->image) {
		struct module anon = { .kind = MODULE_ANON, .path = dict_string(m->d, "//anon") };

		return dict_location(m->d, dict_module(m->d, &anon), addr);
	}
	img = &m->images[map->image - 1];
	if (!img->looked && look(m, img) < 0)
		return (location_id){ 0 };
	off = addr - map->start + map->file_off;
	if (!elf_segments_off_to_vaddr(img->segs, img->n_segs, off, &vaddr))
		vaddr = off;
	if (!map->module.ix)
		map->module = add_module(m, map, img, addr - vaddr);
	return dict_location(m->d, map->module, vaddr);
}
