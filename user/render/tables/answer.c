#include "render/tables/answer.h"

#include "base/strbuf.h"
#include "base/units.h"
#include "render/json_doc.h"
#include "render/tables/cells.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 12, NAME_WIDTH = 20, INDENT = 4 };

struct answer {
	enum answer_form form;
	struct json_doc doc;
	cJSON *root, *notes, *rows, *row, *lines, *described;
	struct sink *out; /* text, in memory until it is printed   */
	const struct answer_column *columns;
	uint32_t at; /* the column of the next cell           */
};

struct answer *answer_begin(enum answer_form form)
{
	struct answer *a = calloc(1, sizeof(*a));
	struct err e = { 0 };

	if (!a)
		return NULL;
	a->form = form;
	if (form == ANSWER_JSON)
		a->root = cJSON_CreateObject();
	else if (sink_open_memory(&a->out, &e) < 0)
		a->out = NULL;
	if (a->root || a->out)
		return a;
	free(a);
	return NULL;
}

void answer_free(struct answer *a)
{
	if (!a)
		return;
	cJSON_Delete(a->root);
	sink_close(a->out);
	free(a);
}

/* --- sentences and figures --- */

void answer_say(struct answer *a, const char *format, ...)
{
	_cleanup_(strbuf_free) struct strbuf clean = { 0 };
	_cleanup_(freep) char *text = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		a->doc.oom = true;
		return;
	}
	strbuf_add_clean(&clean, text, (size_t)n);
	if (a->form == ANSWER_TEXT) {
		sink_puts(a->out, clean.s ? clean.s : "");
		sink_puts(a->out, "\n");
		return;
	}
	if (!n)
		return;
	if (!a->notes)
		a->notes = json_array(&a->doc, a->root, "notes");
	if (!cJSON_AddItemToArray(a->notes, cJSON_CreateString(clean.s ? clean.s : "")))
		a->doc.oom = true;
}

void answer_figure(struct answer *a, const char *key, uint64_t value)
{
	if (a->form == ANSWER_JSON)
		json_count(&a->doc, a->root, key, value);
}

void answer_word(struct answer *a, const char *key, const char *text)
{
	if (a->form == ANSWER_JSON)
		json_text(&a->doc, a->root, key, text);
}

/* --- tables --- */

static bool is_left(const struct answer_column *c)
{
	return c->kind == ANSWER_NAME || c->kind == ANSWER_TREE || c->kind == ANSWER_ADDRESS;
}

static uint32_t width_of(const struct answer_column *c)
{
	return c->width ? c->width : is_left(c) ? NAME_WIDTH : WIDTH;
}

/* Is it the last one that is printed in the row itself? */
static bool is_last(const struct answer_column *c)
{
	return !c[1].key || c[1].kind == ANSWER_LINES;
}

static void put(struct answer *a, const struct answer_column *c, const char *text)
{
	if (!is_left(c)) {
		cells_right(a->out, text, width_of(c));
		return;
	}
	if (c != a->columns && !is_left(c - 1))
		sink_puts(a->out, "  ");
	if (is_last(c))
		sink_puts(a->out, text);
	else
		cells_left(a->out, text, width_of(c));
}

void answer_describe(struct answer *a)
{
	if (a->form == ANSWER_JSON && !a->described)
		a->described = json_object(&a->doc, a->root, "columns");
}

static void describe(struct answer *a, const char *key, const struct answer_column *columns)
{
	cJSON *table = json_array(&a->doc, a->described, key);

	for (const struct answer_column *c = columns; c->key; c++) {
		cJSON *column = cJSON_CreateArray();

		a->doc.oom |= !cJSON_AddItemToArray(column, cJSON_CreateString(c->key)) ||
			      !cJSON_AddItemToArray(column, cJSON_CreateString(c->heading)) ||
			      !cJSON_AddItemToArray(column, cJSON_CreateNumber(c->kind)) ||
			      !cJSON_AddItemToArray(table, column);
	}
}

void answer_table(struct answer *a, const char *key, const struct answer_column *columns)
{
	a->columns = columns;
	a->at = 0;
	if (a->form == ANSWER_JSON) {
		if (a->described)
			describe(a, key, columns);
		a->rows = json_array(&a->doc, a->root, key);
		return;
	}
	for (const struct answer_column *c = columns; c->key; c++)
		if (c->kind != ANSWER_LINES)
			put(a, c, c->heading);
	sink_puts(a->out, "\n");
}

/* The column that is next; the row it is in exists then. */
static const struct answer_column *next(struct answer *a)
{
	if (a->form == ANSWER_JSON && a->at == 0)
		a->row = json_element(&a->doc, a->rows);
	return &a->columns[a->at++];
}

