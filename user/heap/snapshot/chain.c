#include "heap/snapshot/chain.h"

#include "heap/snapshot/python.h"

#include <stdio.h>

enum { MODULE_DICT = 16 }; /* of CPython 3.8 to 3.14: PyModuleObject.md_dict */

static const struct type *type_of(const struct snapshot *s, uint32_t node)
{
	return &s->types.type[s->types.of[node]];
}

uint32_t chain_link(const struct snapshot *s, const struct chain_step *step, uint32_t n, bool exact,
		    char text[CHAIN_TEXT_MAX])
{
	const char *name = type_of(s, step->node)->name;
	uint32_t took = python_chain_link(s, step, n, exact, text);

	if (took)
		return took;
	if (n > 1 && collection_is_stale(&s->collections, step->node, step->at))
		snprintf(text, CHAIN_TEXT_MAX, "%s, outside of its elements", name);
	else if (n > 1 && exact)
		snprintf(text, CHAIN_TEXT_MAX, "%s+%u", name,
			 step->at - s->types.object[step->node]);
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
