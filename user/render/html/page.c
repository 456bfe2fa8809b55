#include "render/html/page.h"

#include "base/version.h"
#include "render/formats/text.h"
#include "render/html/packed.h"
#include "render/html/page_json.h"
#include "render/html/page_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const char asset_page_html[], asset_report_css[], asset_report_js[], asset_theme_js[];
extern const char asset_report_css_sha256[], asset_report_js_sha256[],
	asset_theme_js_sha256[]; /* in base64 */

bool page_has_charts(void)
{
	return strstr(asset_report_js, "leeoniya/uPlot") != NULL;
}

/* What a page is of: one run, or runs of two sides. */
struct content {
	const struct page_run *run;
	const struct page_comparison *comparison;
};

/* --- data --- */

/* An element of bytes that no browser runs. */
static int put_packed(const char *kind, const char *prefix, const char *id,
		      const struct strbuf *packed, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	if (!packed->len)
		return 0;
	strbuf_printf(&text, "<script type=\"application/octet-stream\" id=\"%s-%s", kind, prefix);
	text_add(&text, TEXT_XML, id, 64);
	strbuf_puts(&text, "\">");
	packed_base64(packed->s, packed->len, &text);
	strbuf_puts(&text, "</script>\n");
	if (strbuf_oom(&text))
		return -ENOMEM;
	sink_write(out, text.s, text.len);
	return 0;
}

/* Adds a run's object to `json`, and writes its elements. */
static int put_run(const struct page_run *run, uint64_t bin_ns, const char *prefix,
		   struct strbuf *json, struct sink *out)
{
	_cleanup_(page_instructions_fini) struct page_instructions shown = { 0 };
	_cleanup_(strbuf_free) struct strbuf source = { 0 };
	struct page_packed packed[PAGE_PROFILES] = { 0 };
	int r = page_run_pack_source(run, &source, &shown);

	for (uint32_t i = 0; i < run->n_profiles && r == 0; i++)
		r = page_run_pack(run, i, bin_ns, &shown, &packed[i]);
	if (r == 0)
		r = page_run_json(run, packed, bin_ns, prefix, json);
	for (uint32_t i = 0; i < run->n_profiles; i++) {
		if (r == 0)
			r = put_packed("profile", prefix, run->profiles[i].id, &packed[i].profile,
				       out);
		if (r == 0)
			r = put_packed("detail", prefix, run->profiles[i].id, &packed[i].details,
				       out);
		if (r == 0)
			r = put_packed("source", prefix, run->profiles[i].id, &packed[i].source,
				       out);
		page_packed_fini(&packed[i]);
	}
	return r == 0 ? put_packed("source", prefix, "", &source, out) : r;
}

/* One side: its runs, each with its profiles. */
static int put_side(const struct page_side *side, char letter, uint64_t bin_ns, struct strbuf *json,
		    struct sink *out)
{
	int r = 0;

	strbuf_puts(json, "{");
	page_json_text(json, "name", side->name);
	strbuf_puts(json, ",\"runs\":[");
	for (uint32_t i = 0; i < side->n_runs && r == 0; i++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "%c%u-", letter, i + 1);
		strbuf_puts(json, i ? "," : "");
		r = put_run(&side->runs[i], bin_ns, prefix, json, out);
	}
	strbuf_puts(json, "]}");
	return r;
}

static int put_rows(const struct page_rows *rows, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf packed = { 0 };
	int r = packed_deflate(rows->json.data, rows->json.len, &packed);

	return r < 0 ? r : put_packed("rows", "", rows->id, &packed, out);
}

static int put_comparison(const struct page_comparison *c, const char *title, struct strbuf *json,
			  struct sink *out)
{
	uint64_t bin_ns = 0;
	int r = 0;

	/* Both have the same axis of time. The second round sees the first side with the other's width. */
	for (int i = 0; i < 4; i++)
		bin_ns =
			page_bin_ns(c->sides[i % 2].runs, c->sides[i % 2].n_runs, bin_ns) ?: bin_ns;
	strbuf_puts(json, "{");
	page_json_text(json, "title", title);
	strbuf_puts(json, ",");
	page_json_text(json, "memscope", MEMSCOPE_VERSION);
	strbuf_printf(json, ",\"charts\":%s,\"sides\":[", page_has_charts() ? "true" : "false");
	for (int i = 0; i < 2 && r == 0; i++) {
		strbuf_puts(json, i ? "," : "");
		r = put_side(&c->sides[i], "ab"[i], bin_ns, json, out);
	}
	strbuf_puts(json, "],\"comparison\":");
	if (!page_json_document(json, c->figures))
		strbuf_puts(json, "null");
	strbuf_puts(json, "}");
	for (uint32_t i = 0; i < c->n_rows && r == 0; i++)
		r = put_rows(&c->rows[i], out);
	return r;
}

static int put_data(const struct content *content, const char *title, struct sink *out)
{
	_cleanup_(strbuf_free) struct strbuf json = { 0 };
	int r;

	if (content->run)
		r = put_run(content->run, page_bin_ns(content->run, 1, 0), "", &json, out);
	else
		r = put_comparison(content->comparison, title, &json, out);
	if (r == 0 && strbuf_oom(&json))
		r = -ENOMEM;
	if (r < 0)
		return r;
	sink_puts(out, "<script type=\"application/json\" id=\"run\">");
	sink_write(out, json.s, json.len);
	sink_puts(out, "</script>\n");
	return 0;
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
static int put_part(const struct content *content, const char *name, size_t len, const char *title,
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
		return put_data(content, title, out);
	else if (len == 6 && memcmp(name, "POLICY", len) == 0)
		add_policy(&s);
	else
		text_add(&s, TEXT_XML, title, 200);
	if (s.len)
		sink_write(out, s.s, s.len);
	return strbuf_oom(&s) ? -ENOMEM : 0;
}

static int write_page(const struct content *content, const char *title, struct sink *out,
		      struct err *e)
{
	const char *at = asset_page_html, *open, *close;
	int r = 0;

	while (r == 0 && (open = strchr(at, '@')) && (close = strchr(open + 1, '@'))) {
		sink_write(out, at, (size_t)(open - at));
		r = put_part(content, open + 1, (size_t)(close - open - 1), title ? title : "",
			     out);
		at = close + 1;
	}
	if (r < 0)
		return err_set(e, r, "out of memory for a page");
	sink_puts(out, at);
	return 0;
}

int page_write(const struct page_run *run, struct sink *out, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf title = { 0 };

	page_run_title(run, &title);
	return write_page(&(struct content){ .run = run }, title.s, out, e);
}

int page_write_comparison(const struct page_comparison *c, struct sink *out, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf title = { 0 };

	strbuf_printf(&title, "%s → %s", c->sides[0].name, c->sides[1].name);
	return write_page(&(struct content){ .comparison = c }, title.s, out, e);
}
