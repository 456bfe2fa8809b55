#include "collect/stream/alloc_sites.h"

#include "collect/probes/function_place.h"
#include "collect/probes/return_sites.h"
#include "elf/elf_file.h"
#include "elf/elf_syms.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES   (1u << 20)  /* of code at a time                            */
#define TRACE_BYTES  (64u << 20) /* of constants that are searched for an allocator's messages */
#define DISPATCH_MAX 64 /* bytes of a function that calls another by a pointer, and no more */

/* A function, before it is known where in it the probe goes. */
struct found {
	const struct allocator *row;
	struct function_place place;
};

struct search {
	struct elf_file *elf;
	struct elf_syms *syms;
	const struct return_sites_image *image; /* NULL: not wanted, or not available */
	bool moved, objects;
	uint32_t n;
	struct found found[ALLOC_SITES_MAX];
};

/* Arguments that the program of a shape reads, a bit each. */
static const uint32_t shape_args[MS_N_SHAPES] = {
	[MS_SHAPE_SIZE] = 1,    [MS_SHAPE_COUNT_SIZE] = 3, [MS_SHAPE_ALIGN_SIZE] = 2,
	[MS_SHAPE_OUT_PTR] = 5, [MS_SHAPE_REALLOC] = 3,    [MS_SHAPE_REALLOC_N] = 7,
	[MS_SHAPE_FREE] = 1,    [MS_SHAPE_XALLOC] = 3,     [MS_SHAPE_NEW] = 1,
};

static void found_add(struct search *s, const struct elf_sym *sym, const struct allocator *row)
{
	struct found f = { .row = row };
	struct placement_ask ask = {
		.args = shape_args[row->shape],
		.first = row->heap,
		.returns = row->shape != MS_SHAPE_FREE,
		.moved = s->moved,
	};

	if (!function_place_find(s->elf, sym, ask, &f.place))
		return;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->found[i].place.off == f.place.off)
			return; /* an alias */
	if (s->n < ALLOC_SITES_MAX)
		s->found[s->n++] = f;
}

static void check_jumps(struct search *s)
{
	struct function_place *places[ALLOC_SITES_MAX];

	for (uint32_t i = 0; i < s->n; i++)
		places[i] = &s->found[i].place;
	function_places_check(s->elf, places, s->n);
}

/* jemalloc (from 5.3), tcmalloc and mimalloc: known by a function that no other has. */
static bool has_own_new(struct elf_syms *syms)
{
	char buf[64];

	if (elf_syms_find_name(syms, "_Znwm", NULL, 0) <= 0)
		return false;
	for (const char *const *mark = allocator_own_new_marks; *mark; mark++)
		if (elf_syms_find_name(syms, *mark, NULL, 0) > 0)
			return true;
	/* jemalloc's have its prefix. */
	for (const char *const *prefix = allocator_prefixes; *prefix; prefix++) {
		snprintf(buf, sizeof(buf), "%smallocx", *prefix);
		if (elf_syms_find_name(syms, buf, NULL, 0) > 0)
			return true;
	}
	return false;
}

static bool can_skip_first(const struct search *s)
{
	return s->moved && elf_file_machine(s->elf) == EM_X86_64;
}

static bool has_name(struct elf_syms *syms, const char *name, struct elf_sym *ret_sym)
{
	return elf_syms_find_name(syms, name, ret_sym, 1) > 0;
}

/* CPython's objects: either all calls are seen, or none is traced. */
static bool sees_objects(const struct search *s, bool can_skip, bool *ret_is_python)
{
	bool sees = can_skip;

	*ret_is_python = true;
	for (const char *const *entry = allocator_object_entries; *entry; entry++) {
		struct elf_sym sym;

		if (!has_name(s->syms, *entry, &sym)) {
			*ret_is_python = false;
			return false;
		}
		sees &= sym.size <= DISPATCH_MAX;
	}
	for (const struct allocator *a = allocators; a->symbol; a++)
		sees &= !a->objects || has_name(s->syms, a->symbol, &(struct elf_sym){ 0 });
	return sees;
}

