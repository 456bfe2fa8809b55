#include "cmd/page_inputs.h"

#include "base/cleanup.h"
#include "cmd/inputs_list.h"
#include "collect/session/sources.h"
#include "import/sample_times.h"
#include "model/alloc_site.h"
#include "model/over_time.h"
#include "model/time_merge.h"

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

/*
 * When the samples of several windows came that were added up: each is read once more, for its own times. What came before
 * times were known of any is of a source that has none. 0 or -ENOMEM.
 */
static int add_window_times(struct inputs *in, const struct input_list *list, struct profile *sum,
			    struct err *e)
{
	int64_t begin_ns = profile_get_meta(sum)->time_ns;
	uint32_t first = list->n;

	/* Those before the first with times come last, when it is known which value types have any. */
	for (uint32_t i = 0; i < list->n + first; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		char *path = list->paths[i < list->n ? i : i - list->n];
		struct err ignored = { 0 };
		int r = inputs_read(in, &path, 1, NULL, MERGE_COMMON, NULL, &p, e);

		if (r < 0)
			return r;
		sample_times_read_beside(p, path, &ignored);
		r = time_merge_add(sum, p, begin_ns);
		if (r == -ENOMEM)
			return err_set(e, r, "out of memory");
		if (r == 0 && first == list->n)
			first = i;
		if (r == -EAGAIN && i + 1 == list->n)
			break; /* none has any */
	}
	return 0;
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
	_cleanup_(input_list_fini) struct input_list list = { 0 };
	struct err ignored = { 0 };
	int r;

	if (i == PAGE_PROFILES)
		return err_set(e, -EINVAL, "a page shows %d profiles at most", PAGE_PROFILES);
	r = inputs_read(in, operands, n, source, MERGE_COMMON, NULL, &g->profiles[i], e);
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
	/* Where they are not known the page goes without. */
	if (profile_n_samples(g->profiles[i]) && !profile_times(g->profiles[i]) &&
	    input_list_make(operands, n, source, &list, &ignored) == 0) {
		if (list.n == 1)
			sample_times_read_beside(g->profiles[i], list.paths[0], &ignored);
		else if (source)
			r = add_window_times(in, &list, g->profiles[i], e);
		if (r < 0)
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

/* What is held at a moment: of several windows the last one's, and no sum. */
static bool is_amount(const char *source)
{
	return strcmp(source, "heap") == 0 || strcmp(source, "peak") == 0;
}

/* Has the directory nothing but one run's files, so that all windows in it are that run's? */
static bool is_of_one_run(const char *dir)
{
	char path[4096];

	return input_summary(dir, ".json", path, sizeof(path)) == 0 &&
	       strcmp(strrchr(path, '/'), "/summary.json") == 0;
}

int page_inputs_run(struct page_inputs *g, struct inputs *in, char *const *operands, int n,
		    struct err *e)
{
	char path[4096], suffix[64] = "";

	char *windows[] = { operands[0], WINDOWS_MAX }, *last[] = { operands[0], "latest" };
	bool whole = n == 1 && is_of_one_run(operands[0]);
	bool several =
		n > 1 && (strcmp(operands[1], "all") == 0 || strncmp(operands[1], "last:", 5) == 0);

	for (int i = 0; i < N_PROFILE_KINDS; i++) {
		bool amount = is_amount(profile_rows[i].name) && (whole || several);
		struct err one = { 0 };
		int r = add_profile(g, in,
				    amount  ? last
				    : whole ? windows
					    : operands,
				    amount || whole ? 2 : n, profile_rows[i].name,
				    profile_rows[i].name, &one);

		/* One that has no times, or nothing in the time that was asked for, is left out. */
		if (r < 0 && r != -ENOENT && r != -ERANGE) {
			*e = one;
			return r;
		}
	}
	read_sites(g, in, operands[0]);
	if (input_summary(operands[0], ".json", path, sizeof(path)) == 0) {
		const char *name = strrchr(path, '/') + 1 + strlen("summary");

		snprintf(suffix, sizeof(suffix), "%.*s", (int)(strlen(name) - strlen(".json")),
			 name);
	}
	return page_files_read(operands[0], suffix, &g->page, &g->files, e);
}
