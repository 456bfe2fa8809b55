#include "heap/snapshot/sites.h"

#include "base/hash.h"
#include "base/large.h"
#include "base/strbuf.h"
#include "heap/snapshot/snapshot.h"

#include <stdio.h>
#include <string.h>

struct text_row {
	uint64_t key;
	uint32_t at;
	UT_hash_handle hh;
};

struct site_row {
	struct site key;
	uint32_t number;
	UT_hash_handle hh;
};

struct sites_own {
	struct strbuf texts;
	struct text_row *by_text;
	struct site_row *by_place;
	uint32_t site_room, stack_room, frame_room;
};

/* --- made --- */

/* Room for `more` rows behind `n`; false: out of memory. */
static bool make_room(void *rows_ptr, size_t size, uint32_t n, uint32_t more, uint32_t *room)
{
	void **rows = rows_ptr, *grown;
	uint64_t wanted = (uint64_t)n + more;

	if (wanted <= *room)
		return true;
	wanted = wanted < 64 ? 64 : 2 * wanted;
	grown = wanted < UINT32_MAX ? reallocarray(*rows, wanted, size) : NULL;
	if (!grown)
		return false;
	*rows = grown;
	*room = (uint32_t)wanted;
	return true;
}

struct sites *sites_new(uint64_t nodes)
{
	_cleanup_(sites_freep) struct sites *s = calloc(1, sizeof(*s));
	struct site none = { 0 };

	if (!s)
		return NULL;
	s->own = calloc(1, sizeof(*s->own));
	s->stack_of = large_alloc(nodes + 1, sizeof(*s->stack_of));
	s->age_ms = large_alloc(nodes + 1, sizeof(*s->age_ms));
	if (!s->own || !s->stack_of || !s->age_ms ||
	    !make_room(&s->site, sizeof(*s->site), 0, 1, &s->own->site_room) ||
	    !make_room(&s->stack, sizeof(*s->stack), 0, 1, &s->own->stack_room))
		return NULL;
	for (uint64_t i = 0; i < nodes; i++)
		s->age_ms[i] = SITES_OLDER;
	strbuf_add(&s->own->texts, "", 1);
	s->site[s->n_sites++] = none;
	s->stack[s->n_stacks++] = (struct site_stack){ 0 };
	s->texts = s->own->texts.s;
	s->n_texts = s->own->texts.len;
	return strbuf_oom(&s->own->texts) ? NULL : TAKE_PTR(s);
}

