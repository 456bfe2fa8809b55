/*
 * Links of chains in the words of a Python program: `web.SESSIONS`, `web.User.cart`, `dict[…]`, `coroutine handle(): session`. The dict of a
 * module or an object, and the tables that dicts, lists, sets and deques keep beside themselves, are part of a link. Names of variables and
 * attributes are in the program's text; keys of other dicts are its data, and are not shown.
 */
#include "heap/python/python_heap.h"

#include "base/hash.h"
#include "base/large.h"
#include "heap/snapshot/chain.h"
#include "heap/snapshot/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	MODULE_DICT = 16, /* the same in 3.8 to 3.14 */
	ITEMS = 24,       /* of a tuple, and where a list refers to its own */
	MANAGED_DICT = -24,
	TP_BASE = 256,
	TP_MEMBERS = 240,
	MEMBER_BYTES = 40, /* PyMemberDef: name:8 type:4 … offset:8 … */
	MEMBER_OFFSET = 16,
	MEMBERS_MAX = 256,
	BASES_MAX = 64,
	EXCEPTION_ARGS = 24,
	OLD_FRAME_CODE = 32,
	PYTHON_ENTRIES = -1, /* no place in a table: how its entries lie */
};

#define EXCEPTION (1ULL << 30) /* Py_TPFLAGS_BASE_EXC_SUBCLASS */

/* Fields of CPython's own objects, whose names are in memory that a copy leaves out. Versions: 0: from the first, to the last. */
static const struct {
	const char *type, *field;
	uint16_t at;
	uint8_t from, to;
} fields[] = {
	{ "function", "__code__", 16, 0, 9 },
	{ "function", "__globals__", 24, 0, 9 },
	{ "function", "__defaults__", 32, 0, 9 },
	{ "function", "__closure__", 48, 0, 9 },
	{ "function", "__globals__", 16, 10, 0 },
	{ "function", "__code__", 48, 10, 0 },
	{ "function", "__defaults__", 56, 10, 0 },
	{ "function", "__closure__", 72, 10, 0 },
	{ "generator", "gi_frame", 16, 0, 10 },
	{ "coroutine", "cr_frame", 16, 0, 10 },
	{ "traceback", "tb_next", 16 },
	{ "traceback", "tb_frame", 24 },
	{ "frame", "f_back", 24, 0, 10 },
	{ "frame", "f_back", 16, 11, 0 },
	{ "slice", "start", 16 },
	{ "slice", "stop", 24 },
	{ "slice", "step", 32 },
	{ "cell", "cell_contents", 16 },
	{ "method", "__func__", 16 },
	{ "method", "__self__", 24 },
	{ "builtin_function_or_method", "__self__", 24 },
	{ "functools.partial", "func", 16 },
	{ "functools.partial", "args", 24 },
	{ "functools.partial", "keywords", 32 },
	{ "property", "fget", 16 },
	{ "weakref", "__callback__", 24 },
	{ "weakref.ReferenceType", "__callback__", 24 },
	{ "module", "__dict__", MODULE_DICT },
};

struct link {
	const struct snapshot *s;
	const struct python_heap *h; /* NULL: of a file */
	const struct chain_step *step;
	uint32_t n;
	bool exact;
	const char *name;
	int64_t at; /* from the object */
};

const struct python_heap *python_heap_of(const struct snapshot *s)
{
	for (uint32_t i = 0; s->exact && i < s->exact->n; i++)
		if (s->exact->runtime[i] == &python_runtime)
			return ((const struct python_heap *)s->exact->state[i])->ready
				       ? s->exact->state[i]
				       : NULL;
	return NULL;
}

static const struct type *type_of(const struct snapshot *s, uint32_t node)
{
	return &s->types.type[s->types.of[node]];
}

/* Step `i` is a table. */
static bool is_table(const struct link *l, uint32_t i)
{
	return i < l->n && type_of(l->s, l->step[i].node)->by == TYPE_CPYTHON_TABLE;
}

static enum python_shape shape_of(const struct link *l, uint32_t node)
{
	static const struct {
		const char *name;
		enum python_shape shape;
	} named[] = {
		{ "dict", PYTHON_DICT },
		{ "list", PYTHON_LIST },
		{ "set", PYTHON_SET },
		{ "frozenset", PYTHON_SET },
		{ "collections.deque", PYTHON_DEQUE },
		{ "type", PYTHON_TYPE },
		{ "collections.OrderedDict", PYTHON_DICT },
		{ "collections.defaultdict", PYTHON_DICT },
	};
	const struct python_class *c = l->h ? python_class_of(l->h, l->s, node) : NULL;

