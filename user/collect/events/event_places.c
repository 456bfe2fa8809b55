#include "base/cleanup.h"
#include "base/grow.h"
#include "base/hash.h"
#include "collect/events/event_parts.h"
#include "collect/probes/function_place.h"
#include "collect/probes/return_sites.h"
#include "collect/probes/uprobes.h"
#include "elf/debug_link.h"
#include "elf/demangle.h"
#include "elf/sdt.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- is it the file that an item names? --- */

static const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "c" and "libc" for libc.so.6, "python3" for python3.11. */
static bool has_name(const char *path, const char *name)
{
	const char *base = path_base(path);
	size_t len = strlen(name);

	if (strncmp(base, "lib", 3) == 0 && strncmp(name, "lib", 3) != 0 &&
	    strncmp(base + 3, name, len) == 0)
		base += 3;
	return strncmp(base, name, len) == 0 && strchr(".-", base[len]);
}

static bool same(const struct stat *a, const struct stat *b)
{
	/* overlayfs and btrfs show one file under two devices. */
	return a->st_ino == b->st_ino &&
	       (a->st_dev == b->st_dev ||
		(a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
		 a->st_mtim.tv_nsec == b->st_mtim.tv_nsec));
}

/* By its path as the target has it, or as we do; the file may be mapped by another path. */
static bool is_file(const struct event_probes *ep, const struct event_file *f, const char *name)
{
	const char *path = dict_str(ep->dict, dict_module_get(ep->dict, f->module)->path);
	_cleanup_(closep) int beside = -1;
	struct stat mapped, named;

	if (!*name)
		return true;
	if (!strchr(name, '/'))
		return has_name(path, name);
	if (strcmp(path, name) == 0)
		return true;
	if (fstat(f->fd, &mapped) < 0)
		return false;
	if (stat(name, &named) == 0 && same(&mapped, &named))
		return true;
	beside = *name == '/' ? proc_table_open_beside(ep->procs, f->module, name, false) : -1;
	return beside >= 0 && fstat(beside, &named) == 0 && same(&mapped, &named);
}

bool event_may_be_of(const struct event_spec *spec, const char *path)
{
	return spec->kind > EVENT_TRACEPOINT && (!*spec->file || strcmp(spec->file, path) == 0 ||
						 has_name(path, path_base(spec->file)));
}

/* --- events of a file --- */

struct search {
	struct event_probes *ep;
	struct event_file *f;
	struct elf_file *elf;
	bool wants[EVENT_SPECS_MAX]; /* items that are of this file */
	bool is_go;
	int error;
};

struct event_named {
	UT_hash_handle hh;
	uint32_t number;
	char key[]; /* the item, then the name */
};

enum { NAME_MAX_BYTES = 512 };

struct event_key_of_name {
	size_t len;
	char bytes[sizeof(uint32_t) + NAME_MAX_BYTES];
};

static struct event_key_of_name key_of(uint32_t spec, const char *name)
{
	struct event_key_of_name key;
	size_t len = strnlen(name, NAME_MAX_BYTES);

	memcpy(key.bytes, &spec, sizeof(spec));
	memcpy(key.bytes + sizeof(spec), name, len);
	key.len = sizeof(spec) + len;
	return key;
}

static struct event_named *find_named(struct event_probes *ep, const struct event_key_of_name *key)
{
	struct event_named *found;

	HASH_FIND(hh, ep->by_name, key->bytes, key->len, found);
	return found;
}

void event_places_free(struct event_probes *ep)
{
	hash_free(ep->by_name);
}

/* Is there no room for a further event of that name? Patterns have matches by the thousand: this is cheap. */
static bool is_refused(struct search *s, uint32_t spec, const char *name)
{
	struct event_key_of_name key = key_of(spec, name);

	if (s->ep->n < MS_EVENTS_MAX || find_named(s->ep, &key))
		return false;
	event_failed(s->ep, spec, 1, "there are more than %d events in all", MS_EVENTS_MAX);
	return true;
}

