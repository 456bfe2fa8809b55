/*
 * What cells say of where probes go in a file, and of a language's runtime or Go's in it, should the file have taken them over: refused, or places
 * that lie in the file, and an image that a runtime is looked for with. The first byte says whose answer it is.
 */
#include "collect/events/event_finds.h"
#include "collect/probes/sampler_places.h"
#include "collect/stream/alloc_sites_cell.h"
#include "collect/stream/label_file.h"
#include "lang/go_cell.h"
#include "lang/goroutines_parts.h"
#include "lang/image.h"
#include "lang/image_cell.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_BYTES = 0x1000 };

static void check_that(bool is_so)
{
	if (!is_so)
		abort();
}

static void of_allocators(struct bytes b)
{
	static const struct alloc_function f = { .vaddr = 0x500,
						 .size = 9,
						 .shape = MS_SHAPE_SIZE };
	struct alloc_sites sites;
	uint64_t probed;
	int r = alloc_sites_take(b, FILE_BYTES, &f, 1, &sites, &probed);

	check_that(r <= 0 && sites.n <= ALLOC_SITES_MAX && (r == 0 || !sites.n));
	for (uint32_t i = 0; i < sites.n; i++)
		check_that(sites.site[i].off < FILE_BYTES && sites.site[i].shape < MS_N_SHAPES &&
			   !(sites.site[i].place >> MS_COOKIE_SHAPE_SHIFT & 15));
	check_that(!probed || (probed >= f.vaddr && probed <= f.vaddr + 512));
	alloc_sites_fini(&sites);
}

static void of_samplers(struct bytes b)
{
	struct sampler_places p;

	sampler_places_take(b, FILE_BYTES, &p);
	for (uint32_t kind = 0; kind < SAMPLE_N_NOTES; kind++) {
		check_that(p.n_sites[kind] <= SAMPLE_NOTES_MAX);
		for (uint32_t i = 0; i < p.n_sites[kind]; i++)
			check_that(p.sites[kind][i].off < FILE_BYTES &&
				   p.sites[kind][i].n_args <= SAMPLE_ARGS_MAX);
	}
	check_that(!p.found.sampler || (p.found.kind && !p.found.why));
	for (uint32_t i = 0; i < p.found.n_sites; i++)
		check_that(p.found.sites[i].off < FILE_BYTES);
}

static void of_events(struct bytes b)
{
	struct event_wants w = { .n = 2, .cookies = true };
	struct event_finds f;

	w.items[0].kind = EVENT_USDT;
	w.items[1].kind = EVENT_UPROBE;
	w.items[1].timed = true;
	event_finds_take(b, FILE_BYTES, &w, &f);
	for (uint32_t i = 0; i < f.n_sites; i++)
		check_that(f.sites[i].item == 0 && f.sites[i].off < FILE_BYTES &&
			   strlen(f.sites[i].name) < EVENT_NAME_MAX);
	for (uint32_t i = 0; i < f.n_functions; i++) {
		const struct event_function *fn = &f.functions[i];

		check_that(fn->item == 1 && fn->off + fn->at < FILE_BYTES && *fn->name);
		for (int k = 0; k < fn->n_returns; k++)
			check_that(event_function_return(fn, k) < FILE_BYTES);
	}
	event_finds_fini(&f);
}

static void of_labels(struct bytes b)
{
	struct label_file f;

	label_file_take(b, &f);
	check_that(f.libc <= LABEL_LIBC_MUSL && f.tls.access <= ELF_TLS_DESC);
}

static bool read_nothing(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	memset(buf, (int)(addr >> 3), len);
	return addr % 5;
}

static void follow(const struct accessor *code)
{
	static const struct accessor_fn fn = { 0 };

	accessor_follow(code, 1, &fn);
}

/* As long as an answer may be, the input put in from where its first word says: an image has more bytes than an input as a rule. */
static void of_images(struct bytes b)
{
	static uint8_t answer[5 + sizeof(struct lang_image)];
	const struct lang_memory mem = { read_nothing, NULL };
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	struct lang_runtime rt;
	uint16_t at;

	memset(answer, 0, sizeof(answer));
	if (bytes_u16(&b, &at) == 0 && at < sizeof(answer) && b.len <= sizeof(answer) - at)
		memcpy(answer + at, b.data, b.len);
	lang_image_take(b, "file", &image, NULL, NULL);
	check_that(!image);
	if (lang_image_take(bytes_of(answer, sizeof(answer)), "file", &image, NULL, NULL) < 0)
		return;
	check_that(image->n_ranges <= MS_LANG_RANGES && !strcmp(image->name, "file"));
	follow(&image->getspecific);
	follow(&image->python.tstate);
	follow(&image->php.storage);
	follow(&image->ruby.current);
	lang_runtime_find(&(struct lang_mapped){ image, 0x1000 }, &(struct lang_mapped){ image, 0 },
			  &mem, &rt, NULL);
}

/* The same of Go's programs, and what is said of a place. */
static void of_go(struct bytes b)
{
	static uint8_t answer[4 + sizeof(struct go_program)];
	_cleanup_(go_program_freep) struct go_program *p = NULL;
	struct go_place place;
	uint16_t at;

	check_that(!go_place_take(b, 1, &place) || place.kind <= GO_FRAME_NONE);
	memset(answer, 0, sizeof(answer));
	if (bytes_u16(&b, &at) == 0 && at < sizeof(answer) && b.len <= sizeof(answer) - at)
		memcpy(answer + at, b.data, b.len);
	if (go_program_take(bytes_of(answer, sizeof(answer)), &p, NULL) == 0)
		check_that(p->n_allgs <= REFS_MAX && p->n_reasons <= REFS_MAX && !p->places &&
			   p->layout.goid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const takes[])(struct bytes) = { of_allocators, of_samplers, of_events,
						       of_labels,     of_images,   of_go };
	struct bytes b = bytes_of(data, size);
	uint8_t which;

	if (bytes_u8(&b, &which) < 0)
		return 0;
	takes[which % (sizeof(takes) / sizeof(*takes))](b);
	return 0;
}
