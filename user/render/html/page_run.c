#include "render/html/page_run.h"

#include "analyse/sites.h"
#include "base/version.h"
#include "model/about.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/html/packed.h"
#include "render/html/page_data.h"
#include "render/html/page_details.h"
#include "render/html/page_json.h"
#include "render/html/page_moments.h"
#include "render/html/page_profile.h"
#include "render/shown.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Of time; a run of an hour has them of a second each. */
#define BINS_MAX 4096
/* Of a profile whose times are finer: two hours at 7.8 ms. */
#define FINE_BINS_MAX (1 << 20)

/* --- what the page is about --- */

void page_run_title(const struct page_run *run, struct strbuf *out)
{
	const struct profile *p = run->n_profiles ? run->profiles[0].p : NULL;
	struct render_opts opts = { .value_type = -1 };

	if (run->title && *run->title) {
		strbuf_puts(out, run->title);
		return;
	}
	if (p) {
		/* Who, without what is shown: that differs from pane to pane. */
		struct shown shown = shown_pick(p, -1);

		shown.title = "";
		title_who_add(out, p, &opts, &shown, 200);
	}
	if (!out->len)
		strbuf_puts(out, "memscope report");
}

static double started(const struct page_run *run)
{
	double s = run->started_s;

	for (uint32_t i = 0; i < run->n_profiles && s <= 0; i++)
		s = (double)profile_get_meta(run->profiles[i].p)->time_ns / 1e9;
	for (uint32_t i = 0; i < run->n_series && s <= 0; i++)
		s = run->series[i].table->n_rows ? run->series[i].table->times_s[0] : 0;
	return s > 0 ? s : 0;
}

/* When its samples end. */
static uint64_t end_ns(const struct page_run *run)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < run->n_profiles; i++) {
		const struct sample_times *t = run->profiles[i].times;
		uint64_t own = t ? sample_times_n_bins(t) * sample_times_bin_ns(t) : 0;

		end = own > end ? own : end;
	}
	return end;
}

static double duration(const struct page_run *run)
{
	double s = run->seconds, from = started(run);

	for (uint32_t i = 0; i < run->n_profiles && s <= 0; i++)
		s = (double)profile_get_meta(run->profiles[i].p)->duration_ns / 1e9;
	for (uint32_t i = 0; i < run->n_series && s <= 0; i++) {
		const struct time_table *t = run->series[i].table;

		s = t->n_rows ? t->times_s[t->n_rows - 1] - from : 0;
	}
	/* Nothing says it: to the end of the last bin. */
	return s > 0 ? s : (double)end_ns(run) / 1e9;
}

/* --- time --- */

uint64_t page_bin_ns(const struct page_run *runs, uint32_t n, uint64_t width)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < runs[i].n_profiles; k++) {
			const struct sample_times *t = runs[i].profiles[k].times;
			uint64_t own = t ? sample_times_bin_ns(t) : 0;

			width = own > width ? own : width;
		}
	for (uint32_t i = 0; i < n; i++)
		end = end_ns(&runs[i]) > end ? end_ns(&runs[i]) : end;
	while (width && end / width >= BINS_MAX)
		width *= 2;
	return end ? width : 0;
}

static uint32_t n_bins(const struct page_run *run, uint64_t width)
{
	return width ? (uint32_t)((end_ns(run) + width - 1) / width) : 0;
}

/* --- data --- */

/* As the page calls them; others are called what their file is. */
static const char *source_name(const char *id)
{
	static const char *const names[][2] = {
		{ "oncpu", "on-CPU" },      { "offcpu", "off-CPU" },
		{ "alloc", "allocations" }, { "heap", "live heap" },
		{ "peak", "peak heap" },    { "growth", "RSS growth" },
		{ "mappings", "mappings" }, { "goroutine", "goroutines" },
		{ "wakers", "wakers" },     { "syscalls", "system calls" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i][0], id) == 0)
			return names[i][1];
	return id;
}

/* How many bins of a profile make one of the page's. Those of long runs are as wide as the page's: a heat map of a second
 * has no place for them. */
static uint64_t fineness(const struct page_profile *pp, uint64_t bin_ns)
{
	uint64_t own = pp->times ? sample_times_bin_ns(pp->times) : 0;

	return own && bin_ns > own && sample_times_n_bins(pp->times) <= FINE_BINS_MAX ? bin_ns / own
										      : 1;
}