	for (size_t i = 0; !c && i < sizeof(named) / sizeof(*named); i++)
		if (strcmp(type_of(l->s, node)->name, named[i].name) == 0)
			return named[i].shape;
	return c ? (enum python_shape)c->shape : PYTHON_PLAIN;
}

/* --- names --- */

static bool text_at(const struct link *l, uint64_t at, char text[PYTHON_TEXT_MAX])
{
	const struct heap_memory *mem = copy_memory(l->h->copy);
	struct python_memory python = { mem->read, mem->ctx };

	return at && python_str(&python, at, text);
}

/* The name that entry number `i` of keys has, where values are elsewhere. */
static bool shared_name(const struct link *l, uint64_t at, uint64_t i, char text[PYTHON_TEXT_MAX])
{
	struct python_keys keys;

	return at && python_keys_of(l->h, at, &keys) && i < keys.n &&
	       text_at(l, python_word(l->h, keys.entries + i * keys.bytes + keys.key), text);
}

/* The name of the entry of a dict of names that step `i`, its table, leads on from; `dict`: that dict. */
static bool entry_name(const struct link *l, uint32_t i, uint64_t dict, char text[PYTHON_TEXT_MAX])
{
	const struct chain_step *table = &l->step[i];
	uint64_t addr = l->s->blocks.rows[table->node].addr;
	const char *stored;
	struct python_keys keys;

	if (!l->h) {
		stored =
			l->s->stored ? snapshot_file_link_name(l->s, table->node, table->at) : NULL;
		if (stored)
			snprintf(text, PYTHON_TEXT_MAX, "%s", stored);
		return stored;
	}
	if (l->h->table[table->node] == PYTHON_DICT_VALUES)
		return shared_name(l, dict ? python_word(l->h, dict + PYTHON_MA_KEYS) : 0,
				   table->at / 8 - l->h->begin[table->node], text);
	if (!python_keys_of(l->h, addr, &keys) || addr + table->at < keys.entries)
		return false;
	return text_at(l,
		       python_word(l->h, keys.entries +
						 (addr + table->at - keys.entries) / keys.bytes *
							 keys.bytes +
						 keys.key),
		       text);
}

/* Of a file: the name of the field that the link leaves its first object by; NULL. */
static const char *stored_field(const struct link *l)
{
	return l->s->stored ? snapshot_file_field_name(l->s, l->s->types.of[l->step->node],
						       (int32_t)l->at)
			    : NULL;
}

/* A name that ends with a NUL. */
static bool read_name(const struct link *l, uint64_t at, char text[PYTHON_TEXT_MAX])
{
	const struct heap_memory *mem = copy_memory(l->h->copy);

	for (size_t n = 0; n < PYTHON_TEXT_MAX; n++) {
		if (!mem->read(mem->ctx, at + n, text + n, 1) || (uint8_t)text[n] > 0x7e)
			return false;
		if (!text[n])
			return n > 0;
		if ((uint8_t)text[n] < 0x21)
			return false;
	}
	return false;
}

/* A member that the class or one of its bases declares (__slots__). */
static bool member_name(const struct link *l, char text[PYTHON_TEXT_MAX])
{
	uint64_t type = type_of(l->s, l->step->node)->at;

	for (int i = 0; i < BASES_MAX && type; i++, type = python_word(l->h, type + TP_BASE)) {
		uint64_t member = python_word(l->h, type + TP_MEMBERS);

		for (int k = 0; k < MEMBERS_MAX && member; k++, member += MEMBER_BYTES) {
			uint64_t name = python_word(l->h, member);

			if (!name)
				break;
			if ((int64_t)python_word(l->h, member + MEMBER_OFFSET) == l->at)
				return read_name(l, name, text);
		}
	}
	return false;
}

static bool is_of_version(const struct link *l, uint8_t from, uint8_t to)
{
	uint32_t minor = l->h ? l->h->version->minor : 0;

	return (!from && !to) || (minor && minor >= from && (!to || minor <= to));
}

