#include "lang/goroutines.h"
#include "lang/goroutines_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH = 64,
	WINDOW = 2048, /* bytes of each stack that are read with the others' */
	MORE = 8192,   /* of a deeper one, at a time                      */
	MORE_TIMES = 16,
	POINTERS = 4096, /* of the table, at a time                          */
	PLACES_FIRST = 1024,
	PLACES_MOST = 1 << 16,
	POLL_WORDS = 24,  /* of the frame that has the descriptor's address   */
	SCANNED = 0x1000, /* _Gscan                                           */
};

struct go_look {
	uint64_t pointers[POINTERS];
	uint64_t at[BATCH];
	uint8_t g[BATCH][G_BYTES], again[BATCH][G_BYTES];
	uint8_t window[BATCH][WINDOW];
	struct go_piece pieces[BATCH];
	uint8_t more[MORE];
	struct goroutine one;
	bool deep; /* more was read of the last stack than its window */
};

struct go_look *go_look_new(void)
{
	return calloc(1, sizeof(struct go_look));
}

void go_look_free(struct go_look *l)
{
	free(l);
}

/* --- what an address is --- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
	x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
	return x ^ (x >> 33);
}

static struct go_place *find_place(const struct go_program *p, uint64_t vaddr)
{
	uint32_t i = (uint32_t)mix(vaddr) & (p->cap_places - 1);

	while (p->places[i].vaddr && p->places[i].vaddr != vaddr)
		i = (i + 1) & (p->cap_places - 1);
	return &p->places[i];
}

static bool grow_places(struct go_program *p)
{
	struct go_program bigger = { .cap_places =
					     p->cap_places ? p->cap_places * 2 : PLACES_FIRST };

	if (p->cap_places == PLACES_MOST) {
		memset(p->places, 0, p->cap_places * sizeof(*p->places));
		p->n_places = 0;
		return true;
	}
	bigger.places = calloc(bigger.cap_places, sizeof(*bigger.places));
	if (!bigger.places)
		return false;
	for (uint32_t i = 0; i < p->cap_places; i++)
		if (p->places[i].vaddr)
			*find_place(&bigger, p->places[i].vaddr) = p->places[i];
	free(p->places);
	p->places = bigger.places;
	p->cap_places = bigger.cap_places;
	return true;
}

static enum go_frame_kind kind_of(const char *name)
{
	static const char *const tops[] = { "runtime.goexit", "runtime.goexit.abi0",
					    "runtime.mstart", "runtime.rt0_go",
					    "_rt0_amd64_linux" };
	static const char *const injected[] = { "runtime.asyncPreempt", "runtime.asyncPreempt.abi0",
						"runtime.sigpanic", "runtime.sigpanic0",
						"runtime.debugCallV2" };

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++)
		if (strcmp(name, tops[i]) == 0)
			return GO_FRAME_TOP;
	for (size_t i = 0; i < sizeof(injected) / sizeof(injected[0]); i++)
		if (strcmp(name, injected[i]) == 0)
			return GO_FRAME_INJECTED;
	return GO_FRAME_PLAIN;
}

struct delta_at {
	uint64_t vaddr;
	int32_t delta;
	bool found;
};

static int take_delta(void *arg, uint64_t start, uint64_t end, int32_t delta)
{
	struct delta_at *at = arg;

	if (at->vaddr < start || at->vaddr >= end)
		return 0;
	at->delta = delta;
	at->found = true;
	return 1;
}

struct go_place go_place_read(const struct gopclntab *tab, uint64_t vaddr)
{
	struct go_place place = { .vaddr = vaddr, .kind = GO_FRAME_NONE };
	struct delta_at at = { .vaddr = vaddr };
	struct go_func f;
	uint32_t i;

	if (gopclntab_find(tab, vaddr, &i) < 0)
		return place;
	f = gopclntab_func(tab, i);
	gopclntab_rows(tab, i, take_delta, &at);
	place.kind = (uint8_t)kind_of(f.name);
	if (!at.found && place.kind != GO_FRAME_TOP)
		place.kind = GO_FRAME_NONE;
	place.delta = at.delta;
	place.runtime = strncmp(f.name, "runtime.", 8) == 0;
	place.main = strcmp(f.name, "runtime.main") == 0;
	place.entry = vaddr == f.start;
	return place;
}

/* NULL: its table cannot be had. */
static const struct go_place *place_of(struct go_program *p, const struct go_tables *tables,
				       uint64_t vaddr)
{
	struct go_place *place = p->cap_places && vaddr ? find_place(p, vaddr) : NULL;
	struct go_place found;

	if (place && place->vaddr)
		return place;
	if (!vaddr || !tables->find(tables->ctx, vaddr, &found))
		return NULL;
	if ((p->n_places + 1) * 4 > p->cap_places * 3 && !grow_places(p))
		return NULL;
	place = find_place(p, vaddr);
	*place = found;
	p->n_places++;
	return place;
}

