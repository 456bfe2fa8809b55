#include "import/time_table.h"

#include "base/strbuf.h"
#include "import/csv_time.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { TEXT_MAX = 1 << 28 };
#define NO_FIELD UINT32_MAX

struct reader {
	struct time_table *t;
	uint32_t row_cap;
	bool by_name; /* timestamp,name,value */
	uint32_t ms;  /* the field of timestamp_ms; NO_FIELD: there is none */
	uint32_t skipped;
	int error;
};

static void no_memory(struct reader *r)
{
	r->error = -ENOMEM;
}

static bool has_memory(struct reader *r, const struct strbuf *field)
{
	if (strbuf_oom(field))
		no_memory(r);
	return !r->error;
}

/* The next field of a line, without its quotes. false: the line is over, or there is no memory. */
static bool take_field(struct reader *r, struct bytes *line, bool first, struct strbuf *field)
{
	strbuf_reset(field);
	if (!first) {
		if (!line->len || *line->data != ',')
			return false;
		bytes_skip(line, 1);
	}
	if (!line->len || *line->data != '"') {
		size_t n = 0;

		while (n < line->len && line->data[n] != ',')
			n++;
		strbuf_add(field, line->data, n);
		bytes_skip(line, n);
		return has_memory(r, field);
	}
	bytes_skip(line, 1);
	while (line->len) {
		uint8_t c = *line->data;

		bytes_skip(line, 1);
		if (c == '"' && (!line->len || *line->data != '"'))
			break;
		if (c == '"')
			bytes_skip(line, 1);
		strbuf_putc(field, (char)c);
	}
	return has_memory(r, field);
}

static const char *text_of(const struct strbuf *s)
{
	return s->s ? s->s : "";
}

/* A column of `row_cap` values, none of them known. */
static uint32_t add_column(struct reader *r, const char *name)
{
	struct time_table *t = r->t;
	struct time_column *grown, *c;

	grown = reallocarray(t->columns, t->n_columns + 1, sizeof(*grown));
	if (!grown) {
		no_memory(r);
		return 0;
	}
	t->columns = grown;
	c = &grown[t->n_columns++];
	c->name = strdup(name);
	c->values = reallocarray(NULL, r->row_cap, sizeof(*c->values));
	if (!c->name || !c->values) {
		no_memory(r);
		return 0;
	}
	for (uint32_t i = 0; i < r->row_cap; i++)
		c->values[i] = NAN;
	return t->n_columns - 1;
}

static bool read_names(struct reader *r, struct bytes line)
{
	_cleanup_(strbuf_free) struct strbuf field = { 0 };

	if (!take_field(r, &line, true, &field) || strcmp(text_of(&field), "timestamp") != 0)
		return false;
	r->by_name = line.len == 11 && memcmp(line.data, ",name,value", 11) == 0;
	r->ms = NO_FIELD;
	while (!r->by_name && !r->error && r->t->n_columns < TIME_TABLE_COLUMNS &&
	       take_field(r, &line, false, &field))
		if (r->ms == NO_FIELD && strcmp(text_of(&field), "timestamp_ms") == 0)
			r->ms = r->t->n_columns;
		else
			add_column(r, text_of(&field));
	return true;
}

static bool number(const char *s, double *ret)
{
	char *end;

	if (!*s || !strchr("-.0123456789", *s))
		return false;
	*ret = strtod(s, &end);
	return !*end && isfinite(*ret);
}

static bool make_room(struct reader *r)
{
	struct time_table *t = r->t;
	uint32_t cap = r->row_cap * 2;
	double *times;

	if (t->n_rows < r->row_cap)
		return true;
	times = reallocarray(t->times_s, cap, sizeof(*times));
	if (!times)
		return false;
	t->times_s = times;
	for (uint32_t c = 0; c < t->n_columns; c++) {
		double *values = reallocarray(t->columns[c].values, cap, sizeof(*values));

		if (!values)
			return false;
		t->columns[c].values = values;
		for (uint32_t i = r->row_cap; i < cap; i++)
			values[i] = NAN;
	}
	r->row_cap = cap;
	return true;
}

