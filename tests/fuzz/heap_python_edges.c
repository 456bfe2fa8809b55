/*
 * Objects of CPython as anyone may have made them, types, tables and threads, too: looking for references, roots and names ends, and each
 * reference lies in its block.
 *
 *   which:1 { op:1 offset:2 word:8 }…     which: the version, and which places of blocks are asked for the names of their links
 *                                         op & 1: in the image, in the heap; 8 * offset into it; op >> 1 & 3: what the word counts from:
 *                                         0, the image, the heap
 */
#include "base/bytes.h"
#include "base/large.h"
#include "heap/python/python_heap.h"
#include "heap/snapshot/chain.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum {
	IMAGE = 0x100000,
	HEAP = 0x200000,
	LEN = 0x8000,
	TYPE_BYTES = 0x400,
	BLOCK = 0x100,
	N = LEN / BLOCK,
	T_N = 14,
	CALLS_MAX = 1 << 22,
	VERSIONS = 6,
	PLACES = 11, /* of a block one in so many is asked for */
};

static const char *const names[T_N] = {
	"(unknown)", "type",     "list",      "dict", "set",
	"weakref",   "web.User", "generator", "str",  "collections.deque",
	"code",      "frame",    "module",    "tuple"
};

static uint8_t bytes[2 * LEN];
static struct copy *copy;
static struct heap_block rows[N];
static struct type types[T_N + PYTHON_TABLES];
static uint32_t type_of[N];
static uint8_t object_of[N];
static uint32_t calls;

static bool load(void *ctx, uint64_t at, uint64_t n)
{
	(void)ctx;
	return at + n <= sizeof(bytes);
}

static void make_copy(void)
{
	static const struct heap_map maps[] = { { IMAGE, IMAGE + LEN, LEN, HEAP_MAP_DATA },
						{ HEAP, HEAP + LEN, LEN, HEAP_MAP_ANON } };
	static const struct copy_run runs[] = { { .addr = IMAGE, .len = LEN, .at = 0 },
						{ .addr = HEAP, .len = LEN, .at = LEN } };
	struct copy_parts parts = { .maps = maps,
				    .runs = runs,
				    .n_maps = 2,
				    .n_runs = 2,
				    .has_bytes = true,
				    .bytes = bytes,
				    .load = load };

	if (copy_of_parts(&parts, &copy) < 0)
		abort();
}

static void put(uint64_t at, uint64_t word)
{
	if (at + 8 <= sizeof(bytes))
		memcpy(bytes + at, &word, 8);
}

/* An object of each type in blocks of their own, and blocks of nobody. */
static void begin(uint8_t version)
{
	static const uint64_t sizes[VERSIONS] = { 880, 888, 904, 920, 928, 936 };
	static const uint64_t flags[T_N] = {
		0, 1ULL << 31, 1ULL << 25, 1ULL << 29, 0, 0, 1ULL << 9 | 1ULL << 4 | 1ULL << 2,
		0, 1ULL << 28, 0,          0,          0, 0, 1ULL << 26
	};

	memset(bytes, 0, sizeof(bytes));
	for (uint32_t i = 1; i < T_N; i++) {
		uint64_t at = (i - 1) * (uint64_t)TYPE_BYTES;

		types[i] = (struct type){ .by = TYPE_CPYTHON, .name = names[i], .at = IMAGE + at };
		put(at + 8, IMAGE);
		put(at + 32, i == 1 ? sizes[version % VERSIONS] : 48);
		put(at + PYTHON_TP_FLAGS, flags[i]);
	}
	types[0] = (struct type){ .name = names[0] };
	for (uint32_t i = 0; i < N; i++) {
		rows[i] = (struct heap_block){ .addr = HEAP + i * (uint64_t)BLOCK,
					       .words = BLOCK / 8 };
		type_of[i] = i % (T_N + 2) < T_N ? i % (T_N + 2) : 0;
		object_of[i] = !type_of[i] ? 0 : names[type_of[i]][0] == 'w' ? 32 : 16;
		put(LEN + i * (uint64_t)BLOCK + object_of[i], 1);
		put(LEN + i * (uint64_t)BLOCK + object_of[i] + 8, types[type_of[i]].at);
	}
}

static bool put_word(struct bytes *in)
{
	static const uint64_t from[] = { 0, IMAGE, HEAP, HEAP + 1 };
	uint16_t offset;
	uint64_t word;
	uint8_t op;

	if (bytes_u8(in, &op) < 0 || bytes_u16(in, &offset) < 0 || bytes_u64(in, &word) < 0)
		return false;
	put((op & 1 ? LEN : 0) + 8ULL * offset, word + from[op >> 1 & 3]);
	return true;
}

static void on_edge(void *ctx, uint64_t to, uint32_t at)
{
	(void)ctx;
	if (!to || at > BLOCK - 8 || ++calls > CALLS_MAX)
		abort();
}

static void on_root(void *ctx, const struct exact_root *root)
{
	(void)ctx;
	if (!root->name || ++calls > CALLS_MAX)
		abort();
}

/* Of each block a few places, which those are is the input's: all of them took a hundred times as long as everything else. */
static void look(struct python_heap *h, struct snapshot *s, uint32_t which)
{
	char text[CHAIN_TEXT_MAX];

	for (uint32_t i = 0; i < N; i++)
		python_edges(h, s, i, on_edge, NULL);
	python_roots(h, s, on_root, NULL);
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t at = (which + i) % PLACES * 8; at < BLOCK; at += PLACES * 8) {
			struct chain_step steps[] = {
				{ i, at }, { (i + at) % N, at % 64 }, { (i + 1) % N, 40 }, { 3, 0 }
			};

			if (python_chain_link(s, steps, 4, true, text) > 3 ||
			    strlen(text) >= sizeof(text))
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = bytes_of(data, len);
	struct exact x = { .runtime = { &python_runtime }, .n = 1 };
	struct snapshot s = { .blocks = { .rows = rows, .n = N },
			      .types = { types, T_N, T_N + PYTHON_TABLES, type_of, object_of } };
	struct err e = { 0 };
	uint8_t version = 0;

	if (!copy)
		make_copy();
	calls = 0;
	bytes_u8(&in, &version);
	begin(version);
	while (put_word(&in))
		;
	s.copy = copy;
	s.exact = &x;
	s.index = block_index_new(rows, N);
	if (!s.index || python_runtime.open(copy, 0, &x.state[0], &e) < 0 ||
	    python_runtime.prepare(x.state[0], &s) < 0)
		abort();
	look(x.state[0], &s, version / VERSIONS);
	python_runtime.close(x.state[0]);
	block_index_free(s.index);
	large_free(s.lengths);
	for (uint32_t i = T_N; i < s.types.n; i++)
		free((char *)types[i].name);
	return 0;
}