/* All functions of the table that the file contains. */
static void find_functions(struct search *s, bool own_new)
{
	bool can_skip = can_skip_first(s);

	for (const char *const *prefix = allocator_prefixes; *prefix; prefix++)
		for (const struct allocator *a = allocators; a->symbol; a++) {
			struct elf_sym syms[8];
			char buf[64];
			const char *name = allocator_name(a, *prefix, buf, sizeof(buf));
			int n = name && (!a->via || (a->own && own_new)) &&
						(!a->heap || can_skip) &&
						(!a->objects || s->objects)
					? elf_syms_find_name(s->syms, name, syms, 8)
					: 0;

			for (int i = 0; i < n && i < 8; i++)
				found_add(s, &syms[i], a);
		}
}

static int add_site(struct alloc_sites *sites, struct alloc_site site)
{
	struct alloc_site *more;

	if (sites->n == ALLOC_SITES_MAX)
		return -E2BIG;
	more = realloc(sites->site, (sites->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	sites->site = more;
	sites->site[sites->n++] = site;
	return 0;
}

/* The return instructions of a function whose return cannot be probed. false: they are unknown. */
static bool add_return_sites(const struct search *s, const struct found *f,
			     struct alloc_sites *sites)
{
	uint64_t offs[RETURN_SITES_MAX];
	int n = return_sites_offs(s->image, f->place.vaddr, offs);

	for (int i = 0; i < n; i++) {
		bool known = false;

		for (uint32_t j = 0; j < sites->n; j++)
			known |= sites->site[j].off == offs[i];
		if (!known &&
		    add_site(sites,
			     (struct alloc_site){ .off = offs[i], .shape = MS_SHAPE_NEW_EXIT }) < 0)
			return false;
	}
	return n > 0;
}

static bool is_main(const struct allocator *a)
{
	static const char *const names[] = { "malloc", "free", "_Znwm", "_ZdlPvm", NULL };

	for (const char *const *name = names; *name; name++)
		if (strcmp(a->symbol, *name) == 0)
			return true;
	return false;
}

static int add_found(struct alloc_sites *sites, const struct found *f)
{
	return add_site(sites, (struct alloc_site){ .off = f->place.off + f->place.best.at,
						    .place = f->place.best.place,
						    .shape = f->row->shape,
						    .main = is_main(f->row),
						    .emulated = f->place.best.emulated });
}

/* The sites of `elf`, whose functions `syms` names. */
static void find_sites(struct elf_file *elf, struct elf_syms *syms, bool moved, bool objects,
		       struct alloc_sites *ret_sites)
{
	_cleanup_(return_sites_image_close) struct return_sites_image image = { 0 };
	bool is_python;
	struct search s = { .elf = elf, .syms = syms, .moved = moved };
	bool own_new = has_own_new(syms);

	if (own_new && return_sites_image_open(elf, &image) == 0)
		s.image = &image;
	if (objects) {
		s.objects = ret_sites->objects = sees_objects(&s, can_skip_first(&s), &is_python);
		ret_sites->objects_hidden = is_python && !s.objects;
	}
	find_functions(&s, own_new);
	check_jumps(&s);
	for (uint32_t i = 0; i < s.n; i++) {
		const struct found *f = &s.found[i];

		if (f->row->shape == MS_SHAPE_NEW && !add_return_sites(&s, f, ret_sites)) {
			ret_sites->own_new = true;
			continue;
		}
		add_found(ret_sites, f);
	}
}

/* By the function names in a stripped program's debug info. -ENOENT: there is none. */
static int find_by_debug(struct elf_file *elf, const struct alloc_image *im, bool moved,
			 bool objects, struct alloc_sites *ret_sites)
{
	_cleanup_(debug_file_freep) struct debug_file *debug = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	struct elf_file *inner = NULL;
	uint8_t *bytes = NULL;
	int r = debug_link_find(elf, im->open_debug, im->ctx, &debug);

	if (r == 0)
		r = elf_syms_load_some(debug->elf, allocator_is_name, &syms, NULL);
	else if (debug_data_open(elf, &bytes, &inner, NULL) == 0)
		r = elf_syms_load_some(inner, allocator_is_name, &syms, NULL);
	if (r == 0)
		find_sites(elf, syms, moved, objects, ret_sites);
	elf_file_close(inner);
	free(bytes);
	return r;
}

static const char *trace_in(const uint8_t *bytes, size_t len)
{
	for (const struct allocator_trace *t = allocator_traces; t->allocator; t++)
		if (memmem(bytes, len, t->text, strlen(t->text)))
			return t->allocator;
	return NULL;
}

/* Piece by piece; a message may lie on a boundary. */
static const char *find_trace(struct elf_file *elf)
{
	const char *found = NULL;
	uint8_t *piece = malloc(READ_BYTES + 64);
	const struct elf_segment *segs;
	uint64_t left = TRACE_BYTES;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n && piece; i++)
		for (uint64_t at = 0; at < segs[i].filesz && left && !found; at += READ_BYTES) {
			uint64_t rest = segs[i].filesz - at;
			size_t len = rest < READ_BYTES + 64 ? (size_t)rest : READ_BYTES + 64;

			if (elf_file_read(elf, segs[i].off + at, piece, len, NULL) < 0)
				break;
			found = trace_in(piece, len);
			left -= left < READ_BYTES ? left : READ_BYTES;
		}
	free(piece);
	return found;
}

/* A program, not a library: it has an entry point. */
static bool is_program(const struct elf_file *elf)
{
	return elf_file_entry(elf) != 0;
}

void alloc_sites_find(const struct alloc_image *im, bool moved, bool objects,
		      struct alloc_sites *ret_sites)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	const struct elf_section *symtab;

	memset(ret_sites, 0, sizeof(*ret_sites));
	if (elf_file_open(im->fd, im->path, &elf, NULL) < 0)
		return;
	if (elf_syms_load_some(elf, allocator_is_name, &syms, NULL) == 0)
		find_sites(elf, syms, moved, objects, ret_sites);
	if (ret_sites->n || !is_program(elf) ||
	    elf_file_find_section(elf, ".symtab", &symtab, NULL) == 0)
		return;
	ret_sites->nameless = find_by_debug(elf, im, moved, objects, ret_sites) < 0;
	if (ret_sites->nameless)
		ret_sites->hidden = find_trace(elf);
}

