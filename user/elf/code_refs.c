#include "elf/code_refs.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 1 << 20,        /* of code that is read at a time                */
	FUNCTION_MAX = 1 << 20, /* bytes of one                                  */
	STEPS = 3,              /* from a function to what it refers to          */
	REACHED_MAX = 4096,     /* functions over those                          */
};

static bool is_x86_64(const struct elf_file *elf)
{
	return elf_file_machine(elf) == EM_X86_64 && elf_file_is64(elf);
}

/* Called for four bytes at `at` that refer to `to`. */
typedef int (*ref_fn)(void *ctx, uint64_t at, uint64_t to);

struct wanted {
	uint64_t low, high; /* both inclusive */
	ref_fn fn;
	void *ctx;
};

static int refs_in(const uint8_t *code, size_t len, uint64_t vaddr, const struct wanted *w)
{
	for (size_t i = 0; i + 4 <= len; i++) {
		uint32_t word;
		uint64_t to[2];

		memcpy(&word, code + i, sizeof(word));
		to[0] = vaddr + i + 4 + (uint64_t)(int64_t)(int32_t)word;
		to[1] = word;
		for (int k = 0; k < 2; k++) {
			int r = to[k] >= w->low && to[k] <= w->high
					? w->fn(w->ctx, vaddr + i, to[k])
					: 0;

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* All references in executable segments; four bytes may lie on the boundary of two pieces. */
static int refs_all(const struct elf_file *elf, const struct wanted *w)
{
	_cleanup_(freep) uint8_t *code = malloc(PIECE + 3);
	const struct elf_segment *segs;
	uint32_t n;
	int r = 0;

	if (!code)
		return -ENOMEM;
	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n; i++)
		for (uint64_t at = 0; segs[i].flags & PF_X && at < segs[i].filesz; at += PIECE) {
			uint64_t rest = segs[i].filesz - at;
			size_t len = rest < PIECE + 3 ? (size_t)rest : PIECE + 3;

			if (elf_file_read(elf, segs[i].off + at, code, len, NULL) < 0)
				break;
			r = refs_in(code, len, segs[i].vaddr + at, w);
			if (r < 0)
				return r;
		}
	return 0;
}

/* --- users of addresses --- */

struct users {
	const struct cfi *cfi;
	const uint64_t *vaddrs;
	uint32_t n_vaddrs;
	uint32_t *fdes, n, cap;
};

static int place_in(const uint32_t *fdes, uint32_t n, uint32_t fde)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (fdes[mid] < fde)
			low = mid + 1;
		else
			high = mid;
	}
	return (int)low;
}

static bool is_in(const uint32_t *fdes, uint32_t n, uint32_t fde, uint32_t *ret_at)
{
	*ret_at = (uint32_t)place_in(fdes, n, fde);
	return *ret_at < n && fdes[*ret_at] == fde;
}

static int on_use(void *ctx, uint64_t at, uint64_t to)
{
	struct users *u = ctx;
	uint32_t fde, place;
	bool wanted = false;

	for (uint32_t i = 0; i < u->n_vaddrs; i++)
		wanted |= u->vaddrs[i] == to;
	if (!wanted || cfi_find(u->cfi, at, &fde) < 0 || is_in(u->fdes, u->n, fde, &place))
		return 0;
	if (u->n == u->cap)
		return -E2BIG;
	memmove(u->fdes + place + 1, u->fdes + place, (u->n - place) * sizeof(*u->fdes));
	u->fdes[place] = fde;
	u->n++;
	return 0;
}

int code_refs_users(const struct elf_file *elf, const struct cfi *cfi, const uint64_t *vaddrs,
		    uint32_t n, uint32_t *ret_fdes, uint32_t cap)
{
	struct users u = {
		.cfi = cfi, .vaddrs = vaddrs, .n_vaddrs = n, .fdes = ret_fdes, .cap = cap
	};
	struct wanted w = { .low = UINT64_MAX, .fn = on_use, .ctx = &u };
	int r;

	if (!is_x86_64(elf))
		return -EOPNOTSUPP;
	for (uint32_t i = 0; i < n; i++) {
		w.low = vaddrs[i] < w.low ? vaddrs[i] : w.low;
		w.high = vaddrs[i] > w.high ? vaddrs[i] : w.high;
	}
	r = refs_all(elf, &w);
	return r < 0 ? r : (int)u.n;
}

