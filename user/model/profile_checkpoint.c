#include "model/profile_checkpoint.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void profile_checkpoint_fini(struct profile_checkpoint *m)
{
	free(m->values);
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

int profile_since(const struct profile *p, struct profile_checkpoint *m,
		  struct profile **ret_gained)
{
	_cleanup_(profile_freep) struct profile *gained = like(p);
	uint32_t n = profile_n_samples(p), n_types = profile_n_types(p);
	_cleanup_(freep) int64_t *values = malloc(((size_t)n * n_types + 1) * sizeof(*values));

	if (!gained || !values)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = profile_sample(p, i);
		int64_t by[PROFILE_MAX_TYPES];
		bool any = false;

		for (uint32_t j = 0; j < n_types; j++) {
			size_t at = (size_t)i * n_types + j;

			values[at] = s.values[j];
			by[j] = s.values[j] - (i < m->n ? m->values[at] : 0);
			any |= by[j] != 0;
		}
		if (any && profile_add(gained, s.stack, s.labels, by) < 0)
			return -ENOMEM;
	}
	free(m->values);
	m->values = TAKE_PTR(values);
	m->n = n;
	*ret_gained = TAKE_PTR(gained);
	return 0;
}
