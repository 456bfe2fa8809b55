#include "cmd/help.h"

/* Embedded by the build: user/cmd/topics/NAME.txt */
extern const char asset_reading_txt[], asset_memory_txt[], asset_objects_txt[], asset_waits_txt[],
	asset_containers_txt[], asset_long_runs_txt[], asset_formats_txt[], asset_symbols_txt[],
	asset_overhead_txt[], asset_kernels_txt[], asset_symptoms_txt[], asset_estimates_txt[],
	asset_languages_txt[], asset_serve_txt[], asset_syscalls_txt[], asset_events_txt[],
	asset_fleet_txt[];

/* clang-format off */
const struct topic topics[] = {
	{ "reading", asset_reading_txt },
	{ "memory", asset_memory_txt },
	{ "objects", asset_objects_txt },
	{ "waits", asset_waits_txt },
	{ "syscalls", asset_syscalls_txt },
	{ "events", asset_events_txt },
	{ "containers", asset_containers_txt },
	{ "long-runs", asset_long_runs_txt },
	{ "serve", asset_serve_txt },
	{ "fleet", asset_fleet_txt },
	{ "formats", asset_formats_txt },
	{ "symbols", asset_symbols_txt },
	{ "languages", asset_languages_txt },
	{ "estimates", asset_estimates_txt },
	{ "overhead", asset_overhead_txt },
	{ "kernels", asset_kernels_txt },
	{ "symptoms", asset_symptoms_txt },
	{ 0 },
};
/* clang-format on */
