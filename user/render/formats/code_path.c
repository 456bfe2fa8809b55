#include "render/formats/code_path.h"

#include <errno.h>
#include <stdlib.h>

static struct code_place place_of(struct dict *d, location_id loc, uint32_t i)
{
	const struct location *l = dict_location_get(d, loc);
	struct frame f = frame_get(d, loc, i);
	struct code_place p = { .function = { .name = f.name, .module = f.module },
				.kind = f.kind,
				.vaddr = l->vaddr };

	if (i < l->n_lines) {
		p.function.file = l->lines[i].file;
		p.line = l->lines[i].line;
	}
	return p;
}

int code_path_set(struct code_path *path, struct dict *d, stack_id stack)
{
	uint32_t n = 0;

	for (stack_id s = stack; s.ix; s = dict_stack_parent(d, s))
		n += frame_count(d, dict_stack_leaf(d, s));
	if (n > path->cap) {
		struct code_place *grown = realloc(path->places, n * 2ul * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		path->places = grown;
		path->cap = n * 2;
	}
	path->n = n;
	for (stack_id s = stack; s.ix; s = dict_stack_parent(d, s)) {
		location_id leaf = dict_stack_leaf(d, s);
		uint32_t here = frame_count(d, leaf);

		for (uint32_t i = 0; i < here; i++)
			path->places[--n] = place_of(d, leaf, i);
	}
	return 0;
}

void code_path_fini(struct code_path *path)
{
	free(path->places);
	*path = (struct code_path){ 0 };
}