/* PyBaseExceptionObject: dict, args, notes (3.11), traceback, context, cause. */
static bool exception_field(const struct link *l, char text[PYTHON_TEXT_MAX])
{
	static const char *const names[] = { "args", "__notes__", "__traceback__", "__context__",
					     "__cause__" };
	int64_t i = (l->at - EXCEPTION_ARGS) / 8;

	if (!l->h || l->at < EXCEPTION_ARGS ||
	    !(python_word(l->h, type_of(l->s, l->step->node)->at + PYTHON_TP_FLAGS) & EXCEPTION))
		return false;
	if (i && l->h->version->minor < 11)
		i++;
	if (i >= (int64_t)(sizeof(names) / sizeof(*names)))
		return false;
	snprintf(text, PYTHON_TEXT_MAX, "%s", names[i]);
	return true;
}

static bool field_name(const struct link *l, char text[PYTHON_TEXT_MAX])
{
	if (stored_field(l)) {
		snprintf(text, PYTHON_TEXT_MAX, "%s", stored_field(l));
		return true;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i].at == l->at && strcmp(fields[i].type, l->name) == 0 &&
		    is_of_version(l, fields[i].from, fields[i].to)) {
			snprintf(text, PYTHON_TEXT_MAX, "%s", fields[i].field);
			return true;
		}
	return exception_field(l, text) || (l->h && member_name(l, text));
}

/* --- links; each returns how many steps it takes, 0: it is not one of these --- */

/* Its dict is the next step. */
static bool is_own_dict(const struct link *l, const struct python_class *c)
{
	const char *stored = stored_field(l);

	return l->n > 1 && shape_of(l, l->step[1].node) == PYTHON_DICT &&
	       (l->at == MANAGED_DICT || (c && c->dict > 0 && l->at == c->dict) ||
		(stored && strcmp(stored, "__dict__") == 0));
}

static uint32_t put_attribute(const struct link *l, const char *of, const char *name, bool known,
			      uint32_t took, char text[CHAIN_TEXT_MAX])
{
	snprintf(text, CHAIN_TEXT_MAX, "%s.%s", of, known ? name : "…");
	return took;
}

/* A file has the names of modules that are roots. */
static const char *root_name(const struct link *l)
{
	uint64_t low = 0, high = l->s->n_roots;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (l->s->roots[mid].node < l->step->node)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->s->n_roots && l->s->roots[low].node == l->step->node &&
			       l->s->roots[low].kind == SNAPSHOT_ROOT_MODULE
		       ? l->s->roots[low].name
		       : NULL;
}

static uint32_t module_link(const struct link *l, char text[CHAIN_TEXT_MAX])
{
	char name[PYTHON_TEXT_MAX], module[PYTHON_TEXT_MAX] = "module";
	uint64_t dict;

	if (strcmp(l->name, "module") != 0 || l->at != MODULE_DICT || l->n < 4 || !is_table(l, 2))
		return 0;
	if (l->h)
		chain_module_name(l->s, python_object(l->s, l->step->node), module, sizeof(module));
	else if (root_name(l))
		snprintf(module, sizeof(module), "%s", root_name(l));
	dict = python_object(l->s, l->step[1].node);
	return put_attribute(l, module, name, l->exact && entry_name(l, 2, dict, name), 3, text);
}

/* Attributes in a dict of its own, in values beside it or in it. */
static uint32_t instance_link(const struct link *l, char text[CHAIN_TEXT_MAX])
{
	const struct python_class *c = l->h ? python_class_of(l->h, l->s, l->step->node) : NULL;
	char name[PYTHON_TEXT_MAX];

	if (is_own_dict(l, c) && l->n > 3 && is_table(l, 2))
		return put_attribute(l, l->name, name,
				     entry_name(l, 2, python_object(l->s, l->step[1].node), name),
				     3, text);
	if (!l->h && l->at < 0 && l->n > 2 && is_table(l, 1))
		return put_attribute(l, l->name, name, entry_name(l, 1, 0, name), 2, text);
	if (l->at < 0 && l->n > 2 && is_table(l, 1))
		return put_attribute(
			l, l->name, name,
			c && shared_name(l, c->shared_keys,
					 l->step[1].at / 8 - l->h->begin[l->step[1].node], name),
			2, text);
	if (c && c->inline_values && l->at >= (int64_t)c->size + 8)
		return put_attribute(
			l, l->name, name,
			shared_name(l, c->shared_keys, (l->at - c->size - 8) / 8, name), 1, text);
	return 0;
}

