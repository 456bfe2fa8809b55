#include "model/alloc_site.h"

/* clang-format off */
const struct value_type alloc_site_types[N_SITE_VALUES] = {
	[SITE_OBJECTS] = { "alloc_objects", "count" },
	[SITE_BYTES] = { "alloc_space", "bytes" },
	[SITE_FREED] = { "freed_objects", "count" },
	[SITE_FREED_BYTES] = { "freed_space", "bytes" },
	[SITE_TEMPORARY] = { "temporary", "count" },
	[SITE_CROSS] = { "cross_thread_frees", "count" },
	[SITE_LIFE_NS] = { "lifetime", "nanoseconds" },
	[SITE_LIVES] = { "lived_under_10us", "count" },
	{ "lived_under_100us", "count" },
	{ "lived_under_1ms", "count" },
	{ "lived_under_10ms", "count" },
	{ "lived_under_100ms", "count" },
	{ "lived_under_1s", "count" },
	{ "lived_under_10s", "count" },
	{ "lived_longer", "count" },
	[SITE_PEAK_OBJECTS] = { "peak_objects", "count" },
	[SITE_PEAK_BYTES] = { "peak_space", "bytes" },
	[SITE_LIVE_OBJECTS] = { "inuse_objects", "count" },
	[SITE_LIVE_BYTES] = { "inuse_space", "bytes" },
};
/* clang-format on */
