#include "heap/snapshot/chain.h"

#include "heap/snapshot/file.h"
#include "heap/snapshot/python.h"

#include <stdio.h>
#include <string.h>

/* Offsets in objects of CPython 3.8 to 3.14: PyListObject.ob_item, PyTupleObject.ob_item, PyModuleObject.md_dict. */
enum { LIST_ITEMS = 24, TUPLE_ITEMS = 24, MODULE_DICT = 16 };

static const struct type *type_of(const struct snapshot *s, uint32_t node)
{
	return &s->types.type[s->types.of[node]];
}

static bool is_python(const struct snapshot *s, uint32_t node, const char *name)
{
	const struct type *t = type_of(s, node);

	return t->by == TYPE_CPYTHON && strcmp(t->name, name) == 0;
}

static bool is_table(const struct snapshot *s, uint32_t node)
{
	return type_of(s, node)->by != TYPE_CPYTHON;
}

static void put_key(const struct snapshot *s, const struct chain_step *table, char *text,
		    size_t cap)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	struct python_memory python = { mem->read, mem->ctx };
	uint64_t addr = s->blocks.rows[table->node].addr;
	char key[PYTHON_TEXT_MAX];
	struct python_keys keys;

	if (s->stored && snapshot_file_link_name(s, table->node, table->at))
		snprintf(text, cap, "dict[\"%s\"]",
			 snapshot_file_link_name(s, table->node, table->at));
	else if (python_keys(&python, addr, &keys) &&
		 python_key_at(&python, &keys, addr + table->at, key))
		snprintf(text, cap, "dict[\"%s\"]", key);
	else
		snprintf(text, cap, "dict[…]");
}

static void put_index(const char *what, uint32_t i, bool exact, char text[CHAIN_TEXT_MAX])
{
	if (exact)
		snprintf(text, CHAIN_TEXT_MAX, "%s[%u]", what, i);
	else
		snprintf(text, CHAIN_TEXT_MAX, "%s[…]", what);
}

uint32_t chain_link(const struct snapshot *s, const struct chain_step *step, uint32_t n, bool exact,
		    char text[CHAIN_TEXT_MAX])
{
	const char *name = type_of(s, step->node)->name;
	uint32_t object = s->types.object[step->node], at = step->at - object;

	if (n == 1) {
		snprintf(text, CHAIN_TEXT_MAX, "%s", name);
		return 1;
	}
	if (n > 2 && is_table(s, step[1].node)) {
		if (at == PYTHON_MA_KEYS && is_python(s, step->node, "dict")) {
			if (exact)
				put_key(s, &step[1], text, CHAIN_TEXT_MAX);
			else
				snprintf(text, CHAIN_TEXT_MAX, "dict[…]");
			return 2;
		}
		if (at == LIST_ITEMS && is_python(s, step->node, "list")) {
			put_index("list", step[1].at / 8, exact, text);
			return 2;
		}
	}
	if (at >= TUPLE_ITEMS && is_python(s, step->node, "tuple"))
		put_index("tuple", (at - TUPLE_ITEMS) / 8, exact, text);
	else if (type_of(s, step->node)->by == TYPE_CPYTHON && step->at < object)
		snprintf(text, CHAIN_TEXT_MAX, "%s.__dict__", name);
	else if (at == MODULE_DICT && is_python(s, step->node, "module"))
		snprintf(text, CHAIN_TEXT_MAX, "module.__dict__");
	else if (exact)
		snprintf(text, CHAIN_TEXT_MAX, "%s+%u", name, at);
	else
		snprintf(text, CHAIN_TEXT_MAX, "%s", name);
	return 1;
}

bool chain_module_name(const struct snapshot *s, uint64_t addr, char *name, size_t cap)
{
	const struct heap_memory *mem = copy_memory(s->copy);
	struct python_memory python = { mem->read, mem->ctx };
	char text[PYTHON_TEXT_MAX];
	uint64_t dict;

	if (!mem->read(mem->ctx, addr + MODULE_DICT, &dict, 8) ||
	    !python_str(&python, python_dict_get(&python, dict, "__name__"), text))
		return false;
	snprintf(name, cap, "%s", text);
	return true;
}
