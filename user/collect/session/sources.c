#include "collect/session/sources.h"

/* clang-format off */
const struct profile_row profile_rows[N_PROFILE_KINDS] = {
	[PROFILE_ONCPU] = {
		.name = "oncpu", .source = MS_ONCPU, .n_types = 2, .default_type = 1,
		.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.period = { "cpu", "nanoseconds" },
	},
	[PROFILE_OFFCPU] = {
		.name = "offcpu", .source = MS_OFFCPU, .n_types = 4, .default_type = 1,
		.types = { { "blocked", "count" }, { "blocked", "nanoseconds" },
			   { "runnable", "count" }, { "runnable", "nanoseconds" } },
		.period = { "blocked", "nanoseconds" },
	},
	[PROFILE_ALLOC] = {
		.name = "alloc", .source = MS_ALLOC, .n_types = 2, .default_type = 1,
		.types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" } },
		.period = { "space", "bytes" },
	},
	[PROFILE_HEAP] = {
		.name = "heap", .source = MS_ALLOC, .n_types = 4, .default_type = 3,
		.types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
			   { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.period = { "space", "bytes" },
	},
	[PROFILE_PEAK] = {
		.name = "peak", .source = MS_ALLOC, .n_types = 2, .default_type = 1,
		.types = { { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.period = { "space", "bytes" },
	},
	[PROFILE_GROWTH] = {
		.name = "growth", .source = MS_GROWTH, .n_types = 2, .default_type = 0,
		.types = { { "resident", "bytes" }, { "returned", "bytes" } },
		.period = { "resident", "bytes" },
	},
	[PROFILE_MAPPINGS] = {
		.name = "mappings", .source = MS_ALLOC, .n_types = 4, .default_type = 3,
		.types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
			   { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.period = { "space", "bytes" },
	},
};
/* clang-format on */
