#include "screen/profile.h"

#include <errno.h>
#include <string.h>

static bool same_types(const struct profile *a, const struct profile *b)
{
	if (profile_n_types(a) != profile_n_types(b))
		return false;
	for (uint32_t i = 0; i < profile_n_types(a); i++)
		if (strcmp(profile_type(a, i)->name, profile_type(b, i)->name) != 0 ||
		    strcmp(profile_type(a, i)->unit, profile_type(b, i)->unit) != 0)
			return false;
	return true;
}

/* The one of this name, which is made like `p` if it is not there. */
static struct profile **kind_of(struct profile_set *set, const char *name, const struct profile *p)
{
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t n = profile_n_types(p);
	struct profile *made;

	for (uint32_t i = 0; i < set->n; i++)
		if (strcmp(set->kinds[i].name, name) == 0)
			return same_types(set->kinds[i].profile, p) ? &set->kinds[i].profile : NULL;
	if (set->n == PROFILES_MAX)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		types[i] = *profile_type(p, i);
	made = profile_new(profile_dict(p), types, n);
	if (!made || profile_set_meta(made, profile_get_meta(p)) < 0) {
		profile_free(made);
		return NULL;
	}
	snprintf(set->kinds[set->n].name, sizeof(set->kinds[set->n].name), "%s", name);
	set->kinds[set->n].profile = made;
	return &set->kinds[set->n++].profile;
}

/* What is live is of its moment: the one before it is no part of a sum. */
static bool is_state(const struct value_type *type)
{
	return strncmp(type->name, "inuse_", 6) == 0;
}

static int forget_states(struct profile **p)
{
	struct value_type types[PROFILE_MAX_TYPES];
	_cleanup_(profile_freep) struct profile *without = NULL;
	uint32_t n = profile_n_types(*p), states = 0;

	for (uint32_t i = 0; i < n; i++) {
		types[i] = *profile_type(*p, i);
		states += is_state(&types[i]);
	}
	if (!states || !profile_n_samples(*p))
		return 0;
	without = profile_new(profile_dict(*p), types, n);
	if (!without || profile_set_meta(without, profile_get_meta(*p)) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_n_samples(*p); i++) {
		struct profile_sample s = profile_sample(*p, i);
		int64_t values[PROFILE_MAX_TYPES] = { 0 };
		bool any = false;

		for (uint32_t k = 0; k < n; k++) {
			values[k] = is_state(&types[k]) ? 0 : s.values[k];
			any |= values[k] != 0;
		}
		if (any && profile_add(without, s.stack, s.labels, values) < 0)
			return -ENOMEM;
	}
	profile_free(*p);
	*p = TAKE_PTR(without);
	return 0;
}

int profile_set_add(struct profile_set *set, const char *name, const struct profile *p)
{
	struct profile **to = kind_of(set, name, p);

	if (!to || forget_states(to) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (profile_add_sample(*to, s.stack, s.labels, &s, NULL, 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

int profile_set_show(const struct profile_set *set, struct call_tree *t, unsigned without)
{
	bool alloc = false;
	int r = 0;

	for (uint32_t i = 0; i < set->n; i++)
		alloc |= strcmp(set->kinds[i].name, "alloc") == 0;
	for (uint32_t i = 0; r == 0 && i < set->n; i++) {
		unsigned others = 0;

		/* What was allocated is in both. */
		if (alloc && strcmp(set->kinds[i].name, "heap") == 0)
			others = CALL_BIT(CALL_ALLOC);
		r = call_tree_add(t, set->kinds[i].profile, without | others);
	}
	return r;
}

void profile_set_fini(struct profile_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		profile_free(set->kinds[i].profile);
	*set = (struct profile_set){ 0 };
}