static int add_named(struct search *s, uint32_t spec, const char *name)
{
	struct event_key_of_name key = key_of(spec, name);
	struct event_named *e = calloc(1, sizeof(*e) + key.len);
	int number = e ? event_add(s->ep, spec, name, 0) : -ENOMEM;

	if (number >= 0) {
		e->number = (uint32_t)number;
		memcpy(e->key, key.bytes, key.len);
		HASH_ADD_KEYPTR(hh, s->ep->by_name, e->key, key.len, e);
	}
	if (number < 0 || !hash_added(e)) {
		free(e);
		s->error = -ENOMEM;
		return -ENOMEM;
	}
	return number;
}

/* The number of an item's event of that name, which may be new; < 0: it has none. */
static int number_of(struct search *s, uint32_t spec, const char *name)
{
	struct event_key_of_name key = key_of(spec, name);
	const struct event_named *known = find_named(s->ep, &key);
	int number;

	if (is_refused(s, spec, name))
		return -1;
	number = known ? (int)known->number : add_named(s, spec, name);
	if (number >= 0 && !event_has_number(s->ep, (uint32_t)number)) {
		event_failed(s->ep, spec, 1,
			     "this kernel (before 5.15) can have one function or site at a time");
		return -1;
	}
	return number >= 0 && event_set_row(s->ep, (uint32_t)number) == 0 ? number : -1;
}

static void place_add(struct search *s, struct event_place place)
{
	struct event_file *f = s->f;

	if (!GROW(f->places, f->n, f->cap))
		s->error = -ENOMEM;
	else
		f->places[f->n++] = place;
}

/* --- sites of USDT --- */

static void find_sites(struct search *s, uint32_t spec, const struct sdt_notes *notes)
{
	const struct event_spec *want = &s->ep->specs[spec];
	char name[200];
	int number;

	for (uint32_t i = 0; i < sdt_notes_count(notes) && !s->error; i++) {
		const struct sdt_note *note = sdt_notes_at(notes, i);

		if (!event_matches(want->group, note->provider) ||
		    !event_matches(want->event, note->name))
			continue;
		if (uprobes_ends_children(s->f->fd, note->off)) {
			event_failed(
				s->ep, spec, 1,
				"it is a nop of five bytes, and this kernel ends forked children "
				"of who runs into a probe there");
			continue;
		}
		snprintf(name, sizeof(name), "%s:%s", note->provider, note->name);
		number = number_of(s, spec, name);
		if (number >= 0)
			place_add(s, (struct event_place){ (uint32_t)number, note->off,
							   note->semaphore_off, false });
	}
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

static bool is_named(const struct event_spec *spec, const char *name)
{
	return event_matches(spec->event, name) || matches_demangled(spec->event, name);
}

/* Symbols that no item asks for are left out. */
static bool is_wanted(void *ctx, const char *name)
{
	const struct search *s = ctx;
	char text[512];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "@"), name);
	for (uint32_t i = 0; i < s->ep->n_specs; i++)
		if (s->wants[i] && s->ep->specs[i].kind == EVENT_UPROBE &&
		    is_named(&s->ep->specs[i], text))
			return true;
	return false;
}

static int open_debug(void *ctx, const char *path, bool host)
{
	const struct search *s = ctx;

	return proc_table_open_beside(s->ep->procs, s->f->module, path, host);
}

/* Where the file is stripped, those of its debug file or of its .gnu_debugdata. NULL: none. */
static struct elf_syms *load_debug(struct search *s)
{
	_cleanup_(debug_file_freep) struct debug_file *debug = NULL;
	struct elf_file *inner = NULL;
	struct elf_syms *syms = NULL;
	uint8_t *bytes = NULL;

	if (debug_link_find(s->elf, open_debug, s, &debug) == 0)
		elf_syms_load_wanted(debug->elf, is_wanted, s, &syms, NULL);
	else if (debug_data_open(s->elf, &bytes, &inner, NULL) == 0)
		elf_syms_load_wanted(inner, is_wanted, s, &syms, NULL);
	elf_file_close(inner);
	free(bytes);
	return syms;
}

/* A function of an item, before the jumps of its file are known. */
struct found {
	uint32_t number;
	struct function_place place;
};

/* Where an item's function is: an alias is at the same place. */
struct taken {
	UT_hash_handle hh;
	struct {
		uint64_t off, spec;
	} key;
};

struct found_list {
	struct found *items;
	uint32_t n, cap;
	struct taken *taken;
};

