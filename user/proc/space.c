#include "proc/space.h"

#include <errno.h>
#include <string.h>

struct space *space_new(void)
{
	struct space *s = calloc(1, sizeof(*s));

	if (s)
		s->refs = 1;
	return s;
}

struct space *space_ref(struct space *s)
{
	s->refs++;
	return s;
}

void space_unref(struct space *s)
{
	if (!s || --s->refs)
		return;
	free(s->now);
	free(s->past);
	free(s);
}

static struct mapping *copy_of(const struct mapping *m, uint32_t n)
{
	struct mapping *copy = malloc((n ? n : 1) * sizeof(*copy));

	if (copy && n)
		memcpy(copy, m, n * sizeof(*copy));
	return copy;
}

static struct space *space_copy(const struct space *s)
{
	_cleanup_(space_unrefp) struct space *copy = space_new();

	if (!copy)
		return NULL;
	copy->gen = s->gen;
	copy->now = copy_of(s->now, s->n);
	copy->n = copy->cap = s->n;
	copy->past = copy_of(s->past, s->n_past);
	copy->n_past = copy->cap_past = s->n_past;
	return copy->now && copy->past ? TAKE_PTR(copy) : NULL;
}

/* Makes *s a space of the caller's own. */
static int unshare(struct space **s)
{
	struct space *copy;

	if ((*s)->refs == 1)
		return 0;
	copy = space_copy(*s);
	if (!copy)
		return -ENOMEM;
	space_unref(*s);
	*s = copy;
	return 0;
}

/* The first mapping that ends behind `addr`. */
static uint32_t first_behind(const struct space *s, uint64_t addr)
{
	uint32_t lo = 0, hi = s->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->now[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool space_meets(const struct space *s, uint64_t addr, uint64_t end)
{
	uint32_t i = first_behind(s, addr);

	return i < s->n && s->now[i].addr < end;
}

bool space_holds(const struct space *s, uint64_t addr, uint64_t end)
{
	uint32_t i = first_behind(s, addr);

	return i < s->n && s->now[i].merges && s->now[i].addr <= addr && end <= s->now[i].end;
}

/* Do both give every address the same place in the same image? */
static bool agree(const struct mapping *a, const struct mapping *b)
{
	return a->image == b->image && (a->merges || a->addr - a->off == b->addr - b->off);
}

static int reserve(struct mapping **list, uint32_t *cap, uint32_t want)
{
	uint32_t n = *cap * 2 > want ? *cap * 2 : want;
	struct mapping *grown;

	if (want <= *cap)
		return 0;
	grown = reallocarray(*list, n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*list = grown;
	*cap = n;
	return 0;
}

/* Sets the mappings [from, to) aside as those of the generations up to now. */
static int keep_past(struct space *s, uint32_t from, uint32_t to)
{
	uint32_t n = to - from;

	if (n > SPACE_PAST_MAX)
		n = SPACE_PAST_MAX;
	if (s->n_past + n > SPACE_PAST_MAX) {
		uint32_t drop = s->n_past + n - SPACE_PAST_MAX / 2;

		if (drop > s->n_past)
			drop = s->n_past;
		memmove(s->past, s->past + drop, (s->n_past - drop) * sizeof(*s->past));
		s->n_past -= drop;
	}
	if (reserve(&s->past, &s->cap_past, s->n_past + n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		s->past[s->n_past] = s->now[from + i];
		s->past[s->n_past++].last = s->gen;
	}
	return 0;
}

/* Replaces the mappings [from, to) by `n` others; room has been made. */
static void splice(struct space *s, uint32_t from, uint32_t to, const struct mapping *with,
		   uint32_t n)
{
	memmove(s->now + from + n, s->now + to, (s->n - to) * sizeof(*s->now));
	memcpy(s->now + from, with, n * sizeof(*with));
	s->n = s->n - (to - from) + n;
}

/* The new mapping and what stays visible of the old ones on both sides of it. */
static void cover(struct space *s, uint32_t from, uint32_t to, const struct mapping *m)
{
	struct mapping with[3];
	uint32_t n = 0;

	if (from < to && s->now[from].addr < m->addr) {
		with[n] = s->now[from];
		with[n++].end = m->addr;
	}
	with[n++] = *m;
	if (from < to && s->now[to - 1].end > m->end) {
		with[n] = s->now[to - 1];
		with[n].off += m->end - with[n].addr;
		with[n++].addr = m->end;
	}
	splice(s, from, to, with, n);
}

/* One mapping over [from, to) and `m`, all of which agree. */
static void merge(struct space *s, uint32_t from, uint32_t to, const struct mapping *m)
{
	struct mapping all = s->now[from];

	if (m->addr < all.addr) {
		all.addr = m->addr;
		all.off = m->off;
	}
	for (uint32_t i = from; i < to; i++) {
		if (s->now[i].end > all.end)
			all.end = s->now[i].end;
	}
	if (m->end > all.end)
		all.end = m->end;
	splice(s, from, to, &all, 1);
}

int space_map(struct space **sp, const struct mapping *mapping)
{
	struct mapping m = *mapping;
	bool same = true;
	struct space *s;
	uint32_t from, to;

	if (m.addr >= m.end)
		return 0;
	if (unshare(sp) < 0)
		return -ENOMEM;
	s = *sp;
	from = to = first_behind(s, m.addr);
	while (to < s->n && s->now[to].addr < m.end)
		same = agree(&s->now[to++], &m) && same;
	/* Memory without a file grows piece by piece. */
	if (m.merges && same) {
		if (from > 0 && s->now[from - 1].end == m.addr && agree(&s->now[from - 1], &m))
			from--;
		if (to < s->n && s->now[to].addr == m.end && agree(&s->now[to], &m))
			to++;
	}
	if (same && from < to) {
		merge(s, from, to, &m);
		return 0;
	}
	if (s->n + 2 > SPACE_MAX)
		return -ENOSPC;
	if (reserve(&s->now, &s->cap, s->n + 2) < 0)
		return -ENOMEM;
	if (from < to) {
		if (keep_past(s, from, to) < 0)
			return -ENOMEM;
		s->gen++;
	}
	cover(s, from, to, &m);
	return 0;
}

int space_prune(struct space **sp, bool (*keep)(void *ctx, const struct mapping *m), void *ctx)
{
	struct space *s;
	uint32_t n = 0;

	if (unshare(sp) < 0)
		return -ENOMEM;
	s = *sp;
	for (uint32_t i = 0; i < s->n; i++)
		if (keep(ctx, &s->now[i]))
			s->now[n++] = s->now[i];
	s->n = n;
	return 0;
}

/* The first of the past that was still good in `gen`. */
static uint32_t first_of_past(const struct space *s, uint32_t gen)
{
	uint32_t lo = 0, hi = s->n_past;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->past[mid].last < gen)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct mapping *space_find(const struct space *s, uint32_t gen, uint64_t addr)
{
	uint32_t i;

	/* What held the address in `gen` is what was covered first since then; or what holds it
	 * now. */
	if (gen < s->gen)
		for (i = first_of_past(s, gen); i < s->n_past; i++)
			if (addr >= s->past[i].addr && addr < s->past[i].end)
				return &s->past[i];
	i = first_behind(s, addr);
	return i < s->n && s->now[i].addr <= addr ? &s->now[i] : NULL;
}
