#include "collect/events/event_finds.h"

#include "collect/probes/placement.h"
#include "collect/probes/places_cell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ANSWER_BYTES_MAX = 64 << 20,
	SITE_BYTES = 1 + 8 + 8 + 1,                 /* at least */
	FUNCTION_BYTES = 1 + 8 + 4 + 1 + 1 + 4 + 1, /* at least */
	RETURNS_MAX = 64,
};

/* --- the question: cookies:1 n:1 { kind:1 at_return:1 timed:1 group event }×n --- */

static void put_wants(struct strbuf *b, const struct event_wants *w)
{
	put_u8(b, w->cookies);
	put_u8(b, (uint8_t)w->n);
	for (uint32_t i = 0; i < w->n; i++) {
		const struct event_item *item = &w->items[i];

		put_u8(b, (uint8_t)item->kind);
		put_u8(b, item->at_return);
		put_u8(b, item->timed);
		put_text(b, item->group, sizeof(item->group));
		put_text(b, item->event, sizeof(item->event));
	}
}

static int take_wants(struct bytes *b, struct event_wants *w)
{
	uint8_t n, kind;

	if (places_take_bool(b, &w->cookies) < 0 || bytes_u8(b, &n) < 0 || n > EVENT_SPECS_MAX)
		return -EBADMSG;
	w->n = n;
	for (uint32_t i = 0; i < n; i++) {
		struct event_item *item = &w->items[i];

		if (bytes_u8(b, &kind) < 0 || places_take_bool(b, &item->at_return) < 0 ||
		    places_take_bool(b, &item->timed) < 0 ||
		    places_take_text(b, item->group, sizeof(item->group)) < 0 ||
		    places_take_text(b, item->event, sizeof(item->event)) < 0)
			return -EBADMSG;
		item->kind = kind;
	}
	return 0;
}

/* --- in the cell --- */

static int read_places(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	struct event_wants wants = { 0 };
	int r = take_wants(&question, &wants);

	return r < 0 ? r : event_search(im, &wants, answer);
}

static void work(const struct cell_given *given)
{
	places_cell_work(given, read_places);
}

static const struct cell_kind cell = { .name = "events", .work = work, PLACES_LIMITS };
CELL_KIND(cell);

/* --- who asks --- */

void event_finds_fini(struct event_finds *f)
{
	free(f->sites);
	free(f->functions);
	talk_fini(&f->t);
	*f = (struct event_finds){ .t.fds = { -1, -1, -1 } };
}

uint64_t event_function_return(const struct event_function *f, int i)
{
	uint64_t off;

	memcpy(&off, f->returns.data + sizeof(off) * (size_t)i, sizeof(off));
	return off;
}

static int take_name(struct bytes *b, const char **ret)
{
	struct bytes name;

	if (bytes_cstr(b, &name) < 0 || name.len >= EVENT_NAME_MAX)
		return -EBADMSG;
	*ret = (const char *)name.data;
	return 0;
}

/* An item of this kind, and a name. */
static int take_item(struct bytes *b, const struct event_wants *w, enum event_kind kind,
		     uint32_t *ret)
{
	uint8_t item;

	if (bytes_u8(b, &item) < 0 || item >= w->n || w->items[item].kind != kind)
		return -EBADMSG;
	*ret = item;
	return 0;
}

static int take_site(struct bytes *b, uint64_t file_bytes, const struct event_wants *w,
		     struct event_site *s)
{
	if (take_item(b, w, EVENT_USDT, &s->item) < 0 || bytes_u64(b, &s->off) < 0 ||
	    bytes_u64(b, &s->semaphore_off) < 0 || take_name(b, &s->name) < 0 || !*s->name ||
	    s->off >= file_bytes || s->semaphore_off >= file_bytes)
		return -EBADMSG;
	return 0;
}

/* Some are there only where they are wanted. */
static int take_returns(struct bytes *b, uint64_t file_bytes, const struct event_item *item,
			struct event_function *f)
{
	int32_t n;

