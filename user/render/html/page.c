#include "render/html/page.h"

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
#include <stdlib.h>
#include <string.h>

extern const char asset_page_html[], asset_report_css[], asset_report_js[], asset_theme_js[];
extern const char asset_report_css_sha256[], asset_report_js_sha256[],
	asset_theme_js_sha256[]; /* in base64 */

bool page_has_charts(void)
{
	return strstr(asset_report_js, "leeoniya/uPlot") != NULL;
}

/* Of time; a run of an hour has them of a second each. */
#define BINS_MAX 4096
/* Of a profile whose times are finer: two hours at 7.8 ms. */
#define FINE_BINS_MAX (1 << 20)

/* --- what the page is about --- */

static void add_title(const struct page_run *run, struct strbuf *out)
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

static double duration(const struct page_run *run)
{
	double s = run->seconds, from = started(run);

	for (uint32_t i = 0; i < run->n_profiles && s <= 0; i++)
		s = (double)profile_get_meta(run->profiles[i].p)->duration_ns / 1e9;
	for (uint32_t i = 0; i < run->n_series && s <= 0; i++) {
		const struct time_table *t = run->series[i].table;

		s = t->n_rows ? t->times_s[t->n_rows - 1] - from : 0;
	}
	if (s > 0)
		return s;
	/* Nothing says it: to the end of the last bin. */
	s = 0;
	for (uint32_t i = 0; i < run->n_profiles; i++) {
		const struct sample_times *t = run->profiles[i].times;
		double end =
			t ? (double)(sample_times_n_bins(t) * sample_times_bin_ns(t)) / 1e9 : 0;

		s = end > s ? end : s;
	}
	return s;
}

/* --- time --- */

/* Of the page: the widest of all profiles' bins, doubled until a chart can show them side by side. 0: no times. */
static uint64_t bin_ns(const struct page_run *run, uint32_t *ret_bins)
{
	uint64_t width = 0, end = 0;

	for (uint32_t i = 0; i < run->n_profiles; i++) {
		const struct sample_times *t = run->profiles[i].times;
		uint64_t own = t ? sample_times_bin_ns(t) : 0;

		width = own > width ? own : width;
		if (t && sample_times_n_bins(t) * own > end)
			end = sample_times_n_bins(t) * own;
	}
	while (width && end / width >= BINS_MAX)
		width *= 2;
	*ret_bins = width ? (uint32_t)((end + width - 1) / width) : 0;
	return *ret_bins ? width : 0;
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
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i][0], id) == 0)
			return names[i][1];
	return id;
}

/* How many bins of a profile make one of the page's. Those of long runs are as wide as the page's: a heat map of a second
 * has no place for them. */
static uint64_t fineness(const struct page_profile *pp, uint64_t page_bin_ns)
{
	uint64_t own = pp->times ? sample_times_bin_ns(pp->times) : 0;

	return own && page_bin_ns > own && sample_times_n_bins(pp->times) <= FINE_BINS_MAX
		       ? page_bin_ns / own
		       : 1;
}

static void put_profile(const struct page_profile *pp, uint64_t page_bin_ns, struct strbuf *out)
{
	const struct shown shown = shown_pick(pp->p, -1);
	const char *estimate = profile_about(pp->p, ABOUT_ESTIMATE, 0);

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
		      shown.type, fineness(pp, page_bin_ns),
		      estimate || profile_has_errors(pp->p) ? "true" : "false");
	page_json_text(out, "estimate", estimate);
	strbuf_puts(out, ",\"data\":\"profile-");
	text_add(out, TEXT_JSON, pp->id, 64);
	strbuf_puts(out, "\"}");
}

/* A profile's elements, compressed. */
struct packed {
	struct strbuf profile, details;
	uint32_t type, sites; /* of the details; 0: there are none */
	bool bursts;
};

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

static int put_run(const struct page_run *run, const struct packed *packed, const char *title,
		   struct strbuf *out)
{
	uint32_t n_bins, n = 0;
	double bin_s = (double)bin_ns(run, &n_bins) / 1e9;
	int r;

	strbuf_puts(out, "{");
	page_json_text(out, "title", title);
	strbuf_puts(out, ",");
	page_json_text(out, "memscope", MEMSCOPE_VERSION);
	strbuf_printf(
		out,
		",\"started\":%.3f,\"seconds\":%.3f,\"bin_seconds\":%.9g,\"n_bins\":%u,\"charts\":%s,\"profiles\":[",
		started(run), duration(run), bin_s, n_bins, page_has_charts() ? "true" : "false");
	for (uint32_t i = 0; i < run->n_profiles; i++) {
		strbuf_puts(out, i ? "," : "");
		put_profile(&run->profiles[i], bin_ns(run, &n_bins), out);
	}
	strbuf_puts(out, "],\"series\":[");
	for (uint32_t i = 0; i < run->n_series; i++) {
		strbuf_puts(out, i ? "," : "");
		page_json_series(out, &run->series[i], started(run));
	}
	strbuf_puts(out, "],\"details\":[");
	for (uint32_t i = 0; i < run->n_profiles; i++) {
		if (!packed[i].sites)
			continue;
		strbuf_puts(out, n++ ? ",{" : "{");
		page_json_text(out, "profile", run->profiles[i].id);
		strbuf_printf(out, ",\"type\":%u,\"sites\":%u,\"bursts\":%s", packed[i].type,
			      packed[i].sites, packed[i].bursts ? "true" : "false");
		put_wait_names(sites_kind(run->profiles[i].p, packed[i].type) == SITE_WAIT, out);
		strbuf_puts(out, ",\"data\":\"detail-");
		text_add(out, TEXT_JSON, run->profiles[i].id, 64);
		strbuf_puts(out, "\"}");
	}
	strbuf_puts(out, "],\"moments\":");
	r = page_moments_json(run, bin_ns(run, &n_bins), duration(run), out);
	strbuf_puts(out, ",\"summary\":");
	if (!page_json_document(out, run->summary))
		strbuf_puts(out, "null");
	strbuf_puts(out, "}");
	return r;
}

