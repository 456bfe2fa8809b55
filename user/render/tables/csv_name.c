#include "render/tables/csv_name.h"

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
