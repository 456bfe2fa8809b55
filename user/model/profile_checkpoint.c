#include "model/profile_checkpoint.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct checkpoint_error {
	uint32_t sample, type;
	struct value_error error;
};

void profile_checkpoint_fini(struct profile_checkpoint *m)
{
	free(m->values);
	free(m->errors);
	*m = (struct profile_checkpoint){ 0 };
}

static struct profile *like(const struct profile *p)
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

int profile_since(const struct profile *p, struct profile_checkpoint *m,
		  struct profile **ret_gained)
{
	_cleanup_(profile_checkpoint_fini) struct profile_checkpoint now = { 0 };
	_cleanup_(profile_freep) struct profile *gained = like(p);
	uint32_t n = profile_n_samples(p), n_types = profile_n_types(p);

	now.values = malloc(((size_t)n * n_types + 1) * sizeof(*now.values));
	if (!gained || !now.values)
		return -ENOMEM;
	now.n = n;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);
		int64_t by[PROFILE_MAX_TYPES];
		bool any = false;

		for (uint32_t j = 0; j < n_types; j++) {
			size_t at = (size_t)i * n_types + j;

			now.values[at] = s.values[j];
			by[j] = s.values[j] - (i < m->n ? m->values[at] : 0);
			any |= by[j] != 0;
		}
		if (any && profile_add(gained, s.stack, s.labels, by) < 0)
			return -ENOMEM;
	}
	if (copy_errors(p, &now) < 0 || add_errors(p, m, &now, gained) < 0)
		return -ENOMEM;
	profile_checkpoint_fini(m);
	*m = now;
	now = (struct profile_checkpoint){ 0 };
	*ret_gained = TAKE_PTR(gained);
	return 0;
}
