/*
 * GHC: what its generations and its RTSStats say (rts/include/RtsAPI.h, 8.10 to 9.12: the same up to mem_in_use_bytes of the last
 * collection).
 *
 *   gcs:4 major:4 … at 136 gc_elapsed_ns   the last one from 160 on: … at 176 live_bytes, at 208 mem_in_use_bytes
 *
 * RTSStats is a variable of one object file (`stats`), which stripped programs have no symbol of, nor of the longest pauses; generations
 * are found through descriptors of blocks. Times are taken only with +RTS -T, -s or -S.
 */
#include "base/cleanup.h"
#include "heap/gc/gc.h"
#include "heap/ghc/ghc.h"
#include "heap/ghc/images.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WINDOW = GHC_FIRST_BLOCK *
		 GHC_BLOCK,   /* bytes that are read together: the descriptors of a megablock */
	SPACE_MAX = 64 << 20, /* how much of the heap is searched for generations       */
	STATS_ELAPSED = 136,
	STATS_LIVE = 176,
	STATS_HELD = 208,
	STATS_BYTES = 216,
	GEN_WORDS = 24,
	GEN_LARGE_WORDS = 40,
	GEN_COMPACT_BLOCKS = 72,
	GEN_TO = 120,
};

struct state {
	pid_t pid;
	struct ghc g; /* while it is searched */
	uint64_t gens[GHC_GENS_MAX];
	uint32_t n_gens;
	bool threaded;
	uint64_t stats, longest, mblocks; /* addresses of variables; 0: none is known */
	bool timed;                       /* times are taken                          */
	uint8_t window[WINDOW];
};

static uint64_t at64(const uint8_t *bytes, size_t off)
{
	uint64_t w;

	memcpy(&w, bytes + off, 8);
	return w;
}

static uint32_t at32(const uint8_t *bytes, size_t off)
{
	uint32_t w;

	memcpy(&w, bytes + off, 4);
	return w;
}

/* --- where it is --- */

static const uint8_t *piece(void *ctx, uint64_t addr, uint64_t *ret_len)
{
	struct state *s = ctx;
	uint64_t from = addr & ~(uint64_t)(WINDOW - 1);

	*ret_len = from + WINDOW - addr;
	return gc_memory(s->pid, from, s->window, WINDOW) ? s->window + (addr - from) : NULL;
}

static bool read_any(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return gc_memory(((struct state *)ctx)->pid, addr, buf, len);
}

/* The first mapping that begins with a megablock. */
static int on_map(void *ctx, const struct proc_map *m)
{
	struct state *s = ctx;
	struct ghc *g = &s->g;

	if (*m->path || !(m->perms & PROC_MAP_WRITE) || m->start % GHC_MBLOCK ||
	    m->end - m->start < GHC_MBLOCK)
		return 0;
	g->begin = m->start;
	g->end = m->end - m->start < SPACE_MAX ? m->end : m->start + SPACE_MAX;
	g->len = 0;
	return ghc_is_mblock(g, m->start);
}

/* Of generations, each has the address of the one that its survivors go to; the oldest has its own. */
static bool follow_generations(struct state *s, uint64_t gen)
{
	uint8_t bytes[GHC_GEN_BYTES_THREADED];

	for (s->n_gens = 0; s->n_gens < GHC_GENS_MAX; gen = at64(bytes, GEN_TO)) {
		if (!gc_memory(s->pid, gen, bytes, sizeof(bytes)) ||
		    at32(bytes, GHC_GEN_NO) != s->n_gens)
			return false;
		s->gens[s->n_gens++] = gen;
		if (at64(bytes, GEN_TO) == gen)
			break;
	}
	if (s->n_gens > 1)
		s->threaded = s->gens[1] - s->gens[0] == GHC_GEN_BYTES_THREADED;
	return s->n_gens > 1 && (s->threaded || s->gens[1] - s->gens[0] == GHC_GEN_BYTES);
}

static int find_generations(struct state *s)
{
	struct ghc_space space;
	int r;

	s->g.mem = (struct ghc_memory){ piece, read_any, s };
	r = proc_maps_each(s->pid, on_map, s, NULL);
	if (r <= 0 || !ghc_space_read(&s->g, &space) || !space.gens[0])
		return -ENOENT;
	return follow_generations(s, space.gens[0]) ? 0 : -ENOENT;
}

/* --- what it says --- */