static int pack(const struct page_run *run, const struct page_profile *pp, uint64_t page_bin_ns,
		struct packed *packed)
{
	const struct page_times at = { pp->times, page_bin_ns };
	const struct page_times fine = { pp->times, page_bin_ns / fineness(pp, page_bin_ns) };
	_cleanup_(strbuf_free) struct strbuf profile = { 0 }, details = { 0 };
	_cleanup_(freep) struct page_row *rows = NULL;
	bool timed = pp->times && page_bin_ns;
	int r = page_profile_encode(pp->p, timed ? &fine : NULL, &profile, &rows);

	if (r == 0)
		r = packed_deflate(profile.s, profile.len, &packed->profile);
	if (r < 0 || !timed)
		return r;
	packed->type = sample_times_type(pp->times, 0);
	r = page_details_encode(pp->p, &at, duration(run), rows,
				strcmp(pp->id, "alloc") == 0 ? run->sites : NULL, &details,
				&packed->sites, &packed->bursts);
	return r < 0 ? r : packed_deflate(details.s, details.len, &packed->details);
}

/* An element of bytes that no browser runs. */
static int put_packed(const char *kind, const char *id, const struct strbuf *packed,
		      struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	if (!packed->len)
		return 0;
	strbuf_printf(&text, "<script type=\"application/octet-stream\" id=\"%s-", kind);
	text_add(&text, TEXT_XML, id, 64);
	strbuf_puts(&text, "\">");
	packed_base64(packed->s, packed->len, &text);
	strbuf_puts(&text, "</script>\n");
	if (strbuf_oom(&text))
		return -ENOMEM;
	sink_write(out, text.s, text.len);
	return 0;
}

static int put_data(const struct page_run *run, const char *title, struct sink *out)
{
	struct packed packed[PAGE_PROFILES] = { 0 };
	_cleanup_(strbuf_free) struct strbuf json = { 0 };
	uint32_t n_bins;
	uint64_t width = bin_ns(run, &n_bins);
	int r = 0;

	for (uint32_t i = 0; i < run->n_profiles && r == 0; i++)
		r = pack(run, &run->profiles[i], width, &packed[i]);
	if (r == 0)
		r = put_run(run, packed, title, &json);
	if (r == 0 && strbuf_oom(&json))
		r = -ENOMEM;
	if (r == 0) {
		sink_puts(out, "<script type=\"application/json\" id=\"run\">");
		sink_write(out, json.s, json.len);
		sink_puts(out, "</script>\n");
	}
	for (uint32_t i = 0; i < run->n_profiles; i++) {
		if (r == 0)
			r = put_packed("profile", run->profiles[i].id, &packed[i].profile, out);
		if (r == 0)
			r = put_packed("detail", run->profiles[i].id, &packed[i].details, out);
		strbuf_free(&packed[i].profile);
		strbuf_free(&packed[i].details);
	}
	return r;
}

/* --- the page --- */

/* Scripts and styles by their hashes, which the build knows: nothing else runs or is loaded. */
static void add_policy(struct strbuf *out)
{
	strbuf_printf(out,
		      "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
		      "style-src 'sha256-%s'; script-src 'sha256-%s' 'sha256-%s'",
		      asset_report_css_sha256, asset_theme_js_sha256, asset_report_js_sha256);
}

/* What stands for @NAME@ in the skeleton. */
static int put_part(const struct page_run *run, const char *name, size_t len, const char *title,
		    struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf s = { 0 };

	if (len == 5 && memcmp(name, "STYLE", len) == 0)
		sink_puts(out, asset_report_css);
	else if (len == 5 && memcmp(name, "THEME", len) == 0)
		sink_puts(out, asset_theme_js);
	else if (len == 6 && memcmp(name, "SCRIPT", len) == 0)
		sink_puts(out, asset_report_js);
	else if (len == 4 && memcmp(name, "DATA", len) == 0)
		return put_data(run, title, out);
	else if (len == 6 && memcmp(name, "POLICY", len) == 0)
		add_policy(&s);
	else
		text_add(&s, TEXT_XML, title, 200);
	if (s.len)
		sink_write(out, s.s, s.len);
	return strbuf_oom(&s) ? -ENOMEM : 0;
}

int page_write(const struct page_run *run, struct sink *out, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf title = { 0 };
	const char *at = asset_page_html, *open, *close;
	int r = 0;

	add_title(run, &title);
	while (r == 0 && (open = strchr(at, '@')) && (close = strchr(open + 1, '@'))) {
		sink_write(out, at, (size_t)(open - at));
		r = put_part(run, open + 1, (size_t)(close - open - 1), title.s ? title.s : "",
			     out);
		at = close + 1;
	}
	if (r < 0)
		return err_set(e, r, "out of memory for a page");
	sink_puts(out, at);
	return 0;
}
