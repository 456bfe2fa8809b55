#include "render/formats/code_path.h"

#include <errno.h>
#include <stdlib.h>

static struct code_place place_of(const struct dict *d, const struct frame *f)
{
	const struct location *l = dict_location_get(d, f->location);
	struct code_place p = { .function = { .name = f->name, .module = f->module },
				.kind = f->kind,
				.vaddr = l->vaddr };

	if (f->line < l->n_lines) {
		p.function.file = l->lines[f->line].file;
		p.line = l->lines[f->line].line;
	}
	return p;
}

int code_path_set(struct code_path *path, struct dict *d, stack_id stack)
{
	int r = frame_path_set(&path->frames, d, stack);

	if (r < 0)
		return r;
	path->n = path->frames.n;
	if (path->n > path->cap) {
		struct code_place *grown =
			reallocarray(path->places, path->n * 2ul, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		path->places = grown;
		path->cap = path->n * 2;
	}
	for (uint32_t i = 0; i < path->n; i++)
		path->places[i] = place_of(d, &path->frames.frames[i]);
	return 0;
}

void code_path_fini(struct code_path *path)
{
	free(path->places);
	frame_path_fini(&path->frames);
	*path = (struct code_path){ 0 };
}
