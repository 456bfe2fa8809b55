#include "import/call_paths.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The share of all costs that a path has at least: as small as leaves MAX_PATHS of them. */
#define FIRST_LEAST 1e-7

enum { MAX_DEPTH = 2000, MAX_PATHS = 300000 };

struct function {
	uint32_t first, n; /* its costs, own ones before calls */
	uint32_t n_own;
	bool called; /* by a call that is no way back */
	uint8_t state;
};

enum { NEW, AT_WORK, DONE };

struct paths {
	struct profile *p;
	struct dict *d;
	const struct call_function *names;
	struct function *functions;
	uint32_t n_functions, n_types;
	const struct call_cost *costs;
	bool *back;     /* by cost: the call leads back into a function that is at work */
	double *called; /* by function and type: what calls of it cost, all together */
	double *shared; /* by function and type: the share of it that has a path so far */
	double totals[PROFILE_MAX_TYPES];
	double least;
	uint32_t n_paths;
	int64_t *values; /* of one sample */
};

static int compare_costs(const void *a, const void *b)
{
	const struct call_cost *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	if (x->file.ix != y->file.ix)
		return x->file.ix < y->file.ix ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static void index_costs(struct paths *s, uint32_t n_costs)
{
	for (uint32_t i = n_costs; i-- > 0;) {
		struct function *f = &s->functions[s->costs[i].function];

		f->first = i;
		f->n++;
		f->n_own += !s->costs[i].callee;
		for (uint32_t t = 0; t < s->n_types && !s->costs[i].callee; t++)
			s->totals[t] += (double)s->costs[i].values[t];
	}
}

/* Marks the calls that lead back to a function on the way to them. `way` has room for all functions. */
static void find_ways_back(struct paths *s, uint32_t from, uint32_t (*way)[2])
{
	uint32_t depth = 0;

	way[depth][0] = from;
	way[depth++][1] = 0;
	s->functions[from].state = AT_WORK;
	while (depth) {
		struct function *f = &s->functions[way[depth - 1][0]];
		uint32_t at = f->first + f->n_own + way[depth - 1][1], callee;

		if (at == f->first + f->n) {
			f->state = DONE;
			depth--;
			continue;
		}
		way[depth - 1][1]++;
		callee = s->costs[at].callee - 1;
		if (s->functions[callee].state == AT_WORK) {
			s->back[at] = true;
		} else if (s->functions[callee].state == NEW) {
			s->functions[callee].state = AT_WORK;
			way[depth][0] = callee;
			way[depth++][1] = 0;
		}
	}
}

/* Those that nobody calls first: the ways from there are those that programs go. */
static int find_all_ways_back(struct paths *s, uint32_t n_costs)
{
	uint32_t(*way)[2] = calloc(s->n_functions + 1ul, sizeof(*way));

	if (!way)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_costs; i++)
		if (s->costs[i].callee && s->costs[i].callee - 1 != s->costs[i].function)
			s->functions[s->costs[i].callee - 1].called = true;
	for (int any = 0; any < 2; any++)
		for (uint32_t i = 0; i < s->n_functions; i++)
			if (s->functions[i].state == NEW && (any || !s->functions[i].called))
				find_ways_back(s, i, way);
	free(way);
	for (uint32_t i = 0; i < s->n_functions; i++)
		s->functions[i].called = false;
	for (uint32_t i = 0; i < n_costs; i++) {
		uint32_t callee = s->costs[i].callee;

		if (!callee || s->back[i])
			continue;
		s->functions[callee - 1].called = true;
		for (uint32_t t = 0; t < s->n_types; t++)
			s->called[(size_t)(callee - 1) * s->n_types + t] +=
				(double)s->costs[i].values[t];
	}
	return 0;
}

static location_id place(struct paths *s, const struct call_cost *c)
{
	const struct call_function *f = &s->names[c->function];
	struct line line = { .function = f->name, .file = c->file, .line = c->line };

	return dict_location_lines(s->d, f->module, 0, &line, 1);
}

/* The part of a cost that lies between two shares of its function: over all of them they add up to it. */
static int64_t part(int64_t value, double from, double to)
{
	int64_t a = llround((double)value * from), b = llround((double)value * to);

	if (to >= 1 - 1e-9 || b > value)
		b = value;
	if (from >= 1 - 1e-9 || a > value)
		a = value;
	return b - a;
}

/* A function's own costs, in as far as `share` of it was called by `callers`. */
static int add_own(struct paths *s, uint32_t function, stack_id callers, const double *share)
{
	const struct function *f = &s->functions[function];
	double *shared = &s->shared[(size_t)function * s->n_types];
	int r = 0;

	for (uint32_t i = f->first; r == 0 && i < f->first + f->n_own; i++) {
		bool any = false;

		for (uint32_t t = 0; t < s->n_types; t++) {
			s->values[t] = part(s->costs[i].values[t], shared[t], shared[t] + share[t]);
			any |= s->values[t] != 0;
		}
		if (any)
			r = profile_add(
				s->p,
				s->names[function].hidden
					? callers
					: dict_stack_push(s->d, callers, place(s, &s->costs[i])),
				s->names[function].labels, s->values);
	}
	for (uint32_t t = 0; t < s->n_types; t++)
		shared[t] += share[t];
	return r;
}

