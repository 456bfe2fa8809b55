#include "cmd/report_page.h"

#include "base/cleanup.h"
#include "cmd/inputs_list.h"
#include "cmd/page_inputs.h"

#include <errno.h>

int report_page(struct inputs *in, char *const *operands, int n, const char *output, struct err *e)
{
	_cleanup_(page_inputs_fini) struct page_inputs g = { 0 };
	_cleanup_(sink_closep) struct sink *out = NULL;
	bool run = input_is_directory(operands[0]);
	int r;

	if (run && n > 1 && inputs_first(operands, n) != n)
		return err_set(
			e, -EINVAL,
			"a page is of one run, or of profiles: report -o FILE.html DIR, or FILE…");
	r = (run ? page_inputs_run : page_inputs_files)(&g, in, operands, n, e);
	if (r == 0 && !g.page.n_profiles && !g.page.n_series && !g.page.summary.len)
		r = err_set(e, -ENOENT, "%s: there is neither a profile nor a table of a run in it",
			    operands[0]);
	if (r == 0)
		r = sink_open_file(output, &out, e);
	if (r == 0)
		r = page_write(&g.page, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}