/* "class web.User"; of a file the link that leaves it by its dict has that name. */
static void class_name(const struct link *l, char of[CHAIN_TEXT_MAX / 2])
{
	uint64_t class = python_object(l->s, l->step->node);
	char name[PYTHON_TEXT_MAX];

	snprintf(of, CHAIN_TEXT_MAX / 2, "class");
	if (l->h && read_name(l, python_word(l->h, class + PYTHON_TP_NAME), name))
		snprintf(of, CHAIN_TEXT_MAX / 2, "class %s", name);
	for (uint32_t i = 1; i < l->s->types.n; i++)
		if (l->s->types.type[i].at == class && l->s->types.type[i].by == TYPE_CPYTHON)
			snprintf(of, CHAIN_TEXT_MAX / 2, "class %.200s", l->s->types.type[i].name);
}

static uint32_t class_link(const struct link *l, char text[CHAIN_TEXT_MAX])
{
	char name[PYTHON_TEXT_MAX], of[CHAIN_TEXT_MAX / 2];
	const char *stored =
		l->s->stored ? snapshot_file_link_name(l->s, l->step->node, l->step->at) : NULL;

	if ((!stored && shape_of(l, l->step->node) != PYTHON_TYPE) || l->at != PYTHON_TP_DICT ||
	    l->n < 4 || !is_table(l, 2))
		return 0;
	class_name(l, of);
	return put_attribute(l, stored ? stored : of, name,
			     entry_name(l, 2, python_object(l->s, l->step[1].node), name), 3, text);
}

/* Is the place in a dict's table, step 1, one of a key? A file has how the entries of each table lie, as its name at -1. */
static bool is_key(const struct link *l)
{
	uint64_t table = l->s->blocks.rows[l->step[1].node].addr, at = table + l->step[1].at;
	struct python_keys keys;
	const char *stored =
		l->s->stored ? snapshot_file_link_name(l->s, l->step[1].node, PYTHON_ENTRIES)
			     : NULL;
	unsigned entries, bytes, key;

	if (l->h)
		return l->h->table[l->step[1].node] == PYTHON_DICT_KEYS &&
		       python_keys_of(l->h, table, &keys) && at >= keys.entries &&
		       (at - keys.entries) % keys.bytes == keys.key;
	return stored && sscanf(stored, "%u %u %u", &entries, &bytes, &key) == 3 && bytes &&
	       l->step[1].at >= entries && (l->step[1].at - entries) % bytes == key;
}

/* What it contains: in a table, or in itself. */
static uint32_t container_link(const struct link *l, char text[CHAIN_TEXT_MAX])
{
	enum python_shape shape = shape_of(l, l->step->node);
	bool is_tuple = strcmp(l->name, "tuple") == 0 && l->at >= ITEMS;
	bool in_table = l->n > 2 && is_table(l, 1);
	uint32_t took = 1;

	while (in_table && took + 1 < l->n && is_table(l, took))
		took++;
	if (is_tuple || (shape == PYTHON_LIST && in_table)) {
		uint64_t i = is_tuple ? (uint64_t)(l->at - ITEMS) / 8 : l->step[1].at / 8;

		if (l->exact)
			snprintf(text, CHAIN_TEXT_MAX, "%s[%llu]", l->name, (unsigned long long)i);
		else
			snprintf(text, CHAIN_TEXT_MAX, "%s[…]", l->name);
		return took;
	}
	if (shape == PYTHON_DICT && in_table) {
		snprintf(text, CHAIN_TEXT_MAX, is_key(l) ? "a key of %s" : "%s[…]", l->name);
		return took;
	}
	if (shape == PYTHON_DEQUE && in_table) {
		snprintf(text, CHAIN_TEXT_MAX, "%s[…]", l->name);
		return took;
	}
	if (shape == PYTHON_SET) {
		snprintf(text, CHAIN_TEXT_MAX, "%s{…}", l->name);
		return took;
	}
	return 0;
}

