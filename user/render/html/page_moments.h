/*
 * What stands out in the time of a run: functions of which most came in a short part of it, or which began late and went
 * on to the end. As "moments" of page_data.h.
 *
 * Of each profile whose samples have times, by the function that each value belongs to (analyse/sites.h; of CPU time likewise:
 * the program's own function). Waits of workers without work, and for a time or for events, are what a thread does that has
 * nothing to do: they are no moments. Of the PAGE_MOMENT_FUNCTIONS with most only:
 *
 *   a burst   site_burst() is a quarter of the run at most, and what came in it is worth a look: a tenth of a CPU or of a
 *             thread's time, a quarter of all CPU time by ten samples or more, or a tenth of all that was allocated or made resident and a MiB
 *             (in the first tenth of the run that is how most programs warm up, and is left out)
 *   a begin   nothing in the first tenth of the run; from then on to its last fifth a share of a tenth of all
 */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_MOMENTS_H
#define MEMSCOPE_RENDER_HTML_PAGE_MOMENTS_H

#include "base/strbuf.h"
#include "render/html/page.h"

enum { PAGE_MOMENT_FUNCTIONS = 256, PAGE_MOMENTS = 12 };

/* Appends the array; `bin_ns` of the page, `seconds` of the run. 0 or -ENOMEM. */
int page_moments_json(const struct page_run *run, uint64_t bin_ns, double seconds, struct strbuf *out);

#endif
