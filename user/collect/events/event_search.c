/* Sites and functions in a file, by the names that items have: in cells alone (event_finds.c). */
#include "abi.h"
#include "base/cleanup.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/put.h"
#include "collect/events/event_finds.h"
#include "collect/probes/function_place.h"
#include "collect/probes/return_sites.h"
#include "elf/demangle.h"
#include "elf/sdt.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of an item. */
struct found {
	uint32_t item;
	const char *name; /* `name_len` bytes; of the symbols */
	uint32_t name_len;
	struct function_place place;
};

/* A name of an item: there are so many events at most. */
struct named {
	UT_hash_handle hh;
	char key[]; /* the item, then the name */
};

/* Where an item's function is: an alias is at the same place. */
struct taken {
	UT_hash_handle hh;
	struct {
		uint64_t off, item;
	} key;
};

struct search {
	const struct alloc_image *im;
	const struct event_wants *wants;
	struct elf_file *elf;
	bool is_go;
	struct event_missed missed[EVENT_SPECS_MAX];
	char last[EVENT_SPECS_MAX][EVENT_NAME_MAX];
	struct named *names;
	struct taken *taken;
	struct strbuf sites;
	uint32_t n_sites;
	struct found *found;
	uint32_t n, cap;
	int error;
};

static void search_fini(struct search *s)
{
	hash_free(s->names);
	hash_free(s->taken);
	strbuf_free(&s->sites);
	free(s->found);
}

static bool wants_kind(const struct search *s, enum event_kind kind)
{
	for (uint32_t i = 0; i < s->wants->n; i++)
		if (s->wants->items[i].kind == kind)
			return true;
	return false;
}

/* Is there room for an item's name, which may be new? Patterns have matches by the thousand: this is cheap. */
static bool has_room(struct search *s, uint32_t item, const char *name, bool add)
{
	size_t len = strlen(name);
	char key[sizeof(item) + EVENT_NAME_MAX];
	struct named *n;

	memcpy(key, &item, sizeof(item));
	memcpy(key + sizeof(item), name, len);
	len += sizeof(item);
	HASH_FIND(hh, s->names, key, len, n);
	if (n)
		return true;
	if (HASH_COUNT(s->names) == MS_EVENTS_MAX) {
		s->missed[item].refused++;
		return false;
	}
	if (!add)
		return true;
	n = calloc(1, sizeof(*n) + len);
	if (n) {
		memcpy(n->key, key, len);
		HASH_ADD_KEYPTR(hh, s->names, n->key, len, n);
	}
	if (!n || !hash_added(n)) {
		free(n);
		s->error = -ENOMEM;
	}
	return !s->error;
}

/* --- sites of USDT --- */

static void find_sites(struct search *s, uint32_t item, const struct sdt_notes *notes)
{
	const struct event_item *want = &s->wants->items[item];
	char name[200];

	for (uint32_t i = 0; i < sdt_notes_count(notes) && !s->error; i++) {
		const struct sdt_note *note = sdt_notes_at(notes, i);

		if (!event_matches(want->group, note->provider) ||
		    !event_matches(want->event, note->name))
			continue;
		snprintf(name, sizeof(name), "%s:%s", note->provider, note->name);
		if (!has_room(s, item, name, true))
			continue;
		if (s->n_sites == EVENT_FINDS_MAX) {
			s->missed[item].too_many++;
			continue;
		}
		put_u8(&s->sites, (uint8_t)item);
		put_u64(&s->sites, note->off);
		put_u64(&s->sites, note->semaphore_off);
		strbuf_add(&s->sites, name, strlen(name) + 1);
		s->n_sites++;
	}
}

static void find_all_sites(struct search *s)
{
	_cleanup_(sdt_notes_freep) struct sdt_notes *notes = NULL;

	if (!wants_kind(s, EVENT_USDT) || sdt_notes_load(s->elf, &notes, NULL) < 0)
		return;
	for (uint32_t i = 0; i < s->wants->n; i++)
		if (s->wants->items[i].kind == EVENT_USDT)
			find_sites(s, i, notes);
}

/* --- functions --- */

/* As people write it: without parameters. The last part of such a name is in the mangled one, too. */
static bool matches_demangled(const char *pattern, const char *name)
{
	static char plain[DEMANGLE_OUT_MAX];
	const char *last = strrchr(pattern, ':');
	int depth = 0;
	size_t len;

	last = last ? last + 1 : pattern;
	if ((strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0) ||
	    (isalnum((unsigned char)*last) && !event_is_pattern(last) && !strstr(name, last)) ||
	    !demangle(name, strlen(name), plain))
		return false;
	len = strlen(plain);
	while (len && (depth || plain[len - 1] == ')')) {
		depth += plain[len - 1] == ')' ? 1 : plain[len - 1] == '(' ? -1 : 0;
		plain[--len] = '\0';
	}
	return event_matches(pattern, plain);
}

static bool is_named(const struct event_item *item, const char *name)
{
	return event_matches(item->event, name) || matches_demangled(item->event, name);
}

