#include "analyse/jump_lanes.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

struct jump {
	uint32_t from, to, low, high;
};

static int by_length(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;
	uint32_t n_x = x->high - x->low, n_y = y->high - y->low;

	return n_x != n_y ? (n_x > n_y ? 1 : -1) : (x->from > y->from) - (x->from < y->from);
}

static void put(struct jump_row *row, int column, const char *c)
{
	strcpy(row->columns[column], c);
}

static bool is(const struct jump_row *row, int column, const char *c)
{
	return strcmp(row->columns[column], c) == 0;
}

/* Along a row, from the corner in `column` to the instruction. */
static void put_along(struct jump_row *row, int column, bool arrives)
{
	for (int c = column + 1; c < JUMP_COLUMNS; c++)
		if (is(row, c, "│"))
			put(row, c, "┼");
		else if (is(row, c, "└"))
			put(row, c, "┴");
		else if (is(row, c, "┌"))
			put(row, c, "┬");
		else if (is(row, c, " "))
			put(row, c, "─");
	if (arrives)
		put(row, JUMP_COLUMNS - 1, "►");
}

/* Is the lane free from one end to the other? Jumps to one place may share its corner's row, not its lane. */
static bool is_free(const struct jump_row *rows, const struct jump *j, int column)
{
	for (uint32_t i = j->low; i <= j->high; i++)
		if (!is(&rows[i], column, " ") && !is(&rows[i], column, "─"))
			return false;
	return is(&rows[j->low], column, " ") && is(&rows[j->high], column, " ");
}

static void draw(struct jump_row *rows, const struct jump *j)
{
	for (int lane = 0; lane < JUMP_LANES; lane++) {
		int column = JUMP_COLUMNS - 3 - 2 * lane;

		if (column < 0 || !is_free(rows, j, column))
			continue;
		for (uint32_t i = j->low + 1; i < j->high; i++)
			put(&rows[i], column, is(&rows[i], column, "─") ? "┼" : "│");
		put(&rows[j->low], column, "┌");
		put(&rows[j->high], column, "└");
		put_along(&rows[j->from], column, false);
		put_along(&rows[j->to], column, true);
		return;
	}
}

static uint32_t columns_used(const struct jump_row *rows, uint32_t n)
{
	uint32_t first = JUMP_COLUMNS;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t c = 0; c < first; c++)
			if (!is(&rows[i], (int)c, " "))
				first = c;
	return JUMP_COLUMNS - first;
}

struct jump_row *jump_lanes(const struct code_text *code, uint32_t *ret_columns)
{
	_cleanup_(freep) struct jump *jumps = calloc(code->n + 1ul, sizeof(*jumps));
	struct jump_row *rows = calloc(code->n + 1ul, sizeof(*rows));
	uint32_t n = 0;

	if (!jumps || !rows) {
		free(rows);
		return NULL;
	}
	for (uint32_t i = 0; i < code->n; i++) {
		uint32_t to = code->instructions[i].jump - 1;

		for (int c = 0; c < JUMP_COLUMNS; c++)
			put(&rows[i], c, " ");
		if (code->instructions[i].jump && to != i)
			jumps[n++] = (struct jump){ i, to, i < to ? i : to, i < to ? to : i };
	}
	if (n)
		qsort(jumps, n, sizeof(*jumps), by_length);
	for (uint32_t i = 0; i < n; i++)
		draw(rows, &jumps[i]);
	*ret_columns = columns_used(rows, code->n);
	return rows;
}
