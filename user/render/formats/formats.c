#include "render/formats/writers.h"

#include <string.h>

const struct format formats[] = {
	{ .name = "pprof",
	  .ext = ".pb.gz",
	  .gzip = true,
	  .write = pprof_format_write,
	  .help = "pprof profile, for `go tool pprof`, speedscope and profile stores" },
	{ .name = "folded",
	  .ext = ".folded",
	  .one_value = true,
	  .write = folded_write,
	  .help = "folded stacks, one per line, for flamegraph.pl, speedscope and grep" },
	{ .name = "svg",
	  .ext = ".svg",
	  .picture = true,
	  .one_value = true,
	  .write = svg_write,
	  .help = "flame graph, self-contained, for a browser" },
	{ .name = "csv",
	  .ext = ".csv",
	  .on_demand = true,
	  .write = csv_write,
	  .help = "table of functions: self and total of every value type" },
	{ .name = "speedscope",
	  .ext = ".json",
	  .on_demand = true,
	  .write = speedscope_write,
	  .help = "speedscope's own file, every value type in it" },
	{ .name = "callgrind",
	  .ext = ".callgrind",
	  .on_demand = true,
	  .write = callgrind_write,
	  .help = "callgrind's format, for callgrind_annotate and KCachegrind: functions, lines, calls" },
	{ .name = "dot",
	  .ext = ".dot",
	  .on_demand = true,
	  .one_value = true,
	  .write = dot_write,
	  .help = "call graph for graphviz" },
	{ .name = "massif",
	  .ext = ".massif",
	  .on_demand = true,
	  .one_value = true,
	  .with_levels = true,
	  .write = massif_write,
	  .help = "massif's output, for ms_print and massif-visualizer: who has how many bytes" },
	{ .name = "dhat",
	  .ext = ".dhat",
	  .on_demand = true,
	  .write = dhat_write,
	  .help = "DHAT's file, for dh_view.html: what came of every stack's blocks (of sites.pb.gz)" },
	{ .name = "times",
	  .ext = ".times.csv.gz",
	  .gzip = true,
	  .of_times = true,
	  .write = times_write,
	  .help = "table of when the values of the profile's samples came" },
	{ .name = "firefox",
	  .ext = ".firefox.json",
	  .on_demand = true,
	  .one_value = true,
	  .with_times = true,
	  .write = firefox_write,
	  .help = "the Firefox Profiler's file, with the times of samples" },
	{ .name = "perf-script",
	  .ext = ".perf",
	  .on_demand = true,
	  .one_value = true,
	  .with_times = true,
	  .write = perf_script_write,
	  .help = "text as perf script prints it, with the times of samples" },
	{ .name = "otlp",
	  .ext = ".otlp",
	  .on_demand = true,
	  .with_times = true,
	  .write = otlp_write,
	  .help = "OpenTelemetry's profiles (protobuf, v1development of 1.11), with the times of samples" },
	{ 0 },
};

const struct format *format_find(const char *name)
{
	for (const struct format *f = formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

const struct format *format_for_path(const char *path)
{
	const struct format *longest = NULL;
	size_t len = strlen(path);

	for (const struct format *f = formats; f->name; f++) {
		size_t ext = strlen(f->ext);

		if (len >= ext && strcmp(path + len - ext, f->ext) == 0 &&
		    (!longest || ext > strlen(longest->ext)))
			longest = f;
	}
	return longest;
}
