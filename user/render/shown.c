#include "render/shown.h"

#include <string.h>

struct known_type {
	const char *name, *unit; /* NULL: any name */
	const char *title, *noun, *palette;
};

/* The first row that fits. */
static const struct known_type known_types[] = {
	{ "samples", "count", "On-CPU", "samples", "cpu" },
	{ "cpu", "nanoseconds", "On-CPU time", "", "cpu" },
	{ "blocked", "nanoseconds", "Off-CPU: blocked", "", "wait" },
	{ "blocked", "count", "Off-CPU: times blocked", "waits", "wait" },
	{ "runnable", "nanoseconds", "Off-CPU: waiting for a CPU", "", "wait" },
	{ "runnable", "count", "Off-CPU: times without a CPU", "waits", "wait" },
	{ "alloc_space", "bytes", "Memory allocated", "", "memory" },
	{ "alloc_objects", "count", "Allocations", "objects", "memory" },
	{ "inuse_space", "bytes", "Memory live", "", "memory" },
	{ "inuse_objects", "count", "Live allocations", "objects", "memory" },
	{ "mean_space", "bytes", "Heap, mean over time", "", "memory" },
	{ "peak_space", "bytes", "Heap at its peak", "", "memory" },
	{ "space_time", "byte-milliseconds", "Heap over time", "", "memory" },
	{ "resident", "bytes", "Memory made resident", "", "memory" },
	{ "off_cpu", "nanoseconds", "Off-CPU", "", "wait" },
	{ NULL, "bytes", NULL, "", "memory" },
	{ NULL, "count", NULL, NULL, "cpu" },
	{ NULL, NULL, NULL, "", "cpu" },
};

static const struct known_type *known_type(const struct value_type *t)
{
	const struct known_type *k = known_types;

	while ((k->name && strcmp(k->name, t->name) != 0) ||
	       (k->unit && strcmp(k->unit, t->unit) != 0))
		k++;
	return k;
}

static bool is_time(const struct value_type *t)
{
	return strcmp(t->unit, "nanoseconds") == 0;
}

static uint32_t choose(const struct profile *p)
{
	uint32_t type = profile_get_meta(p)->default_type;
	int samples = profile_find_type(p, "samples/count");

	if (type >= profile_n_types(p))
		type = 0;
	return samples >= 0 && is_time(profile_type(p, type)) ? (uint32_t)samples : type;
}

struct shown shown_pick(const struct profile *p, int wanted)
{
	uint32_t type = wanted >= 0 ? (uint32_t)wanted : choose(p);
	const struct value_type *t = profile_type(p, type);
	const struct known_type *k = known_type(t);

	return (struct shown){
		.type = type,
		.unit = t->unit,
		.noun = k->noun ? k->noun : t->name,
		.title = k->title ? k->title : t->name,
		.palette = k->palette,
		.divisor = is_time(t) ? 1000 : 1,
	};
}

int64_t shown_number(const struct shown *s, int64_t value)
{
	if (s->divisor == 1)
		return value;
	return value / s->divisor + (value % s->divisor >= s->divisor / 2);
}

struct unit_text shown_text(const struct shown *s, const char *countname, int64_t value)
{
	if (countname)
		return unit_count(shown_number(s, value));
	return *s->noun ? unit_count(value) : unit_value(value, s->unit);
}

const char *shown_noun(const struct shown *s, const char *countname)
{
	return countname ? countname : s->noun;
}
