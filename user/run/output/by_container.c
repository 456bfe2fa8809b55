/*
 * The profiles of a run of several containers, or of the host, once more for each container by itself, in its
 * folder (folders.h). Of a run of windows each window has them: windows.c.
 */
#include "run/component.h"
#include "run/folders.h"
#include "run/output/files.h"
#include "run/pipeline.h"

#include <errno.h>

struct by_container {
	struct run *run;
	bool full;
};

static int write_formats(const struct run *r, const struct folder_profile *f,
			 const struct profile_row *row, struct run_output *to, struct err *e)
{
	int rc = folder_make(r->cfg->dir, f->name, e);

	for (const struct format *format = formats; rc == 0 && format->name; format++) {
		char path[4096], file[64];

		if (format->on_demand || (run_in_a_hurry() && format->picture))
			continue;
		snprintf(file, sizeof(file), "%s%s", row->name, format->ext);
		snprintf(path, sizeof(path), "%s/%s/%s", r->cfg->dir, f->name, file);
		rc = output_write(r, f->profile, format, path, e);
		if (rc == 0)
			output_in_folder(to, f->name, file);
		else if (rc == -ENODATA)
			rc = 0; /* no picture of nothing */
	}
	return rc;
}

/* One kind at a time: a profile is as large again as its parts. */
static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct by_container *b = self;
	const struct run *r = b->run;
	int rc = 0;

	for (int kind = 0; rc == 0 && kind < profile_kinds(); kind++) {
		_cleanup_(folders_fini) struct folders f = { 0 };

		if (!r->profiles[kind] || !pipeline_has(r, (enum profile_kind)kind))
			continue;
		rc = folders_split(r->cfg, r->profiles[kind], &f, e);
		for (uint32_t i = 0; rc == 0 && i < f.n; i++)
			rc = write_formats(r, &f.list[i], &profile_rows[kind], to, e);
		b->full |= f.full;
	}
	if (b->full)
		run_note(b->run, true,
			 "there are over %u containers: the others have no folder of their own",
			 FOLDERS_MAX);
	return rc;
}

static bool wanted(const struct run_config *cfg)
{
	return folders_wanted(cfg) && cfg->every_s <= 0;
}

const struct component by_container_component = {
	.name = "profiles of containers",
	.size = sizeof(struct by_container),
	.wanted = wanted,
	.write = write_files,
};
