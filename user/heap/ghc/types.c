#include "heap/ghc/types.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "heap/ghc/source_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USED UINT32_MAX /* an info table that has objects, but no type yet */

/* A type by the name that it has. */
struct named {
	uint32_t type;
	UT_hash_handle hh;
	char name[];
};

struct typing {
	struct ghc *g;
	const struct ghc_walk *walk;
	const struct ghc_images *images;
	struct source *sources; /* by info */
	struct types *types;
	struct named *known;
	uint32_t *info; /* of each address: which info it is of */
	uint64_t *addrs;
	uint32_t n;
	bool oom;
};

/* Where an info's code comes from. */
struct source {
	uint64_t info;
	struct ghc_source at;
	UT_hash_handle hh;
};

static void typing_fini(struct typing *t)
{
	struct named *row, *next;

	hash_free(t->sources);
	HASH_ITER (hh, t->known, row, next) {
		HASH_DEL(t->known, row);
		free(row);
	}
	free(t->info);
	free(t->addrs);
}

static uint32_t type_named(struct typing *t, const char *name, uint64_t at)
{
	size_t len = strlen(name);
	struct named *row;

	HASH_FIND(hh, t->known, name, len, row);
	if (row)
		return row->type;
	row = calloc(1, sizeof(*row) + len + 1);
	if (!row)
		return 0;
	memcpy(row->name, name, len + 1);
	row->type = types_add(t->types, TYPE_GHC, name, at);
	HASH_ADD_KEYPTR(hh, t->known, row->name, len, row);
	return row->type;
}

static bool is_wanted(void *ctx, uint64_t info)
{
	const struct typing *t = ctx;
	const struct ghc_info *row = ghc_info_known(t->g, info);

	return row && row->use == USED;
}

static void on_source(void *ctx, uint64_t info, const struct ghc_source *at)
{
	struct typing *t = ctx;
	struct source *row = hash_get(t->sources, info, &info);

	if (row)
		row->at = *at;
	t->oom |= !row;
}

/* " (app/Main.hs:12:5-30)" of the program's own map; "". */
static const char *position_of(const struct typing *t, uint64_t info, char text[GHC_SOURCE_MAX + 4],
			       const struct ghc_source **ret_source)
{
	const struct source *row;

	HASH_FIND(hh, t->sources, &info, sizeof(info), row);
	*ret_source = row ? &row->at : NULL;
	*text = '\0';
	if (row && *row->at.position)
		snprintf(text, GHC_SOURCE_MAX + 4, " (%s)", row->at.position);
	return text;
}

/* Code that has no symbol of its own has the label of the map. */
static void on_name(void *ctx, uint32_t i, const char *name)
{
	struct typing *t = ctx;
	struct ghc_info *info = &t->g->infos.rows[t->info[i]];
	char text[GHC_NAME_MAX + 2 * GHC_SOURCE_MAX + 64], position[GHC_SOURCE_MAX + 4],
		label[2 * GHC_SOURCE_MAX];
	const struct ghc_source *source;

	position_of(t, info->at, position, &source);
	if (source && *source->label && (!*name || strchr(name, '+'))) {
		snprintf(label, sizeof(label), "%.200s%s%.200s", source->module,
			 *source->module ? "." : "", source->label);
		name = label;
	}
	snprintf(text, sizeof(text), "%s%s%s%s", ghc_type_name(info->type), *name ? " " : "", name,
		 position);
	info->use = type_named(t, text, info->at);
	t->oom |= !info->use;
}

/* Which code: of functions and thunks, and of what is made by them. */
static bool is_of_code(enum ghc_type type)
{
	return ghc_is_fun(type) || ghc_is_thunk(type);
}

static int by_addr(const void *a, const void *b, void *ctx)
{
	const struct ghc_info *rows = ctx;
	uint64_t x = rows[*(const uint32_t *)a].at, y = rows[*(const uint32_t *)b].at;

	return (x > y) - (x < y);
}

/* Constructors by their description, code by its symbols, the rest by what it is. `use` becomes the type. */
static int name_types(struct typing *t)
{
	struct ghc *g = t->g;
	char text[GHC_NAME_MAX + GHC_SOURCE_MAX], position[GHC_SOURCE_MAX + 4];
	const struct ghc_source *source;

	t->info = calloc(g->infos.n + 1, sizeof(*t->info));
	t->addrs = calloc(g->infos.n + 1, sizeof(*t->addrs));
	if (!t->info || !t->addrs)
		return -ENOMEM;
	for (uint64_t i = 0; i < t->walk->n; i++)
		g->infos.rows[t->walk->objects[i].info].use = USED;
	ghc_source_map_read(g, ghc_images_variable(t->images, "ipeBufferList"), is_wanted,
			    on_source, t);
	for (uint32_t i = 0; i < g->infos.n; i++) {
		struct ghc_info *info = &g->infos.rows[i];

		if (!info->use)
			continue;
		if (is_of_code(info->type)) {
			t->info[t->n++] = i;
			continue;
		}
		if (ghc_is_constr(info->type) && ghc_constr_name(g, info->at, text, GHC_NAME_MAX)) {
			/* With -fdistinct-constructor-tables each use of a constructor has its place. */
			strcat(text, position_of(t, info->at, position, &source));
			info->use = type_named(t, text, info->at);
		} else
			info->use = type_named(t, ghc_type_name(info->type), info->at);
		t->oom |= !info->use;
	}
	qsort_r(t->info, t->n, sizeof(*t->info), by_addr, g->infos.rows);
	for (uint32_t i = 0; i < t->n; i++)
		t->addrs[i] = g->infos.rows[t->info[i]].at;
	ghc_images_names(t->images, t->addrs, t->n, on_name, t);
	for (uint32_t i = 0; i < t->n; i++)
		if (g->infos.rows[t->info[i]].use == USED)
			on_name(t, i, "");
	return t->oom ? -ENOMEM : 0;
}

int ghc_types_name(const struct ghc_walk *walk, const struct ghc_images *images,
		   struct types *types)
{
	_cleanup_(typing_fini) struct typing t = { walk->g, walk, images, .types = types };

	return name_types(&t);
}
