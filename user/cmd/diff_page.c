#include "cmd/diff_page.h"

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cmd/inputs_list.h"
#include "cmd/page_inputs.h"
#include "collect/session/sources.h"
#include "import/run_scalars.h"
#include "render/html/page_json.h"
#include "render/tables/diff_report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Rows in the page; how many there are is said. Whole stacks take more room than functions. */
enum { FUNCTIONS_MAX = 5000, STACKS_MAX = 2000, ROWS_MAX = 2 * PAGE_PROFILES * PROFILE_MAX_TYPES };

/* What the page is made of while it is. */
struct work {
	const struct diff_page *page;
	struct inputs *in;
	struct page_inputs *inputs[2]; /* of each run */
	struct page_run *runs[2];
	struct strbuf figures;
	struct page_rows rows[ROWS_MAX];
	struct strbuf texts[ROWS_MAX];
	char ids[ROWS_MAX][96];
	uint32_t n_rows, n_profiles, n_types;
	bool keep[PAGE_PROFILES];
	bool same_work;
	bool rate; /* something is compared per second unasked */
};

static void work_fini(struct work *w)
{
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; w->inputs[k] && i < w->page->sides[k].runs; i++)
			page_inputs_fini(&w->inputs[k][i]);
		free(w->inputs[k]);
		free(w->runs[k]);
	}
	for (uint32_t i = 0; i < w->n_rows; i++)
		strbuf_free(&w->texts[i]);
	strbuf_free(&w->figures);
}

/* --- the runs --- */

static bool is_run(const struct inputs *in, char *const *operands)
{
	return input_is_directory(operands[0]) && input_main_source(operands[0], in->container);
}

/* A profile that is no run's is called what its run's would be, so that both sides call it the same. */
static void name_for_both(struct page_inputs *g, const char *source)
{
	struct profile *p = g->profiles[0];

	if (!g->page.n_profiles)
		return;
	for (int i = 0; i < profile_kinds() && !source; i++)
		if (profile_same_type(p, &profile_rows[i].types[profile_rows[i].default_type]) >= 0)
			source = profile_rows[i].name;
	snprintf(g->ids[0], sizeof(g->ids[0]), "%s", source ? source : "profile");
}

static int read_run(struct work *w, struct page_inputs *g, char *const *operands, int n,
		    const char *source, struct err *e)
{
	struct page_run *page = &g->page;
	uint32_t kept = 0;
	int r;

	if (!is_run(w->in, operands)) {
		r = page_inputs_files(g, w->in, operands, n, e);
		if (r == 0)
			name_for_both(g, source);
		return r;
	}
	r = page_inputs_run(g, w->in, operands, n, e);
	for (uint32_t i = 0; r == 0 && i < page->n_profiles; i++)
		if (!w->page->source || strcmp(page->profiles[i].id, w->page->source) == 0)
			page->profiles[kept++] = page->profiles[i];
	page->n_profiles = kept;
	return r;
}

static int read_side(struct work *w, int k, const char *source, struct err *e)
{
	const struct diff_side *side = &w->page->sides[k];
	uint32_t run = 0;
	int r = 0;

	w->inputs[k] = calloc(side->runs + 1ul, sizeof(**w->inputs));
	w->runs[k] = calloc(side->runs + 1ul, sizeof(**w->runs));
	if (!w->inputs[k] || !w->runs[k])
		return err_set(e, -ENOMEM, "out of memory");
	for (int at = 0, n; at < side->n && r == 0; at += n, run++) {
		n = inputs_first(side->operands + at, side->n - at);
		w->inputs[k][run].keep_empty = true;
		r = read_run(w, &w->inputs[k][run], side->operands + at, n, source, e);
		w->runs[k][run] = w->inputs[k][run].page;
	}
	return r;
}

static const struct profile *profile_of(const struct page_run *run, const char *id)
{
	for (uint32_t i = 0; i < run->n_profiles; i++)
		if (strcmp(run->profiles[i].id, id) == 0)
			return run->profiles[i].p;
	return NULL;
}

/* Has any run a sample of that source? */
static bool has_samples(const struct work *w, const char *id)
{
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < w->page->sides[k].runs; i++) {
			const struct profile *p = profile_of(&w->runs[k][i], id);

			if (p && profile_n_samples(p))
				return true;
		}
	return false;
}

/* Sources of which no run has anything are in no pane. */
static void leave_out_empty(struct work *w)
{
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < w->page->sides[k].runs; i++) {
			struct page_run *run = &w->runs[k][i];
			uint32_t kept = 0;

			for (uint32_t p = 0; p < run->n_profiles; p++)
				w->keep[p] = has_samples(w, run->profiles[p].id);
			for (uint32_t p = 0; p < run->n_profiles; p++)
				if (w->keep[p])
					run->profiles[kept++] = run->profiles[p];
			run->n_profiles = kept;
		}
}