/* What it is shown by first: by a value that has times, where any has, so that a selected time selects of it, too. */
static struct shown shown_first(const struct page_profile *pp)
{
	struct shown shown = shown_pick(pp->p, -1);
	bool timed = !pp->times;

	for (uint32_t i = 0; pp->times && i < sample_times_n_types(pp->times); i++)
		timed |= sample_times_type(pp->times, i) == shown.type;
	return timed ? shown : shown_pick(pp->p, (int)sample_times_type(pp->times, 0));
}

static void put_profile(const struct page_profile *pp, uint64_t bin_ns, const char *prefix,
			struct strbuf *out)
{
	const struct shown shown = shown_first(pp);
	const char *estimate = profile_about(pp->p, ABOUT_ESTIMATE, 0);
	struct interval interval = { 0 };
	double total = 0;

	strbuf_puts(out, "{");
	page_json_text(out, "id", pp->id);
	strbuf_puts(out, ",");
	page_json_text(out, "source", source_name(pp->id));
	strbuf_puts(out, ",");
	page_json_text(out, "title", shown.title);
	strbuf_puts(out, ",\"types\":[");
	for (uint32_t t = 0; t < profile_n_types(pp->p); t++) {
		strbuf_puts(out, t ? ",{" : "{");
		page_json_text(out, "name", profile_type(pp->p, t)->name);
		strbuf_puts(out, ",");
		page_json_text(out, "unit", profile_type(pp->p, t)->unit);
		strbuf_puts(out, "}");
	}
	strbuf_printf(out, "],\"shown_type\":%u,\"fineness\":%" PRIu64 ",\"estimates\":%s,",
		      shown.type, fineness(pp, bin_ns),
		      estimate || profile_has_errors(pp->p) ? "true" : "false");
	page_json_text(out, "estimate", estimate);
	if (page_details_total(pp->p, shown.type, &total, &interval) < 0)
		out->oom = true;
	strbuf_printf(out, ",\"total\":%.10g,\"low\":%.10g,\"high\":%.10g", total, interval.low,
		      interval.high);
	strbuf_printf(out, ",\"data\":\"profile-%s", prefix);
	text_add(out, TEXT_JSON, pp->id, 64);
	strbuf_puts(out, "\"}");
}

/* Names for the numbers of columns about waits. */
static void put_wait_names(bool waits, struct strbuf *out)
{
	strbuf_puts(out, ",\"kinds\":[");
	for (int i = 0; waits && i < N_WAIT_KINDS; i++)
		strbuf_printf(out, "%s\"%s\"", i ? "," : "", wait_kind_text((enum wait_kind)i));
	strbuf_puts(out, "],\"kind_names\":[");
	for (int i = 0; waits && i < N_WAIT_KINDS; i++)
		strbuf_printf(out, "%s\"%s\"", i ? "," : "", wait_kind_name((enum wait_kind)i));
	strbuf_puts(out, "],\"roles\":[");
	for (int i = 0; waits && i < N_WAIT_ROLES; i++)
		strbuf_printf(out, "%s\"%s\"", i ? "," : "", wait_role_name((enum wait_role)i));
	strbuf_puts(out, "]");
}

static void put_details(const struct page_run *run, const struct page_packed *packed,
			const char *prefix, struct strbuf *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < run->n_profiles; i++) {
		if (!packed[i].sites)
			continue;
		strbuf_puts(out, n++ ? ",{" : "{");
		page_json_text(out, "profile", run->profiles[i].id);
		strbuf_printf(out, ",\"type\":%u,\"sites\":%u,\"bursts\":%s", packed[i].type,
			      packed[i].sites, packed[i].bursts ? "true" : "false");
		put_wait_names(sites_kind(run->profiles[i].p, packed[i].type) == SITE_WAIT, out);
		strbuf_printf(out, ",\"data\":\"detail-%s", prefix);
		text_add(out, TEXT_JSON, run->profiles[i].id, 64);
		strbuf_puts(out, "\"}");
	}
}

static bool has_source(const struct page_run *run)
{
	return run->sources && run->n_profiles;
}

static void put_source(const struct page_run *run, const char *prefix, struct strbuf *out)
{
	if (!has_source(run)) {
		strbuf_puts(out, "null");
		return;
	}
	strbuf_printf(out, "{\"data\":\"source-%s\",\"no_source\":%s,\"rows\":{", prefix,
		      run->no_source ? "true" : "false");
	for (uint32_t i = 0; i < run->n_profiles; i++) {
		strbuf_puts(out, i ? ",\"" : "\"");
		text_add(out, TEXT_JSON, run->profiles[i].id, 64);
		strbuf_printf(out, "\":\"source-%s", prefix);
		text_add(out, TEXT_JSON, run->profiles[i].id, 64);
		strbuf_puts(out, "\"");
	}
	strbuf_puts(out, "}}");
}

