/*
 * A snapshot's file. The checksums of its table and sections are made right first, or nothing but those would be looked
 * at. Of what is then believed every question's way is gone: the graph, the roots, names, memory.
 */
#include "base/hash.h"
#include "heap/graph/dominators.h"
#include "heap/graph/leaks.h"
#include "heap/snapshot/file.h"
#include "heap/snapshot/retainers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *data, size_t size)
{
	struct file_section s;
	struct file_header h;

	if (size < sizeof(h))
		return;
	memcpy(&h, data, sizeof(h));
	h.bytes = size;
	if (h.table > size || h.n_sections > FILE_SECTIONS_MAX ||
	    h.n_sections * sizeof(s) > size - h.table)
		return;
	for (uint32_t i = 0; i < h.n_sections; i++) {
		memcpy(&s, data + h.table + i * sizeof(s), sizeof(s));
		if (s.at <= size && s.bytes <= size - s.at)
			s.checksum = content_hash(data + s.at, s.bytes);
		memcpy(data + h.table + i * sizeof(s), &s, sizeof(s));
	}
	h.table_checksum = content_hash(data + h.table, h.n_sections * sizeof(s));
	memcpy(data, &h, sizeof(h));
}

/* Who allocated it, by which stack. */
static uint64_t ask_site(const struct sites *s, uint32_t node)
{
	const struct site_stack *stack = &s->stack[s->stack_of[node]];
	char name[SITE_NAME_MAX];
	uint64_t word;

	sites_name(s, sites_of(s, node), name);
	word = strlen(name) + s->age_ms[node];
	for (uint32_t i = 0; i < stack->n; i++)
		word += site_is_named(s, &s->frame[stack->first + i], name);
	return word;
}

static volatile uint64_t sum; /* so that what is read is read */

static void ask(struct snapshot *s)
{
	_cleanup_(graph_dominators_fini) struct graph_dominators d = { 0 };
	_cleanup_(retainers_fini) struct retainers found = { 0 };
	_cleanup_(freep) uint8_t *reached = graph_reached(s->graph, s->graph_roots, s->n_roots);
	_cleanup_(freep) uint8_t *leaks = reached ? graph_leaks(s->graph, reached) : NULL;
	const struct heap_memory *mem = copy_memory(s->copy);
	uint32_t object = 0, offset;
	uint64_t word = leaks && s->blocks.n ? leaks[0] * 2 : 0, len;
	char bytes[64];

	graph_dominators_find(s->graph, s->reverse, s->graph_roots, s->n_roots, &d);
	if (s->blocks.n && retainers_find(s, &object, 1, ~0u, &found) == 0 && found.n)
		word += strlen(found.rows[0].links[0]);
	for (uint64_t i = 0; i < s->blocks.n && i < 64; i++) {
		word += s->sites ? ask_site(s->sites, (uint32_t)i) : 0;
		block_index_find(s->index, s->blocks.rows[i].addr + 1, &offset);
		word += heap_blocks_owner(&s->blocks, s->blocks.rows[i].owner)->arena;
		mem->read(mem->ctx, s->blocks.rows[i].addr, bytes, sizeof(bytes));
		if (copy_bytes(s->copy, s->blocks.rows[i].addr, &len))
			word += copy_bytes(s->copy, s->blocks.rows[i].addr, &len)[len - 1];
		snapshot_file_link_name(s, (uint32_t)i, 40);
	}
	for (uint64_t i = 0; i < s->n_roots; i++)
		word += s->roots[i].name ? strlen(s->roots[i].name) : 0;
	sum = word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) uint8_t *copy = aligned_alloc(64, (size + 64) & ~(size_t)63);
	struct snapshot *s = NULL;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	mend(copy, size);
	if (snapshot_file_read(copy, size, "input", "/tmp", &s, NULL) == 0)
		ask(s);
	snapshot_free(s);
	return 0;
}