/* A local of a frame; from 3.11 on generators and coroutines have theirs in themselves. */
static uint32_t frame_link(const struct link *l, char text[CHAIN_TEXT_MAX])
{
	char function[PYTHON_FUNCTION_MAX], local[PYTHON_TEXT_MAX];
	const struct python_version *v = l->h ? l->h->version : NULL;
	const char *stored =
		l->s->stored ? snapshot_file_link_name(l->s, l->step->node, l->step->at) : NULL;
	enum python_shape shape = shape_of(l, l->step->node);
	uint64_t object = python_object(l->s, l->step->node), code;
	int64_t frame = !v ? 0 : shape == PYTHON_FRAME ? v->frame_inline : v->generator_frame;
	int64_t at = l->at - (frame ? frame + v->iframe_locals : v ? v->frame_locals : 0);

	if (stored && l->at != PYTHON_TP_DICT) {
		snprintf(text, CHAIN_TEXT_MAX, "%s", stored);
		return 1;
	}
	if (!v || at < 0 ||
	    (shape != PYTHON_FRAME && (shape != PYTHON_GENERATOR || !v->generator_frame)))
		return 0;
	code = python_word(l->h, frame ? object + (uint64_t)frame + v->iframe_code
				       : object + OLD_FRAME_CODE) &
	       ~3ULL;
	python_function(l->h, code, function);
	if (python_local(l->h, code, (uint64_t)at / 8, local))
		snprintf(text, CHAIN_TEXT_MAX, "%.20s %.320s: %s", l->name, function, local);
	else
		snprintf(text, CHAIN_TEXT_MAX, "%.20s %.320s", l->name, function);
	return 1;
}

uint32_t python_chain_link(const struct snapshot *s, const struct chain_step *step, uint32_t n,
			   bool exact, char text[CHAIN_TEXT_MAX])
{
	struct link l = { s,
			  python_heap_of(s),
			  step,
			  n,
			  exact,
			  type_of(s, step->node)->name,
			  (int64_t)step->at - s->types.object[step->node] };
	char name[PYTHON_TEXT_MAX];
	uint32_t took;

	if (type_of(s, step->node)->by != TYPE_CPYTHON || n < 2)
		return 0;
	took = module_link(&l, text);
	took = took ? took : class_link(&l, text);
	took = took ? took : instance_link(&l, text);
	took = took ? took : container_link(&l, text);
	took = took ? took : frame_link(&l, text);
	if (took)
		return took;
	if (l.at == PYTHON_OB_TYPE)
		snprintf(text, CHAIN_TEXT_MAX, "%s.__class__", l.name);
	else if (l.at == MANAGED_DICT ||
		 is_own_dict(&l, l.h ? python_class_of(l.h, s, step->node) : NULL))
		snprintf(text, CHAIN_TEXT_MAX, "%s.__dict__", l.name);
	else if (field_name(&l, name))
		snprintf(text, CHAIN_TEXT_MAX, "%s.%s", l.name, name);
	else if (exact && l.at >= 0)
		snprintf(text, CHAIN_TEXT_MAX, "%s+%lld", l.name, (long long)l.at);
	else
		snprintf(text, CHAIN_TEXT_MAX, "%s", l.name);
	return 1;
}

/* --- for a file --- */

struct namer {
	struct link l;
	struct chain_step steps[4];
	uint8_t *seen; /* of each node: the names of what leaves it are known */
	struct field *fields;
	python_name_fn fn;
	void *ctx;
};

/* Of a type, a place in its objects that was looked at. */
struct field {
	uint64_t key;
	UT_hash_handle hh;
};

/* Each entry of a table, step `i`, whose name entry_name() or the class knows. */
static void name_entries(struct namer *n, uint32_t i, uint64_t dict)
{
	const struct graph *g = n->l.s->graph;
	uint32_t table = n->steps[i].node;
	const struct python_class *c = python_class_of(n->l.h, n->l.s, n->steps[0].node);
	char name[PYTHON_TEXT_MAX];

	if (n->seen[table])
		return;
	n->seen[table] = 1;
	for (uint64_t e = g->first[table]; e < g->first[table + 1]; e++) {
		bool known;

		n->steps[i].at = g->edges[e].at;
		known = dict ? entry_name(&n->l, i, dict, name)
			     : c && shared_name(&n->l, c->shared_keys,
						n->steps[i].at / 8 - n->l.h->begin[table], name);
		if (known)
			n->fn(n->ctx, false, table, (int32_t)n->steps[i].at, name);
	}
}