/* The first of a shape: malloc, calloc, …; its functions' arguments are where the shape has them. */
static const struct allocator *row_of(enum ms_shape shape)
{
	const struct allocator *a = allocators;

	while (a->symbol && a->shape != shape)
		a++;
	return a->symbol ? a : NULL;
}

int alloc_sites_of(const struct alloc_image *im, const struct alloc_function *functions, uint32_t n,
		   bool moved, struct alloc_sites *ret_sites, uint64_t *ret_probed)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct search s = { .moved = moved };
	int r = elf_file_open(im->fd, im->path, &elf, NULL);

	memset(ret_sites, 0, sizeof(*ret_sites));
	if (r < 0)
		return r;
	s.elf = elf;
	for (uint32_t i = 0; i < n; i++) {
		struct elf_sym sym = { .vaddr = functions[i].vaddr, .size = functions[i].size };
		const struct allocator *row = row_of(functions[i].shape);

		ret_probed[i] = 0;
		if (row)
			found_add(&s, &sym, row);
	}
	check_jumps(&s);
	for (uint32_t i = 0; i < s.n && r == 0; i++) {
		r = add_found(ret_sites, &s.found[i]);
		for (uint32_t k = 0; k < n; k++)
			if (functions[k].vaddr == s.found[i].place.vaddr)
				ret_probed[k] = s.found[i].place.vaddr + s.found[i].place.best.at;
	}
	return r;
}

void alloc_sites_fini(struct alloc_sites *sites)
{
	free(sites->site);
}