static int read_generations(const struct state *s, struct gc_counters *c)
{
	uint64_t words = 0, blocks = 0;

	for (uint32_t i = 0; i < s->n_gens; i++) {
		uint8_t bytes[GHC_GEN_BYTES_THREADED];
		uint32_t count;

		if (!gc_memory(s->pid, s->gens[i], bytes, sizeof(bytes)) ||
		    at32(bytes, GHC_GEN_NO) != i)
			return -ESRCH;
		count = at32(bytes, GHC_GEN_COLLECTIONS);
		c->count += count;
		if (i == s->n_gens - 1)
			c->major = count;
		if (i < GC_KINDS) {
			snprintf(c->kinds[i].name, GC_KIND_NAME, "generation %u", i);
			c->kinds[i].count = count;
			c->n_kinds = i + 1;
		}
		words += at64(bytes, GEN_WORDS) + at64(bytes, GEN_LARGE_WORDS);
		blocks += at64(bytes, GEN_COMPACT_BLOCKS);
		c->collecting |= at64(bytes, s->threaded ? GHC_GEN_OLD_BLOCKS_THREADED
							 : GHC_GEN_OLD_BLOCKS) != 0;
	}
	c->looks = true;
	if (!c->collecting && words < 1ULL << 50 && blocks < 1ULL << 40)
		c->live_bytes = (int64_t)(8 * words + GHC_BLOCK * blocks);
	return 0;
}

/* The longest pause of any generation, in RTSStats's nanoseconds. */
static int64_t longest(const struct state *s)
{
	uint64_t table, at;
	int64_t most = GC_UNKNOWN;

	if (!s->longest || !gc_memory(s->pid, s->longest, &table, 8) || !table)
		return GC_UNKNOWN;
	for (uint32_t i = 0; i < s->n_gens; i++)
		if (gc_memory(s->pid, table + 8ULL * i, &at, 8) && (int64_t)at > most)
			most = (int64_t)at;
	return most;
}

static void read_stats(struct state *s, struct gc_counters *c)
{
	uint8_t bytes[STATS_BYTES];
	uint64_t mblocks;

	if (s->mblocks && gc_memory(s->pid, s->mblocks, &mblocks, 8) && mblocks < 1 << 24)
		c->heap_bytes = (int64_t)(mblocks * GHC_MBLOCK);
	if (!s->stats || !gc_memory(s->pid, s->stats, bytes, sizeof(bytes)))
		return;
	if (at32(bytes, 0))
		c->live_bytes = (int64_t)at64(bytes, STATS_LIVE);
	s->timed |= at64(bytes, STATS_ELAPSED) != 0;
	if (!s->timed)
		return;
	c->time_ns = (int64_t)at64(bytes, STATS_ELAPSED);
	c->longest_ns = longest(s);
}

static int read_state(void *state, struct gc_counters *c)
{
	struct state *s = state;
	int r = read_generations(s, c);

	if (r == 0)
		read_stats(s, c);
	return r;
}

/* Another object file may have a variable of that name: this one counts as the generations do. */
static void check_stats(struct state *s)
{
	for (int tries = 0; s->stats && tries < 3; tries++) {
		struct gc_counters before = { 0 }, after = { 0 };
		uint8_t bytes[STATS_BYTES];

		if (read_generations(s, &before) == 0 &&
		    gc_memory(s->pid, s->stats, bytes, sizeof(bytes)) &&
		    read_generations(s, &after) == 0 && at32(bytes, 0) >= before.count &&
		    at32(bytes, 0) <= after.count + 1 && at32(bytes, 4) >= before.major &&
		    at32(bytes, 4) <= after.major + 1)
			return;
	}
	s->stats = 0;
}

static int open_state(pid_t pid, void **ret_state, bool *ret_untested)
{
	_cleanup_(freep) struct state *s = calloc(1, sizeof(*s));
	struct ghc_images images;
	int r;

	if (!s)
		return -ENOMEM;
	s->pid = pid;
	r = find_generations(s);
	if (r < 0)
		return r;
	r = ghc_images_open(pid, &images);
	if (r < 0)
		return r;
	s->stats = ghc_images_variable(&images, "stats");
	s->longest = ghc_images_variable(&images, "GC_coll_max_pause");
	s->mblocks = ghc_images_variable(&images, "mblocks_allocated");
	*ret_untested = images.version && images.version >> 8 != GHC_TESTED_VERSION >> 8;
	ghc_images_close(&images);
	check_stats(s);
	*ret_state = TAKE_PTR(s);
	return 0;
}

static const char *missing(const void *state)
{
	const struct state *s = state;

	if (!s->stats)
		return "The program has no symbol of its run-time system's statistics: times are estimated by how often a collection was under way.";
	if (!s->timed)
		return "The program takes no times of its collections: they are estimated by how often one was under way. Started with +RTS -T, it takes them.";
	return "";
}

const struct gc_source gc_ghc = {
	.name = "GHC",
	.open = open_state,
	.close = free,
	.read = read_state,
	.missing = missing,
};
