#include "collect/stream/alloc_sites_cell.h"

#include "collect/probes/placement.h"
#include "collect/probes/places_cell.h"

#include <errno.h>
#include <stdlib.h>

/* Of the question: moved:1 objects:1 n:4 { vaddr:8 size:8 shape:1 }×n. Without functions those of allocators.c are looked for. */
enum { SITE_BYTES = 18 };

/* Of the answer. */
enum { OWN_NEW = 1, NAMELESS = 2, OBJECTS = 4, OBJECTS_HIDDEN = 8, FLAGS = 15 };
enum { MAIN = 1, EMULATED = 2, SITE_FLAGS = 3 };

/* Bits of a cookie that are not its shape's. */
#define PLACE_BITS (MS_COOKIE_MOVED | ((1ULL << MS_COOKIE_SHAPE_SHIFT) - 1))

/* --- in the cell --- */

static int take_functions(struct bytes *b, struct alloc_function *functions, uint32_t *ret_n)
{
	if (bytes_u32(b, ret_n) < 0 || *ret_n > ALLOC_SITES_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < *ret_n; i++) {
		uint8_t shape;

		if (bytes_u64(b, &functions[i].vaddr) < 0 || bytes_u64(b, &functions[i].size) < 0 ||
		    bytes_u8(b, &shape) < 0)
			return -EBADMSG;
		functions[i].shape = shape;
	}
	return 0;
}

/* From 1; 0: none. */
static uint8_t trace_number(const char *allocator)
{
	uint8_t i = 0;

	while (allocator && allocator_traces[i].allocator &&
	       allocator_traces[i].allocator != allocator)
		i++;
	return allocator && allocator_traces[i].allocator ? (uint8_t)(i + 1) : 0;
}

static void put_sites(struct strbuf *b, const struct alloc_sites *s)
{
	put_u8(b, (uint8_t)((s->own_new ? OWN_NEW : 0) | (s->nameless ? NAMELESS : 0) |
			    (s->objects ? OBJECTS : 0) | (s->objects_hidden ? OBJECTS_HIDDEN : 0)));
	put_u8(b, trace_number(s->hidden));
	put_u32(b, s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct alloc_site *site = &s->site[i];

		put_u64(b, site->off);
		put_u64(b, site->place);
		put_u8(b, (uint8_t)site->shape);
		put_u8(b, (uint8_t)((site->main ? MAIN : 0) | (site->emulated ? EMULATED : 0)));
	}
}

static int read_places(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	struct alloc_function functions[ALLOC_SITES_MAX];
	uint64_t probed[ALLOC_SITES_MAX] = { 0 };
	struct alloc_sites sites = { 0 };
	bool moved, objects;
	uint32_t n;
	int r = 0;

	if (places_take_bool(&question, &moved) < 0 || places_take_bool(&question, &objects) < 0 ||
	    take_functions(&question, functions, &n) < 0)
		return -EBADMSG;
	if (n)
		r = alloc_sites_of(im, functions, n, moved, &sites, probed);
	else
		alloc_sites_find(im, moved, objects, &sites);
	put_u32(answer, (uint32_t)r);
	put_sites(answer, &sites);
	for (uint32_t i = 0; i < n; i++)
		put_u64(answer, probed[i]);
	alloc_sites_fini(&sites);
	return 0;
}

static void work(const struct cell_given *given)
{
	places_cell_work(given, read_places);
}

static const struct cell_kind cell = { .name = "allocation sites", .work = work, PLACES_LIMITS };
CELL_KIND(cell);

/* --- who asks --- */

static int take_site(struct bytes *b, uint64_t file_bytes, struct alloc_site *ret)
{
	uint8_t shape, flags;

	if (bytes_u64(b, &ret->off) < 0 || bytes_u64(b, &ret->place) < 0 ||
	    bytes_u8(b, &shape) < 0 || bytes_u8(b, &flags) < 0 || ret->off >= file_bytes ||
	    ret->place & ~PLACE_BITS || shape >= MS_N_SHAPES || flags & ~SITE_FLAGS)
		return -EBADMSG;
	ret->shape = shape;
	ret->main = flags & MAIN;
	ret->emulated = flags & EMULATED;
	return 0;
}

static int take_hidden(struct bytes *b, const char **ret)
{
	uint8_t number, n = 0;

	while (allocator_traces[n].allocator)
		n++;
	if (bytes_u8(b, &number) < 0 || number > n)
		return -EBADMSG;
	*ret = number ? allocator_traces[number - 1].allocator : NULL;
	return 0;
}