/* Symbols that no item asks for are left out. */
static bool is_wanted(void *ctx, const char *name)
{
	const struct search *s = ctx;
	char text[EVENT_NAME_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "@"), name);
	for (uint32_t i = 0; i < s->wants->n; i++)
		if (s->wants->items[i].kind == EVENT_UPROBE && is_named(&s->wants->items[i], text))
			return true;
	return false;
}

/* Where the file is stripped, those of its debug file or of its .gnu_debugdata. NULL: none. */
static struct elf_syms *load_debug(struct search *s)
{
	_cleanup_(debug_file_freep) struct debug_file *debug = NULL;
	struct elf_file *inner = NULL;
	struct elf_syms *syms = NULL;
	uint8_t *bytes = NULL;

	if (debug_link_find(s->elf, s->im->open_debug, s->im->ctx, &debug) == 0)
		elf_syms_load_wanted(debug->elf, is_wanted, s, &syms, NULL);
	else if (debug_data_open(s->elf, &bytes, &inner, NULL) == 0)
		elf_syms_load_wanted(inner, is_wanted, s, &syms, NULL);
	elf_file_close(inner);
	free(bytes);
	return syms;
}

/* false: it was taken before. */
static bool take_place(struct search *s, uint64_t off, uint32_t item)
{
	struct taken *taken, at = { .key = { off, item } };

	HASH_FIND(hh, s->taken, &at.key, sizeof(at.key), taken);
	if (taken)
		return false;
	if (!hash_new(s->taken, key, &at.key))
		s->error = -ENOMEM;
	return !s->error;
}

/*
 * A function of Go begins with a look whether its stack has room, and begins anew when it has got more: what comes behind that is
 * passed once a call. Its length on x86-64, 0: there is none. (cmd/internal/obj/x86: stacksplit(); the goroutine is in r14, before
 * Go 1.17 in rcx.)
 */
static uint32_t stack_check_len(struct search *s, const struct elf_sym *sym)
{
	static const struct {
		uint8_t n, free; /* bytes; of these, any at the end */
		uint8_t bytes[9];
	} heads[] = {
		{ 0, 0, { 0 } },
		{ 5, 1, { 0x4c, 0x8d, 0x64, 0x24 } },                         /* lea -N(%rsp),%r12   */
		{ 8, 4, { 0x4c, 0x8d, 0xa4, 0x24 } },                         /* … of 32 bits         */
		{ 9, 0, { 0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff } }, /* mov %fs:-8,%rcx */
	}, looks[] = {
		{ 4, 0, { 0x49, 0x3b, 0x66, 0x10 } }, /* cmp 0x10(%r14),%rsp */
		{ 4, 0, { 0x4d, 0x3b, 0x66, 0x10 } }, /* cmp 0x10(%r14),%r12 */
		{ 4, 0, { 0x48, 0x3b, 0x61, 0x10 } }, /* cmp 0x10(%rcx),%rsp */
	};
	const struct elf_segment *segs;
	uint8_t code[24] = { 0 };
	uint64_t off;
	uint32_t n;

	segs = elf_file_segments(s->elf, &n);
	if (!s->is_go || elf_file_machine(s->elf) != EM_X86_64 || sym->size < sizeof(code) ||
	    !elf_segments_vaddr_to_off(segs, n, sym->vaddr, &off) ||
	    elf_file_read(s->elf, off, code, sizeof(code), NULL) < 0)
		return 0;
	for (size_t h = 0; h < sizeof(heads) / sizeof(*heads); h++)
		for (size_t l = 0; l < sizeof(looks) / sizeof(*looks); l++) {
			const uint8_t *look = code + heads[h].n, *jump = look + looks[l].n;

			if (memcmp(code, heads[h].bytes, heads[h].n - heads[h].free) != 0 ||
			    memcmp(look, looks[l].bytes, looks[l].n) != 0)
				continue;
			if (jump[0] == 0x76) /* jbe */
				return (uint32_t)(jump + 2 - code);
			if (jump[0] == 0x0f && jump[1] == 0x86)
				return (uint32_t)(jump + 6 - code);
		}
	return 0;
}

static void note_unplaced(struct search *s, uint32_t item, const char *name, bool chooses)
{
	struct event_missed *m = &s->missed[item];

	m->unplaced++;
	m->last_chooses = chooses;
	snprintf(s->last[item], sizeof(s->last[item]), "%s", name);
}

