#include "model/over_time.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct over_time *over_time_new(void)
{
	return calloc(1, sizeof(struct over_time));
}

void over_time_free(struct over_time *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < o->n_series; i++)
		time_table_free(o->series[i].table);
	free(o->marks);
	free(o);
}

int over_time_add_series(struct over_time *o, const char *id, const char *title,
			 struct time_table *table)
{
	if (o->n_series == OVER_TIME_SERIES) {
		time_table_free(table);
		return -ENOSPC;
	}
	o->series[o->n_series++] = (struct over_time_series){ id, title, table };
	return 0;
}

/* Messages make room for a marker, the last of them first. */
static struct over_time_mark *replaceable(struct over_time *o)
{
	for (uint32_t i = o->n_marks; i-- > 0;)
		if (o->marks[i].message)
			return &o->marks[i];
	return NULL;
}

int over_time_add_mark(struct over_time *o, const struct over_time_mark *mark)
{
	if (o->n_marks == OVER_TIME_MARKS) {
		struct over_time_mark *other = mark->message ? NULL : replaceable(o);

		o->omitted++;
		if (other)
			*other = *mark;
		return 0;
	}
	if (!GROW(o->marks, o->n_marks, o->cap_marks))
		return -ENOMEM;
	o->marks[o->n_marks++] = *mark;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct over_time_mark *x = a, *y = b;

	if (x->s != y->s)
		return x->s < y->s ? -1 : 1;
	return (x->text.ix > y->text.ix) - (x->text.ix < y->text.ix);
}

void over_time_sort(struct over_time *o)
{
	if (o->n_marks)
		qsort(o->marks, o->n_marks, sizeof(*o->marks), by_time);
}

struct time_table *time_table_new(const char *const *names, uint32_t n_columns, uint32_t n_rows)
{
	struct time_table *t = calloc(1, sizeof(*t));
	bool ok = t != NULL;

	if (!ok)
		return NULL;
	t->n_rows = n_rows;
	t->times_s = calloc(n_rows ? n_rows : 1, sizeof(*t->times_s));
	t->columns = calloc(n_columns ? n_columns : 1, sizeof(*t->columns));
	ok = t->times_s && t->columns;
	for (uint32_t c = 0; ok && c < n_columns; c++) {
		t->n_columns++;
		t->columns[c].name = strdup(names[c]);
		t->columns[c].values = calloc(n_rows ? n_rows : 1, sizeof(double));
		ok = t->columns[c].name && t->columns[c].values;
		for (uint32_t i = 0; ok && i < n_rows; i++)
			t->columns[c].values[i] = NAN;
	}
	if (ok)
		return t;
	time_table_free(t);
	return NULL;
}
