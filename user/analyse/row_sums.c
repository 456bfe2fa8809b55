#include "analyse/row_sums.h"

#include "analyse/series.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define Z95 1.959963984540054

/* --- the error of a sample --- */

/* "alloc_space" → "alloc_objects" and back; -1 where it is neither. */
static int find_pair(const struct profile *p, uint32_t type, bool *ret_is_bytes)
{
	static const char *const pairs[][2] = {
		{ "alloc_objects/count", "alloc_space/bytes" },
		{ "inuse_objects/count", "inuse_space/bytes" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		int objects = profile_find_type(p, pairs[i][0]);
		int space = profile_find_type(p, pairs[i][1]);

		if (objects < 0 || space < 0)
			continue;
		*ret_is_bytes = (uint32_t)space == type;
		if (*ret_is_bytes)
			return objects;
		if ((uint32_t)objects == type)
			return space;
	}
	return -1;
}

/* The count beside "blocked/nanoseconds", -1 where `type` is no time of waits. */
static int find_waits(const struct profile *p, uint32_t type)
{
	static const char *const waits[][2] = {
		{ "blocked/nanoseconds", "blocked/count" },
		{ "runnable/nanoseconds", "runnable/count" },
	};

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (profile_find_type(p, waits[i][0]) == (int)type)
			return profile_find_type(p, waits[i][1]);
	return -1;
}

static double value_of(const struct profile_sample *s, int type)
{
	return type < 0 ? 0 : (double)s->values[type];
}

/* n samples of `weight` each. */
static struct value_error poisson(double n, double weight)
{
	return (struct value_error){ .samples = n,
				     .unseen = INFINITY,
				     .v = n * weight * weight,
				     .vc = n * weight * weight * weight };
}

/* A heap dump of sampled blocks, by their mean size. */
static bool heap_error(const struct profile *p, const struct profile_sample *s, uint32_t type,
		       struct value_error *ret_error)
{
	double period = (double)profile_get_meta(p)->period, objects, bytes, mean, chance, each;
	bool is_bytes;
	int pair = find_pair(p, type, &is_bytes);

	if (pair < 0)
		return false;
	bytes = value_of(s, is_bytes ? (int)type : pair);
	objects = value_of(s, is_bytes ? pair : (int)type);
	if (bytes <= 0 || objects <= 0)
		return false;
	mean = bytes / objects;
	chance = -expm1(-mean / period);
	each = is_bytes ? mean : 1;
	ret_error->samples = objects * chance;
	ret_error->unseen = (1 - chance) * objects * each;
	ret_error->v = objects * (1 - chance) / chance * each * each;
	ret_error->vc = ret_error->v * each * (1 / chance - 0.5);
	return true;
}

static bool is_on_cpu(const struct profile *p)
{
	return profile_find_type(p, "samples/count") >= 0;
}

bool sample_error(const struct profile *p, const struct profile_sample *s, uint32_t type,
		  enum error_scope scope, struct value_error *ret_error)
{
	const struct profile_meta *meta = profile_get_meta(p);
	int samples = profile_find_type(p, "samples/count"), waits = find_waits(p, type);
	double value = (double)s->values[type];
	bool carries = profile_error(s, type, ret_error), is_bytes;

	if (waits >= 0 && scope == ERROR_OF_LAW) {
		double n = fmax(1, value_of(s, waits));
		struct value_error chance = poisson(n, value / n);

		/* A sum of n lengths has n E[length²], which is twice the square of the mean. */
		chance.v *= 2;
		chance.vc *= 4;

		value_error_add(ret_error, &chance);
		return true;
	}
	if (carries || waits >= 0)
		return carries;
	if (samples >= 0) {
		double n = value_of(s, samples);

		if (n > 0)
			*ret_error = poisson(n, value / n);
		return n > 0;
	}
	/* One that carries errors says nothing else of those that it counted. */
	if (meta->period <= 1 || profile_has_errors(p))
		return false;
	if (find_pair(p, type, &is_bytes) >= 0)
		return heap_error(p, s, type, ret_error);
	if (strcmp(profile_type(p, type)->unit, meta->period_type.unit) != 0 || value == 0)
		return false;
	*ret_error = poisson(fabs(value) / (double)meta->period, (double)meta->period);
	return true;
}

/* --- rows --- */

void row_sum_add(struct row_sum *to, double value, const struct value_error *error)
{
	to->value += value;
	if (error)
		value_error_add(&to->error, error);
}

/* One sample at its node, and at all above it, each row once. */
static void add_sample(const struct row_table *table, uint32_t node, double value,
		       const struct value_error *error, uint32_t *seen, uint32_t stamp,
		       struct row_sums *rows)
{
	const struct frame_node *nodes = table->tree->nodes;

	if (table->tree->charged && node)
		node = table->tree->charged[node];
	for (uint32_t at = node; at; at = nodes[at].parent) {
		uint32_t row = table->row_of[at];

		if (row == NO_NODE)
			continue;
		if (at == node)
			row_sum_add(&rows[row].self, value, error);
		if (seen[row] != stamp)
			row_sum_add(&rows[row].total, value, error);
		seen[row] = stamp;
	}
}

int row_sums_add(const struct profile *p, uint32_t type, enum error_scope scope,
		 const struct frame_tree *tree, const uint32_t *map, const struct row_table *table,
		 struct row_sums *rows, struct profile_sums *ret_sums)
{
	_cleanup_(freep) uint32_t *seen = calloc(table->n + 1ul, sizeof(*seen));
	bool group[ERROR_GROUPS] = { false };

	*ret_sums = (struct profile_sums){ .on_cpu = is_on_cpu(p) };
	if (!seen)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		uint32_t node = tree->sample_nodes[i];
		struct value_error error;
		bool has;

		if (node == NO_NODE)
			continue;
		has = sample_error(p, &s, type, scope, &error);
		row_sum_add(&ret_sums->all, (double)s.values[type], has ? &error : NULL);
		ret_sums->estimated |= has;
		for (int g = 0; g < ERROR_GROUPS; g++)
			group[g] |= error.group[g] != 0;
		add_sample(table, map ? map[node] : node, (double)s.values[type],
			   has ? &error : NULL, seen, i + 1, rows);
	}
	for (int g = 0; g < ERROR_GROUPS; g++)
		ret_sums->groups += group[g];
	return 0;
}

