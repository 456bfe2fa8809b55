/* The statistics of each site over time, as columns of page_data.h. */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_DETAILS_H
#define MEMSCOPE_RENDER_HTML_PAGE_DETAILS_H

#include "analyse/row_sums.h"
#include "render/html/page.h"
#include "render/html/page_profile.h"

/* More rows than anyone pages through: the largest, what is left out is counted. */
enum { PAGE_DETAIL_ROWS = 20000, PAGE_DETAIL_MATES = 256 /* of the largest: which rise and fall together */ };

/*
 * Of the first value type of `p` that has times, by node: `rows` are all samples of `p` in the order in which
 * page_profile_encode() wrote them. `seconds`: of the run, where its last bin ends. `ret_sites`: how many there are, of
 * which PAGE_DETAIL_ROWS are written. `sites`: as struct page_run has it.
 * `ret_bursts`: the intervals rest on bursts, so that those of several sites err together. -ENOMEM.
 */
int page_details_encode(const struct profile *p, const struct page_times *at, double seconds,
			const struct page_row *rows, const struct profile *sites, struct strbuf *out,
			uint32_t *ret_sites, bool *ret_bursts);

/* Value `type` of all of `p`, with its 95 % interval; equal ends: it was counted. 0 or -ENOMEM. */
int page_details_total(const struct profile *p, uint32_t type, double *ret_value, struct interval *ret_interval);

/* The same of a column of a table: the members of an object, "integral": … */
void page_details_json(struct strbuf *out, const struct time_table *t, const double *values, double started_s);

#endif
