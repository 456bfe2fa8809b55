#include "run/output/window_write.h"

#include "base/archive.h"
#include "render/render.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/output/facts.h"
#include "run/output/files.h"
#include "run/push.h"
#include "run/window.h"
#include "run/window_room.h"

#include <errno.h>
#include <stdio.h>

void window_outcome_add(struct window_outcome *o, int rc, const struct err *e)
{
	if (rc == 0 || o->rc < 0)
		return;
	o->rc = rc;
	if (o->e)
		*o->e = *e;
}

/* In every format that has something to show; `folder`: "" or "web/". */
static void write_formats(const struct window_write *w, const struct profile *p, int kind,
			  const char *folder, struct window_outcome *o)
{
	const struct run_config *cfg = w->run->cfg;
	const char *dir =
		cfg->archive && cfg->every_s > 0 ? archive_making(cfg->archive) : cfg->dir;

	for (const struct format *f = formats; f->name; f++) {
		struct err one = { 0 };
		char path[4096];
		int rc = 0;

		if (cfg->serve && f->one_value)
			continue; /* made from the profile when somebody looks */

		snprintf(path, sizeof(path), "%s/%s%s%s-%s%s", dir, folder, profile_rows[kind].name,
			 w->prefix, w->stamp, f->ext);
		if (!f->on_demand && *folder)
			rc = folder_make(dir, folder, &one);
		if (!f->on_demand && rc == 0)
			rc = output_write(w->run, p, f, path, &one);
		window_outcome_add(o, rc == -ENODATA ? 0 : rc, &one);
	}
	if (!*w->prefix && !w->again)
		push_profile(w->run, p, (enum profile_kind)kind, folder);
}

static void write_folders(const struct window_write *w, const struct profile *all, int kind,
			  struct window_outcome *o)
{
	_cleanup_(folders_fini) struct folders f = { 0 };
	struct err one = { 0 };

	if (!folders_wanted(w->run->cfg))
		return;
	window_outcome_add(o, folders_split(w->run->cfg, all, &f, &one), &one);
	for (uint32_t i = 0; i < f.n; i++) {
		char folder[FOLDER_NAME + 1];

		snprintf(folder, sizeof(folder), "%s/", f.list[i].name);
		write_formats(w, f.list[i].profile, kind, folder, o);
	}
	if (f.full)
		window_outcome_add(
			o,
			err_set(&one, -E2BIG,
				"there are over %u containers: the others have no folder of "
				"their own",
				FOLDERS_MAX),
			&one);
}

/* What it is worth, and what it cost. */
static int set_meta(const struct window_write *w, const struct profile_now *now, int kind,
		    struct profile_meta *meta)
{
	char comment[512];
	int n = snprintf(comment, sizeof(comment), "%s", now->comment[kind]);

	if (now->cost_percent[kind] >= 0)
		n += snprintf(comment + n, sizeof(comment) - (size_t)n,
			      "%scost in this window: %.3g %% of a CPU", n ? "; " : "",
			      now->cost_percent[kind]);
	if (w->lines_cut)
		snprintf(
			comment + n, sizeof(comment) - (size_t)n,
			"%s%s debug info was read, for memscope's own limit: inlined calls %s missing",
			n ? "; " : "", w->lines_ns > 0 ? "not all" : "no",
			w->lines_ns > 0 ? "may be" : "are");
	return output_set_meta(w->run, now->profiles[kind], meta, comment);
}

/* What other components have of its time. */
static void write_others(const struct window_write *w, const struct profile_now *now,
			 struct window_outcome *o)
{
	const struct run_config *cfg = w->run->cfg;
	const struct run_window window = { .dir = archive_making(cfg->archive),
					   .stamp = w->stamp,
					   .from_ns = now->end_ns - (uint64_t)now->duration_ns,
					   .to_ns = now->end_ns };

	EACH_COMPONENT(w->run, c, self)
	{
		struct err one = { 0 };

		window_outcome_add(o, c->window ? c->window(self, &window, &one) : 0, &one);
	}
}

int window_write_once(const struct window_write *w, const struct profile_now *now, struct err *e)
{
	struct window_outcome o = { 0, e };

	for (int i = 0; i < profile_kinds(); i++) {
		struct profile_meta meta = output_profile_meta(w->run, &profile_rows[i]);
		struct err one = { 0 };
		int rc;

		if (!now->profiles[i])
			continue;
		meta.time_ns = now->time_ns;
		meta.duration_ns = now->duration_ns;
		if (now->period[i])
			meta.period = now->period[i];
		rc = set_meta(w, now, i, &meta);
		if (rc < 0) { /* it would be of no known time */
			window_outcome_add(&o, err_set(&one, rc, "out of memory for a profile"),
					   &one);
			continue;
		}
		write_formats(w, now->profiles[i], i, "", &o);
		write_folders(w, now->profiles[i], i, &o);
	}
	if (w->run->cfg->archive && w->run->cfg->every_s > 0 && !*w->prefix)
		write_others(w, now, &o);
	return o.rc;
}

int window_write(struct window_write *w, const struct profile_now *now, struct err *e)
{
	const struct run_config *cfg = w->run->cfg;
	int rc = window_write_once(w, now, e);

	for (uint64_t n = 1; archive_is_full(rc) && window_room_make(cfg, n); n *= 2) {
		w->again = true;
		rc = window_write_once(w, now, e);
	}
	w->again = false;
	if (archive_is_full(rc) && cfg->serve && cfg->archive)
		archive_discard(cfg->archive, w->stamp);
	return rc;
}

int window_put_in_place(const struct window_write *w, int rc, struct err *e)
{
	const struct run_config *cfg = w->run->cfg;
	struct err one = { 0 };
	int r2 = 0;

	if (cfg->archive && cfg->every_s > 0)
		r2 = archive_commit(cfg->archive, w->stamp, &cfg->keep, &one);
	if (rc == 0 && r2 < 0)
		*e = one;
	return rc < 0 ? rc : r2;
}