/* --- a stack --- */

struct stack {
	uint64_t lo, hi; /* of it                       */
	uint64_t at;     /* what was read of it begins here … */
	const uint8_t *bytes;
	uint64_t len;   /* … and is so long            */
	uint32_t times; /* that more was read */
};

static bool stack_word(struct go_look *l, const struct go_memory *mem, struct stack *s,
		       uint64_t addr, uint64_t *ret_word)
{
	if (addr % 8 || addr < s->lo || addr >= s->hi || s->hi - addr < 8)
		return false;
	if (addr < s->at || addr - s->at > s->len || s->len - (addr - s->at) < 8) {
		uint64_t len = s->hi - addr < MORE ? s->hi - addr : MORE;

		if (s->times++ >= MORE_TIMES || !go_read_one(mem, addr, l->more, (uint32_t)len))
			return false;
		s->at = addr;
		s->bytes = l->more;
		s->len = len;
	}
	*ret_word = go_word(s->bytes, (uint32_t)(addr - s->at));
	return true;
}

/*
 * The frame that called gopark() for the network has the address of the word in its pollDesc which holds this
 * goroutine. Nothing else there points at that, and the descriptor lies at a known distance.
 */
static void find_descriptor(const struct go_process *p, const struct go_memory *mem, uint64_t g,
			    struct stack *s, uint64_t from, uint64_t to, int32_t fds[2])
{
	const struct goroutine_layout *l = &p->program->layout;
	struct go_piece pieces[POLL_WORDS];
	uint64_t values[POLL_WORDS], fd;
	uint32_t n = 0;

	if (from < s->at || to < from || to - s->at > s->len)
		return;
	for (uint64_t at = from; at < to && n < POLL_WORDS; at += 8) {
		uint64_t w = go_word(s->bytes, (uint32_t)(at - s->at));

		if (w % 8 || w < 4096 || w >> 47 || (w >= s->lo && w < s->hi))
			continue;
		pieces[n] = (struct go_piece){ w, &values[n], 8, false };
		n++;
	}
	mem->read(mem->ctx, pieces, n);
	for (uint32_t i = 0; i < n; i++) {
		const uint16_t words[2] = { l->rg, l->wg };

		if (!pieces[i].there || values[i] != g)
			continue;
		for (int k = 0; k < 2; k++)
			if (go_read_one(mem, pieces[i].addr - words[k] + POLL_FD, &fd, 8) &&
			    fd < 1 << 24)
				fds[k] = (int32_t)fd;
		return;
	}
}

