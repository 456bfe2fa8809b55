#include "run/output/page.h"

#include "run/output/page_files.h"
#include "run/pipeline.h"

#include <stdio.h>

int output_page(const struct run *r, const char *suffix, struct err *e)
{
	_cleanup_(page_files_fini) struct page_files files = { 0 };
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct page_run page = {
		.title = r->cfg->title,
		.sites = r->alloc.tier == ALLOC_TIER_EXACT ? r->alloc.sites : NULL,
		.started_s = (double)r->clock.start_wall_ns / 1e9,
	};
	char path[4096];
	int rc;

	/* Profiles of windows are beside them. */
	for (int i = 0; i < N_PROFILE_KINDS && r->cfg->every_s == 0; i++)
		if (r->profiles[i] && pipeline_has(r, (enum profile_kind)i) &&
		    profile_n_samples(r->profiles[i]))
			page.profiles[page.n_profiles++] = (struct page_profile){
				.id = profile_rows[i].name,
				.p = r->profiles[i],
				.times = profile_times(r->profiles[i]),
			};
	rc = page_files_read(r->cfg->dir, suffix, &page, &files, e);
	snprintf(path, sizeof(path), "%s/report%s.html", r->cfg->dir, suffix);
	if (rc == 0)
		rc = sink_open_file(path, &sink, e);
	if (rc == 0)
		rc = page_write(&page, sink, e);
	return rc == 0 ? sink_commit(sink, e) : rc;
}
