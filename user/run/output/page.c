#include "run/output/page.h"

#include "run/output/facts.h"
#include "run/output/files.h"
#include "run/output/page_files.h"
#include "run/output/page_sources.h"
#include "run/pipeline.h"
#include "symbolize/source_read.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* For the debug info of all images: a page is written when the run has ended, and somebody waits for it. */
#define LINES_MS_MAX 3000

static int open_in(void *ctx, pid_t pid, const char *path)
{
	const struct run *r = ctx;

	return proc_table_open_in(r->procs, pid, path);
}

static bool in_own_root(void *ctx, module_id m, pid_t pid)
{
	const struct run *r = ctx;

	return pid ? proc_table_sees_own_root(r->procs, pid) : proc_table_in_own_root(r->procs, m);
}

/* Nobody's where a process is gone: what it ran as is not known any more. A command that we started ran as we do. */
static uid_t user_of(void *ctx, pid_t pid)
{
	const struct run *r = ctx;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) == 0)
		return st.st_uid;
	return r->cfg->command ? geteuid() : SOURCE_READER_NOBODY;
}

static int add_sources(struct run *r, struct page_run *page, struct page_sources *sources,
		       struct err *e)
{
	struct symbolize_opts files = output_files(r);
	const struct sources_opts opts = {
		.files = &files,
		.open_in = open_in,
		.in_own_root = in_own_root,
		.user_of = user_of,
		.reader = r->cfg->command ? geteuid() : SOURCE_READER_NOBODY,
		.functions = SOURCES_FUNCTIONS,
		.max_ms = LINES_MS_MAX,
		.taken_s = r->clock.start_wall_ns / 1000000000,
		.no_source = r->cfg->no_source,
	};

	return run_in_a_hurry() ? 0 : page_sources_read(page, &opts, sources, e);
}

int output_page(struct run *r, const char *suffix, struct err *e)
{
	_cleanup_(page_files_fini) struct page_files files = { 0 };
	_cleanup_(page_sources_fini) struct page_sources sources = { 0 };
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct page_run page = {
		.title = r->cfg->title,
		.sites = r->alloc.tier == ALLOC_TIER_EXACT ? r->alloc.sites : NULL,
		.started_s = (double)r->clock.start_wall_ns / 1e9,
	};
	char path[4096];
	int rc;

	/* With windows, times of all but the last one are with them: report -o makes a page of these. */
	for (int i = 0; i < profile_kinds(); i++)
		if (r->profiles[i] && pipeline_has(r, (enum profile_kind)i) &&
		    profile_n_samples(r->profiles[i]))
			page.profiles[page.n_profiles++] = (struct page_profile){
				.id = profile_rows[i].name,
				.p = r->profiles[i],
				.times = r->cfg->every_s > 0 ? NULL : profile_times(r->profiles[i]),
			};
	rc = page_files_read(r->cfg->dir, suffix, &page, &files, e);
	if (rc == 0)
		rc = add_sources(r, &page, &sources, e);
	snprintf(path, sizeof(path), "%s/report%s.html", r->cfg->dir, suffix);
	if (rc == 0)
		rc = sink_open_new(path, &sink, e);
	if (rc == 0)
		rc = page_write(&page, sink, e);
	return rc == 0 ? sink_commit(sink, e) : rc;
}