/* false: where its first address is could not be had. */
static bool walk(struct go_look *l, const struct go_process *p, const struct go_memory *mem,
		 const struct go_tables *tables, uint64_t g_at, struct stack *s, uint64_t pc,
		 uint64_t sp, bool network, struct goroutine *g)
{
	bool exact = false;

	while (g->n < GO_FRAMES_MAX) {
		uint64_t vaddr = pc - p->bias, above;
		const struct go_place *place = NULL;

		/* Where a goroutine has not begun, and where code was interrupted, it is no return address. */
		if (g->n == 0)
			place = place_of(p->program, tables, vaddr);
		exact |= place && place->entry;
		g->pcs[g->n] = exact ? pc : pc - 1;
		place = place_of(p->program, tables, vaddr - !exact);
		if (!place)
			return g->n > 0;
		if (place->kind == GO_FRAME_NONE)
			return true;
		g->n++;
		if (place->kind == GO_FRAME_TOP) {
			g->whole = true;
			return true;
		}
		above = sp + (uint64_t)(int64_t)place->delta;
		exact = place->kind == GO_FRAME_INJECTED;
		if (place->delta < 0 || !stack_word(l, mem, s, above, &pc))
			return true;
		if (network && g->n == 2)
			find_descriptor(p, mem, g_at, s, sp, above, g->fds);
		sp = above + 8;
	}
	return true;
}

/* --- a batch --- */

static bool has_stack(uint32_t state)
{
	return state == GOROUTINE_WAITING || state == GOROUTINE_RUNNABLE ||
	       state == GOROUTINE_SYSCALL || state == GOROUTINE_PREEMPTED;
}

static uint32_t state_of(const struct goroutine_layout *l, const uint8_t *g)
{
	uint32_t status;

	memcpy(&status, g + l->status, sizeof(status));
	return status & ~(uint32_t)SCANNED;
}

static uint64_t sp_of(const struct goroutine_layout *l, const uint8_t *g)
{
	return go_word(g, state_of(l, g) == GOROUTINE_SYSCALL ? l->syscallsp : l->sp);
}

static uint64_t pc_of(const struct goroutine_layout *l, const uint8_t *g)
{
	return go_word(g, state_of(l, g) == GOROUTINE_SYSCALL ? l->syscallpc : l->pc);
}

/* Has it stayed where it was while its stack was read? */
static bool stayed(const struct goroutine_layout *l, const uint8_t *a, const uint8_t *b)
{
	return state_of(l, a) == state_of(l, b) && sp_of(l, a) == sp_of(l, b) &&
	       pc_of(l, a) == pc_of(l, b) && go_word(a, l->goid) == go_word(b, l->goid) &&
	       go_word(a, STACK_LO) == go_word(b, STACK_LO) &&
	       (!l->seq || a[l->seq] == b[l->seq]) && a[l->waitreason] == b[l->waitreason];
}

static void read_windows(struct go_look *l, const struct goroutine_layout *lay,
			 const struct go_memory *mem, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *g = l->g[i];
		uint64_t sp = sp_of(lay, g), hi = go_word(g, STACK_HI), len = 0;

		if (l->pieces[i].there && has_stack(state_of(lay, g)) &&
		    sp >= go_word(g, STACK_LO) && sp < hi && sp % 8 == 0)
			len = hi - sp < WINDOW ? hi - sp : WINDOW;
		l->pieces[i] = (struct go_piece){ sp, l->window[i], (uint32_t)len & ~7u, false };
	}
	mem->read(mem->ctx, l->pieces, n);
}

