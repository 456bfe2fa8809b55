#include "run/stale.h"

#include "base/archive.h"
#include "base/window_name.h"
#include "collect/session/sources.h"
#include "render/render.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct sweep {
	const char *dir;
	const char *const *written;
	uint32_t n_written;
	struct strbuf *removed;
};

static void look_at(const struct sweep *s, const char *name, const char *ext)
{
	char file[256], path[4096];

	snprintf(file, sizeof(file), "%s%s", name, ext);
	for (uint32_t i = 0; i < s->n_written; i++)
		if (strcmp(s->written[i], file) == 0)
			return;
	if (snprintf(path, sizeof(path), "%s/%s", s->dir, file) >= (int)sizeof(path))
		return;
	if (unlink(path) == 0)
		strbuf_printf(s->removed, "%s%s", s->removed->len ? " " : "", file);
}

/* Of the events of the earlier run only its list says how their files are called. */
static int look_at_listed(void *ctx, const char *name)
{
	char stamp[32];

	if (!strchr(name, '/') && !is_window_name(name, stamp, sizeof(stamp)))
		look_at(ctx, name, "");
	return 0;
}

void stale_remove(const char *dir, const char *const *written, uint32_t n_written,
		  struct strbuf *removed)
{
	struct sweep s = { dir, written, n_written, removed };

	archive_each_part(dir, look_at_listed, &s);
	for (int i = 0; i < profile_kinds(); i++)
		for (const struct format *f = formats; f->name; f++)
			if (!f->on_demand)
				look_at(&s, profile_rows[i].name, f->ext);
	look_at(&s, "trend", ".csv");
	look_at(&s, "live_series", ".csv");
	look_at(&s, "alloc_series", ".csv");
	look_at(&s, "workload", ".csv");
	look_at(&s, "census", ".csv");
	look_at(&s, "syscalls", ".csv");
	look_at(&s, "events", ".csv");
	look_at(&s, "counts", ".csv");
	look_at(&s, "rss_breakdown", ".csv");
	look_at(&s, "sites", ".csv");
	look_at(&s, "sites", ".pb.gz");
	look_at(&s, "summary", ".txt");
	look_at(&s, "summary", ".json");
	look_at(&s, "report", ".html");
}
