/* A profile as the columns of page_data.h. */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_PROFILE_H
#define MEMSCOPE_RENDER_HTML_PAGE_PROFILE_H

#include "base/strbuf.h"
#include "model/profile.h"
#include "model/sample_times.h"

/* When the samples came, in bins of a width that is a multiple of the store's. */
struct page_times {
	const struct sample_times *times;
	uint64_t bin_ns;
};

/* A sample of the profile, and where it is in the page. `site`: the first node that has the same functions on its stack,
 * in whichever lines. */
struct page_row {
	uint32_t node, set, sample, site;
};

/*
 * Appends to `out`, not compressed. `at` may be NULL. Names that are made up are interned in the profile's dict.
 * `ret_rows` (may be NULL; free() it): all samples in the order in which they were written. -ENOMEM.
 */
int page_profile_encode(const struct profile *p, const struct page_times *at, struct strbuf *out,
			struct page_row **ret_rows);

#endif
