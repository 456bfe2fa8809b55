/* What the page shows of lines of source and instructions: read for the profiles that it has. */
#ifndef MEMSCOPE_RUN_OUTPUT_PAGE_SOURCES_H
#define MEMSCOPE_RUN_OUTPUT_PAGE_SOURCES_H

#include "base/err.h"
#include "render/html/page.h"
#include "run/output/sources.h"

struct page_sources {
	struct line_costs costs[PAGE_PROFILES];
	struct code_sources sources;
};

/* Adds to `page`, whose profiles are complete and share a dict; it borrows `store`. 0 or -ENOMEM; page_sources_fini() in either case. */
int page_sources_read(struct page_run *page, const struct sources_opts *opts, struct page_sources *store, struct err *e);
void page_sources_fini(struct page_sources *store);

#endif
