#include "cmd/report_page.h"

#include "base/cleanup.h"
#include "cmd/inputs_list.h"
#include "cmd/page_inputs.h"
#include "run/output/page_sources.h"
#include "symbolize/source_read.h"

#include <errno.h>
#include <unistd.h>

/* `sources`: what the page borrows. */
static int add_sources(struct page_inputs *g, struct inputs *in, bool no_source,
		       struct page_sources *sources, struct err *e)
{
	const struct profile *p = g->page.n_profiles ? g->page.profiles[0].p : NULL;
	struct symbolize_opts files;
	const struct sources_opts opts = {
		.files = &files,
		.open_in = inputs_open,
		.in_own_root = inputs_in_own_root,
		/* A page is handed on. Of a program that is not here, as a container's, nobody knows who may read what it names. */
		.reader = geteuid() ? geteuid() : SOURCE_READER_NOBODY,
		.not_as_root = true,
		.functions = SOURCES_FUNCTIONS,
		.max_ms = SYMBOLIZE_DWARF_MS_MAX,
		.taken_s = p ? profile_get_meta(p)->time_ns / 1000000000 : 0,
		.no_source = no_source,
	};

	inputs_files(in, &files);
	return p ? page_sources_read(&g->page, &opts, sources, e) : 0;
}

int report_page(struct inputs *in, char *const *operands, int n, const char *output, bool no_source,
		struct err *e)
{
	_cleanup_(page_sources_fini) struct page_sources sources = { 0 };
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
		r = add_sources(&g, in, no_source, &sources, e);
	if (r == 0)
		r = sink_open_file(output, &out, e);
	if (r == 0)
		r = page_write(&g.page, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}
