#include "screen/heap_page.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { LAST_NAME_LEAST = 20 }; /* columns that the last name has on the narrowest screen */

void answer_page_free(struct answer_page *p)
{
	if (!p)
		return;
	cJSON_Delete(p->doc);
	free(p->rows);
	free(p->open);
	free(p);
}

/* The columns of a table. The last name has what is left of the line. */
static void read_columns(struct answer_page *p, const cJSON *described)
{
	const char *headings[COLUMNS_MAX];
	int last_name = -1;
	const cJSON *column;

	cJSON_ArrayForEach(column, described)
	{
		const char *key = cJSON_GetStringValue(cJSON_GetArrayItem(column, 0));
		const char *heading = cJSON_GetStringValue(cJSON_GetArrayItem(column, 1));
		const cJSON *kind = cJSON_GetArrayItem(column, 2);
		uint32_t i = p->n_columns;

		if (!key || !heading || !cJSON_IsNumber(kind) || i == COLUMNS_MAX)
			continue;
		if (kind->valueint == ANSWER_LINES) {
			p->lines = key;
			continue;
		}
		p->keys[i] = key;
		headings[i] = heading;
		p->kinds[i] = (enum answer_kind)kind->valueint;
		if (answer_is_name(p->kinds[i]))
			last_name = (int)i;
		p->n_columns++;
	}
	/* It is shown last. */
	for (uint32_t i = last_name < 0 ? p->n_columns : (uint32_t)last_name; i + 1 < p->n_columns;
	     i++) {
		const char *key = p->keys[i], *heading = headings[i];
		enum answer_kind kind = p->kinds[i];

		p->keys[i] = p->keys[i + 1];
		p->kinds[i] = p->kinds[i + 1];
		headings[i] = headings[i + 1];
		headings[i + 1] = heading;
		p->keys[i + 1] = key;
		p->kinds[i + 1] = kind;
	}
	for (uint32_t i = 0; i < p->n_columns; i++) {
		snprintf(p->titles[i], sizeof(p->titles[i]), "%s", p->keys[i]);
		for (char *c = p->titles[i]; *c; c++)
			*c = *c == '_' ? ' ' : (char)toupper((unsigned char)*c);
		p->columns[i] = (struct column){
			.title = p->titles[i],
			.help = headings[i],
			.left = answer_is_name(p->kinds[i]),
		};
	}
}

static void put_figure(enum answer_kind kind, double value, struct strbuf *to)
{
	switch (kind) {
	case ANSWER_BYTES:
		view_bytes(value, false, to);
		break;
	case ANSWER_CHANGE:
		view_bytes(value, true, to);
		break;
	case ANSWER_NS:
		strbuf_puts(to, unit_ns((int64_t)value).s);
		break;
	case ANSWER_PERCENT:
		strbuf_printf(to, "%.1f%%", value);
		break;
	default:
		strbuf_puts(to, unit_count((int64_t)value).s);
	}
}

void answer_page_put(const struct answer_page *p, uint32_t row, uint32_t column, struct strbuf *to)
{
	const cJSON *item = cJSON_GetObjectItem(p->rows[row], p->keys[column]);

	if (cJSON_IsString(item))
		strbuf_puts(to, item->valuestring);
	else if (cJSON_IsNumber(item))
		put_figure(p->kinds[column], item->valuedouble, to);
}

/* How wide a column has to be for its rows, a name no wider than 24. False: all that it has is 0, or nothing. */
static bool measure(struct answer_page *p, uint32_t column)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	int width = (int)strlen(p->titles[column]) + 1,
	    most = answer_is_name(p->kinds[column]) ? 24 : 40;
	bool any = false;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		const cJSON *item = cJSON_GetObjectItem(p->rows[i], p->keys[column]);
		int len;

		strbuf_reset(&text);
		answer_page_put(p, i, column, &text);
		len = text.s ? canvas_width(text.s) : 0;
		width = len > width ? len : width;
		any |= cJSON_IsString(item) ? len > 0
					    : cJSON_IsNumber(item) && item->valuedouble != 0;
	}
	p->columns[column].width = width < most ? width : most;
	return any;
}

/* On a narrow screen, the first column and names are shown before figures, and what is 0 everywhere last. */
static void choose_widths(struct answer_page *p)
{
	enum { FIRST, FIGURES, EMPTY, N_RANKS };
	int rank[COLUMNS_MAX] = { 0 }, used = LAST_NAME_LEAST;

	for (uint32_t i = 0; i + 1 < p->n_columns; i++) {
		bool any = measure(p, i);

		rank[i] = i == 0 || answer_is_name(p->kinds[i]) ? FIRST : any ? FIGURES : EMPTY;
	}
	for (int r = 0; r < N_RANKS; r++)
		for (uint32_t i = 0; i + 1 < p->n_columns; i++) {
			if (rank[i] != r)
				continue;
			used += p->columns[i].width + 1;
			p->columns[i].from_width = r == FIRST ? 0 : used;
		}
}

int answer_page_choose(struct answer_page *p, int which)
{
	const cJSON *described = cJSON_GetArrayItem(p->described, which), *row, *table;
	int n;

	p->n_columns = p->n_rows = 0;
	p->lines = NULL;
	p->table = which;
	table = described ? cJSON_GetObjectItem(p->doc, described->string) : NULL;
	if (described)
		read_columns(p, described);
	n = cJSON_GetArraySize(table);
	free(p->rows);
	free(p->open);
	p->rows = calloc((size_t)n + 1, sizeof(cJSON *));
	p->open = calloc((size_t)n + 1, sizeof(*p->open));
	if (!p->rows || !p->open)
		return -ENOMEM;
	cJSON_ArrayForEach(row, table) p->rows[p->n_rows++] = (cJSON *)(uintptr_t)row;
	choose_widths(p);
	return 0;
}

int answer_page_read(const char *question, const char *json, size_t bytes,
		     struct answer_page **ret_page)
{
	struct answer_page *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	snprintf(p->question, sizeof(p->question), "%s", question);
	p->doc = cJSON_ParseWithLength(json, bytes);
	if (!cJSON_IsObject(p->doc)) {
		answer_page_free(p);
		return -EBADMSG;
	}
	p->described = cJSON_GetObjectItem(p->doc, "columns");
	p->n_tables = cJSON_GetArraySize(p->described);
	if (answer_page_choose(p, 0) < 0) {
		answer_page_free(p);
		return -ENOMEM;
	}
	*ret_page = p;
	return 0;
}