static void decode(struct go_look *l, const struct go_process *p, const struct go_memory *mem,
		   const struct go_tables *tables, uint32_t i, struct goroutines_stats *st)
{
	const struct goroutine_layout *lay = &p->program->layout;
	const struct go_piece *window = &l->pieces[i];
	const uint8_t *b = l->g[i];
	struct goroutine *g = &l->one;
	struct stack s = { go_word(b, STACK_LO), go_word(b, STACK_HI), window->addr,
			   l->window[i],         window->len,          0 };
	uint32_t state = state_of(lay, b);
	const struct go_place *begin;

	g->id = go_word(b, lay->goid);
	g->state = state < 256 ? (uint8_t)state : 255;
	g->reason = b[lay->waitreason] < p->n_reasons ? b[lay->waitreason] : 0;
	g->has_seq = lay->seq != 0;
	g->seq = lay->seq ? b[lay->seq] : 0;
	g->since_ns = (int64_t)go_word(b, lay->waitsince);
	g->whole = l->deep = false;
	g->n = 0;
	g->fds[0] = g->fds[1] = -1;
	begin = place_of(p->program, tables, go_word(b, lay->startpc) - p->bias);
	g->system = begin && begin->runtime && !begin->main;
	if (!has_stack(state) || !window->len)
		return;
	if (!window->there) {
		st->unreadable++;
		return;
	}
	if (!walk(l, p, mem, tables, l->at[i], &s, pc_of(lay, b), sp_of(lay, b),
		  state == GOROUTINE_WAITING && strcmp(p->reasons[g->reason], "IO wait") == 0, g))
		st->unreadable++;
	l->deep = s.times > 0;
}

static void look_at_batch(struct go_look *l, const struct go_process *p,
			  const struct go_memory *mem, const struct go_tables *tables, uint32_t n,
			  goroutine_fn fn, void *ctx, struct goroutines_stats *st)
{
	const struct goroutine_layout *lay = &p->program->layout;
	struct go_piece heads[BATCH];
	bool there[BATCH];

	for (uint32_t i = 0; i < n; i++)
		l->pieces[i] = (struct go_piece){ l->at[i], l->g[i], G_BYTES, false };
	mem->read(mem->ctx, l->pieces, n);
	for (uint32_t i = 0; i < n; i++)
		there[i] = l->pieces[i].there;
	read_windows(l, lay, mem, n);
	for (uint32_t i = 0; i < n; i++)
		heads[i] = (struct go_piece){ l->at[i], l->again[i], G_BYTES, false };
	mem->read(mem->ctx, heads, n);
	for (uint32_t i = 0; i < n; i++) {
		st->looked++;
		if (!there[i]) {
			st->unreadable++;
			continue;
		}
		if (state_of(lay, l->g[i]) == GOROUTINE_DEAD || state_of(lay, l->g[i]) == 0) {
			st->dead++;
			continue;
		}
		decode(l, p, mem, tables, i, st);
		if (l->deep)
			mem->read(mem->ctx, &heads[i], 1);
		if (l->one.n && (!heads[i].there || !stayed(lay, l->g[i], l->again[i]))) {
			st->moved++;
			l->one.n = 0;
		}
		fn(ctx, &l->one);
	}
}

int go_look(struct go_look *l, const struct go_process *p, const struct go_memory *mem,
	    const struct go_tables *tables, uint32_t log2_part, uint64_t seed, goroutine_fn fn,
	    void *ctx, struct goroutines_stats *ret_stats)
{
	struct goroutines_stats st = { 0 };
	uint64_t slice[3], mask = (1ULL << (log2_part & 31)) - 1;
	uint32_t n = 0;
	int r = 0;

	if (!go_read_one(mem, p->allgs, slice, sizeof(slice)) || slice[1] > GO_TABLE_MAX)
		return -EIO;
	for (uint64_t from = 0; from < slice[1] && r == 0; from += POINTERS) {
		uint64_t len = slice[1] - from < POINTERS ? slice[1] - from : POINTERS;

		if (!go_read_one(mem, slice[0] + 8 * from, l->pointers, (uint32_t)(8 * len)))
			r = -EIO;
		for (uint64_t i = 0; i < len && r == 0; i++) {
			if (mix(seed + from + i) & mask)
				continue;
			l->at[n++] = l->pointers[i];
			if (n == BATCH) {
				look_at_batch(l, p, mem, tables, n, fn, ctx, &st);
				n = 0;
			}
		}
	}
	if (n)
		look_at_batch(l, p, mem, tables, n, fn, ctx, &st);
	*ret_stats = st;
	return r;
}
