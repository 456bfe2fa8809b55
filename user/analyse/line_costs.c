#include "analyse/line_costs.h"

#include "analyse/sites.h"
#include "base/hash.h"
#include "base/saturate.h"

#include <errno.h>

struct line_entry {
	struct line_key key;
	struct line_cost cost;
	uint32_t seen; /* the last sample that has it, counted from 1 */
	UT_hash_handle hh;
};

struct place_key {
	uint64_t vaddr;
	uint64_t module;
};
struct place_entry {
	struct place_key key;
	location_id location;
	int64_t self;
	UT_hash_handle hh;
};

struct function_key {
	string_id function;
	module_id module;
};
struct function_entry {
	struct function_key key;
	int64_t total;
	uint32_t seen;
	UT_hash_handle hh;
};

struct sums {
	struct dict *d;
	struct line_entry *lines;
	struct function_entry *functions;
	struct place_entry *places;
};

static void add(int64_t *sum, int64_t value)
{
	*sum = add_saturating(*sum, value);
}

/* Code that has lines to show: of an image, of a JIT or of a language. */
static bool has_lines(const struct dict *d, const struct frame *f)
{
	return f->kind != FRAME_UNKNOWN && !frame_in_kernel(f) &&
	       f->line < dict_location_get(d, f->location)->n_lines;
}

static int add_line(struct sums *s, const struct frame *f, uint32_t sample, uint32_t pid,
		    int64_t self, int64_t total)
{
	const struct location *l = dict_location_get(s->d, f->location);
	const struct line *line = &l->lines[f->line];
	const struct line_key key = { line->function, line->file, l->module, line->line };
	const struct function_key of = { line->function, l->module };
	struct line_entry *e = hash_get(s->lines, key, &key);
	struct function_entry *function = hash_get(s->functions, key, &of);

	if (!e || !function)
		return -ENOMEM;
	e->cost.key = key;
	e->cost.start_line = line->start_line;
	e->cost.pid = e->cost.pid ?: pid;
	add(&e->cost.self, self);
	if (e->seen != sample)
		add(&e->cost.total, total);
	e->seen = sample;
	if (function->seen != sample)
		add(&function->total, total);
	function->seen = sample;
	return 0;
}

static int add_place(struct sums *s, location_id location, int64_t self)
{
	const struct location *l = dict_location_get(s->d, location);
	const struct place_key key = { l->vaddr, l->module.ix };
	struct place_entry *e;

	if (dict_module_get(s->d, l->module)->kind != MODULE_ELF || !l->n_lines)
		return 0;
	e = hash_get(s->places, key, &key);
	if (!e)
		return -ENOMEM;
	e->location = location;
	add(&e->self, self);
	return 0;
}

static uint32_t pid_of(const struct dict *d, labels_id labels)
{
	const struct label *l = dict_label_find(d, labels, "pid");

	return l && l->num > 0 && l->num <= INT32_MAX ? (uint32_t)l->num : 0;
}

static int add_sample(struct sums *s, const struct frame_path *path, enum site_kind kind,
		      uint32_t sample, uint32_t pid, int64_t value)
{
	uint32_t place = site_place_of_path(s->d, path, kind);
	int r = 0;

	for (uint32_t i = 0; i < path->n && r == 0; i++)
		if (has_lines(s->d, &path->frames[i]))
			r = add_line(s, &path->frames[i], sample, pid, i == place ? value : 0,
				     value);
	return r == 0 ? add_place(s, path->frames[place].location, value) : r;
}

