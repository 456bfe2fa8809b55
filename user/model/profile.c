#include "model/profile.h"

#include "base/arena.h"
#include "base/chunks.h"
#include "base/hash.h"
#include "base/id_index.h"
#include "base/saturate.h"
#include "model/over_time.h"
#include "model/profile_parts.h"
#include "model/sample_times.h"
#include "model/tables.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct sample_key {
	uint32_t stack, labels;
};

/* What most of them have is no more than a variance: groups are kept of those only that have some. */
struct sample_error {
	struct sample_error *next;
	uint32_t type;
	bool has_groups;
	double sums[]; /* the beginning of struct value_error */
};

enum {
	SUMS_PLAIN = offsetof(struct value_error, group) / sizeof(double),
	SUMS_ALL = sizeof(struct value_error) / sizeof(double),
};

struct sample {
	struct sample_key key;
	struct sample_error *errors;
	int64_t values[]; /* n_types */
};

struct profile {
	struct dict *dict;
	struct dict_user user;
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t n_types;
	struct profile_meta meta;
	const char **comments;
	struct chunks samples;
	struct id_index by_key;
	struct arena errors;
	uint64_t error_bytes; /* taken from it */
	struct profile_checkpoint *checkpoints;
	struct sample_times *times;
	struct over_time *over_time;
	uint32_t *rows; /* of a file: their samples; NULL: each row is the sample of its number */
	uint32_t n_rows, cap_rows;
};

/* The dict keeps the text, so that types and comments live as long as the profile needs them. */
static const char *keep(struct dict *d, const char *s)
{
	return dict_str(d, dict_string(d, s ? s : ""));
}

static struct value_type keep_type(struct dict *d, const struct value_type *t)
{
	return (struct value_type){ .name = keep(d, t->name), .unit = keep(d, t->unit) };
}

static void mark_labels(const struct dict_user *user, struct id_marks *used)
{
	const struct profile *p =
		(const void *)((const char *)user - offsetof(struct profile, user));

	for (uint32_t i = 0; i < p->samples.n; i++)
		id_mark(used, ((const struct sample *)chunks_at(&p->samples, i))->key.labels);
}

struct profile *profile_new(struct dict *d, const struct value_type *types, uint32_t n)
{
	struct profile *p;

	if (!n || n > PROFILE_MAX_TYPES)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->dict = d;
	p->n_types = n;
	for (uint32_t i = 0; i < n; i++)
		p->types[i] = keep_type(d, &types[i]);
	p->meta.period_type = (struct value_type){ .name = "", .unit = "" };
	p->samples = (struct chunks){ .elem_size = sizeof(struct sample) + n * sizeof(int64_t) };
	dict_use(d, &p->user, mark_labels);
	return p;
}

static void free_samples(struct profile *p)
{
	id_index_free(&p->by_key);
	chunks_free(&p->samples);
	arena_free(&p->errors);
}

struct profile_checkpoint **profile_checkpoints(struct profile *p)
{
	return &p->checkpoints;
}

void profile_take_samples(struct profile *p, struct profile *from)
{
	free_samples(p);
	p->samples = from->samples;
	p->by_key = from->by_key;
	p->errors = from->errors;
	p->error_bytes = from->error_bytes;
	from->samples = (struct chunks){ .elem_size = p->samples.elem_size };
	from->by_key = (struct id_index){ 0 };
	from->errors = (struct arena){ 0 };
	from->error_bytes = 0;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	dict_use_end(&p->user);
	profile_checkpoints_end(p);
	free_samples(p);
	sample_times_free(p->times);
	over_time_free(p->over_time);
	free(p->rows);
	free(p->comments);
	free(p);
}

struct dict *profile_dict(const struct profile *p)
{
	return p->dict;
}

uint32_t profile_n_types(const struct profile *p)
{
	return p->n_types;
}

const struct value_type *profile_type(const struct profile *p, uint32_t i)
{
	return &p->types[i];
}

/* "cpu" or "cpu/nanoseconds". */
static bool type_is(const struct value_type *t, const char *name)
{
	size_t len = strlen(t->name);

	if (strncmp(name, t->name, len))
		return false;
	return !name[len] || (name[len] == '/' && !strcmp(name + len + 1, t->unit));
}

int profile_find_type(const struct profile *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_types; i++)
		if (type_is(&p->types[i], name))
			return (int)i;
	return -1;
}