	if (bytes_u32(b, (uint32_t *)&n) < 0 || n > RETURNS_MAX ||
	    (n < 0 && n != -E2BIG && n != -EOPNOTSUPP) || (n && !item->at_return && !item->timed) ||
	    bytes_take(b, n > 0 ? sizeof(uint64_t) * (size_t)n : 0, &f->returns) < 0)
		return -EBADMSG;
	f->n_returns = n;
	for (int i = 0; i < n; i++)
		if (event_function_return(f, i) >= file_bytes)
			return -EBADMSG;
	return 0;
}

static int take_function(struct bytes *b, uint64_t file_bytes, const struct event_wants *w,
			 struct event_function *f)
{
	if (take_item(b, w, EVENT_UPROBE, &f->item) < 0 || bytes_u64(b, &f->off) < 0 ||
	    bytes_u32(b, &f->at) < 0 || places_take_bool(b, &f->emulated) < 0 ||
	    places_take_bool(b, &f->entry_emulated) < 0 ||
	    take_returns(b, file_bytes, &w->items[f->item], f) < 0 || take_name(b, &f->name) < 0 ||
	    !*f->name || f->off >= file_bytes || f->at > PLACEMENT_MAX_CODE ||
	    f->off + f->at >= file_bytes)
		return -EBADMSG;
	return 0;
}

static int take_count(struct bytes *b, size_t bytes_each, uint32_t *ret)
{
	return bytes_u32(b, ret) < 0 || *ret > EVENT_FINDS_MAX || *ret > b->len / bytes_each
		       ? -EBADMSG
		       : 0;
}

static int take_missed(struct bytes *b, struct event_missed *m)
{
	return bytes_u32(b, &m->refused) < 0 || bytes_u32(b, &m->too_many) < 0 ||
			       bytes_u32(b, &m->unplaced) < 0 ||
			       places_take_bool(b, &m->last_chooses) < 0 ||
			       take_name(b, &m->last) < 0
		       ? -EBADMSG
		       : 0;
}

static int take_all(struct bytes *b, uint64_t file_bytes, const struct event_wants *w,
		    struct event_finds *f)
{
	uint32_t n;

	if (places_take_bool(b, &f->is_go) < 0)
		return -EBADMSG;
	for (uint32_t i = 0; i < w->n; i++)
		if (take_missed(b, &f->missed[i]) < 0)
			return -EBADMSG;
	if (take_count(b, SITE_BYTES, &n) < 0)
		return -EBADMSG;
	f->sites = calloc(n + 1ul, sizeof(*f->sites));
	if (!f->sites)
		return -ENOMEM;
	for (; f->n_sites < n; f->n_sites++)
		if (take_site(b, file_bytes, w, &f->sites[f->n_sites]) < 0)
			return -EBADMSG;
	if (take_count(b, FUNCTION_BYTES, &n) < 0)
		return -EBADMSG;
	f->functions = calloc(n + 1ul, sizeof(*f->functions));
	if (!f->functions)
		return -ENOMEM;
	for (; f->n_functions < n; f->n_functions++)
		if (take_function(b, file_bytes, w, &f->functions[f->n_functions]) < 0)
			return -EBADMSG;
	return b->len ? -EBADMSG : 0;
}

int event_finds_take(struct bytes answer, uint64_t file_bytes, const struct event_wants *wants,
		     struct event_finds *ret)
{
	int r;

	*ret = (struct event_finds){ .t.fds = { -1, -1, -1 } };
	r = take_all(&answer, file_bytes, wants, ret);
	if (r < 0)
		event_finds_fini(ret);
	return r;
}

int event_finds_ask(const struct alloc_image *im, const struct event_wants *wants,
		    struct event_finds *ret, struct err *e)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	int r;

	*ret = (struct event_finds){ .t.fds = { -1, -1, -1 } };
	put_wants(&q, wants);
	r = places_cell_ask(&cell, im, &q, ANSWER_BYTES_MAX, &t, e);
	if (r < 0)
		return r;
	r = event_finds_take(talk_bytes(&t), places_file_bytes(im), wants, ret);
	if (r < 0)
		return r == -ENOMEM ? err_set(e, r, "out of memory") : places_cell_lied(im, e);
	ret->t = t;
	t = (struct talk){ .fds = { -1, -1, -1 } };
	return 0;
}