int page_run_json(const struct page_run *run, const struct page_packed *packed, uint64_t bin_ns,
		  const char *prefix, struct strbuf *out)
{
	_cleanup_(strbuf_free) struct strbuf title = { 0 };
	int r;

	page_run_title(run, &title);
	strbuf_puts(out, "{");
	page_json_text(out, "title", title.s ? title.s : "");
	strbuf_puts(out, ",");
	page_json_text(out, "memscope", MEMSCOPE_VERSION);
	strbuf_printf(
		out,
		",\"started\":%.3f,\"seconds\":%.3f,\"bin_seconds\":%.9g,\"n_bins\":%u,\"charts\":%s,\"profiles\":[",
		started(run), duration(run), (double)bin_ns / 1e9, n_bins(run, bin_ns),
		page_has_charts() ? "true" : "false");
	for (uint32_t i = 0; i < run->n_profiles; i++) {
		strbuf_puts(out, i ? "," : "");
		put_profile(&run->profiles[i], bin_ns, prefix, out);
	}
	strbuf_puts(out, "],\"series\":[");
	for (uint32_t i = 0; i < run->n_series; i++) {
		strbuf_puts(out, i ? "," : "");
		page_json_series(out, &run->series[i], started(run));
	}
	strbuf_puts(out, "],\"details\":[");
	put_details(run, packed, prefix, out);
	strbuf_puts(out, "],\"moments\":");
	r = page_moments_json(run, bin_ns, duration(run), out);
	strbuf_puts(out, ",\"source\":");
	put_source(run, prefix, out);
	strbuf_puts(out, ",\"marks\":");
	page_json_marks(out, run->marked);
	strbuf_puts(out, ",\"summary\":");
	if (!page_json_document(out, run->summary))
		strbuf_puts(out, "null");
	strbuf_puts(out, "}");
	return r;
}

int page_run_pack_source(const struct page_run *run, struct strbuf *packed,
			 struct page_instructions *ret_shown)
{
	_cleanup_(strbuf_free) struct strbuf json = { 0 };
	int r = has_source(run) ? page_source_json(run, &json, ret_shown) : 0;

	return r < 0 || !json.len ? r : packed_deflate(json.s, json.len, packed);
}

static int pack_rows(const struct page_run *run, const struct page_profile *pp,
		     const struct page_row *rows, const struct page_instructions *shown,
		     struct strbuf *packed)
{
	_cleanup_(strbuf_free) struct strbuf bytes = { 0 };
	int r = has_source(run) ? page_source_rows(run, pp, rows, shown, &bytes) : 0;

	return r < 0 || !bytes.len ? r : packed_deflate(bytes.s, bytes.len, packed);
}

int page_run_pack(const struct page_run *run, uint32_t i, uint64_t bin_ns,
		  const struct page_instructions *shown, struct page_packed *packed)
{
	const struct page_profile *pp = &run->profiles[i];
	const struct page_times at = { pp->times, bin_ns };
	const struct page_times fine = { pp->times, bin_ns / fineness(pp, bin_ns) };
	_cleanup_(strbuf_free) struct strbuf profile = { 0 }, details = { 0 };
	_cleanup_(freep) struct page_row *rows = NULL;
	bool timed = pp->times && bin_ns;
	int r = page_profile_encode(pp->p, timed ? &fine : NULL, &profile, &rows);

	if (r == 0)
		r = packed_deflate(profile.s, profile.len, &packed->profile);
	if (r == 0)
		r = pack_rows(run, pp, rows, shown, &packed->source);
	if (r < 0 || !timed)
		return r;
	packed->type = sample_times_type(pp->times, 0);
	r = page_details_encode(pp->p, &at, duration(run), rows,
				strcmp(pp->id, "alloc") == 0 ? run->sites : NULL, &details,
				&packed->sites, &packed->bursts);
	return r < 0 ? r : packed_deflate(details.s, details.len, &packed->details);
}

void page_packed_fini(struct page_packed *packed)
{
	strbuf_free(&packed->profile);
	strbuf_free(&packed->details);
	strbuf_free(&packed->source);
}
