#include "model/profile_fold.h"

#include "base/cleanup.h"
#include "model/profile_checkpoint.h"
#include "model/profile_parts.h"
#include "model/sample_times.h"

#include <errno.h>
#include <stdlib.h>

/* Who looks at it next finds no gain in it. */
static bool gained_nothing(struct profile *p, uint32_t sample)
{
	for (const struct profile_checkpoint *m = *profile_checkpoints(p); m; m = m->next)
		if (!profile_checkpoint_has(m, sample))
			return false;
	return true;
}

static int fold_samples(struct profile *p, profile_fold_fn fn, void *ctx, struct profile *to,
			uint32_t *moved)
{
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (gained_nothing(p, i))
			fn(ctx, i, &s.stack, &s.labels);
		if (profile_add_sample(to, s.stack, s.labels, &s, NULL, 1) < 0 ||
		    profile_find_sample(to, s.stack, s.labels, &moved[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* All of them, or none. */
static int move_checkpoints(struct profile *p, const uint32_t *moved, uint32_t n_after)
{
	_cleanup_(freep) struct profile_checkpoint *after = NULL;
	struct profile_checkpoint *m;
	uint32_t n = 0, done = 0;
	int r = 0;

	for (m = *profile_checkpoints(p); m; m = m->next)
		n++;
	after = calloc(n + 1ul, sizeof(*after));
	if (!after)
		return -ENOMEM;
	for (m = *profile_checkpoints(p); m && r == 0; m = m->next)
		r = checkpoint_move(m, moved, n_after, &after[done++]);
	for (m = *profile_checkpoints(p), n = 0; m && r == 0; m = m->next)
		checkpoint_take_values(m, &after[n++]);
	while (done)
		profile_checkpoint_fini(&after[--done]);
	return r;
}

int profile_fold(struct profile *p, profile_fold_fn fn, void *ctx, uint32_t *ret_fewer)
{
	_cleanup_(profile_freep) struct profile *to = NULL;
	_cleanup_(freep) uint32_t *moved = NULL;
	uint32_t n = profile_n_samples(p);
	int r;

	if (profile_times(p) && sample_times_n_entries(profile_times(p)))
		return -EBUSY;
	to = profile_like(p);
	moved = calloc(n + 1ul, sizeof(*moved));
	r = to && moved ? fold_samples(p, fn, ctx, to, moved) : -ENOMEM;
	if (r == 0)
		r = move_checkpoints(p, moved, profile_n_samples(to));
	if (r < 0)
		return r;
	*ret_fewer = n - profile_n_samples(to);
	profile_take_samples(p, to);
	return 0;
}