/* Borrows the profiles; their sum is its own unless there is only one. */
static int take_side(const struct work *w, int k, const char *id, struct side_profiles *s,
		     struct err *e)
{
	uint32_t n = w->page->sides[k].runs;

	s->runs = calloc(n + 1ul, sizeof(*s->runs));
	if (!s->runs)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		struct profile *p = (struct profile *)profile_of(&w->runs[k][i], id);
		int r = p && n > 1 ? profile_merge(&s->sum, p, id, MERGE_COMMON, NULL, e) : 0;

		if (!p)
			return -ENOENT;
		if (r < 0)
			return r;
		s->runs[s->n++] = p;
		if (n == 1)
			s->sum = p;
	}
	return 0;
}

static void give_back(struct side_profiles *s)
{
	if (s->n != 1)
		profile_free(s->sum);
	free(s->runs);
	*s = (struct side_profiles){ 0 };
}

/* --- figures --- */

static void put_number(struct strbuf *out, double x)
{
	if (isfinite(x))
		strbuf_printf(out, "%.17g", x);
	else
		strbuf_puts(out, "null");
}

/* The same members as `memscope diff --json` prints, with `rows` of them at most. */
static int put_report(const struct diff_report *report, struct strbuf *out, struct err *e)
{
	_cleanup_(sink_closep) struct sink *memory = NULL;
	const char *text;
	size_t len;
	int r = sink_open_memory(&memory, e);

	if (r == 0)
		r = diff_json_write(report, memory, e);
	if (r == 0)
		r = sink_commit(memory, e);
	if (r < 0)
		return r;
	text = sink_memory(memory, &len);
	strbuf_add(out, text, len);
	return 0;
}

static int put_rows(struct work *w, struct diff_report *report, const char *key, const char *id,
		    uint32_t most, struct err *e)
{
	struct strbuf *text = &w->texts[w->n_rows];
	struct page_rows *rows = &w->rows[w->n_rows];
	int r;

	if (w->n_rows == ROWS_MAX)
		return 0;
	report->rows = most;
	snprintf(w->ids[w->n_rows++], sizeof(w->ids[0]), "%s", id);
	strbuf_puts(text, "{");
	r = put_report(report, text, e);
	strbuf_puts(text, "}");
	if (strbuf_oom(text))
		return err_set(e, -ENOMEM, "out of memory");
	*rows = (struct page_rows){ id, bytes_of(text->s, text->len) };
	rows->id = w->ids[w->n_rows - 1];
	strbuf_printf(&w->figures, ",\"%s\":\"rows-%s\",\"n_%s\":%u", key, rows->id, key,
		      report->diff->n);
	return r;
}

static void put_factors(const struct diff_opts *o, struct strbuf *out)
{
	strbuf_puts(out, ",\"factors\":[");
	for (int k = 0; k < 2; k++) {
		strbuf_puts(out, k ? ",[" : "[");
		for (uint32_t i = 0; i < o->n_runs[k]; i++) {
			strbuf_puts(out, i ? "," : "");
			put_number(out, diff_run_scale(o, k, i));
		}
		strbuf_puts(out, "]");
	}
	strbuf_puts(out, "]");
}

static int put_stacks(struct work *w, struct diff_report *report, struct diff_opts *o,
		      const char *id, struct err *e)
{
	_cleanup_(diff_fini) struct diff by_stack = { 0 };
	char stacks[96];
	int r;

	o->by = DIFF_BY_STACK;
	r = diff_make(o, &by_stack);
	o->by = DIFF_BY_FUNCTION;
	if (r < 0)
		return err_set(e, r, "out of memory for a difference");
	snprintf(stacks, sizeof(stacks), "%.80s-stacks", id);
	report->diff = &by_stack;
	o->by = DIFF_BY_STACK;
	r = put_rows(w, report, "stacks", stacks, STACKS_MAX, e);
	o->by = DIFF_BY_FUNCTION;
	return r;
}

