#include "cmd/page_inputs.h"

#include "base/cleanup.h"
#include "cmd/input_archive.h"
#include "cmd/inputs_list.h"
#include "collect/session/sources.h"
#include "model/alloc_site.h"
#include "model/over_time.h"
#include "model/time_merge.h"
#include "run/named_kinds.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A page of more would be read for minutes. */
#define WINDOWS_MAX "last:200"

void page_inputs_fini(struct page_inputs *g)
{
	for (uint32_t i = 0; i < PAGE_PROFILES; i++)
		profile_free(g->profiles[i]);
	for (uint32_t i = 0; i < g->n_without; i++)
		profile_free(g->without[i]);
	profile_free(g->sites);
	page_files_fini(&g->files);
}

/* What a file has over time beside its samples; where several files have the same, the first one's. */
static void add_over_time(struct page_inputs *g, const struct profile *p)
{
	const struct over_time *o = profile_over_time(p);

	if (o && o->n_marks && !g->page.marked)
		g->page.marked = p;
	for (uint32_t i = 0; o && i < o->n_series; i++) {
		bool known = g->page.n_series == PAGE_SERIES;

		for (uint32_t k = 0; k < g->page.n_series; k++)
			known |= strcmp(g->page.series[k].id, o->series[i].id) == 0;
		if (!known)
			g->page.series[g->page.n_series++] =
				(struct page_series){ o->series[i].id, o->series[i].title,
						      o->series[i].table };
	}
}

static int add_profile(struct page_inputs *g, struct inputs *in, char *const *operands, int n,
		       const char *source, const char *id, struct err *e)
{
	uint32_t i = g->page.n_profiles;
	int r;

	if (i == PAGE_PROFILES)
		return err_set(e, -EINVAL, "a page shows %d profiles at most", PAGE_PROFILES);
	in->times_if_whole = true; /* else the page goes without */
	r = inputs_read(in, operands, n, source, MERGE_COMMON, NULL, &g->profiles[i], e);
	in->times_if_whole = false;
	if (r == 0 && profile_over_time(g->profiles[i])) {
		add_over_time(g, g->profiles[i]);
		if (!profile_n_samples(g->profiles[i]) && g->n_without < PAGE_PROFILES) {
			g->without[g->n_without++] = TAKE_PTR(g->profiles[i]);
			return 0;
		}
	}
	if (r < 0 || (!g->keep_empty && !profile_n_samples(g->profiles[i]))) {
		profile_free(TAKE_PTR(g->profiles[i]));
		return r;
	}
	snprintf(g->ids[i], sizeof(g->ids[i]), "%s", id);
	g->page.profiles[g->page.n_profiles++] = (struct page_profile){
		.id = g->ids[i], .p = g->profiles[i], .times = profile_times(g->profiles[i])
	};
	return 0;
}

/* What a file is called, as far as it may be in an id: "oncpu" of dir/oncpu.pb.gz. */
static void id_of(const char *path, uint32_t number, char *id, size_t cap)
{
	const char *slash = strrchr(path, '/');
	size_t n = 0;

	for (const char *s = slash ? slash + 1 : path; *s && *s != '.' && n + 8 < cap; s++)
		id[n++] = isalnum((unsigned char)*s) ? *s : '_';
	id[n] = 0;
	if (number)
		snprintf(id + n, cap - n, "-%u", number + 1);
	else if (!n)
		snprintf(id, cap, "profile");
}

int page_inputs_files(struct page_inputs *g, struct inputs *in, char *const *operands, int n,
		      struct err *e)
{
	for (int i = 0; i < n; i++) {
		char id[64];
		int r;

		id_of(operands[i], (uint32_t)i, id, sizeof(id));
		r = add_profile(g, in, operands + i, 1, NULL, id, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* sites.pb.gz, of a run that traced every call: the page goes without it, too. */
static void read_sites(struct page_inputs *g, struct inputs *in, const char *dir)
{
	struct err ignored = { 0 };
	char path[4096], *operand = path;

	snprintf(path, sizeof(path), "%s/sites.pb.gz", dir);
	if (access(path, R_OK) == 0 &&
	    inputs_read(in, &operand, 1, NULL, MERGE_COMMON, NULL, &g->sites, &ignored) == 0 &&
	    profile_n_types(g->sites) == N_SITE_VALUES)
		g->page.sites = g->sites;
}

/* Has the directory nothing but one run's files, so that all windows in it are that run's? */
static bool is_of_one_run(const char *dir)
{
	char path[4096];

	return input_summary(dir, ".json", path, sizeof(path)) == 0 &&
	       strcmp(strrchr(path, '/'), "/summary.json") == 0;
}

/* The page has the time of the windows, and of the run's tables over time what is of that. */
static int read_files_of_windows(struct page_inputs *g, const struct inputs *in, const char *dir,
				 struct err *e)
{
	struct input_place place;
	char path[4096 + 80], suffix[64];
	int r = input_place_find(dir, in->container, &place, e);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s%s%s", place.dir, *place.folder ? "/" : "", place.folder);
	g->page.started_s = (double)in->begin_ns / 1e9;
	g->page.seconds = (double)(in->end_ns - in->begin_ns) / 1e9;
	if (input_run_suffix(path, in->begin_ns, suffix, sizeof(suffix)) < 0)
		return 0;
	return page_files_read_part(path, suffix, g->page.started_s,
				    g->page.started_s + g->page.seconds, &g->page, &g->files, e);
}

/* All sources that there are, of what `operands` name. One that has no times, or nothing in the time that was asked for, is
 * left out. */
static int read_sources(struct page_inputs *g, struct inputs *in, char *const *operands, int n,
			struct err *e)
{
	named_kinds_of(operands[0]);
	for (int i = 0; i < profile_kinds(); i++) {
		const char *source = profile_rows[i].name;
		struct err one = { 0 };
		int r = add_profile(g, in, operands, n, source, source, &one);

		if (r < 0 && r != -ENOENT && r != -ERANGE) {
			*e = one;
			return r;
		}
	}
	return 0;
}

int page_inputs_run(struct page_inputs *g, struct inputs *in, char *const *operands, int n,
		    struct err *e)
{
	char *windows[] = { operands[0], WINDOWS_MAX };
	bool whole = n == 1 && is_of_one_run(operands[0]);
	char path[4096], suffix[64] = "";
	int r;

	in->begin_ns = in->end_ns = 0;
	r = read_sources(g, in, whole ? windows : operands, whole ? 2 : n, e);

	if (r < 0)
		return r;
	if (input_is_windows(operands, n))
		return read_files_of_windows(g, in, operands[0], e);
	read_sites(g, in, operands[0]);
	if (input_summary(operands[0], ".json", path, sizeof(path)) == 0) {
		char *name = strrchr(path, '/') + 1;

		snprintf(suffix, sizeof(suffix), "%.*s",
			 (int)(strlen(name) - strlen("summary.json")), name + strlen("summary"));
		name[-1] = '\0';
	} else {
		snprintf(path, sizeof(path), "%s", operands[0]);
	}
	return page_files_read(path, suffix, &g->page, &g->files, e);
}