static void found_fini(struct found_list *l)
{
	hash_free(l->taken);
	free(l->items);
}

/* false: it was taken before. */
static bool take_place(struct search *s, struct found_list *l, uint64_t off, uint32_t spec)
{
	struct taken *taken, at = { .key = { off, spec } };

	HASH_FIND(hh, l->taken, &at.key, sizeof(at.key), taken);
	if (taken)
		return false;
	if (!hash_new(l->taken, key, &at.key))
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

static void take_function(struct search *s, struct found_list *l, uint32_t spec,
			  const struct elf_sym *sym)
{
	struct placement_ask ask = { .returns = true, .moved = uprobes_cookies() };
	struct elf_sym from = *sym;
	struct found found;
	char name[512];
	int number;

	snprintf(name, sizeof(name), "%.*s", (int)sym->name_len, sym->name);
	if (!is_named(&s->ep->specs[spec], name) || strstr(name, ".cold"))
		return; /* a part of a function is none */
	if (is_refused(s, spec, name))
		return;
	from.vaddr += stack_check_len(s, sym);
	from.size -= from.vaddr - sym->vaddr;
	if (!function_place_find(s->elf, &from, ask, &found.place)) {
		event_failed(s->ep, spec, 1,
			     sym->ifunc ? "%s chooses another function when the program starts"
					: "%s is not in the file",
			     name);
		return;
	}
	if (!take_place(s, l, found.place.off, spec))
		return; /* an alias */
	number = number_of(s, spec, name);
	if (number < 0)
		return;
	found.number = (uint32_t)number;
	if (!GROW(l->items, l->n, l->cap))
		s->error = -ENOMEM;
	else
		l->items[l->n++] = found;
}

static void take_functions(struct search *s, struct found_list *l, const struct elf_syms *syms)
{
	for (uint32_t i = 0; syms && i < elf_syms_count(syms); i++) {
		struct elf_sym sym = elf_syms_at(syms, i);

		for (uint32_t k = 0; k < s->ep->n_specs && !s->error; k++)
			if (s->wants[k] && s->ep->specs[k].kind == EVENT_UPROBE)
				take_function(s, l, k, &sym);
	}
}

static void add_entry(struct search *s, const struct found *found)
{
	const struct function_place *p = &found->place;
	struct event *ev = &s->ep->events[found->number];
	const struct placement *at = &p->best;

	if (uprobes_ends_children(s->f->fd, p->off + at->at))
		at = &p->at_entry;
	if (uprobes_ends_children(s->f->fd, p->off + at->at)) {
		event_failed(s->ep, ev->spec, 1,
			     "%s begins with a nop of five bytes, and this kernel "
			     "ends forked children of who runs into a probe there",
			     ev->name);
		return;
	}
	ev->at_entry = true;
	ev->stepped |= !at->emulated;
	event_set_row(s->ep, found->number);
	place_add(s, (struct event_place){ .number = found->number, .off = p->off + at->at });
}

struct returns {
	uint64_t offs[RETURN_SITES_MAX];
	int n;
};

/*
 * A return probe would replace the return address, which breaks exceptions, coroutines and Go: the function's return instructions
 * are probed. NULL, or why they are not.
 */
static const char *find_returns(const struct found *found, const struct return_sites_image *image,
				struct returns *r)
{
	r->n = return_sites_offs(image, found->place.vaddr, r->offs);
	return r->n >= 0        ? NULL
	       : r->n == -E2BIG ? "it returns in too many places"
				: "where it returns is not known";
}

static void add_returns(struct search *s, uint32_t number, const struct returns *r, bool is_return)
{
	for (int i = 0; i < r->n; i++)
		place_add(s, (struct event_place){
				     .number = number, .off = r->offs[i], .is_return = is_return });
}

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

/*
 * Functions of one name, in other files or static ones, are one event. Where some can be timed and others not, each kind is one: the
 * kind that is found later has the name of its file as well.
 */
static int number_of_kind(struct search *s, uint32_t number, const char *untimed)
{
	struct event *ev = &s->ep->events[number];
	const char *path = dict_str(s->ep->dict, dict_module_get(s->ep->dict, s->f->module)->path);
	char name[512];
	int other;

	if (!ev->kind_known || !ev->untimed == !untimed) {
		ev->untimed = ev->kind_known ? ev->untimed : untimed;
		ev->kind_known = true;
		return (int)number;
	}
	snprintf(name, sizeof(name), "%.200s:%.300s", path_base(path), ev->name);
	other = number_of(s, ev->spec, name);
	if (other >= 0) {
		s->ep->events[other].untimed = untimed;
		s->ep->events[other].kind_known = true;
	}
	return other;
}

/* Stacks of goroutines are moved while their functions run: a call is not at the place where it began. */
static bool add_timed(struct search *s, struct found *found, struct image *im)
{
	struct returns returns = { 0 };
	const char *why = !uprobes_cookies()
				  ? "this kernel (before 5.15) knows no cookies of probes"
			  : s->is_go ? "Go moves stacks while their functions run"
				     : find_returns(found, returns_of(s, im), &returns);
	int number = number_of_kind(s, found->number, why);

	if (number < 0)
		return false;
	found->number = (uint32_t)number;
	add_returns(s, found->number, &returns, true);
	return true;
}

static void add_function(struct search *s, struct found *found, struct image *im)
{
	struct event *ev = &s->ep->events[found->number];
	const struct event_spec *spec = &s->ep->specs[ev->spec];
	struct returns returns;
	const char *why;

	if (!spec->at_return) {
		if (!spec->timed || add_timed(s, found, im))
			add_entry(s, found);
		return;
	}
	ev->stepped = true;
	/* The return address is on top of the stack, as where the function began. */
	ev->at_entry = true;
	event_set_row(s->ep, found->number);
	why = find_returns(found, returns_of(s, im), &returns);
	if (why)
		event_failed(s->ep, ev->spec, 1, "%s: %s", ev->name, why);
	else
		add_returns(s, found->number, &returns, false);
}

static void add_functions(struct search *s, struct found_list *l)
{
	_cleanup_(image_fini) struct image im = { 0 };

	for (uint32_t i = 0; i < l->n && !s->error; i++)
		add_function(s, &l->items[i], &im);
}

static void check_jumps(struct search *s, struct found_list *l)
{
	struct function_place **places = calloc(l->n + 1ul, sizeof(struct function_place *));

	for (uint32_t i = 0; places && i < l->n; i++)
		places[i] = &l->items[i].place;
	if (places)
		function_places_check(s->elf, places, l->n);
	else
		s->error = -ENOMEM;
	free(places);
}

static void find_functions(struct search *s)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL, *debug = NULL;
	_cleanup_(found_fini) struct found_list l = { 0 };
	const struct elf_section *section;

	s->is_go = elf_file_find_section(s->elf, ".gopclntab", &section, NULL) == 0 ||
		   elf_file_find_section(s->elf, ".go.buildinfo", &section, NULL) == 0;
	elf_syms_load_wanted(s->elf, is_wanted, s, &syms, NULL);
	take_functions(s, &l, syms);
	if (!l.n && elf_file_find_section(s->elf, ".symtab", &section, NULL) < 0)
		debug = load_debug(s);
	take_functions(s, &l, debug);
	if (!l.n || s->error)
		return;
	check_jumps(s, &l);
	add_functions(s, &l);
}

/* --- a file --- */

int event_places_find(struct event_probes *ep, struct event_file *f)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(sdt_notes_freep) struct sdt_notes *notes = NULL;
	struct search s = { .ep = ep, .f = f };
	bool sites = false, functions = false;

	for (uint32_t i = 0; i < ep->n_specs; i++) {
		enum event_kind kind = ep->specs[i].kind;

		s.wants[i] = kind > EVENT_TRACEPOINT && is_file(ep, f, ep->specs[i].file);
		sites |= s.wants[i] && kind == EVENT_USDT;
		functions |= s.wants[i] && kind == EVENT_UPROBE;
	}
	if ((!sites && !functions) || elf_file_open(f->fd, "", &elf, NULL) < 0)
		return 0;
	s.elf = elf;
	if (sites && sdt_notes_load(elf, &notes, NULL) == 0)
		for (uint32_t i = 0; i < ep->n_specs; i++)
			if (s.wants[i] && ep->specs[i].kind == EVENT_USDT)
				find_sites(&s, i, notes);
	if (functions)
		find_functions(&s);
	return s.error;
}
