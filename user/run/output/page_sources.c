#include "run/output/page_sources.h"

#include "render/shown.h"

int page_sources_read(struct page_run *page, const struct sources_opts *opts,
		      struct page_sources *store, struct err *e)
{
	struct sources_profile profiles[PAGE_PROFILES];
	int r = 0;

	for (uint32_t i = 0; i < page->n_profiles && r == 0; i++) {
		const struct profile *p = page->profiles[i].p;

		r = line_costs_make(p, shown_pick(p, -1).type, &store->costs[i]);
		page->profiles[i].costs = &store->costs[i];
		profiles[i] = (struct sources_profile){ p, &store->costs[i] };
	}
	if (r == 0)
		r = sources_read(profiles, page->n_profiles, opts, &store->sources);
	if (r < 0)
		return err_set(e, r, "out of memory for lines of source");
	page->sources = &store->sources;
	page->no_source = opts->no_source;
	return 0;
}

void page_sources_fini(struct page_sources *store)
{
	for (uint32_t i = 0; i < PAGE_PROFILES; i++)
		line_costs_fini(&store->costs[i]);
	code_sources_fini(&store->sources);
}
