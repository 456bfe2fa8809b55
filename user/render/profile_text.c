#include "render/profile_text.h"

#include "analyse/top.h"
#include "base/strbuf.h"
#include "render/shown.h"
#include "render/text.h"

#include <errno.h>
#include <inttypes.h>

enum { NAME_COLUMNS = 90 };

/* Never more than there are functions: what a caller asks for is not to be allocated. */
static uint32_t most_rows(const struct profile *p, uint32_t rows)
{
	const struct dict *d = profile_dict(p);
	uint64_t n = 1;

	for (uint32_t i = 1; i <= dict_location_count(d); i++)
		n += 1 + dict_location_get(d, (location_id){ i })->n_lines;
	return n < rows ? (uint32_t)n : rows;
}

static int top(const struct profile *p, uint32_t type, enum top_order order, uint32_t rows,
	       struct top_row **ret_rows)
{
	struct top_row *all = calloc(rows + 1ul, sizeof(*all));
	int n = all ? top_functions(p, type, order, all, rows) : -ENOMEM;

	if (n < 0)
		free(all);
	else
		*ret_rows = all;
	return n;
}

static int64_t positive_total(const struct profile *p, uint32_t type)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		int64_t v = profile_sample(p, i).values[type];

		if (v > 0 && __builtin_add_overflow(sum, v, &sum))
			return INT64_MAX;
	}
	return sum;
}

static void text_table(struct strbuf *b, const struct shown *shown, const struct top_row *rows,
		       int n, bool by_self, int64_t total)
{
	strbuf_printf(b, "\n%s\n%14s %7s %14s %7s  function\n",
		      by_self ? "Most in themselves" : "Most with all they call", "self", "",
		      "total", "");
	for (int i = 0; i < n; i++) {
		strbuf_printf(b, "%14s %7s ", shown_text(shown, NULL, rows[i].self).s,
			      unit_percent(rows[i].self, total).s);
		strbuf_printf(b, "%14s %7s  ", shown_text(shown, NULL, rows[i].total).s,
			      unit_percent(rows[i].total, total).s);
		text_add(b, TEXT_FOLDED, *rows[i].name ? rows[i].name : "[unknown]", NAME_COLUMNS);
		if (*rows[i].module) {
			bool has_brackets = rows[i].module[0] == '[';

			strbuf_puts(b, has_brackets ? "  " : "  [");
			text_add(b, TEXT_FOLDED, rows[i].module, 40);
			strbuf_puts(b, has_brackets ? "" : "]");
		}
		strbuf_putc(b, '\n');
	}
}

int profile_text_write(const struct profile *p, int type, uint32_t rows, struct sink *out,
		       struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	_cleanup_(freep) struct top_row *self = NULL, *total = NULL;
	struct shown shown = shown_pick(p, type);
	int64_t sum = positive_total(p, shown.type);
	uint32_t cap = most_rows(p, rows);
	int n_self = top(p, shown.type, TOP_BY_SELF, cap, &self);
	int n_total = n_self < 0 ? n_self : top(p, shown.type, TOP_BY_TOTAL, cap, &total);

	if (n_total < 0)
		return err_set(e, n_total, "out of memory for a report");
	strbuf_printf(&b, "%s (%s/%s): %s%s%s", shown.title, profile_type(p, shown.type)->name,
		      shown.unit, shown_text(&shown, NULL, sum).s, *shown.noun ? " " : "",
		      shown.noun);
	if (profile_get_meta(p)->duration_ns > 0)
		strbuf_printf(&b, " in %s", unit_ns(profile_get_meta(p)->duration_ns).s);
	strbuf_putc(&b, '\n');
	text_table(&b, &shown, self, n_self, true, sum);
	text_table(&b, &shown, total, n_total, false, sum);
	if (strbuf_oom(&b))
		return err_set(e, -ENOMEM, "out of memory for a report");
	sink_write(out, b.s, b.len);
	return 0;
}

static void json_table(struct strbuf *b, const char *key, const struct top_row *rows, int n)
{
	strbuf_printf(b, ",\n\"%s\":[", key);
	for (int i = 0; i < n; i++) {
		strbuf_puts(b, i ? ",\n{\"function\":\"" : "\n{\"function\":\"");
		text_add(b, TEXT_JSON, rows[i].name, UINT32_MAX);
		strbuf_puts(b, "\",\"module\":\"");
		text_add(b, TEXT_JSON, rows[i].module, UINT32_MAX);
		strbuf_printf(b, "\",\"self\":%" PRId64 ",\"total\":%" PRId64 "}", rows[i].self,
			      rows[i].total);
	}
	strbuf_puts(b, "]");
}

int profile_json_write(const struct profile *p, int type, uint32_t rows, struct sink *out,
		       struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	_cleanup_(freep) struct top_row *self = NULL, *total = NULL;
	struct shown shown = shown_pick(p, type);
	uint32_t cap = most_rows(p, rows);
	int n_self = top(p, shown.type, TOP_BY_SELF, cap, &self);
	int n_total = n_self < 0 ? n_self : top(p, shown.type, TOP_BY_TOTAL, cap, &total);

	if (n_total < 0)
		return err_set(e, n_total, "out of memory for a report");
	strbuf_puts(&b, "{\"type\":\"");
	text_add(&b, TEXT_JSON, profile_type(p, shown.type)->name, UINT32_MAX);
	strbuf_puts(&b, "\",\"unit\":\"");
	text_add(&b, TEXT_JSON, shown.unit, UINT32_MAX);
	strbuf_printf(&b, "\",\"total\":%" PRId64 ",\"samples\":%u,\"duration_ns\":%" PRId64,
		      positive_total(p, shown.type), profile_n_samples(p),
		      profile_get_meta(p)->duration_ns);
	json_table(&b, "by_self", self, n_self);
	json_table(&b, "by_total", total, n_total);
	strbuf_puts(&b, "}\n");
	if (strbuf_oom(&b))
		return err_set(e, -ENOMEM, "out of memory for a report");
	sink_write(out, b.s, b.len);
	return 0;
}
