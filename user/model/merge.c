#include "model/merge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void profile_list_types(const struct profile *p, char *out, size_t cap)
{
	size_t n = 0;

	*out = 0;
	for (uint32_t i = 0; i < profile_n_types(p) && n < cap; i++)
		n += (size_t)snprintf(out + n, cap - n, "%s%.40s/%.40s", i ? ", " : "",
				      profile_type(p, i)->name, profile_type(p, i)->unit);
}

int profile_same_type(const struct profile *p, const struct value_type *t)
{
	for (uint32_t i = 0; i < profile_n_types(p); i++)
		if (strcmp(profile_type(p, i)->name, t->name) == 0 &&
		    strcmp(profile_type(p, i)->unit, t->unit) == 0)
			return (int)i;
	return -1;
}

/* --- images: one per build ID --- */

/* `one[m]` is the module that stands for module m: the first of its kind and build ID. */
struct images {
	struct dict *d;
	uint32_t *one;
	location_id *moved; /* by location; 0: not looked at yet */
	location_id *frames;
	uint32_t n_moved, cap_frames;
	bool any; /* some module is not its own */
};

static void images_fini(struct images *im)
{
	free(im->one);
	free(im->moved);
	free(im->frames);
}

static int images_init(struct images *im, struct dict *d, struct merge_info *info)
{
	uint32_t n = dict_module_count(d), n_strings = dict_string_count(d);
	_cleanup_(freep) uint32_t *by_id = calloc(2 * (n_strings + 1ul), sizeof(*by_id));
	uint32_t *by_path = by_id + n_strings + 1;

	im->d = d;
	im->one = calloc(n + 1ul, sizeof(*im->one));
	if (!by_id || !im->one)
		return -ENOMEM;
	for (uint32_t i = 1; i <= n; i++) {
		const struct module *m = dict_module_get(d, (module_id){ i });
		uint32_t id = m->build_id.ix, path = m->path.ix;

		im->one[i] = i;
		if (!id)
			continue;
		if (info && by_path[path] && by_path[path] != id)
			info->build_ids_differ = true;
		by_path[path] = id;
		if (!by_id[id])
			by_id[id] = i;
		else if (dict_module_get(d, (module_id){ by_id[id] })->kind == m->kind)
			im->one[i] = by_id[id];
		im->any |= im->one[i] != i;
	}
	if (!im->any)
		return 0;
	im->n_moved = dict_location_count(d) + 1;
	im->moved = calloc(im->n_moved, sizeof(*im->moved));
	return im->moved ? 0 : -ENOMEM;
}

/* The same place of the same file, in the module that stands for the location's own. */
static location_id move(struct images *im, location_id id)
{
	const struct location *loc = dict_location_get(im->d, id);
	const struct module *from = dict_module_get(im->d, loc->module), *to;
	module_id one = { im->one[loc->module.ix] };
	uint64_t vaddr = loc->vaddr;

	if (id.ix < im->n_moved && im->moved[id.ix].ix)
		return im->moved[id.ix];
	if (one.ix == loc->module.ix)
		return id;
	/* Addresses of processes differ by where the file was mapped; those of the file do not. */
	to = dict_module_get(im->d, one);
	if (from->limit > from->start && to->limit > to->start)
		vaddr += (to->start - to->file_off) - (from->start - from->file_off);
	id = loc->named ? dict_location_lines(im->d, one, vaddr, loc->lines, loc->n_lines)
			: dict_location(im->d, one, vaddr);
	return id;
}

