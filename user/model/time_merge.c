#include "model/time_merge.h"

#include "model/sample_times.h"

#include <errno.h>
#include <stdio.h>

static int type_of(const struct profile *p, const struct value_type *t)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/%s", t->name, t->unit);
	return profile_find_type(p, name);
}

/* A store for the types that `part` has times of, as far as the sum has them. */
static int make_store(struct profile *sum, const struct profile *part)
{
	const struct sample_times *from = profile_times(part);
	uint32_t types[SAMPLE_TIMES_TYPES], n = 0;
	struct sample_times *t;

	for (uint32_t i = 0; from && i < sample_times_n_types(from); i++) {
		int type = type_of(sum, profile_type(part, sample_times_type(from, i)));

		if (type >= 0)
			types[n++] = (uint32_t)type;
	}
	if (!n)
		return -EAGAIN;
	t = sample_times_new(types, n, sample_times_bin_ns(from), SAMPLE_TIMES_MAX);
	if (!t)
		return -ENOMEM;
	profile_set_times(sum, t);
	return 0;
}

/* Of a part's own store the place of each type that the sum has times of, -1: none. */
static void places_of(const struct profile *sum, const struct profile *part,
		      int ret_place[SAMPLE_TIMES_TYPES], int ret_type[SAMPLE_TIMES_TYPES])
{
	const struct sample_times *to = profile_times(sum), *from = profile_times(part);

	for (uint32_t i = 0; i < sample_times_n_types(to); i++) {
		ret_type[i] = type_of(part, profile_type(sum, sample_times_type(to, i)));
		ret_place[i] = -1;
		for (uint32_t k = 0; from && k < sample_times_n_types(from); k++)
			if ((int)sample_times_type(from, k) == ret_type[i])
				ret_place[i] = (int)k;
	}
}

static int add_spans(struct profile *sum, const struct profile *part, uint32_t of,
		     uint32_t to_sample, uint64_t offset_ns, const int *place)
{
	struct sample_times *to = profile_times(sum);
	const struct sample_times *from = profile_times(part);
	struct sample_time_reader read = sample_times_read(from, of);
	uint64_t width = sample_times_bin_ns(from);
	struct sample_time entry;
	int r = 0;

	while (r == 0 && sample_times_next(&read, &entry)) {
		int64_t values[SAMPLE_TIMES_TYPES] = { 0 };
		uint64_t at = offset_ns + entry.bin * width;

		for (uint32_t i = 0; i < sample_times_n_types(to); i++)
			values[i] = place[i] < 0 ? 0 : entry.values[place[i]];
		r = sample_times_add_span(to, to_sample, at, at + width, values);
	}
	return r;
}

int time_merge_add(struct profile *sum, const struct profile *part, int64_t begin_ns)
{
	const struct profile_meta *meta = profile_get_meta(part);
	uint64_t offset_ns = meta->time_ns > begin_ns ? (uint64_t)(meta->time_ns - begin_ns) : 0;
	uint64_t duration_ns = meta->duration_ns > 0 ? (uint64_t)meta->duration_ns : 1;
	int place[SAMPLE_TIMES_TYPES] = { 0 }, type[SAMPLE_TIMES_TYPES] = { 0 };
	int r = profile_times(sum) ? 0 : make_store(sum, part);

	if (r < 0)
		return r;
	places_of(sum, part, place, type);
	for (uint32_t i = 0; r == 0 && i < profile_n_samples(part); i++) {
		struct profile_sample s = profile_sample(part, i);
		int64_t values[SAMPLE_TIMES_TYPES] = { 0 };
		uint32_t to;

		if (profile_find_sample(sum, s.stack, s.labels, &to) < 0)
			continue;
		for (uint32_t k = 0; k < sample_times_n_types(profile_times(sum)); k++)
			values[k] = type[k] < 0 ? 0 : s.values[type[k]];
		r = profile_times(part) ? add_spans(sum, part, i, to, offset_ns, place)
					: sample_times_add_span(profile_times(sum), to, offset_ns,
								offset_ns + duration_ns, values);
	}
	return r;
}
