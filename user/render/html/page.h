/*
 * report.html: a run as one page that needs nothing else (page_data.h has what is in it, assets/report/ what shows it).
 *
 * The page allows itself its own script and style, by their hashes, and nothing from anywhere: a name that should get
 * out of its place in it could neither run nor load anything.
 */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_H
#define MEMSCOPE_RENDER_HTML_PAGE_H

#include "analyse/line_costs.h"
#include "base/bytes.h"
#include "base/sink.h"
#include "model/code_text.h"
#include "model/profile.h"
#include "model/sample_times.h"
#include "model/time_table.h"

enum { PAGE_PROFILES = 16, PAGE_SERIES = 8 };

struct page_profile {
	const char *id;     /* as its file is named: "oncpu" */
	const struct profile *p;
	const struct sample_times *times; /* NULL: not known */
	const struct line_costs *costs;   /* of the value that is shown first; NULL: none were made */
};

struct page_series {
	const char *id, *title; /* as its file is named: "trend" */
	const struct time_table *table;
};

struct page_run {
	const char *title;  /* NULL: as the first profile says */
	double started_s;   /* Unix time; 0: as the first profile says */
	double seconds;     /* 0: likewise */
	struct page_profile profiles[PAGE_PROFILES];
	uint32_t n_profiles;
	/* What came of the blocks of each stack of "alloc": of alloc_site_types, with its dict. NULL: not known. */
	const struct profile *sites;
	struct page_series series[PAGE_SERIES];
	uint32_t n_series;
	const struct profile *marked; /* what its program marked is shown (model/over_time.h); NULL: nothing */
	struct bytes summary; /* summary.json; none: empty */
	const struct code_sources *sources; /* with the profiles' dict; NULL: none were read */
	bool no_source;                     /* and of files nothing, on request              */
};

/* Of a comparison, the runs of one side: each in all its parts. */
struct page_side {
	const char *name;
	const struct page_run *runs;
	uint32_t n_runs;
};

/* A long list, as JSON, in an element of its own: what page_data.h calls rows. */
struct page_rows {
	const char *id;
	struct bytes json;
};

struct page_comparison {
	struct page_side sides[2]; /* before, after */
	struct bytes figures;      /* an object: `comparison` of page_data.h */
	const struct page_rows *rows;
	uint32_t n_rows;
};

/* -ENOMEM. What is not JSON among `summary` is left out. */
int page_write(const struct page_run *run, struct sink *out, struct err *e);

/* The same of a comparison. */
int page_write_comparison(const struct page_comparison *c, struct sink *out, struct err *e);

/* Does the page draw charts (was uPlot there when memscope was built)? */
bool page_has_charts(void);

#endif
