/*
 * A process's memory as anyone may have written it, as far as a snapshot looks at it: what its objects are, who refers to whom, what keeps
 * them, which are equal, which are meant by a question. All of that ends, and each answer is of objects that there are.
 *
 *   question:1 { op:1 offset:2 word:8 }…   op & 3: in an image's variables, the heap, a thread's stack; 8 * offset into it
 *                                          op >> 2 & 3: what the word counts from: 0 or one of those
 */
#include "base/bytes.h"
#include "base/large.h"
#include "heap/snapshot/dups.h"
#include "heap/snapshot/exact.h"
#include "heap/snapshot/groups.h"
#include "heap/snapshot/owners.h"
#include "heap/snapshot/query.h"
#include "heap/snapshot/retainers.h"
#include "heap/snapshot/scan.h"
#include "proc/peek.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum {
	DATA = 0x100000,
	HEAP = 0x200000,
	STACK = 0x300000,
	LEN = 0x4000,
	SP = STACK + 0x800,
	TP = STACK + 0x3f00,
	MAPS = 3,
	QUESTIONS = 8,
	NOBODY = INT_MAX, /* a process that is not there */
};

static const struct heap_map maps[MAPS] = { { DATA, DATA + LEN, LEN, HEAP_MAP_DATA },
					    { HEAP, HEAP + LEN, LEN, HEAP_MAP_BRK },
					    { STACK, STACK + LEN, LEN, HEAP_MAP_STACK } };
static uint8_t bytes[MAPS * LEN];
static struct copy *copy;
static struct heap_blocks blocks = { .max = LEN };
static struct block_index *block_index;
static struct query *questions[QUESTIONS];

/* Of a live process nothing can be read. */
bool peek(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	(void)pid;
	(void)addr;
	(void)buf;
	(void)len;
	return false;
}

bool peek_may(pid_t pid, uint64_t addr, size_t len)
{
	(void)pid;
	(void)addr;
	(void)len;
	return false;
}

static void check(bool is)
{
	if (!is)
		abort();
}

static bool load(void *ctx, uint64_t at, uint64_t n)
{
	(void)ctx;
	return at + n <= sizeof(bytes);
}

static void make_copy(void)
{
	static const struct copy_run runs[MAPS] = { { DATA, LEN, 0 },
						    { HEAP, LEN, LEN },
						    { STACK, LEN, 2ULL * LEN } };
	static const struct stopped_thread thread = {
		.tid = 1, .n_regs = 4, .regs = { HEAP + 16, HEAP + 80, 7, SP }, .sp = SP, .tp = TP
	};
	struct copy_parts parts = { .maps = maps,
				    .threads = &thread,
				    .runs = runs,
				    .n_maps = MAPS,
				    .n_threads = 1,
				    .n_runs = MAPS,
				    .has_bytes = true,
				    .bytes = bytes,
				    .load = load };

	check(copy_of_parts(&parts, &copy) == 0);
}

/* Of many sizes, with the 8 bytes between them that glibc has there. */
static void make_blocks(void)
{
	static const uint16_t sizes[] = { 24,  40, 56,  88, 24, 120, 40,   200, 72,
					  264, 24, 520, 56, 40, 88,  1032, 24 };
	uint64_t at = HEAP + 16;

	heap_blocks_allocator(&blocks, "glibc");
	heap_blocks_arena(&blocks, 0);
	for (size_t i = 0; at + 2048 < HEAP + LEN; i++) {
		uint64_t size = sizes[i % (sizeof(sizes) / sizeof(*sizes))];

		heap_blocks_add(&blocks, at, size, size);
		at += size + 8;
	}
	heap_blocks_add(&blocks, at, HEAP + LEN - at, HEAP + LEN - at);
	heap_blocks_sort(&blocks);
	block_index = block_index_new(blocks.rows, blocks.n);
	check(block_index && blocks.n);
}

static void make_questions(void)
{
	static const char *const texts[QUESTIONS] = {
		"size > 100 and not lost",
		"text:abc or references > 2",
		"type ~ \"std::\" or lost",
		"reachable(size > 500)",
		"retained_by(referrers = 0) and retained > 64",
		"refers_to(size = 24) or referred_by(size = 40)",
		"0x200010 or address < 0x201000",
		"arena ~ glibc and type != dict",
	};
	struct err e = { 0 };

	for (int i = 0; i < QUESTIONS; i++)
		check(query_parse(texts[i], &questions[i], &e) == 0);
}

