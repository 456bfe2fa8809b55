#include "render/summary/site_rows.h"

#include "base/units.h"
#include "render/tables/cells.h"

const char *site_name(const struct site_row *row)
{
	return row->function[0] ? row->function : "[unknown]";
}

/* Where no function of the program asked, what the kernel did tells more than nothing. */
const char *site_name_or_leaf(const struct site_row *row)
{
	return !row->function[0] && row->leaf[0] ? row->leaf : site_name(row);
}

void site_rows_text(struct sink *out, const char *what, const char *title,
		    const struct site_row *rows, uint32_t n, uint64_t whole,
		    const char *(*name)(const struct site_row *row))
{
	if (n == 0)
		return;
	cells_right(out, "bytes", 13);
	cells_right(out, what, 14);
	sink_printf(out, "          %s\n", title);
	for (uint32_t i = 0; i < n; i++) {
		cells_right(out, unit_bytes(rows[i].value).s, 13);
		cells_right(out, unit_count(rows[i].count).s, 14);
		cells_right(out, unit_percent(rows[i].value, (int64_t)whole).s, 8);
		sink_puts(out, "  ");
		cells_in_image(out, name(&rows[i]), 40, rows[i].module, 18);
	}
}

void site_rows_json(struct json_doc *d, cJSON *in, const char *key, const struct site_row *rows,
		    uint32_t n)
{
	cJSON *list = json_array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *o = json_element(d, list);

		json_text(d, o, "function", rows[i].function);
		json_text(d, o, "module", rows[i].module);
		json_number(d, o, "bytes", rows[i].value);
		json_number(d, o, "objects", rows[i].count);
		if (rows[i].samples) {
			json_number(d, o, "low", rows[i].low);
			json_number(d, o, "high", rows[i].high);
			json_count(d, o, "samples", rows[i].samples);
		}
	}
}