/* --- intervals --- */

/* Wilson's, of k of n, times `whole`. */
static struct interval share_interval(double k, double n, double whole)
{
	double p = fmin(1, k / n), z2 = Z95 * Z95;
	double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
	double half = Z95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));

	return (struct interval){ whole * fmax(0, middle - half), whole * fmin(1, middle + half) };
}

/* What one sample of the profile stands for, where the row's own are less; 0: there is nothing that it may have missed. */
static double missed_weight(const struct value_error *e, const struct value_error *all)
{
	double own = e->v > 0 ? e->vc / e->v : 0, usual = all->v > 0 ? all->vc / all->v : 0;

	/* Of waits it is not known how much was seen, and what is taken from a row has a weight below 0. */
	return e->samples > 0 && isfinite(e->unseen) && own >= 0 && own < usual ? usual : 0;
}

struct interval row_interval(const struct row_sum *sum, const struct profile_sums *of)
{
	const struct value_error *e = &sum->error;
	struct interval i = { sum->value, sum->value };
	double squares = 0, below, above, t, missed = missed_weight(e, &of->all.error);

	if (e->v > 0 && of->on_cpu && of->all.error.v > 0 && sum->value > 0) {
		/* The weight of a sample of the profile, not of the row: they are of one sampler. */
		double weight = of->all.error.v / of->all.value;

		i = share_interval(sum->value / weight, of->all.value / weight, of->all.value);
	} else if (e->v > 0) {
		i = estimate_interval(
			&(struct estimate){ .bytes = sum->value, .v = e->v, .vc = e->vc });
	}
	if (missed > 0)
		i.high = estimate_upper_end(sum->value, fmax(0, e->v), missed);
	for (int g = 0; g < ERROR_GROUPS; g++)
		squares += e->group[g] * e->group[g];
	if (squares > 0 || e->below != 0 || e->above != 0) {
		t = of->groups > 1 ? student_t_quantile(0.975, of->groups - 1) : 12.706;
		below = sum->value - i.low;
		above = i.high - sum->value;
		squares *= t * t;
		i.low = sum->value - sqrt(below * below + squares + e->below * e->below);
		i.high = sum->value + sqrt(above * above + squares + e->above * e->above);
	}
	if (sum->value >= 0)
		i.low = fmin(sum->value, fmax(fmax(0, i.low), sum->value - fmax(0, e->unseen)));
	return i;
}