static int keep_comments(struct profile *p, const char *const *comments)
{
	const char **copy;
	size_t n = 0;

	while (comments && comments[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		copy[i] = keep(p->dict, comments[i]);
	free(p->comments);
	p->comments = copy;
	return 0;
}

int profile_set_meta(struct profile *p, const struct profile_meta *meta)
{
	int r = keep_comments(p, meta->comments);

	if (r < 0)
		return r;
	p->meta = *meta;
	p->meta.comments = p->comments;
	p->meta.period_type = keep_type(p->dict, &meta->period_type);
	if (p->meta.default_type >= p->n_types)
		p->meta.default_type = 0;
	return dict_oom(p->dict) ? -ENOMEM : 0;
}

const struct profile_meta *profile_get_meta(const struct profile *p)
{
	return &p->meta;
}

static uint32_t key_hash(const struct sample_key *key)
{
	return hash_bytes(key, sizeof(*key));
}

/* NULL: there is none. */
static struct sample *find_sample(const struct profile *p, const struct sample_key *key,
				  uint32_t hash, uint32_t *ret_ix)
{
	struct id_at at = id_index_begin(&p->by_key, hash);

	while (id_index_next(&at, ret_ix)) {
		struct sample *s = chunks_at(&p->samples, *ret_ix);

		if (s->key.stack == key->stack && s->key.labels == key->labels)
			return s;
	}
	return NULL;
}

static struct sample *add_sample(struct profile *p, const struct sample_key *key, uint32_t hash)
{
	struct sample *s = chunks_add(&p->samples);

	if (!s)
		return NULL;
	s->key = *key;
	if (id_index_add(&p->by_key, hash, p->samples.n - 1) < 0) {
		chunks_drop(&p->samples);
		return NULL;
	}
	return s;
}

int profile_add_to(struct profile *p, stack_id stack, labels_id labels, const int64_t *values,
		   uint32_t *ret_sample)
{
	struct sample_key key = { .stack = stack.ix, .labels = labels.ix };
	uint32_t hash = key_hash(&key), ix;
	struct sample *s;

	/* Ids made after memory ran out are 0: what they would name is not known. */
	if (dict_oom(p->dict))
		return -ENOMEM;
	s = find_sample(p, &key, hash, &ix);
	if (!s) {
		s = add_sample(p, &key, hash);
		ix = p->samples.n - 1;
	}
	if (!s)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_types; i++)
		s->values[i] = add_saturating(s->values[i], values[i]);
	*ret_sample = ix;
	return 0;
}

int profile_add(struct profile *p, stack_id stack, labels_id labels, const int64_t *values)
{
	uint32_t sample;

	return profile_add_to(p, stack, labels, values, &sample);
}

/* --- errors --- */

/* The one of that type, with room for groups if asked for. NULL: out of memory. */
static struct sample_error *error_get(struct profile *p, struct sample *s, uint32_t type,
				      bool groups)
{
	struct sample_error **at = &s->errors, *old, *new;
	size_t sums = (groups ? SUMS_ALL : SUMS_PLAIN) * sizeof(double);

	while (*at && (*at)->type != type)
		at = &(*at)->next;
	old = *at;
	if (old && (old->has_groups || !groups))
		return old;
	new = arena_alloc(&p->errors, sizeof(*new) + sums);
	if (!new)
		return NULL;
	p->error_bytes += sizeof(*new) + sums;
	memset(new->sums, 0, sums);
	new->next = old ? old->next : NULL;
	new->type = type;
	new->has_groups = groups;
	if (old)
		memcpy(new->sums, old->sums, SUMS_PLAIN * sizeof(double));
	*at = new;
	return new;
}

static struct sample *sample_find(const struct profile *p, stack_id stack, labels_id labels,
				  uint32_t *ret_ix)
{
	struct sample_key key = { .stack = stack.ix, .labels = labels.ix };

	return find_sample(p, &key, key_hash(&key), ret_ix);
}

int profile_find_sample(const struct profile *p, stack_id stack, labels_id labels,
			uint32_t *ret_sample)
{
	uint32_t ix;

	if (!sample_find(p, stack, labels, &ix))
		return -ENOENT;
	*ret_sample = ix;
	return 0;
}

static int add_error(struct profile *p, struct sample *s, uint32_t type,
		     const struct value_error *error)
{
	bool groups = value_error_has_groups(error);
	struct sample_error *to = error_get(p, s, type, groups);
	const double *from = (const double *)error;

	if (!to)
		return -ENOMEM;
	for (int i = 0; i < (groups ? SUMS_ALL : SUMS_PLAIN); i++)
		to->sums[i] += from[i];
	return 0;
}

int profile_add_error(struct profile *p, stack_id stack, labels_id labels, uint32_t type,
		      const struct value_error *error)
{
	uint32_t ix;
	struct sample *s = sample_find(p, stack, labels, &ix);

	return s ? add_error(p, s, type, error) : -ENOENT;
}

bool profile_error(const struct profile_sample *s, uint32_t type, struct value_error *ret_error)
{
	const struct sample_error *at = s->errors;

	*ret_error = (struct value_error){ 0 };
	while (at && at->type != type)
		at = at->next;
	if (at)
		memcpy(ret_error, at->sums,
		       (at->has_groups ? SUMS_ALL : SUMS_PLAIN) * sizeof(double));
	return at != NULL;
}

void profile_clear_type(struct profile *p, uint32_t type)
{
	for (uint32_t i = 0; i < p->samples.n; i++) {
		struct sample *s = chunks_at(&p->samples, i);
		struct sample_error **at = &s->errors;

		s->values[type] = 0;
		while (*at && (*at)->type != type)
			at = &(*at)->next;
		if (*at)
			*at = (*at)->next;
	}
}

bool profile_has_errors(const struct profile *p)
{
	return p->errors.blocks != NULL;
}

uint64_t profile_error_bytes(const struct profile *p)
{
	return p->error_bytes;
}

int profile_add_sample(struct profile *p, stack_id stack, labels_id labels,
		       const struct profile_sample *s, const uint32_t *from, int sign)
{
	int64_t values[PROFILE_MAX_TYPES];
	struct value_error error;
	uint32_t ix;
	int r;

	for (uint32_t i = 0; i < p->n_types; i++) {
		int64_t v = s->values[from ? from[i] : i];

		values[i] = sign > 0 ? v : v == INT64_MIN ? INT64_MAX : -v;
	}
	r = profile_add_to(p, stack, labels, values, &ix);
	if (r < 0 || !s->errors)
		return r;
	for (uint32_t i = 0; i < p->n_types && r == 0; i++) {
		if (!profile_error(s, from ? from[i] : i, &error))
			continue;
		if (sign < 0)
			value_error_negate(&error);
		r = add_error(p, chunks_at(&p->samples, ix), i, &error);
	}
	return r;
}

uint32_t profile_n_samples(const struct profile *p)
{
	return p->samples.n;
}

struct profile_sample profile_sample(const struct profile *p, uint32_t i)
{
	const struct sample *s = chunks_at(&p->samples, i);

	return (struct profile_sample){
		.stack = { s->key.stack },
		.labels = { s->key.labels },
		.values = s->values,
		.errors = s->errors,
	};
}

int profile_note_row(struct profile *p, uint32_t sample)
{
	if (!p->rows && sample == p->n_rows) {
		p->n_rows++;
		return 0;
	}
	if (p->n_rows >= p->cap_rows) {
		uint32_t cap = p->n_rows < 64 ? 128 : 2 * p->n_rows;
		uint32_t *more = reallocarray(p->rows, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		for (uint32_t i = 0; !p->rows && i < p->n_rows; i++)
			more[i] = i;
		p->rows = more;
		p->cap_rows = cap;
	}
	p->rows[p->n_rows++] = sample;
	return 0;
}

uint32_t profile_n_rows(const struct profile *p)
{
	return p->rows ? p->n_rows : p->samples.n;
}

uint32_t profile_row_sample(const struct profile *p, uint32_t row)
{
	return p->rows ? p->rows[row] : row;
}

void profile_set_times(struct profile *p, struct sample_times *times)
{
	sample_times_free(p->times);
	p->times = times;
}

void profile_set_over_time(struct profile *p, struct over_time *over_time)
{
	over_time_free(p->over_time);
	p->over_time = over_time;
}

const struct over_time *profile_over_time(const struct profile *p)
{
	return p->over_time;
}

struct sample_times *profile_times(const struct profile *p)
{
	return p->times;
}

int profile_fit_times(struct profile *p)
{
	uint32_t last = p->times ? sample_times_n_bins(p->times) : 0;
	int r = 0;

	for (uint32_t i = 0; p->times && i < p->samples.n && r == 0; i++) {
		const int64_t *values = profile_sample(p, i).values;
		int64_t totals[SAMPLE_TIMES_TYPES] = { 0 };

		for (uint32_t k = 0; k < sample_times_n_types(p->times); k++)
			totals[k] = values[sample_times_type(p->times, k)];
		r = sample_times_fit(p->times, i, totals, last ? last - 1 : 0);
	}
	return r;
}

int64_t profile_total(const struct profile *p, uint32_t type)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < p->samples.n; i++)
		total = add_saturating(total, profile_sample(p, i).values[type]);
	return total;
}
