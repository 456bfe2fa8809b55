/* What tests of readers begin with: a dict, a text read by a reader, and values of stacks by their names. */
#ifndef TESTS_IMPORT_FIXTURE_H
#define TESTS_IMPORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/readers.h"
#include "model/over_time.h"
#include "model/sample_times.h"

static struct dict *d;
static struct import_info info;
static struct err e;

static int setup(void **state)
{
	d = dict_new();
	memset(&info, 0, sizeof(info));
	memset(&e, 0, sizeof(e));
	return 0;
}

static int teardown(void **state)
{
	dict_free(d);
	return 0;
}

#define FACT(fact) cmocka_unit_test_setup_teardown(fact, setup, teardown)

/* NULL: refused, with a sentence in `e`. */
static struct profile *read_text(const char *text, const char *format)
{
	struct profile *p = NULL;
	int r = import_bytes(d, bytes_of(text, strlen(text)), "x", NULL, &p, &info, &e);

	assert_int_equal(r == 0, p != NULL);
	assert_int_equal(r < 0, e.msg[0] != '\0');
	if (p)
		assert_string_equal(info.format, format);
	return p;
}

/* "main;grow;inl" of a stack: root first, inlined calls as frames. */
static inline const char *path_of(stack_id stack)
{
	static char text[1000];
	char rest[1000];

	text[0] = '\0';
	for (; dict_stack_depth(d, stack); stack = dict_stack_parent(d, stack)) {
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, stack));

		for (uint32_t i = 0; i < l->n_lines; i++) {
			strcpy(rest, text);
			snprintf(text, sizeof(text), "%.200s%s%.700s",
				 dict_str(d, l->lines[i].function), *rest ? ";" : "", rest);
		}
	}
	return text;
}

/* The value of all samples with that path. */
static inline int64_t value_of(const struct profile *p, const char *path, const char *type)
{
	int at = profile_find_type(p, type);
	int64_t sum = 0;

	assert_true(at >= 0);
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (strcmp(path_of(s.stack), path) == 0)
			sum += s.values[at];
	}
	return sum;
}

static inline int64_t total_of(const struct profile *p, const char *type)
{
	int at = profile_find_type(p, type);

	assert_true(at >= 0);
	return profile_total(p, (uint32_t)at);
}

static inline const struct time_table *series_of(const struct profile *p, const char *id)
{
	const struct over_time *o = profile_over_time(p);

	for (uint32_t i = 0; o && i < o->n_series; i++)
		if (strcmp(o->series[i].id, id) == 0)
			return o->series[i].table;
	return NULL;
}

static inline double last_of(const struct time_table *t, const char *column)
{
	for (uint32_t c = 0; c < t->n_columns; c++)
		if (strcmp(t->columns[c].name, column) == 0)
			return t->columns[c].values[t->n_rows - 1];
	fail_msg("no column %s", column);
	return 0;
}

#endif