static void take_function(struct search *s, uint32_t item, const struct elf_sym *sym)
{
	struct placement_ask ask = { .returns = true, .moved = s->wants->cookies };
	struct found found = { .item = item, .name = sym->name };
	struct elf_sym from = *sym;
	char name[EVENT_NAME_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)sym->name_len, sym->name);
	if (!*name || !is_named(&s->wants->items[item], name) || strstr(name, ".cold"))
		return; /* a part of a function is none */
	if (!has_room(s, item, name, false))
		return;
	from.vaddr += stack_check_len(s, sym);
	from.size -= from.vaddr - sym->vaddr;
	if (!function_place_find(s->elf, &from, ask, &found.place)) {
		note_unplaced(s, item, name, sym->ifunc);
		return;
	}
	if (!take_place(s, found.place.off, item))
		return; /* an alias */
	if (!has_room(s, item, name, true))
		return;
	found.name_len = (uint32_t)strlen(name);
	if (s->n == EVENT_FINDS_MAX)
		s->missed[item].too_many++;
	else if (!GROW(s->found, s->n, s->cap))
		s->error = -ENOMEM;
	else
		s->found[s->n++] = found;
}

static void take_functions(struct search *s, const struct elf_syms *syms)
{
	for (uint32_t i = 0; syms && i < elf_syms_count(syms); i++) {
		struct elf_sym sym = elf_syms_at(syms, i);

		for (uint32_t k = 0; k < s->wants->n && !s->error; k++)
			if (s->wants->items[k].kind == EVENT_UPROBE)
				take_function(s, k, &sym);
	}
}

static void check_jumps(struct search *s)
{
	struct function_place **places = calloc(s->n + 1ul, sizeof(struct function_place *));

	for (uint32_t i = 0; places && i < s->n; i++)
		places[i] = &s->found[i].place;
	if (places)
		function_places_check(s->elf, places, s->n);
	else
		s->error = -ENOMEM;
	free(places);
}

/* --- where they return --- */

/* Opened when it is first wanted. */
struct image {
	struct return_sites_image returns;
	bool asked, is_open;
};

static void image_fini(struct image *im)
{
	if (im->is_open)
		return_sites_image_close(&im->returns);
}

static const struct return_sites_image *returns_of(struct search *s, struct image *im)
{
	if (!im->asked)
		im->is_open = return_sites_image_open(s->elf, &im->returns) == 0;
	im->asked = true;
	return im->is_open ? &im->returns : NULL;
}

static void put_returns(struct search *s, const struct found *f, struct image *im, struct strbuf *b)
{
	const struct event_item *item = &s->wants->items[f->item];
	uint64_t offs[RETURN_SITES_MAX];
	int n = 0;

	if (item->at_return || (item->timed && s->wants->cookies && !s->is_go))
		n = return_sites_offs(returns_of(s, im), f->place.vaddr, offs);
	n = n < 0 && n != -E2BIG ? -EOPNOTSUPP : n;
	put_u32(b, (uint32_t)n);
	for (int i = 0; i < n; i++)
		put_u64(b, offs[i]);
}

static void put_functions(struct search *s, struct strbuf *b)
{
	_cleanup_(image_fini) struct image im = { 0 };

	put_u32(b, s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct found *f = &s->found[i];

		put_u8(b, (uint8_t)f->item);
		put_u64(b, f->place.off);
		put_u32(b, f->place.best.at);
		put_u8(b, f->place.best.emulated);
		put_u8(b, f->place.at_entry.emulated);
		put_returns(s, f, &im, b);
		strbuf_add(b, f->name, f->name_len);
		put_u8(b, 0);
	}
}

/* --- all --- */

static void put_missed(struct search *s, struct strbuf *b)
{
	put_u8(b, s->is_go);
	for (uint32_t i = 0; i < s->wants->n; i++) {
		const struct event_missed *m = &s->missed[i];

		put_u32(b, m->refused);
		put_u32(b, m->too_many);
		put_u32(b, m->unplaced);
		put_u8(b, m->last_chooses);
		strbuf_add(b, s->last[i], strlen(s->last[i]) + 1);
	}
}

static void put_all(struct search *s, struct strbuf *b)
{
	put_missed(s, b);
	put_u32(b, s->n_sites);
	strbuf_add(b, s->sites.s, s->sites.len);
	put_functions(s, b);
	if (strbuf_oom(&s->sites))
		s->error = -ENOMEM;
}

static void search_file(struct search *s, struct strbuf *answer)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL, *debug = NULL;
	const struct elf_section *section;

	find_all_sites(s);
	if (wants_kind(s, EVENT_UPROBE)) {
		s->is_go = elf_file_find_section(s->elf, ".gopclntab", &section, NULL) == 0 ||
			   elf_file_find_section(s->elf, ".go.buildinfo", &section, NULL) == 0;
		elf_syms_load_wanted(s->elf, is_wanted, s, &syms, NULL);
		take_functions(s, syms);
		if (!s->n && elf_file_find_section(s->elf, ".symtab", &section, NULL) < 0)
			debug = load_debug(s);
		take_functions(s, debug);
		check_jumps(s);
	}
	put_all(s, answer);
}

int event_search(const struct alloc_image *im, const struct event_wants *wants,
		 struct strbuf *answer)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct search *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->im = im;
	s->wants = wants;
	if (elf_file_open(im->fd, im->path, &elf, NULL) < 0) {
		put_all(s, answer);
	} else {
		s->elf = elf;
		search_file(s, answer);
	}
	r = s->error;
	search_fini(s);
	free(s);
	return r;
}
