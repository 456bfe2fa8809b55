#include "render/html/page_json.h"

#include "model/over_time.h"
#include "render/formats/text.h"
#include "render/html/page_details.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Points that a chart can show side by side on the widest screens. */
#define POINTS_MAX 4000
/* Below this no reader's parser runs out of stack. */
#define DEPTH_MAX 64

void page_json_text(struct strbuf *out, const char *key, const char *text)
{
	strbuf_printf(out, "\"%s\":", key);
	if (!text) {
		strbuf_puts(out, "null");
		return;
	}
	strbuf_putc(out, '"');
	text_add(out, TEXT_JSON, text, 100000);
	strbuf_putc(out, '"');
}

static void add_number(struct strbuf *out, double x)
{
	if (isfinite(x))
		strbuf_printf(out, "%.10g", x);
	else
		strbuf_puts(out, "null");
}

/* --- series --- */

/* "rss_kb" is in KiB; names that programs chose have no unit. */
static const char *unit_of(const char *table, const char *name)
{
	size_t len = strlen(name);

	if (strcmp(table, "workload") == 0)
		return "";
	if (strcmp(table, "alloc_series") == 0)
		return "bytes/s";
	if (strcmp(table, "live_series") == 0)
		return "bytes";
	if (strcmp(table, "census") == 0)
		return len > 8 && strcmp(name + len - 8, " objects") == 0 ? "count" : "bytes";
	if (len > 3 && strcmp(name + len - 3, "_kb") == 0)
		return "KiB";
	if (len > 8 && strcmp(name + len - 8, "_percent") == 0)
		return "percent";
	if (strcmp(table, "rss_breakdown") == 0)
		return strcmp(name, "live_blocks") == 0 || strcmp(name, "processes") == 0 ||
				       strcmp(name, "not_read") == 0
			       ? "count"
			       : "bytes";
	return len > 6 && strcmp(name + len - 6, "_bytes") == 0 ? "bytes" : "count";
}

/* Of `n` values from `v` on, the lowest and the highest, in the order in which they came. */
static void extremes(const double *v, uint32_t n, double ret[2])
{
	uint32_t low = n, high = n;

	for (uint32_t i = 0; i < n; i++) {
		if (isnan(v[i]))
			continue;
		if (low == n || v[i] < v[low])
			low = i;
		if (high == n || v[i] > v[high])
			high = i;
	}
	ret[0] = low < n ? v[low < high ? low : high] : NAN;
	ret[1] = high < n ? v[low < high ? high : low] : NAN;
}

static void put_values(struct strbuf *out, const double *values, uint32_t n, uint32_t step)
{
	strbuf_puts(out, "[");
	for (uint32_t i = 0; i < n; i += step) {
		double pair[2] = { values[i], NAN };

		if (step > 1)
			extremes(values + i, n - i < step ? n - i : step, pair);
		strbuf_puts(out, i ? "," : "");
		add_number(out, pair[0]);
		if (step > 1) {
			strbuf_puts(out, ",");
			add_number(out, pair[1]);
		}
	}
	strbuf_puts(out, "]");
}

static void put_times(struct strbuf *out, const struct time_table *t, uint32_t step,
		      double started_s)
{
	/* Short ones are read to the microsecond. */
	int digits = t->n_rows && t->times_s[t->n_rows - 1] - started_s < 60 ? 6 : 3;

	strbuf_puts(out, "\"times\":[");
	for (uint32_t i = 0; i < t->n_rows; i += step) {
		uint32_t half = i + step / 2 < t->n_rows ? i + step / 2 : t->n_rows - 1;

		strbuf_printf(out, "%s%.*f", i ? "," : "", digits, t->times_s[i] - started_s);
		if (step > 1)
			strbuf_printf(out, ",%.*f", digits, t->times_s[half] - started_s);
	}
	strbuf_puts(out, "]");
}

