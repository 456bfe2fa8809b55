#include "render/tables/csv_name.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static void put_bytes(struct sink *out, const char *name, bool in_path)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (c == '"')
			sink_puts(out, "\"\"");
		else
			sink_printf(out, "%c",
				    c < 0x20 || c == 0x7f || (in_path && c == ';') ? '?' : c);
	}
}

void csv_put_name(struct sink *out, const char *name)
{
	sink_puts(out, "\"");
	put_bytes(out, name, false);
	sink_puts(out, "\"");
}

void csv_put_path(struct sink *out, const struct dict *d, const struct frame_path *path)
{
	sink_puts(out, "\"");
	for (uint32_t i = 0; i < path->n; i++) {
		if (i)
			sink_puts(out, ";");
		put_bytes(out, dict_str(d, path->frames[i].name), true);
	}
	sink_puts(out, "\"");
}

int csv_put_series_names(struct sink *out, struct dict *d, const stack_id *stacks, uint32_t n)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };

	sink_puts(out, "timestamp");
	for (uint32_t i = 0; i < n; i++) {
		if (frame_path_set(&path, d, stacks[i]) < 0)
			return -ENOMEM;
		sink_puts(out, ",");
		csv_put_path(out, d, &path);
	}
	sink_puts(out, ",OTHER\n");
	return 0;
}

static void time_text(int64_t wall_ns, char text[40])
{
	time_t sec = (time_t)(wall_ns / 1000000000);
	struct tm tm;
	size_t n;

	localtime_r(&sec, &tm);
	n = strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(text + n, 40 - n, ".%03d", (int)(wall_ns % 1000000000 / 1000000));
}

void csv_put_time(struct sink *out, int64_t wall_ns)
{
	char text[40];

	time_text(wall_ns, text);
	sink_puts(out, text);
}

void csv_time_add(struct strbuf *out, int64_t wall_ns)
{
	char text[40];

	time_text(wall_ns, text);
	strbuf_puts(out, text);
}
