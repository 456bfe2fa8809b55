#include "run/stale.h"

#include "base/archive.h"
#include "base/window_name.h"
#include "collect/session/sources.h"
#include "render/render.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct sweep {
	const char *dir;
	const char *const *written;
	uint32_t n_written;
	struct strbuf *removed;
	struct strbuf names; /* of files of ours, each between newlines */
};

static void look_at(struct sweep *s, const char *name, const char *ext)
{
	char file[256], path[4096];

	snprintf(file, sizeof(file), "%s%s", name, ext);
	strbuf_printf(&s->names, "\n%s\n", file);
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

/* ".NAME.XXXXXX" of a run that was killed when a file of ours was about to be called NAME (base/new_file.h). */
static bool is_leaving(const struct sweep *s, const char *file)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t len = strlen(file);
	char line[256];

	if (len < 10 || file[0] != '.' || file[len - 7] != '.' ||
	    strspn(file + len - 6, letters) != 6)
		return false;
	snprintf(line, sizeof(line), "\n%.*s\n", (int)(len - 8), file + 1);
	return s->names.s && strstr(s->names.s, line);
}

static void remove_leavings(const struct sweep *s)
{
	DIR *dir = opendir(s->dir);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (is_leaving(s, d->d_name))
			unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
}

void stale_remove(const char *dir, const char *const *written, uint32_t n_written,
		  struct strbuf *removed)
{
	struct sweep s = { dir, written, n_written, removed, { 0 } };

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
	for (uint32_t i = 0; i < n_written; i++)
		strbuf_printf(&s.names, "\n%s\n", written[i]);
	remove_leavings(&s);
	strbuf_free(&s.names);
}