/* --- who refers to functions --- */

struct callers {
	const struct cfi *cfi;
	const uint32_t *fdes;
	uint32_t n;
	bool inner[CODE_REFS_MAX],
		outer[CODE_REFS_MAX]; /* one of the list refers to it; other code */
};

static int on_reference(void *ctx, uint64_t at, uint64_t to)
{
	struct callers *c = ctx;
	uint32_t of, from, place, unused;

	if (cfi_find(c->cfi, to, &of) < 0 || cfi_fde_at(c->cfi, of).start != to ||
	    !is_in(c->fdes, c->n, of, &place))
		return 0;
	/* Zeros right before a function are the end of the filling between two. */
	if (cfi_find(c->cfi, at, &from) < 0 || from == of)
		return 0;
	if (is_in(c->fdes, c->n, from, &unused))
		c->inner[place] = true;
	else
		c->outer[place] = true;
	return 0;
}

int code_refs_entries(const struct elf_file *elf, const struct cfi *cfi, uint32_t *fdes, uint32_t n)
{
	_cleanup_(freep) struct callers *c = calloc(1, sizeof(*c));
	struct wanted w = { .fn = on_reference, .ctx = c };
	uint32_t left = 0;
	int r;

	if (!n || n > CODE_REFS_MAX)
		return n ? -E2BIG : 0;
	if (!c)
		return -ENOMEM;
	c->cfi = cfi;
	c->fdes = fdes;
	c->n = n;
	w.low = cfi_fde_at(cfi, fdes[0]).start;
	w.high = cfi_fde_at(cfi, fdes[n - 1]).start;
	r = is_x86_64(elf) ? refs_all(elf, &w) : -EOPNOTSUPP;
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		if (c->outer[i] || !c->inner[i])
			fdes[left++] = fdes[i];
	return (int)left;
}

/* --- exceptions --- */

struct reached {
	const struct cfi *cfi;
	uint32_t fdes[REACHED_MAX], n;
	bool lands;
};

static int on_reached(void *ctx, uint64_t at, uint64_t to)
{
	struct reached *x = ctx;
	uint32_t fde;

	(void)at;
	if (cfi_find(x->cfi, to, &fde) < 0 || cfi_fde_at(x->cfi, fde).start != to)
		return 0;
	x->lands |= cfi_fde_at(x->cfi, fde).lands;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->fdes[i] == fde)
			return 0;
	if (x->n == REACHED_MAX)
		return -E2BIG;
	x->fdes[x->n++] = fde;
	return 0;
}

static int reach_from(const struct elf_file *elf, struct reached *x, uint32_t fde)
{
	struct cfi_fde f = cfi_fde_at(x->cfi, fde);
	struct wanted w = { .low = cfi_fde_at(x->cfi, 0).start,
			    .high = cfi_fde_at(x->cfi, cfi_n_fdes(x->cfi) - 1).start,
			    .fn = on_reached,
			    .ctx = x };
	_cleanup_(freep) uint8_t *code = NULL;
	const struct elf_segment *segs;
	uint64_t off;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	if (f.end - f.start > FUNCTION_MAX || !elf_segments_vaddr_to_off(segs, n, f.start, &off))
		return -EOPNOTSUPP;
	code = malloc(f.end - f.start);
	if (!code)
		return -ENOMEM;
	if (elf_file_read(elf, off, code, f.end - f.start, NULL) < 0)
		return -EOPNOTSUPP;
	return refs_in(code, f.end - f.start, f.start, &w);
}

bool code_refs_may_throw(const struct elf_file *elf, const struct cfi *cfi, uint32_t fde)
{
	_cleanup_(freep) struct reached *x = calloc(1, sizeof(*x));
	uint32_t done = 0;
	int r = 0;

	if (!x || !is_x86_64(elf))
		return true;
	x->cfi = cfi;
	x->fdes[x->n++] = fde;
	x->lands = cfi_fde_at(cfi, fde).lands;
	for (int step = 0; step < STEPS && r == 0; step++)
		for (uint32_t end = x->n; done < end && r == 0 && !x->lands; done++)
			r = reach_from(elf, x, x->fdes[done]);
	return r < 0 || x->lands;
}
