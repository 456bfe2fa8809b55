/* One run as it is in a page (page_data.h): its member of the JSON, and what of its profiles is packed. */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_RUN_H
#define MEMSCOPE_RENDER_HTML_PAGE_RUN_H

#include "base/strbuf.h"
#include "render/html/page.h"
#include "render/html/page_source.h"

/* A profile's elements, compressed; page_packed_fini() in any case. */
struct page_packed {
	struct strbuf profile, details, source;
	uint32_t type, sites; /* of the details; 0: there are none */
	bool bursts;
};
void page_packed_fini(struct page_packed *packed);

/* What the page of a run is called. */
void page_run_title(const struct page_run *run, struct strbuf *out);

/*
 * The width of a page's bins of time: the widest of all profiles' bins and `width`, doubled until a chart can show them side by side.
 * 0: no profile has times.
 */
uint64_t page_bin_ns(const struct page_run *runs, uint32_t n, uint64_t width);

/* Element "source" of a run that has one, and what is in it. -ENOMEM. */
int page_run_pack_source(const struct page_run *run, struct strbuf *packed,
			 struct page_instructions *ret_shown);
/* The run's i-th profile. -ENOMEM. */
int page_run_pack(const struct page_run *run, uint32_t i, uint64_t bin_ns,
		  const struct page_instructions *shown, struct page_packed *packed);

/* The object of a run. `packed`: one for each profile. `prefix` stands before the profile's id in ids of elements. -ENOMEM. */
int page_run_json(const struct page_run *run, const struct page_packed *packed, uint64_t bin_ns,
		  const char *prefix, struct strbuf *out);

#endif
