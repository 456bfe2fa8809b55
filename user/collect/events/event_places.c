#include "base/cleanup.h"
#include "base/grow.h"
#include "base/hash.h"
#include "collect/events/event_finds.h"
#include "collect/events/event_parts.h"
#include "collect/probes/uprobes.h"

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
	struct event_wants wants;        /* items that are of this file, … */
	uint32_t specs[EVENT_SPECS_MAX]; /* … and what they are of all */
	bool is_go;
	int error;
};

struct event_named {
	UT_hash_handle hh;
	uint32_t number;
	char key[]; /* the item, then the name */
};

struct event_key_of_name {
	size_t len;
	char bytes[sizeof(uint32_t) + EVENT_NAME_MAX];
};

static struct event_key_of_name key_of(uint32_t spec, const char *name)
{
	struct event_key_of_name key;
	size_t len = strnlen(name, EVENT_NAME_MAX);

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

static void say_refused(struct search *s, uint32_t spec, uint32_t n)
{
	event_failed(s->ep, spec, n, "there are more than %d events in all", MS_EVENTS_MAX);
}

/* Is there no room for a further event of that name? Patterns have matches by the thousand: this is cheap. */
static bool is_refused(struct search *s, uint32_t spec, const char *name)
{
	struct event_key_of_name key = key_of(spec, name);

	if (s->ep->n < MS_EVENTS_MAX || find_named(s->ep, &key))
		return false;
	say_refused(s, spec, 1);
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

static void add_site(struct search *s, const struct event_site *site)
{
	uint32_t spec = s->specs[site->item];
	int number;

	if (uprobes_ends_children(s->f->fd, site->off)) {
		event_failed(s->ep, spec, 1,
			     "it is a nop of five bytes, and this kernel ends forked children "
			     "of who runs into a probe there");
		return;
	}
	number = number_of(s, spec, site->name);
	if (number >= 0)
		place_add(s, (struct event_place){ (uint32_t)number, site->off, site->semaphore_off,
						   false });
}

/* --- functions --- */

static void add_entry(struct search *s, const struct event_function *f, uint32_t number)
{
	struct event *ev = &s->ep->events[number];
	uint64_t off = f->off + f->at;
	bool emulated = f->emulated;

	if (f->at && uprobes_ends_children(s->f->fd, off)) {
		off = f->off;
		emulated = f->entry_emulated;
	}
	if (uprobes_ends_children(s->f->fd, off)) {
		event_failed(s->ep, ev->spec, 1,
			     "%s begins with a nop of five bytes, and this kernel "
			     "ends forked children of who runs into a probe there",
			     ev->name);
		return;
	}
	ev->at_entry = true;
	ev->stepped |= !emulated;
	event_set_row(s->ep, number);
	place_add(s, (struct event_place){ .number = number, .off = off });
}

/*
 * A return probe would replace the return address, which breaks exceptions, coroutines and Go: the function's return instructions
 * are probed. NULL, or why they are not.
 */
static const char *why_no_returns(const struct event_function *f)
{
	return f->n_returns >= 0        ? NULL
	       : f->n_returns == -E2BIG ? "it returns in too many places"
					: "where it returns is not known";
}

static void add_returns(struct search *s, uint32_t number, const struct event_function *f,
			bool is_return)
{
	for (int i = 0; i < f->n_returns; i++)
		place_add(s, (struct event_place){ .number = number,
						   .off = event_function_return(f, i),
						   .is_return = is_return });
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
static int add_timed(struct search *s, const struct event_function *f, uint32_t number)
{
	const char *why = !uprobes_cookies()
				  ? "this kernel (before 5.15) knows no cookies of probes"
			  : s->is_go ? "Go moves stacks while their functions run"
				     : why_no_returns(f);
	int timed = number_of_kind(s, number, why);

	if (timed >= 0 && !why)
		add_returns(s, (uint32_t)timed, f, true);
	return timed;
}

static void add_function(struct search *s, const struct event_function *f)
{
	int number = number_of(s, s->specs[f->item], f->name);
	const struct event_spec *spec;
	struct event *ev;
	const char *why;

	if (number < 0)
		return;
	ev = &s->ep->events[number];
	spec = &s->ep->specs[ev->spec];
	if (!spec->at_return) {
		if (spec->timed)
			number = add_timed(s, f, (uint32_t)number);
		if (number >= 0)
			add_entry(s, f, (uint32_t)number);
		return;
	}
	ev->stepped = true;
	/* The return address is on top of the stack, as where the function began. */
	ev->at_entry = true;
	event_set_row(s->ep, (uint32_t)number);
	why = why_no_returns(f);
	if (why)
		event_failed(s->ep, ev->spec, 1, "%s: %s", ev->name, why);
	else
		add_returns(s, (uint32_t)number, f, false);
}

/* --- a file --- */

static void want(struct search *s, uint32_t i)
{
	const struct event_spec *spec = &s->ep->specs[i];
	struct event_item *item = &s->wants.items[s->wants.n];

	item->kind = spec->kind;
	item->at_return = spec->at_return;
	item->timed = spec->timed;
	memcpy(item->group, spec->group, sizeof(item->group));
	memcpy(item->event, spec->event, sizeof(item->event));
	s->specs[s->wants.n++] = i;
}

static int open_debug(void *ctx, const char *path, bool host)
{
	const struct search *s = ctx;

	return proc_table_open_beside(s->ep->procs, s->f->module, path, host);
}

static void say_missed(struct search *s, const struct event_finds *finds)
{
	for (uint32_t i = 0; i < s->wants.n; i++) {
		const struct event_missed *m = &finds->missed[i];

		if (m->unplaced)
			event_failed(s->ep, s->specs[i], m->unplaced,
				     m->last_chooses
					     ? "%s chooses another function when the program starts"
					     : "%s is not in the file",
				     m->last);
		if (m->too_many)
			event_failed(s->ep, s->specs[i], m->too_many,
				     "there are more than %d in one file", EVENT_FINDS_MAX);
		if (m->refused)
			say_refused(s, s->specs[i], m->refused);
	}
}

static void add_all(struct search *s, const struct event_finds *finds)
{
	s->is_go = finds->is_go;
	for (uint32_t i = 0; i < finds->n_sites && !s->error; i++)
		add_site(s, &finds->sites[i]);
	for (uint32_t i = 0; i < finds->n_functions && !s->error; i++)
		add_function(s, &finds->functions[i]);
	say_missed(s, finds);
}

int event_places_find(struct event_probes *ep, struct event_file *f)
{
	struct search s = { .ep = ep, .f = f, .wants.cookies = uprobes_cookies() };
	struct alloc_image im = { f->fd,
				  dict_str(ep->dict, dict_module_get(ep->dict, f->module)->path),
				  open_debug, &s };
	struct event_finds finds;
	struct err e;

	for (uint32_t i = 0; i < ep->n_specs; i++)
		if (ep->specs[i].kind > EVENT_TRACEPOINT && is_file(ep, f, ep->specs[i].file))
			want(&s, i);
	if (!s.wants.n)
		return 0;
	if (event_finds_ask(&im, &s.wants, &finds, &e) == 0)
		add_all(&s, &finds);
	else
		for (uint32_t i = 0; i < s.wants.n; i++)
			event_failed(ep, s.specs[i], 1, "%s", e.msg);
	event_finds_fini(&finds);
	return s.error;
}