void page_json_series(struct strbuf *out, const struct page_series *s, double started_s)
{
	const struct time_table *t = s->table;
	uint32_t step = t->n_rows > POINTS_MAX ? (2 * t->n_rows + POINTS_MAX - 1) / POINTS_MAX : 1;

	strbuf_puts(out, "{");
	page_json_text(out, "id", s->id);
	strbuf_puts(out, ",");
	page_json_text(out, "title", s->title);
	strbuf_printf(out, ",\"rows_per_point\":%u,", step);
	put_times(out, t, step, started_s);
	strbuf_puts(out, ",\"columns\":[");
	for (uint32_t c = 0; c < t->n_columns; c++) {
		strbuf_puts(out, c ? ",{" : "{");
		page_json_text(out, "name", t->columns[c].name);
		strbuf_puts(out, ",");
		page_json_text(out, "unit", unit_of(s->id, t->columns[c].name));
		strbuf_puts(out, ",\"values\":");
		put_values(out, t->columns[c].values, t->n_rows, step);
		strbuf_puts(out, ",\"stats\":{");
		page_details_json(out, t, t->columns[c].values, started_s);
		strbuf_puts(out, "}}");
	}
	strbuf_puts(out, "]}");
}

/* --- marks --- */

void page_json_marks(struct strbuf *out, const struct profile *p)
{
	const struct over_time *o = p ? profile_over_time(p) : NULL;

	strbuf_printf(out, "{\"omitted\":%" PRIu64 ",\"all\":[", o ? o->omitted : 0);
	for (uint32_t i = 0; o && i < o->n_marks; i++) {
		strbuf_printf(out, "%s{\"at\":%.6f,\"message\":%s,", i ? "," : "", o->marks[i].s,
			      o->marks[i].message ? "true" : "false");
		page_json_text(out, "text", dict_str(profile_dict(p), o->marks[i].text));
		strbuf_puts(out, "}");
	}
	strbuf_puts(out, "]}");
}

/* --- a document --- */

static bool too_deep(struct bytes json)
{
	uint32_t depth = 0;
	bool text = false;

	for (size_t i = 0; i < json.len; i++) {
		uint8_t c = json.data[i];

		if (text && c == '\\')
			i++;
		else if (c == '"')
			text = !text;
		else if (!text && (c == '{' || c == '[') && ++depth > DEPTH_MAX)
			return true;
		else if (!text && (c == '}' || c == ']') && depth)
			depth--;
	}
	return false;
}

/*
 * Length of what is not to be shown: a character that changes the direction of text (U+061C, U+200E, U+200F, U+202A…E,
 * U+2066…9) or controls (DEL, C1; C0 as cJSON writes it, \\u001b); else 0.
 */
static size_t hidden_mark(const uint8_t *s, size_t len)
{
	if (len >= 6 && memcmp(s, "\\u00", 4) == 0 && (s[4] == '0' || s[4] == '1'))
		return 6;
	if (s[0] == 0x7f)
		return 1;
	if (len >= 2 && ((s[0] == 0xd8 && s[1] == 0x9c) || (s[0] == 0xc2 && s[1] < 0xa0)))
		return 2;
	if (len < 3 || s[0] != 0xe2)
		return 0;
	return (s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xaa && s[2] <= 0xae))) ||
			       (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)
		       ? 3
		       : 0;
}

bool page_json_document(struct strbuf *out, struct bytes json)
{
	cJSON *doc = json.len && !too_deep(json)
			     ? cJSON_ParseWithLength((const char *)json.data, json.len)
			     : NULL;
	/* Written again: what cJSON forgives, a browser does not. */
	char *text = cJSON_IsObject(doc) ? cJSON_PrintUnformatted(doc) : NULL;
	size_t len = text ? strlen(text) : 0;

	cJSON_Delete(doc);
	for (size_t i = 0; i < len; i++) {
		size_t mark = hidden_mark((const uint8_t *)text + i, len - i);

		if (!mark && text[i] == '\\') { /* what is escaped begins no escape */
			strbuf_add(out, text + i++, 2);
			continue;
		}
		if (mark)
			strbuf_puts(out, "\xef\xbf\xbd");
		else if (strchr("<>&", text[i]))
			strbuf_printf(out, "\\u%04x", (unsigned)text[i]);
		else
			strbuf_putc(out, text[i]);
		i += mark ? mark - 1 : 0;
	}
	cJSON_free(text);
	return len > 0;
}