static bool put_word(struct bytes *in)
{
	static const uint64_t from[] = { 0, DATA, HEAP, STACK };
	uint16_t offset;
	uint64_t word;
	uint8_t op;

	if (bytes_u8(in, &op) < 0 || bytes_u16(in, &offset) < 0 || bytes_u64(in, &word) < 0)
		return false;
	word += from[op >> 2 & 3];
	memcpy(bytes + (op & 3) % MAPS * LEN + 8 * (offset % (LEN / 8)), &word, 8);
	return true;
}

static void check_graph(const struct snapshot *s)
{
	for (uint64_t i = 0; i < s->blocks.n; i++) {
		check(s->types.of[i] < s->types.n &&
		      s->types.object[i] < snapshot_bytes(s, (uint32_t)i));
		for (uint64_t k = s->graph->first[i]; k < s->graph->first[i + 1]; k++)
			check(s->graph->edges[k].to < s->blocks.n &&
			      s->graph->edges[k].at + 8 <= snapshot_bytes(s, (uint32_t)i));
	}
	for (uint64_t i = 0; i < s->n_roots; i++)
		check(s->roots[i].node < s->blocks.n && s->roots[i].kind < SNAPSHOT_ROOT_KINDS);
	for (uint32_t i = 0; i < s->types.n; i++)
		check(s->types.type[i].name && s->types.type[i].blocks <= s->blocks.n);
}

static void check_collections(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->collections.n; i++) {
		const struct collection *c = &s->collections.rows[i];

		check(c->kind < COLLECTION_KINDS && c->table < s->blocks.n &&
		      c->blocks <= s->blocks.n && (c->in < s->blocks.n || c->in == BLOCK_NONE) &&
		      collection_name(c));
	}
	for (uint32_t i = 0; i < s->blocks.n; i++)
		check(s->collections.of[i] <= s->collections.n ||
		      s->collections.of[i] >= COLLECTION_TEXT);
}

static void check_groups(const struct snapshot *s, enum groups_by by)
{
	struct groups g = { 0 };
	uint64_t objects = 0;

	check(groups_find(s, by, &g) == 0);
	for (uint32_t i = 0; i < g.n; i++) {
		check(g.rows[i].name && g.rows[i].objects && g.rows[i].bytes <= LEN);
		objects += g.rows[i].objects;
	}
	check(objects <= s->blocks.n);
	groups_fini(&g);
}

static void ask(const struct snapshot *s, const struct query *question)
{
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	_cleanup_(retainers_fini) struct retainers found = { 0 };
	_cleanup_(large_freep) uint64_t *retained = NULL;
	_cleanup_(freep) uint8_t *set = NULL;
	const uint32_t objects[] = { 0, (uint32_t)s->blocks.n / 2, (uint32_t)s->blocks.n - 1 };
	struct err e = { 0 };
	struct dups dups;

	check(dups_find(s, &dups) == 0);
	check(dups.n <= s->blocks.n && dups.blocks <= s->blocks.n && dups.looked_at <= s->blocks.n);
	dups_fini(&dups);
	check(owners_retained(s, &d, &retained) == 0);
	check(retainers_find(s, objects, 3, ~0u, &found) == 0 && found.unreached <= 3);
	check(query_objects(question, s, &set, &e) == 0);
	for (uint64_t i = 0; i < s->blocks.n; i++)
		check(set[i] <= 1 && retained[i] <= LEN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const bool owned[MAPS] = { false, true, false };
	struct bytes in = bytes_of(data, len);
	struct exact none = { .n = 0 };
	struct snapshot s = { .facts = { .contents = FILE_CONTENTS_ALL }, .exact = &none };
	uint8_t question = 0;

	if (!copy) {
		make_copy();
		make_blocks();
		make_questions();
	}
	memset(bytes, 0, sizeof(bytes));
	bytes_u8(&in, &question);
	while (put_word(&in))
		;
	s.copy = copy;
	s.blocks = blocks;
	s.index = block_index;
	check(types_init(&s.types) == 0 &&
	      types_find(&s.types, copy, &s.blocks, NULL, NOBODY) == 0 &&
	      scan_references(&s) == 0 && scan_roots(&s, owned) == 0 &&
	      types_find_linked(&s, NOBODY) == 0);
	check_graph(&s);
	check_collections(&s);
	ask(&s, questions[question % QUESTIONS]);
	check_groups(&s, question / QUESTIONS % GROUPS_SITE);
	types_fini(&s.types);
	collections_fini(&s.collections);
	graph_free(s.graph);
	graph_free(s.reverse);
	large_free(s.roots);
	large_free(s.graph_roots);
	return 0;
}
