#include "model/profile_checkpoint.h"

#include "model/profile_parts.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct checkpoint_error {
	uint32_t sample, type;
	struct value_error error;
};

/* --- whose it is --- */

static void leave(struct profile_checkpoint *m)
{
	struct profile_checkpoint **at = m->of ? profile_checkpoints(m->of) : NULL;

	while (at && *at && *at != m)
		at = &(*at)->next;
	if (at && *at)
		*at = m->next;
	m->of = NULL;
	m->next = NULL;
}

static void join(struct profile *p, struct profile_checkpoint *m)
{
	struct profile_checkpoint **all = profile_checkpoints(p);

	if (m->of == p)
		return;
	profile_checkpoint_fini(m);
	m->of = p;
	m->next = *all;
	*all = m;
}

void profile_checkpoint_fini(struct profile_checkpoint *m)
{
	leave(m);
	free(m->values);
	free(m->errors);
	*m = (struct profile_checkpoint){ 0 };
}

void profile_checkpoints_end(struct profile *p)
{
	while (*profile_checkpoints(p))
		profile_checkpoint_fini(*profile_checkpoints(p));
}

void checkpoint_take_values(struct profile_checkpoint *m, struct profile_checkpoint *from)
{
	struct profile_checkpoint had = *m;

	m->values = from->values;
	m->n = from->n;
	m->errors = from->errors;
	m->n_errors = from->n_errors;
	from->values = had.values;
	from->errors = had.errors;
	profile_checkpoint_fini(from);
}

/* --- what is in it --- */

struct profile *profile_like(const struct profile *p)
{
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t n = profile_n_types(p);

	for (uint32_t i = 0; i < n; i++)
		types[i] = *profile_type(p, i);
	return profile_new(profile_dict(p), types, n);
}

static int copy_errors(const struct profile *p, struct profile_checkpoint *to)
{
	struct profile_sample s;
	uint32_t n = 0;

	for (int pass = 0; pass < 2 && profile_has_errors(p); pass++) {
		if (pass && !(to->errors = calloc(n + 1ul, sizeof(*to->errors))))
			return -ENOMEM;
		for (uint32_t i = 0; i < profile_n_samples(p); i++) {
			s = profile_sample(p, i);
			for (uint32_t t = 0; s.errors && t < profile_n_types(p); t++) {
				struct value_error error;

				if (!profile_error(&s, t, &error))
					continue;
				if (pass)
					to->errors[to->n_errors++] =
						(struct checkpoint_error){ i, t, error };
				n += !pass;
			}
		}
	}
	return 0;
}

/* What the errors gained; those of before come in the same order. */
static int add_errors(const struct profile *p, const struct profile_checkpoint *before,
		      const struct profile_checkpoint *now, struct profile *gained)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < now->n_errors; i++) {
		struct checkpoint_error *e = &now->errors[i];
		struct profile_sample s = profile_sample(p, e->sample);
		struct value_error error = e->error;

		if (at < before->n_errors && before->errors[at].sample == e->sample &&
		    before->errors[at].type == e->type)
			value_error_less(&error, &before->errors[at++].error);
		if (profile_add_error(gained, s.stack, s.labels, e->type, &error) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int take(const struct profile *p, struct profile_checkpoint *ret)
{
	uint32_t n = profile_n_samples(p), n_types = profile_n_types(p);

	ret->values = malloc(((size_t)n * n_types + 1) * sizeof(*ret->values));
	if (!ret->values)
		return -ENOMEM;
	ret->n = n;
	for (uint32_t i = 0; i < n; i++)
		memcpy(ret->values + (size_t)i * n_types, profile_sample(p, i).values,
		       n_types * sizeof(*ret->values));
	return copy_errors(p, ret);
}

static int add_gains(const struct profile *p, const struct profile_checkpoint *before,
		     const struct profile_checkpoint *now, struct profile *gained)
{
	uint32_t n_types = profile_n_types(p);

	for (uint32_t i = 0; i < now->n; i++) {
		int64_t by[PROFILE_MAX_TYPES];
		bool any = false;

		for (uint32_t j = 0; j < n_types; j++) {
			size_t at = (size_t)i * n_types + j;

			by[j] = now->values[at] - (i < before->n ? before->values[at] : 0);
			any |= by[j] != 0;
		}
		if (any && profile_add(gained, profile_sample(p, i).stack,
				       profile_sample(p, i).labels, by) < 0)
			return -ENOMEM;
	}
	return add_errors(p, before, now, gained);
}

int profile_since(struct profile *p, struct profile_checkpoint *m, struct profile **ret_gained)
{
	_cleanup_(profile_checkpoint_fini) struct profile_checkpoint now = { 0 };
	_cleanup_(profile_freep) struct profile *gained = profile_like(p);

	join(p, m);
	if (!gained || take(p, &now) < 0 || add_gains(p, m, &now, gained) < 0)
		return -ENOMEM;
	checkpoint_take_values(m, &now);
	*ret_gained = TAKE_PTR(gained);
	return 0;
}

int profile_checkpoint_take(struct profile *p, struct profile_checkpoint *m)
{
	_cleanup_(profile_checkpoint_fini) struct profile_checkpoint now = { 0 };

	join(p, m);
	if (take(p, &now) < 0)
		return -ENOMEM;
	checkpoint_take_values(m, &now);
	return 0;
}

bool profile_checkpoint_has(const struct profile_checkpoint *m, uint32_t sample)
{
	uint32_t n_types;

	if (!m->of || sample >= m->n)
		return false;
	n_types = profile_n_types(m->of);
	return memcmp(m->values + (size_t)sample * n_types, profile_sample(m->of, sample).values,
		      n_types * sizeof(*m->values)) == 0;
}

/* --- samples that are put together --- */

static int by_sample(const void *a, const void *b)
{
	const struct checkpoint_error *x = a, *y = b;

	if (x->sample != y->sample)
		return x->sample < y->sample ? -1 : 1;
	return (x->type > y->type) - (x->type < y->type);
}

static void join_errors(struct profile_checkpoint *m)
{
	uint32_t kept = 0;

	qsort(m->errors, m->n_errors, sizeof(*m->errors), by_sample);
	for (uint32_t i = 0; i < m->n_errors; i++) {
		if (kept && by_sample(&m->errors[kept - 1], &m->errors[i]) == 0)
			value_error_add(&m->errors[kept - 1].error, &m->errors[i].error);
		else
			m->errors[kept++] = m->errors[i];
	}
	m->n_errors = kept;
}

int checkpoint_move(const struct profile_checkpoint *m, const uint32_t *to, uint32_t n_after,
		    struct profile_checkpoint *ret)
{
	uint32_t n_types = profile_n_types(m->of);

	ret->values = calloc((size_t)n_after * n_types + 1, sizeof(*ret->values));
	ret->errors = calloc(m->n_errors + 1ul, sizeof(*ret->errors));
	if (!ret->values || !ret->errors)
		return -ENOMEM;
	ret->n = n_after;
	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t j = 0; j < n_types; j++)
			ret->values[(size_t)to[i] * n_types + j] +=
				m->values[(size_t)i * n_types + j];
	for (uint32_t i = 0; i < m->n_errors; i++) {
		ret->errors[i] = m->errors[i];
		ret->errors[i].sample = to[m->errors[i].sample];
	}
	ret->n_errors = m->n_errors;
	join_errors(ret);
	return 0;
}