/* The share of the callee that this call makes, where `share` of the caller is at hand. Too little of anything: false. */
static bool share_of_call(const struct paths *s, const struct call_cost *c, const double *share,
			  double *ret)
{
	const double *called = &s->called[(size_t)(c->callee - 1) * s->n_types];
	bool enough = false;

	for (uint32_t t = 0; t < s->n_types; t++) {
		double flow = (double)c->values[t] * share[t];

		ret[t] = called[t] > 0 ? flow / called[t] : 0;
		enough |= flow > s->least * s->totals[t];
	}
	return enough;
}

static int add_paths(struct paths *s, uint32_t function, stack_id callers, const double *share,
		     uint32_t depth)
{
	const struct function *f = &s->functions[function];
	double of_call[PROFILE_MAX_TYPES];
	int r = add_own(s, function, callers, share);

	for (uint32_t i = f->first + f->n_own; r == 0 && i < f->first + f->n; i++) {
		const struct call_cost *c = &s->costs[i];
		stack_id stack = callers;

		if (s->back[i] || depth == MAX_DEPTH || !share_of_call(s, c, share, of_call))
			continue;
		if (!s->names[function].hidden)
			stack = dict_stack_push(s->d, callers, place(s, c));
		r = add_paths(s, c->callee - 1, stack, of_call, depth + 1);
	}
	return r;
}

/* How many paths there are from a function on, into s->n_paths; it stops behind MAX_PATHS. */
static void count_paths(struct paths *s, uint32_t function, const double *share, uint32_t depth)
{
	const struct function *f = &s->functions[function];
	double of_call[PROFILE_MAX_TYPES];

	s->n_paths++;
	for (uint32_t i = f->first + f->n_own; i < f->first + f->n && s->n_paths <= MAX_PATHS; i++)
		if (!s->back[i] && depth < MAX_DEPTH &&
		    share_of_call(s, &s->costs[i], share, of_call))
			count_paths(s, s->costs[i].callee - 1, of_call, depth + 1);
}

static void choose_least(struct paths *s, const double *share)
{
	for (s->least = FIRST_LEAST; s->least < 1; s->least *= 3) {
		s->n_paths = 0;
		for (uint32_t i = 0; i < s->n_functions && s->n_paths <= MAX_PATHS; i++)
			if (!s->functions[i].called)
				count_paths(s, i, share, 0);
		if (s->n_paths <= MAX_PATHS || s->n_functions >= MAX_PATHS)
			return;
	}
}

static int add_all(struct paths *s)
{
	struct line line = { .function = dict_string(s->d, "[other callers]") };
	location_id others = dict_location_lines(s->d, (module_id){ 0 }, 0, &line, 1);
	stack_id below_others = dict_stack(s->d, &others, 1);
	double share[PROFILE_MAX_TYPES];
	int r = 0;

	for (uint32_t t = 0; t < s->n_types; t++)
		share[t] = 1;
	choose_least(s, share);
	for (uint32_t i = 0; r == 0 && i < s->n_functions; i++)
		if (!s->functions[i].called)
			r = add_paths(s, i, (stack_id){ 0 }, share, 0);
	for (uint32_t i = 0; r == 0 && i < s->n_functions; i++) {
		if (!s->functions[i].called)
			continue;
		/* What is left to 1: also where calls of it cost nothing of a type. */
		for (uint32_t t = 0; t < s->n_types; t++) {
			double left = 1 - s->shared[(size_t)i * s->n_types + t];

			share[t] = left > 1e-9 ? left : 0;
		}
		r = add_own(s, i, below_others, share);
	}
	return r;
}

int call_paths_add(struct profile *p, const struct call_function *functions, uint32_t n_functions,
		   struct call_cost *costs, uint32_t n_costs)
{
	uint32_t n_types = profile_n_types(p);
	size_t cells = (size_t)(n_functions + 1) * n_types;
	struct paths s = {
		.p = p,
		.d = profile_dict(p),
		.names = functions,
		.functions = calloc(n_functions + 1ul, sizeof(*s.functions)),
		.n_functions = n_functions,
		.n_types = n_types,
		.costs = costs,
		.back = calloc(n_costs + 1ul, sizeof(*s.back)),
		.called = calloc(cells, sizeof(*s.called)),
		.shared = calloc(cells, sizeof(*s.shared)),
		.values = calloc(n_types, sizeof(*s.values)),
	};
	int r = s.functions && s.back && s.called && s.shared && s.values ? 0 : -ENOMEM;

	if (r == 0) {
		if (n_costs)
			qsort(costs, n_costs, sizeof(*costs), compare_costs);
		index_costs(&s, n_costs);
		r = find_all_ways_back(&s, n_costs);
	}
	if (r == 0)
		r = add_all(&s);
	free(s.functions);
	free(s.back);
	free(s.called);
	free(s.shared);
	free(s.values);
	return r;
}
