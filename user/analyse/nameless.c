#include "analyse/nameless.h"

#include "analyse/frame.h"
#include "analyse/messengers.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST    0.8 /* of it: below one function                                    */
#define MODULES 32  /* the largest is among the first seen, or has little of it     */

bool nameless_name(const char *name)
{
	return strstr(name, "+0x") != NULL;
}

static bool is_nameless(const struct dict *d, const struct frame *f)
{
	return f->kind != FRAME_LANG && frame_is_user(f) && *f->module && *f->module != '[' &&
	       nameless_name(dict_str(d, f->name));
}

/* The leaf, where it is of `module`, or of any for NULL; else NULL. */
static const struct frame *nameless_leaf(const struct dict *d, const struct frame_path *path,
					 const char *module)
{
	const struct frame *leaf = path->n ? &path->frames[path->n - 1] : NULL;

	if (!leaf || !is_nameless(d, leaf) || (module && strcmp(leaf->module, module) != 0))
		return NULL;
	return leaf;
}

struct module_sum {
	const char *module;
	int64_t value;
};

static void add_to_module(struct module_sum *sums, uint32_t *n, const char *module, int64_t value)
{
	uint32_t i = 0;

	while (i < *n && strcmp(sums[i].module, module) != 0)
		i++;
	if (i == MODULES)
		return;
	if (i == *n)
		sums[(*n)++] = (struct module_sum){ .module = module };
	sums[i].value = add_saturating(sums[i].value, value);
}

static int find_module(const struct profile *p, uint32_t type, struct nameless_row *row)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	struct module_sum sums[MODULES] = { 0 };
	struct dict *d = profile_dict(p);
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		const struct frame *leaf;

		if (s.values[type] <= 0)
			continue;
		if (frame_path_set(&path, d, s.stack) < 0)
			return -ENOMEM;
		leaf = nameless_leaf(d, &path, NULL);
		if (leaf)
			add_to_module(sums, &n, leaf->module, s.values[type]);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (sums[i].value <= row->value)
			continue;
		row->module = sums[i].module;
		row->value = sums[i].value;
	}
	return n > 0;
}

static bool is_on_path(const struct frame_path *path, const struct frame *f)
{
	for (uint32_t i = 0; i < path->n; i++)
		if (path->frames[i].name.ix == f->name.ix &&
		    strcmp(path->frames[i].module, f->module) == 0)
			return true;
	return false;
}

/* Adds to values[] for each frame of `of` what of the module's is below it. */
static int add_below(const struct profile *p, uint32_t type, const char *module,
		     const struct frame_path *of, int64_t *values)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	struct dict *d = profile_dict(p);

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (s.values[type] <= 0)
			continue;
		if (frame_path_set(&path, d, s.stack) < 0)
			return -ENOMEM;
		for (uint32_t k = 0; nameless_leaf(d, &path, module) && k < of->n; k++)
			if (is_on_path(&path, &of->frames[k]))
				values[k] = add_saturating(values[k], s.values[type]);
	}
	return 0;
}

/* The stack with most of it. */
static int largest_stack(const struct profile *p, uint32_t type, const char *module,
			 struct frame_path *ret_path)
{
	struct dict *d = profile_dict(p);
	stack_id largest = { 0 };
	int64_t most = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (s.values[type] <= most)
			continue;
		if (frame_path_set(ret_path, d, s.stack) < 0)
			return -ENOMEM;
		if (!nameless_leaf(d, ret_path, module))
			continue;
		largest = s.stack;
		most = s.values[type];
	}
	return frame_path_set(ret_path, d, largest);
}

static int find_caller(const struct profile *p, uint32_t type, struct nameless_row *row)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	_cleanup_(freep) int64_t *values = NULL;
	struct dict *d = profile_dict(p);
	int r = largest_stack(p, type, row->module, &path);

	if (r == 0 && !(values = calloc(path.n + 1ul, sizeof(*values))))
		r = -ENOMEM;
	if (r == 0)
		r = add_below(p, type, row->module, &path, values);
	for (uint32_t place = path.n; r == 0 && place-- > 0;) {
		const struct frame *f = &path.frames[place];

		if (!frame_is_user(f) || f->kind == FRAME_UNKNOWN || is_nameless(d, f) ||
		    strcmp(f->module, row->module) == 0 || messenger_module(f->module) ||
		    (double)values[place] < MOST * (double)row->value)
			continue;
		row->caller = dict_str(d, f->name);
		row->caller_value = values[place];
		break;
	}
	return r;
}

int nameless_find(const struct profile *p, uint32_t type, struct nameless_row *ret_row)
{
	struct nameless_row row = { .module = "", .caller = "" };
	int found = find_module(p, type, &row);
	int r = found > 0 ? find_caller(p, type, &row) : found;

	if (r < 0)
		return r;
	if (dict_oom(profile_dict(p)))
		return -ENOMEM;
	*ret_row = row;
	return found;
}