static void name_dict(struct namer *n)
{
	const struct graph *g = n->l.s->graph;
	uint32_t dict = n->steps[1].node;

	for (uint64_t e = g->first[dict]; e < g->first[dict + 1]; e++) {
		n->steps[1].at = g->edges[e].at;
		n->steps[2] = (struct chain_step){ g->edges[e].to, 0 };
		if (is_table(&n->l, 2))
			name_entries(n, 2, python_object(n->l.s, dict));
	}
}

/* Once for each type and place. */
static void name_field(struct namer *n, const struct python_class *c)
{
	uint32_t type = n->l.s->types.of[n->steps[0].node];
	uint64_t key = (uint64_t)type << 32 | (uint32_t)n->l.at;
	char name[PYTHON_TEXT_MAX];
	struct field *known;
	bool found;

	HASH_FIND(hh, n->fields, &key, sizeof(key), known);
	if (known || !hash_new(n->fields, key, &key))
		return;
	if (is_own_dict(&n->l, c)) {
		snprintf(name, sizeof(name), "__dict__");
		found = n->l.at != MANAGED_DICT;
	} else if (c && c->inline_values && n->l.at >= (int64_t)c->size + 8) {
		found = shared_name(&n->l, c->shared_keys, (uint64_t)(n->l.at - c->size - 8) / 8,
				    name);
	} else {
		found = field_name(&n->l, name);
	}
	if (found)
		n->fn(n->ctx, true, type, (int32_t)n->l.at, name);
}

static void name_edge(struct namer *n, const struct graph_edge *edge)
{
	const struct snapshot *s = n->l.s;
	uint32_t node = n->steps[0].node;
	const struct python_class *c = python_class_of(n->l.h, s, node);
	char text[CHAIN_TEXT_MAX];

	n->steps[0].at = edge->at;
	n->steps[1] = (struct chain_step){ edge->to, 0 };
	n->l.at = (int64_t)edge->at - s->types.object[node];
	if (frame_link(&n->l, text)) {
		n->fn(n->ctx, false, node, (int32_t)edge->at, text);
		return;
	}
	if (shape_of(&n->l, node) == PYTHON_TYPE && n->l.at == PYTHON_TP_DICT) {
		class_name(&n->l, text);
		n->fn(n->ctx, false, node, (int32_t)edge->at, text);
		name_dict(n);
	} else if (is_own_dict(&n->l, c) ||
		   (strcmp(n->l.name, "module") == 0 && n->l.at == MODULE_DICT)) {
		name_dict(n);
	} else if (n->l.at < 0 && is_table(&n->l, 1)) {
		name_entries(n, 1, 0);
	}
	name_field(n, c);
}

/* "OFFSET BYTES KEY": where in it its entries begin, how many bytes each has, and where in that its key is. */
static void name_table(struct namer *n, uint32_t table)
{
	uint64_t addr = n->l.s->blocks.rows[table].addr;
	struct python_keys keys;
	char text[64];

	if (n->l.h->table[table] != PYTHON_DICT_KEYS || !python_keys_of(n->l.h, addr, &keys))
		return;
	snprintf(text, sizeof(text), "%u %u %u", (unsigned)(keys.entries - addr), keys.bytes,
		 keys.key);
	n->fn(n->ctx, false, table, PYTHON_ENTRIES, text);
}

int python_names(const struct snapshot *s, python_name_fn fn, void *ctx)
{
	struct namer n = { .l = { .s = s, .h = python_heap_of(s), .n = 4, .exact = true },
			   .fn = fn,
			   .ctx = ctx };

	if (!n.l.h)
		return 0;
	n.l.step = n.steps;
	n.seen = large_alloc(s->blocks.n + 1, 1);
	if (!n.seen)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->blocks.n; i++) {
		if (type_of(s, i)->by == TYPE_CPYTHON_TABLE)
			name_table(&n, i);
		if (type_of(s, i)->by != TYPE_CPYTHON)
			continue;
		n.steps[0].node = i;
		n.l.name = type_of(s, i)->name;
		for (uint64_t e = s->graph->first[i]; e < s->graph->first[i + 1]; e++)
			name_edge(&n, &s->graph->edges[e]);
	}
	large_free(n.seen);
	hash_free(n.fields);
	return 0;
}
