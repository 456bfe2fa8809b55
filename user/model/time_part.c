#include "model/time_part.h"

#include "model/sample_times.h"

#include <errno.h>
#include <string.h>

/* Bins from … to-1. */
struct bins {
	uint32_t from, to;
};

static struct bins bins_of(const struct sample_times *t, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t bin_ns = sample_times_bin_ns(t), n = sample_times_n_bins(t);
	uint64_t from = from_ns / bin_ns, to = to_ns / bin_ns + (to_ns % bin_ns != 0);

	return (struct bins){ (uint32_t)(from < n ? from : n), (uint32_t)(to < n ? to : n) };
}

/* One like it, for as many value types; those of `types`, by the profile that it is for. */
static struct sample_times *times_like(const struct sample_times *t, const uint32_t *types)
{
	return sample_times_new(types, sample_times_n_types(t), sample_times_bin_ns(t), UINT32_MAX);
}

/* --- a profile of what its bins have --- */

/* The value types that have times, in their order in the profile; place[i]: where the i-th that has times is. */
static uint32_t timed_types(const struct profile *p, struct value_type types[SAMPLE_TIMES_TYPES],
			    uint32_t place[SAMPLE_TIMES_TYPES])
{
	const struct sample_times *t = profile_times(p);
	uint32_t n = sample_times_n_types(t);
	bool turned = n == 2 && sample_times_type(t, 1) < sample_times_type(t, 0);

	for (uint32_t i = 0; i < n; i++) {
		place[i] = turned ? n - 1 - i : i;
		types[place[i]] = *profile_type(p, sample_times_type(t, i));
	}
	return n;
}

static int copy_meta(const struct profile *p, struct bins bins, uint32_t default_type,
		     struct profile *to)
{
	struct profile_meta meta = *profile_get_meta(p);
	int64_t bin_ns = (int64_t)sample_times_bin_ns(profile_times(p));
	int64_t before = bins.from * bin_ns, end = bins.to * bin_ns;

	if (meta.duration_ns && end > meta.duration_ns)
		end = meta.duration_ns > before ? meta.duration_ns : before;
	if (meta.time_ns)
		meta.time_ns += before;
	meta.duration_ns = end - before;
	meta.default_type = default_type;
	return profile_set_meta(to, &meta);
}

int profile_time_part(const struct profile *p, uint64_t from_ns, uint64_t to_ns,
		      struct profile **ret_part, struct err *e)
{
	const struct sample_times *t = profile_times(p);
	struct bins bins = bins_of(t, from_ns, to_ns);
	struct value_type types[SAMPLE_TIMES_TYPES];
	uint32_t place[SAMPLE_TIMES_TYPES] = { 0 }, n = timed_types(p, types, place);
	_cleanup_(profile_freep) struct profile *part = profile_new(profile_dict(p), types, n);
	struct sample_times *times = times_like(t, place);
	int r = part && times ? 0 : -ENOMEM;

	if (part)
		profile_set_times(part, times);
	else
		sample_times_free(times);
	for (uint32_t i = 0; i < profile_n_samples(p) && r == 0; i++) {
		struct profile_sample s = profile_sample(p, i);
		int64_t sums[SAMPLE_TIMES_TYPES], values[SAMPLE_TIMES_TYPES] = { 0 };
		uint32_t sample;
		bool any = false;

		sample_times_sum(t, i, bins.from, bins.to, sums);
		for (uint32_t k = 0; k < n; k++) {
			values[place[k]] = sums[k];
			any |= sums[k] != 0;
		}
		if (!any)
			continue;
		r = profile_add_to(part, s.stack, s.labels, values, &sample);
		if (r == 0)
			r = sample_times_copy(t, i, bins.from, bins.to, times, sample);
	}
	if (r == 0)
		r = copy_meta(p, bins, place[0], part);
	if (r < 0)
		return err_set(e, r, "out of memory");
	if (!profile_n_samples(part))
		return err_set(e, -ERANGE,
			       "nothing came in that time: its times end %.7g s after its begin",
			       (double)sample_times_n_bins(t) * (double)sample_times_bin_ns(t) /
				       1e9);
	*ret_part = TAKE_PTR(part);
	return 0;
}

/* --- times for a profile of a stretch --- */

int profile_part_times(const struct profile *whole, struct profile *part, uint64_t from_ns,
		       uint64_t to_ns)
{
	const struct sample_times *t = profile_times(whole);
	uint32_t types[SAMPLE_TIMES_TYPES] = { 0 };
	struct sample_times *times;
	struct bins bins;

	if (!t)
		return 0;
	bins = bins_of(t, from_ns, to_ns);
	for (uint32_t k = 0; k < sample_times_n_types(t); k++)
		types[k] = sample_times_type(t, k);
	times = times_like(t, types);
	if (!times)
		return -ENOMEM;
	profile_set_times(part, times);
	for (uint32_t i = 0; i < profile_n_samples(part); i++) {
		struct profile_sample s = profile_sample(part, i);
		uint32_t sample;

		if (profile_find_sample(whole, s.stack, s.labels, &sample) == 0 &&
		    sample_times_copy(t, sample, bins.from, bins.to, times, i) < 0)
			return -ENOMEM;
	}
	return profile_fit_times(part);
}