static int by_line(const void *a, const void *b)
{
	const struct line_key *x = &((const struct line_cost *)a)->key,
			      *y = &((const struct line_cost *)b)->key;

	if (x->module.ix != y->module.ix)
		return x->module.ix < y->module.ix ? -1 : 1;
	if (x->function.ix != y->function.ix)
		return x->function.ix < y->function.ix ? -1 : 1;
	if (x->file.ix != y->file.ix)
		return x->file.ix < y->file.ix ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static int by_place(const void *a, const void *b)
{
	const struct place_cost *x = a, *y = b;

	if (x->module.ix != y->module.ix)
		return x->module.ix < y->module.ix ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int by_self(const void *a, const void *b)
{
	const struct function_cost *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static void make_functions(const struct sums *s, struct line_costs *c)
{
	for (uint32_t i = 0; i < c->n_lines; i++) {
		const struct line_cost *l = &c->lines[i];
		struct function_cost *f = c->n_functions ? &c->functions[c->n_functions - 1] : NULL;

		if (!f || f->module.ix != l->key.module.ix ||
		    f->function.ix != l->key.function.ix) {
			const struct function_key key = { l->key.function, l->key.module };
			struct function_entry *of;

			HASH_FIND(hh, s->functions, &key, sizeof(key), of);
			f = &c->functions[c->n_functions++];
			*f = (struct function_cost){ key.function,       key.module, 0,
						     of ? of->total : 0, i,          0 };
		}
		add(&f->self, l->self);
		f->n++;
	}
	if (c->n_functions)
		qsort(c->functions, c->n_functions, sizeof(*c->functions), by_self);
}

static int make_tables(const struct sums *s, struct line_costs *c)
{
	struct line_entry *line, *next_line;
	struct place_entry *place, *next_place;

	c->lines = calloc(HASH_COUNT(s->lines) + 1ul, sizeof(*c->lines));
	c->functions = calloc(HASH_COUNT(s->lines) + 1ul, sizeof(*c->functions));
	c->places = calloc(HASH_COUNT(s->places) + 1ul, sizeof(*c->places));
	if (!c->lines || !c->functions || !c->places)
		return -ENOMEM;
	HASH_ITER (hh, s->lines, line, next_line)
		c->lines[c->n_lines++] = line->cost;
	HASH_ITER (hh, s->places, place, next_place)
		c->places[c->n_places++] = (struct place_cost){ { (uint32_t)place->key.module },
								place->key.vaddr,
								place->location,
								place->self };
	if (c->n_lines)
		qsort(c->lines, c->n_lines, sizeof(*c->lines), by_line);
	if (c->n_places)
		qsort(c->places, c->n_places, sizeof(*c->places), by_place);
	make_functions(s, c);
	return 0;
}

int line_costs_make(const struct profile *p, uint32_t type, struct line_costs *c)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	struct sums s = { .d = profile_dict(p) };
	enum site_kind kind = sites_kind(p, type);
	int r = 0;

	*c = (struct line_costs){ 0 };
	for (uint32_t i = 0; i < profile_n_samples(p) && r == 0; i++) {
		struct profile_sample sample = profile_sample(p, i);
		int64_t value = sample.values[type];

		if (value <= 0)
			continue;
		add(&c->all, value);
		r = frame_path_set(&path, s.d, sample.stack);
		if (r == 0 && path.n)
			r = add_sample(&s, &path, kind, i + 1, pid_of(s.d, sample.labels), value);
	}
	if (r == 0)
		r = dict_oom(s.d) ? -ENOMEM : make_tables(&s, c);
	hash_free(s.lines);
	hash_free(s.places);
	hash_free(s.functions);
	return r;
}

void line_costs_fini(struct line_costs *c)
{
	free(c->lines);
	free(c->places);
	free(c->functions);
	*c = (struct line_costs){ 0 };
}

int line_costs_place(const struct profile *p, uint32_t type, stack_id stack,
		     location_id *ret_location, uint32_t *ret_from_leaf)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	int r = frame_path_set(&path, profile_dict(p), stack);
	uint32_t place;

	if (r == 0 && !path.n)
		r = -ENOENT;
	if (r < 0)
		return r;
	place = site_place_of_path(profile_dict(p), &path, sites_kind(p, type));
	*ret_location = path.frames[place].location;
	*ret_from_leaf = path.n - 1 - place;
	return 0;
}

bool place_cost_is_of(const struct place_cost *p, const struct dict *d, string_id function)
{
	const struct location *l = dict_location_get(d, p->location);

	for (uint32_t i = 0; i < l->n_lines; i++)
		if (l->lines[i].function.ix == function.ix)
			return true;
	return false;
}

bool line_costs_of_code(const struct line_costs *c, const struct dict *d,
			const struct code_text *code, string_id function, int64_t *self,
			int64_t *ret_sum)
{
	bool here = false;

	*ret_sum = 0;
	for (uint32_t i = 0; i < c->n_places; i++) {
		const struct place_cost *p = &c->places[i];
		uint32_t at = p->module.ix == code->module.ix ? code_text_find(code, p->vaddr) : 0;

		if (!at)
			continue;
		add(&self[at - 1], p->self);
		add(ret_sum, p->self);
		here |= place_cost_is_of(p, d, function);
	}
	return here;
}