/* The row at this time: a new one, unless `again` and the last one is of it. */
static uint32_t row_at(struct reader *r, double time_s, bool again)
{
	struct time_table *t = r->t;
	double last = t->n_rows ? t->times_s[t->n_rows - 1] : time_s;

	if (time_s < last)
		time_s = last;
	if (again && t->n_rows && time_s == last)
		return t->n_rows - 1;
	if (!make_room(r)) {
		no_memory(r);
		return 0;
	}
	t->times_s[t->n_rows] = time_s;
	return t->n_rows++;
}

static bool read_named(struct reader *r, double time_s, struct bytes line, struct strbuf *field)
{
	_cleanup_(strbuf_free) struct strbuf name = { 0 };
	uint32_t c = 0, row;
	double value;

	if (!take_field(r, &line, false, &name) || !take_field(r, &line, false, field) ||
	    !number(text_of(field), &value))
		return false;
	while (c < r->t->n_columns && strcmp(r->t->columns[c].name, text_of(&name)) != 0)
		c++;
	if (c == TIME_TABLE_COLUMNS)
		return false;
	if (c == r->t->n_columns)
		c = add_column(r, text_of(&name));
	row = r->error ? 0 : row_at(r, time_s, true);
	if (!r->error)
		r->t->columns[c].values[row] = value;
	return true;
}

static bool read_row(struct reader *r, struct bytes line, struct strbuf *field)
{
	double values[TIME_TABLE_COLUMNS], time_s, ms;
	struct time_table *t = r->t;
	uint32_t row;

	if (!take_field(r, &line, true, field) || !csv_time(text_of(field), &time_s))
		return false;
	if (r->by_name)
		return read_named(r, time_s, line, field);
	for (uint32_t c = 0; c <= t->n_columns; c++) {
		if (c == r->ms) {
			if (!take_field(r, &line, false, field) || !number(text_of(field), &ms) ||
			    ms < 0 || ms >= 1000)
				return false;
			time_s += ms / 1000;
		}
		if (c == t->n_columns)
			break;
		values[c] = NAN;
		if (!take_field(r, &line, false, field) ||
		    (*text_of(field) && !number(text_of(field), &values[c])))
			return false;
	}
	row = row_at(r, time_s, false);
	for (uint32_t c = 0; c < t->n_columns && !r->error; c++)
		t->columns[c].values[row] = values[c];
	return true;
}

int time_table_parse(struct bytes text, const char *name, struct time_table **ret_table,
		     uint32_t *ret_skipped, struct err *e)
{
	_cleanup_(time_table_freep) struct time_table *t = calloc(1, sizeof(*t));
	_cleanup_(strbuf_free) struct strbuf field = { 0 };
	struct reader r = { .t = t, .row_cap = 64 };
	struct bytes line;

	if (t)
		t->times_s = reallocarray(NULL, r.row_cap, sizeof(*t->times_s));
	if (!t || !t->times_s)
		return err_set(e, -ENOMEM, "out of memory");
	if (!bytes_line(&text, &line) || !read_names(&r, line))
		return r.error ? err_set(e, r.error, "out of memory")
			       : err_set(e, -EBADMSG,
					 "%s: its first line is not \"timestamp\" and names of columns",
					 name);
	while (!r.error && t->n_rows < TIME_TABLE_ROWS && bytes_line(&text, &line))
		if (line.len)
			r.skipped += !read_row(&r, line, &field);
	if (r.error)
		return err_set(e, -ENOMEM, "out of memory");
	if (ret_skipped)
		*ret_skipped = r.skipped;
	*ret_table = TAKE_PTR(t);
	return 0;
}

int time_table_read(const char *path, struct time_table **ret_table, uint32_t *ret_skipped,
		    struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	char buf[65536];
	size_t n;
	FILE *f = fopen(path, "re");
	int r = 0;

	if (!f)
		return errno == ENOENT ? -ENOENT
				       : err_set(e, -errno, "%s: %s", path, strerror(errno));
	while (text.len < TEXT_MAX && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(&text, buf, n);
	if (ferror(f))
		r = err_set(e, -EIO, "%s: cannot be read", path);
	else if (strbuf_oom(&text))
		r = err_set(e, -ENOMEM, "out of memory");
	fclose(f);
	return r < 0 ? r
		     : time_table_parse(bytes_of(text.s ? text.s : "", text.len), path, ret_table,
					ret_skipped, e);
}