static int move_stack(struct images *im, stack_id *stack)
{
	uint32_t n = dict_stack_depth(im->d, *stack), i = 0;
	bool moved = false;

	if (n > im->cap_frames) {
		location_id *frames = reallocarray(im->frames, n, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		im->frames = frames;
		im->cap_frames = n;
	}
	for (stack_id s = *stack; i < n; s = dict_stack_parent(im->d, s), i++) {
		location_id leaf = dict_stack_leaf(im->d, s), to = move(im, leaf);

		if (leaf.ix < im->n_moved)
			im->moved[leaf.ix] = to;
		im->frames[i] = to;
		moved |= to.ix != leaf.ix;
	}
	if (moved)
		*stack = dict_stack(im->d, im->frames, n);
	return 0;
}

/* --- adding up --- */

static int add_samples(struct profile *to, const struct profile *more, const uint32_t *from,
		       int sign, struct images *im)
{
	for (uint32_t i = 0; i < profile_n_samples(more); i++) {
		struct profile_sample s = profile_sample(more, i);
		int r = 0;

		if (im && im->any)
			r = move_stack(im, &s.stack);
		if (r == 0)
			r = profile_add_sample(to, s.stack, s.labels, &s, from, sign);
		if (r < 0)
			return r;
	}
	return 0;
}

int profile_add_all(struct profile *to, const struct profile *more, const uint32_t *from, int sign)
{
	return add_samples(to, more, from, sign, NULL);
}

/* The value types that both have, in a's order; `from` says where each is in a and in b. */
struct common {
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t from[2][PROFILE_MAX_TYPES];
	uint32_t n, default_type;
};

static struct common common_types(const struct profile *a, const struct profile *b)
{
	struct common c = { .n = 0 };

	for (uint32_t i = 0; i < profile_n_types(a); i++) {
		int j = profile_same_type(b, profile_type(a, i));

		if (j < 0)
			continue;
		if (i == profile_get_meta(a)->default_type)
			c.default_type = c.n;
		c.types[c.n] = *profile_type(a, i);
		c.from[0][c.n] = i;
		c.from[1][c.n++] = (uint32_t)j;
	}
	return c;
}

static int refuse(const struct profile *a, const struct profile *b, const char *name, struct err *e)
{
	char have[160], other[160];

	profile_list_types(a, have, sizeof(have));
	profile_list_types(b, other, sizeof(other));
	return err_set(e, -EDOM, "%s cannot be added to what came before it: it counts %s, not %s",
		       name, other, have);
}

static uint32_t count(const char *const *lines)
{
	uint32_t n = 0;

	while (lines && lines[n])
		n++;
	return n;
}

/* Those of both, each once; NULL when out of memory. To be freed, not its lines. */
static const char **merge_comments(const char *const *a, const char *const *b)
{
	const char **all = calloc(count(a) + count(b) + 1ul, sizeof(*all));
	uint32_t n = 0;

	for (int side = 0; all && side < 2; side++) {
		for (const char *const *c = side ? b : a; c && *c; c++) {
			uint32_t i = 0;

			while (i < n && strcmp(all[i], *c) != 0)
				i++;
			if (i == n)
				all[n++] = *c;
		}
	}
	return all;
}

static int merge_meta(struct profile *sum, const struct profile_meta *a,
		      const struct profile_meta *b, uint32_t default_type, struct merge_info *info)
{
	_cleanup_(freep) const char **comments = merge_comments(a->comments, b->comments);
	struct profile_meta meta = *a;

	if (!comments)
		return -ENOMEM;
	meta.comments = comments;
	meta.default_type = default_type;
	if (__builtin_add_overflow(a->duration_ns, b->duration_ns, &meta.duration_ns))
		meta.duration_ns = INT64_MAX;
	if (b->time_ns && (!a->time_ns || b->time_ns < a->time_ns))
		meta.time_ns = b->time_ns;
	if (info && a->period && b->period && a->period != b->period)
		info->periods_differ = true;
	if (b->period > a->period)
		meta.period = b->period;
	return profile_set_meta(sum, &meta);
}

static int start_sum(const struct profile *p, const struct common *c, struct images *im,
		     const uint32_t *from, struct profile **ret_sum)
{
	_cleanup_(profile_freep) struct profile *sum = profile_new(profile_dict(p), c->types, c->n);
	int r = sum ? add_samples(sum, p, from, 1, im) : -ENOMEM;

	if (r == 0)
		*ret_sum = TAKE_PTR(sum);
	return r;
}

static int merge(struct profile **sum, const struct profile *more, enum merge_types types,
		 struct merge_info *info)
{
	_cleanup_(images_fini) struct images im = { 0 };
	_cleanup_(profile_freep) struct profile *fresh = NULL;
	const struct profile *old = *sum ? *sum : more;
	struct profile_meta meta = *profile_get_meta(old), none = { .period_type = { "", "" } };
	struct common c = common_types(old, more);
	bool dropped = c.n < profile_n_types(old);
	int r = images_init(&im, profile_dict(more), info);

	if (r == 0 && (!*sum || dropped))
		r = start_sum(old, &c, &im, c.from[0], &fresh);
	if (r == 0 && *sum)
		r = add_samples(fresh ? fresh : *sum, more, c.from[1], 1, &im);
	if (r == 0)
		r = merge_meta(fresh ? fresh : *sum, &meta, *sum ? profile_get_meta(more) : &none,
			       c.default_type, info);
	if (r == 0 && dict_oom(profile_dict(more)))
		r = -ENOMEM;
	if (r == 0 && fresh) {
		profile_free(*sum);
		*sum = TAKE_PTR(fresh);
	}
	return r;
}

int profile_merge(struct profile **sum, const struct profile *more, const char *name,
		  enum merge_types types, struct merge_info *info, struct err *e)
{
	int r;

	if (*sum && types == MERGE_COMMON && !profile_n_samples(more))
		return 0;
	if (*sum && types == MERGE_COMMON && !profile_n_samples(*sum)) {
		profile_free(*sum);
		*sum = NULL;
	}
	if (*sum) {
		struct common c = common_types(*sum, more);

		if (!c.n || (types == MERGE_SAME &&
			     (c.n < profile_n_types(*sum) || c.n < profile_n_types(more))))
			return refuse(*sum, more, name, e);
	}
	r = merge(sum, more, types, info);
	return r < 0 ? err_set(e, r, "%s: out of memory", name) : 0;
}
