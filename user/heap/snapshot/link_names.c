#include "heap/snapshot/link_names.h"

#include "base/large.h"
#include "heap/snapshot/python.h"

#include <errno.h>
#include <string.h>

/*
 * Offsets in objects of CPython 3.8 to 3.14: PyModuleObject.md_dict, PyTypeObject.tp_dictoffset; and where the dict of an
 * object is that has it before itself, from 3.11 on (Include/internal/pycore_object.h, MANAGED_DICT_OFFSET).
 */
enum { MODULE_DICT = 16, TP_DICTOFFSET = 288, BEFORE_DICT = -24 };

struct finder {
	const struct snapshot *s;
	struct python_memory mem;
	struct link_names *to;
	uint8_t *seen;         /* of each node: its entries are listed */
	uint64_t *dict_offset; /* of each type: tp_dictoffset        */
	uint32_t dict, module, class;
	bool oom;
};

static uint64_t word_at(const struct finder *f, uint64_t addr)
{
	uint64_t word;

	return addr % 8 == 0 && f->mem.read(f->mem.ctx, addr, &word, 8) ? word : 0;
}

static void add(struct finder *f, uint32_t node, uint64_t at, uint64_t key)
{
	struct link_names *to = f->to;

	if (to->n == LINK_NAMES_MAX) {
		to->left_out++;
		return;
	}
	if (to->n == to->room) {
		uint64_t room = to->room ? 2 * to->room : 1024;
		struct link_name *more = large_resize(to->rows, room, sizeof(*more));

		f->oom = !more;
		if (!more)
			return;
		to->rows = more;
		to->room = room;
	}
	to->rows[to->n++] = (struct link_name){ node, (uint32_t)at, key };
}

/* The keys of a table, once. */
static void add_keys(struct finder *f, uint64_t table)
{
	const struct heap_block *row;
	struct python_keys keys;
	uint32_t offset, node = block_index_find(f->s->index, table, &offset);

	if (node == BLOCK_NONE || f->seen[node] || !python_keys(&f->mem, table, &keys))
		return;
	f->seen[node] = 1;
	row = &f->s->blocks.rows[node];
	for (uint64_t i = 0; i < keys.n && !f->oom; i++) {
		uint64_t entry = keys.entries + i * keys.bytes, key;

		if (entry + keys.bytes > row->addr + 8 * (uint64_t)row->words)
			return;
		key = word_at(f, entry + keys.key);
		if (key)
			add(f, node, entry - row->addr, key);
	}
}

/* If it is a dict. */
static void add_dict(struct finder *f, uint64_t dict)
{
	uint32_t offset, node = dict ? block_index_find(f->s->index, dict, &offset) : BLOCK_NONE;

	if (node != BLOCK_NONE && f->s->types.of[node] == f->dict &&
	    offset == f->s->types.object[node])
		add_keys(f, word_at(f, dict + PYTHON_MA_KEYS));
}

static void look_at(struct finder *f, uint32_t node, bool all)
{
	uint32_t type = f->s->types.of[node], before = f->s->types.object[node];
	uint64_t at = f->s->blocks.rows[node].addr + before;

	if (f->s->types.type[type].by != TYPE_CPYTHON)
		return;
	if (type == f->dict) {
		if (all)
			add_dict(f, at);
		return;
	}
	if (type == f->module)
		add_dict(f, word_at(f, at + MODULE_DICT));
	else if (f->dict_offset[type] && f->dict_offset[type] < 1 << 20)
		add_dict(f, word_at(f, at + f->dict_offset[type]));
	if (type == f->class)
		add_dict(f, word_at(f, at + PYTHON_TP_DICT));
	if (before >= 32)
		add_dict(f, word_at(f, at + BEFORE_DICT));
}

static int by_place(const void *a, const void *b)
{
	const struct link_name *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void find_types(struct finder *f)
{
	for (uint32_t i = 1; i < f->s->types.n; i++) {
		const struct type *t = &f->s->types.type[i];

		if (t->by != TYPE_CPYTHON)
			continue;
		f->dict_offset[i] = word_at(f, t->at + TP_DICTOFFSET);
		if (strcmp(t->name, "dict") == 0)
			f->dict = i;
		else if (strcmp(t->name, "module") == 0)
			f->module = i;
		else if (strcmp(t->name, "type") == 0)
			f->class = i;
	}
}

int link_names_find(const struct snapshot *s, bool all, struct link_names *ret_names)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	struct finder f = { .s = s, .mem = { mem->read, mem->ctx }, .to = ret_names };

	*ret_names = (struct link_names){ 0 };
	f.seen = large_alloc(s->blocks.n + 1, 1);
	f.dict_offset = calloc(s->types.n + 1, sizeof(*f.dict_offset));
	f.oom = !f.seen || !f.dict_offset;
	if (!f.oom)
		find_types(&f);
	for (uint32_t i = 0; f.dict && i < s->blocks.n && !f.oom; i++)
		look_at(&f, i, all);
	if (!f.oom && ret_names->n)
		qsort(ret_names->rows, ret_names->n, sizeof(*ret_names->rows), by_place);
	large_free(f.seen);
	free(f.dict_offset);
	return f.oom ? -ENOMEM : 0;
}