void sites_free(struct sites *s)
{
	if (!s)
		return;
	if (s->own) {
		strbuf_free(&s->own->texts);
		hash_free(s->own->by_text);
		hash_free(s->own->by_place);
		free(s->own);
	}
	if (!s->stored) {
		free(s->site);
		free(s->stack);
		free(s->frame);
		large_free(s->stack_of);
		large_free(s->age_ms);
	}
	free(s);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* `len` bytes of it. false: out of memory. */
static bool text_of(struct sites *s, const char *text, size_t len, uint32_t *ret_at)
{
	struct sites_own *own = s->own;
	uint64_t key = content_hash(text, len);
	struct text_row *row;

	*ret_at = 0;
	if (!len)
		return true;
	row = hash_get(own->by_text, key, &key);
	if (!row || own->texts.len + len >= UINT32_MAX)
		return false;
	if (!row->at) {
		uint32_t at = (uint32_t)own->texts.len;

		strbuf_add_clean(&own->texts, text, len);
		strbuf_add(&own->texts, "", 1);
		if (strbuf_oom(&own->texts))
			return false;
		row->at = at;
		s->texts = own->texts.s;
		s->n_texts = own->texts.len;
	}
	*ret_at = row->at;
	return true;
}

/* Functions of interpreted languages have their file behind them, "load (app.py)", which is known here anyway. */
static size_t length_without_file(const char *function, const char *file)
{
	const char *base = base_name(file);
	size_t n = strlen(function), len = strlen(base);

	if (len && n > len + 3 && strncmp(function + n - len - 1, base, len) == 0 &&
	    function[n - 1] == ')' && strncmp(function + n - len - 3, " (", 2) == 0)
		return n - len - 3;
	return n;
}

static bool place_of(struct sites *s, const struct site_place *from, struct site *ret)
{
	const char *function = from->function ? from->function : "",
		   *file = from->file ? from->file : "", *module = from->module ? from->module : "";

	*ret = (struct site){ .line = from->line };
	return text_of(s, function, length_without_file(function, file), &ret->function) &&
	       text_of(s, file, strlen(file), &ret->file) &&
	       text_of(s, module, strlen(module), &ret->module);
}

/* 0: out of memory. */
static uint32_t intern(struct sites *s, const struct site_place *from)
{
	struct site_row *row;
	struct site key;

	if (!place_of(s, from, &key))
		return 0;
	row = hash_get(s->own->by_place, key, &key);
	if (!row)
		return 0;
	if (!row->number) {
		if (!make_room(&s->site, sizeof(*s->site), s->n_sites, 1, &s->own->site_room))
			return 0;
		s->site[s->n_sites] = key;
		row->number = s->n_sites++;
	}
	return row->number;
}

uint32_t sites_add(struct sites *s, const struct site_place *site, const struct site_place *frames,
		   uint32_t n)
{
	struct site_stack stack = { intern(s, site), s->n_frames, n, 0 };

	if (!stack.site ||
	    !make_room(&s->stack, sizeof(*s->stack), s->n_stacks, 1, &s->own->stack_room) ||
	    !make_room(&s->frame, sizeof(*s->frame), s->n_frames, n, &s->own->frame_room))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (!place_of(s, &frames[i], &s->frame[s->n_frames + i]))
			return 0;
	s->n_frames += n;
	s->stack[s->n_stacks] = stack;
	return s->n_stacks++;
}

void sites_set(struct snapshot *s, uint32_t node, uint32_t stack, uint64_t age_ns)
{
	struct sites *to = s->sites;
	uint64_t ms = age_ns / 1000000;

	if (stack && !to->stack_of[node]) {
		to->known++;
		to->known_bytes += snapshot_bytes(s, node);
	}
	to->stack_of[node] = stack;
	to->age_ms[node] = ms < SITES_OLDER ? (uint32_t)ms : SITES_OLDER - 1;
}

/* --- names --- */

const char *sites_text(const struct sites *s, uint32_t at)
{
	return at < s->n_texts ? s->texts + at : "";
}

void place_name(const struct sites *s, const struct site *of, char name[SITE_NAME_MAX])
{
	const char *file = base_name(sites_text(s, of->file)), *module = sites_text(s, of->module);

	if (*file && of->line)
		snprintf(name, SITE_NAME_MAX, "%.400s (%.90s:%u)", sites_text(s, of->function),
			 file, of->line);
	else if (*module)
		snprintf(name, SITE_NAME_MAX, "%.400s (%.100s)", sites_text(s, of->function),
			 module);
	else
		snprintf(name, SITE_NAME_MAX, "%.500s", sites_text(s, of->function));
}

void sites_name(const struct sites *s, uint32_t site, char name[SITE_NAME_MAX])
{
	name[0] = '\0';
	if (site)
		place_name(s, &s->site[site], name);
}

/* As a whole or how it ends behind a dot or colons, up to `len`. */
static bool ends_so(const char *name, size_t len, const char *wanted)
{
	size_t n = strlen(wanted);
	char before;

	if (!n || n > len || strncmp(name + len - n, wanted, n) != 0)
		return false;
	before = n < len ? name[len - n - 1] : '.';
	return before == '.' || before == ':';
}

bool site_is_named(const struct sites *s, const struct site *place, const char *wanted)
{
	const char *function = sites_text(s, place->function),
		   *file = base_name(sites_text(s, place->file));
	size_t n = strlen(file);
	char line[16];

	snprintf(line, sizeof(line), ":%u", place->line);
	if (n && strncmp(wanted, file, n) == 0 && (!wanted[n] || strcmp(wanted + n, line) == 0))
		return true;
	return ends_so(function, strlen(function), wanted) ||
	       ends_so(function, strcspn(function, "("), wanted);
}
