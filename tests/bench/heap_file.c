/*
 * A made-up heap of many small blocks, through all that memscope heap does with one but for copying memory and looking at its words:
 * listed, linked, reversed, written to a file, opened again, and asked. Prints for each step how long it took and how much
 * anonymous memory the program then had.
 *
 *   heap_file BLOCKS FOLDER
 *
 * Blocks are of 16 to 192 bytes, 104 on average; each refers to 1.5 others on average, half of them near and half of them anywhere.
 */
#include "base/clock.h"
#include "base/large.h"
#include "heap/graph/dominators.h"
#include "heap/snapshot/file.h"
#include "heap/snapshot/retainers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TYPES = 200, ROOTS = 5000, NEAR = 64 };

static uint64_t began_ns, most_kib;

static uint64_t anonymous_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	uint64_t kib = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %" SCNu64, &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void done(const char *what)
{
	uint64_t kib = anonymous_kib();

	most_kib = kib > most_kib ? kib : most_kib;
	printf("| %s | %.1f | %" PRIu64 " |\n", what, (double)(now_ns() - began_ns) / 1e9,
	       kib >> 10);
	fflush(stdout);
	began_ns = now_ns();
}

/* The same for the same node, so that both passes see the same edges. */
static uint64_t draw(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	uint64_t x = *state;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static void each_edge(struct snapshot *s, uint32_t n, bool count)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t state = i, edges = draw(&state) % 4; /* 0 to 3 */

		for (uint64_t k = 0; k < edges; k++) {
			uint64_t x = draw(&state);
			uint32_t to = x & 1 ? (uint32_t)((i + 1 + (x >> 1) % NEAR) % n)
					    : (uint32_t)((x >> 1) % n);

			if (count)
				graph_count(s->graph, i);
			else
				graph_add(s->graph, i, to, (uint32_t)(8 * k));
		}
	}
}

static void make_types(struct snapshot *s, uint32_t n)
{
	types_init(&s->types);
	for (int i = 1; i < TYPES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "app::Type%d", i);
		types_add(&s->types, TYPE_RTTI, name, 0x1000 + (uint64_t)i * 64);
	}
	s->types.of = large_alloc(n + 1ul, 4);
	s->types.object = large_alloc(n + 1ul, 1);
	for (uint32_t i = 0; i < n; i++)
		s->types.of[i] = (i * 2654435761u >> 8) % TYPES;
}

static void make_roots(struct snapshot *s, uint32_t n)
{
	s->roots = large_alloc(ROOTS, sizeof(*s->roots));
	s->n_roots = ROOTS;
	for (uint32_t i = 0; i < ROOTS; i++)
		s->roots[i] = (struct snapshot_root){ .node = (uint32_t)((uint64_t)i * n / ROOTS),
						      .kind = SNAPSHOT_ROOT_GLOBAL,
						      .at = 0x10000 + 8ul * i };
}

static struct snapshot *make(uint32_t n)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct copy_parts parts = { 0 };
	uint64_t addr = 0x7f0000000000;

	copy_of_parts(&parts, &s->copy);
	s->blocks.max = UINT32_MAX - 1;
	heap_blocks_allocator(&s->blocks, "glibc");
	for (uint32_t i = 0; i < n; i++) {
		uint64_t state = i, bytes = 16 + 8 * (draw(&state) % 23);

		heap_blocks_add(&s->blocks, addr, bytes, bytes);
		addr += bytes;
	}
	printf("%" PRIu64
	       " blocks, %.2f GB\n\n| step | s | anonymous MiB behind it |\n|---|---|---|\n",
	       s->blocks.n, (double)s->blocks.all.words * 8e-9);
	done("list the blocks");
	make_types(s, n);
	done("types");
	s->index = block_index_new(s->blocks.rows, s->blocks.n);
	done("index of addresses");
	s->graph = graph_new(n);
	each_edge(s, n, true);
	graph_lay_out(s->graph);
	each_edge(s, n, false);
	graph_finish(s->graph);
	done("references");
	s->reverse = graph_reversed(s->graph);
	done("the same the other way round");
	make_roots(s, n);
	return s;
}

static void ask(const struct snapshot *s)
{
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	uint32_t object = (uint32_t)s->blocks.n / 2;
	struct retainers found = { 0 };

	if (retainers_find(s, &object, 1, ~0u, &found) == 0)
		done("retainers of an object");
	retainers_fini(&found);
	if (graph_dominators_find(s->graph, s->reverse, s->graph_roots, s->n_roots, &d) == 0)
		done("dominators");
}

int main(int argc, char **argv)
{
	struct snapshot_write how = { FILE_CONTENTS_NONE, NULL, NULL };
	struct snapshot_writer *w = NULL;
	struct snapshot *s;
	struct err e = { 0 };
	uint64_t bytes = 0;
	char path[4096];

	if (argc != 3)
		return 2;
	large_use(argv[2], LARGE_LEAST);
	snprintf(path, sizeof(path), "%s/memscope-bench.snapshot", argv[2]);
	began_ns = now_ns();
	s = make((uint32_t)strtoul(argv[1], NULL, 10));
	if (snapshot_writer_new(path, &w, &e) < 0 ||
	    snapshot_writer_put(w, s, &how, &bytes, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	snapshot_writer_free(w);
	done("write the file");
	snapshot_free(s);
	done("(let go)");
	if (snapshot_file_open(path, argv[2], &s, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	done("open the file");
	ask(s);
	snapshot_free(s);
	unlink(path);
	printf("\nThe file had %.2f GB; at most %" PRIu64 " MiB of anonymous memory.\n",
	       (double)bytes * 1e-9, most_kib >> 10);
	return 0;
}