static void ended(struct answer *a, const struct answer_column *c)
{
	if (a->form == ANSWER_TEXT && is_last(c))
		sink_puts(a->out, "\n");
	if (!c[1].key)
		a->at = 0;
}

static void put_number(struct answer *a, const struct answer_column *c, uint64_t value)
{
	int64_t n = (int64_t)value;
	char text[80];

	if (c->kind == ANSWER_ADDRESS)
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	else if (c->kind == ANSWER_CHANGE)
		snprintf(text, sizeof(text), "%s%s", n > 0 ? "+" : "", unit_bytes(n).s);
	else
		snprintf(text, sizeof(text), "%s",
			 value == ANSWER_NONE      ? "-"
			 : c->kind == ANSWER_BYTES ? unit_bytes(n).s
			 : c->kind == ANSWER_NS    ? unit_ns(n).s
						   : unit_count(n).s);
	put(a, c, text);
}

static void put_number_json(struct answer *a, const struct answer_column *c, uint64_t value)
{
	char address[24];

	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)value);
	if (c->kind == ANSWER_ADDRESS)
		json_text(&a->doc, a->row, c->key, address);
	else if (c->kind == ANSWER_CHANGE)
		json_number(&a->doc, a->row, c->key, (int64_t)value);
	else if (value == ANSWER_NONE)
		json_null(&a->doc, a->row, c->key);
	else
		json_count(&a->doc, a->row, c->key, value);
}

void answer_cell(struct answer *a, uint64_t value)
{
	const struct answer_column *c = next(a);

	if (a->form == ANSWER_JSON)
		put_number_json(a, c, value);
	else
		put_number(a, c, value);
	ended(a, c);
}

void answer_real(struct answer *a, double value)
{
	const struct answer_column *c = next(a);
	char text[32];

	if (a->form == ANSWER_JSON) {
		json_real(&a->doc, a->row, c->key, value);
	} else {
		snprintf(text, sizeof(text), "%.1f%s", value, c->kind == ANSWER_PERCENT ? "%" : "");
		put(a, c, isfinite(value) ? text : "-");
	}
	ended(a, c);
}

void answer_text(struct answer *a, const char *text)
{
	const struct answer_column *c = next(a);
	_cleanup_(strbuf_free) struct strbuf clean = { 0 };

	if (a->form == ANSWER_JSON) {
		json_text(&a->doc, a->row, c->key, text);
	} else {
		strbuf_add_clean(&clean, text ? text : "-", text ? strlen(text) : 1);
		put(a, c, clean.s ? clean.s : "");
	}
	ended(a, c);
}

void answer_tree(struct answer *a, uint32_t depth, const char *text)
{
	_cleanup_(strbuf_free) struct strbuf moved = { 0 };

	if (a->form == ANSWER_TEXT) {
		for (uint32_t i = 0; i < depth; i++)
			strbuf_puts(&moved, "  ");
		strbuf_puts(&moved, text);
		answer_text(a, moved.s);
		return;
	}
	answer_text(a, text);
	json_count(&a->doc, a->row, "depth", depth);
}

void answer_line(struct answer *a, const char *text)
{
	_cleanup_(strbuf_free) struct strbuf clean = { 0 };

	strbuf_add_clean(&clean, text, strlen(text));
	if (a->form == ANSWER_TEXT) {
		cells_spaces(a->out, INDENT);
		sink_puts(a->out, clean.s ? clean.s : "");
		sink_puts(a->out, "\n");
		return;
	}
	if (!a->lines)
		a->lines = json_array(&a->doc, a->row, a->columns[a->at].key);
	if (!cJSON_AddItemToArray(a->lines, cJSON_CreateString(clean.s ? clean.s : "")))
		a->doc.oom = true;
}

void answer_lines_end(struct answer *a)
{
	if (a->form == ANSWER_JSON && !a->lines)
		json_array(&a->doc, a->row, a->columns[a->at].key);
	a->lines = NULL;
	a->at = 0;
}

/* --- */

int answer_write(struct answer *a, struct sink *out, struct err *e)
{
	_cleanup_(freep) char *json = NULL;
	const char *text;
	size_t n;

	if (a->form == ANSWER_JSON) {
		json = a->doc.oom ? NULL : cJSON_Print(a->root);
		if (!json)
			return err_set(e, -ENOMEM, "out of memory");
		sink_puts(out, json);
		sink_puts(out, "\n");
		return 0;
	}
	if (a->doc.oom || sink_commit(a->out, e) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	text = sink_memory(a->out, &n);
	sink_write(out, text, n);
	return 0;
}