/* One value type of a source. Nothing to compare is no fault. */
static int put_type(struct work *w, const struct side_profiles sides[2], const char *id,
		    uint32_t type, struct err *e)
{
	struct diff_opts o = {
		.before = sides[0].sum,
		.after = sides[1].sum,
		.after_type = type,
		.runs = { (const struct profile *const *)sides[0].runs,
			  (const struct profile *const *)sides[1].runs },
		.n_runs = { sides[0].n, sides[1].n },
		.scale = w->page->scale,
		.least_share = w->page->least_share,
	};
	const struct value_type *t = profile_type(o.after, type);
	int before = profile_same_type(o.before, t);
	_cleanup_(diff_fini) struct diff d = { 0 };
	struct diff_report report = { .diff = &d, .opts = &o, .after_scalars = true };
	bool unasked =
		w->page->scale_as_needed && diff_sides_need_rate(w->page->sides, sides, t->name);
	char rows_id[96];
	int r;

	w->same_work |= diff_sides_end_by_themselves(w->page->sides, sides);
	if (before < 0)
		return 0;
	o.before_type = (uint32_t)before;
	if (unasked)
		o.scale = DIFF_SECONDS;
	r = diff_make(&o, &d);
	if (r == -EDOM)
		return 0;
	if (r < 0)
		return err_set(e, r, "out of memory for a difference");
	w->rate |= unasked;
	report.shown = shown_pick(o.after, (int)type);
	snprintf(rows_id, sizeof(rows_id), "%.60s-%u", id, type);
	strbuf_puts(&w->figures, w->n_types++ ? ",\n{" : "\n{");
	r = put_report(&report, &w->figures, e);
	put_factors(&o, &w->figures);
	if (r == 0)
		r = put_rows(w, &report, "functions", rows_id, FUNCTIONS_MAX, e);
	if (r == 0 && shown_pick(o.after, -1).type == type)
		r = put_stacks(w, &report, &o, rows_id, e);
	strbuf_puts(&w->figures, "}");
	return r;
}

static int put_profile(struct work *w, const char *id, struct err *e)
{
	struct side_profiles sides[2] = { 0 };
	int r = 0;

	for (int k = 0; k < 2 && r == 0; k++)
		r = take_side(w, k, id, &sides[k], e);
	if (r == 0) {
		strbuf_puts(&w->figures, w->n_profiles++ ? ",\n{" : "\n{");
		page_json_text(&w->figures, "id", id);
		strbuf_puts(&w->figures, ",\"types\":[");
		w->n_types = 0;
		for (uint32_t t = 0; t < profile_n_types(sides[1].sum) && r == 0; t++)
			r = put_type(w, sides, id, t, e);
		strbuf_puts(&w->figures, "]}");
	}
	give_back(&sides[0]);
	give_back(&sides[1]);
	/* Some run has none of that source. */
	return r == -ENOENT ? 0 : r;
}

static int put_scalars(struct work *w, struct err *e)
{
	struct diff_scalar scalars[N_RUN_SCALARS] = { 0 };
	_cleanup_(sink_closep) struct sink *memory = NULL;
	const char *text;
	size_t len;
	int r;

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < w->page->sides[k].n; i++)
			if (!input_is_directory(w->page->sides[k].operands[i]))
				return 0;
	r = diff_scalars_read(w->page->sides, scalars, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = sink_open_memory(&memory, e);
	if (r < 0)
		return r;
	diff_scalars_json(scalars, N_RUN_SCALARS, memory);
	r = sink_commit(memory, e);
	text = sink_memory(memory, &len);
	strbuf_puts(&w->figures, "\"scalars\":{");
	if (r == 0)
		strbuf_add(&w->figures, text, len);
	strbuf_puts(&w->figures, "},");
	return r;
}

static int put_figures(struct work *w, struct err *e)
{
	static const char *const scales[] = { "absolute", "totals", "seconds" };
	int r;

	strbuf_puts(&w->figures, "{");
	r = put_scalars(w, e);
	strbuf_puts(&w->figures, "\"profiles\":[");
	for (uint32_t i = 0; i < w->runs[1][0].n_profiles && r == 0; i++)
		r = put_profile(w, w->runs[1][0].profiles[i].id, e);
	strbuf_printf(&w->figures,
		      "],\"scaled\":\"%s\",\"unasked\":%s,\"least\":%g,\"same_work\":%s}",
		      scales[w->rate ? DIFF_SECONDS : w->page->scale], w->rate ? "true" : "false",
		      w->page->least_share, w->same_work ? "true" : "false");
	if (r == 0 && strbuf_oom(&w->figures))
		return err_set(e, -ENOMEM, "out of memory");
	return r;
}

int diff_page_write(const struct diff_page *page, struct inputs *in, const char *path,
		    struct err *e)
{
	_cleanup_(freep) struct work *w = calloc(1, sizeof(*w));
	_cleanup_(sink_closep) struct sink *out = NULL;
	const char *source = page->source;
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	w->page = page;
	w->in = in;
	r = source ? 0 : diff_sides_source(in, page->sides, &source, e);
	for (int k = 0; k < 2 && r == 0; k++)
		r = read_side(w, k, source, e);
	if (r == 0) {
		leave_out_empty(w);
		r = put_figures(w, e);
	}
	if (r == 0)
		r = sink_open_file(path, &out, e);
	if (r == 0)
		r = page_write_comparison(
			&(struct page_comparison){
				.sides = { { page->names[0], w->runs[0], page->sides[0].runs },
					   { page->names[1], w->runs[1], page->sides[1].runs } },
				.figures = bytes_of(w->figures.s, w->figures.len),
				.rows = w->rows,
				.n_rows = w->n_rows,
			},
			out, e);
	if (r == 0)
		r = sink_commit(out, e);
	work_fini(w);
	return r;
}