static int take_sites(struct bytes *b, uint64_t file_bytes, struct alloc_sites *s)
{
	uint8_t flags;

	if (bytes_u8(b, &flags) < 0 || flags & ~FLAGS || take_hidden(b, &s->hidden) < 0 ||
	    bytes_u32(b, &s->n) < 0 || s->n > ALLOC_SITES_MAX || b->len < s->n * SITE_BYTES)
		return -EBADMSG;
	s->own_new = flags & OWN_NEW;
	s->nameless = flags & NAMELESS;
	s->objects = flags & OBJECTS;
	s->objects_hidden = flags & OBJECTS_HIDDEN;
	s->site = calloc(s->n + 1ul, sizeof(*s->site));
	if (!s->site)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++)
		if (take_site(b, file_bytes, &s->site[i]) < 0)
			return -EBADMSG;
	return 0;
}

/* The probe of a function is in it, among what placement.h reads. */
static int take_probed(struct bytes *b, const struct alloc_function *f, uint64_t *ret)
{
	if (bytes_u64(b, ret) < 0 || (*ret && *ret - f->vaddr > PLACEMENT_MAX_CODE))
		return -EBADMSG;
	return 0;
}

static int take_all(struct bytes *b, uint64_t file_bytes, const struct alloc_function *functions,
		    uint32_t n, struct alloc_sites *sites, uint64_t *ret_probed)
{
	int32_t code;
	int r;

	if (bytes_u32(b, (uint32_t *)&code) < 0 || code > 0 || code < -4095)
		return -EBADMSG;
	r = take_sites(b, file_bytes, sites);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = take_probed(b, &functions[i], &ret_probed[i]);
	if (r == 0 && b->len)
		r = -EBADMSG;
	return r < 0 ? r : code;
}

int alloc_sites_take(struct bytes answer, uint64_t file_bytes,
		     const struct alloc_function *functions, uint32_t n,
		     struct alloc_sites *ret_sites, uint64_t *ret_probed)
{
	struct alloc_sites sites = { 0 };
	uint64_t probed[ALLOC_SITES_MAX] = { 0 };
	int r = take_all(&answer, file_bytes, functions, n, &sites, probed);

	if (r < 0) {
		alloc_sites_fini(&sites);
		sites = (struct alloc_sites){ 0 };
	}
	for (uint32_t i = 0; i < n; i++)
		ret_probed[i] = r < 0 ? 0 : probed[i];
	*ret_sites = sites;
	return r;
}

static int ask(const struct alloc_image *im, const struct alloc_function *functions, uint32_t n,
	       bool moved, bool objects, struct alloc_sites *ret_sites, uint64_t *ret_probed,
	       struct err *e)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	int r;

	*ret_sites = (struct alloc_sites){ 0 };
	put_u8(&q, moved);
	put_u8(&q, objects);
	put_u32(&q, n);
	for (uint32_t i = 0; i < n; i++) {
		put_u64(&q, functions[i].vaddr);
		put_u64(&q, functions[i].size);
		put_u8(&q, (uint8_t)functions[i].shape);
	}
	r = places_cell_ask(&cell, im, &q, 32 + ALLOC_SITES_MAX * (SITE_BYTES + 8), &t, e);
	if (r < 0)
		return r;
	r = alloc_sites_take(talk_bytes(&t), places_file_bytes(im), functions, n, ret_sites,
			     ret_probed);
	return r == -EBADMSG ? places_cell_lied(im, e)
	       : r < 0       ? err_set(e, r, "%s: %s", im->path, strerror(-r))
			     : 0;
}

int alloc_sites_ask(const struct alloc_image *im, bool moved, bool objects,
		    struct alloc_sites *ret_sites, struct err *e)
{
	return ask(im, NULL, 0, moved, objects, ret_sites, NULL, e);
}

int alloc_sites_ask_of(const struct alloc_image *im, const struct alloc_function *functions,
		       uint32_t n, bool moved, struct alloc_sites *ret_sites, uint64_t *ret_probed,
		       struct err *e)
{
	for (uint32_t i = 0; i < n; i++)
		ret_probed[i] = 0;
	*ret_sites = (struct alloc_sites){ 0 };
	if (!n || n > ALLOC_SITES_MAX)
		return n ? err_set(e, -E2BIG, "%s: too many functions", im->path) : 0;
	return ask(im, functions, n, moved, false, ret_sites, ret_probed, e);
}
