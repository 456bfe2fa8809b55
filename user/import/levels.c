#include "import/levels.h"

#include "base/strbuf.h"
#include "model/over_time.h"
#include "model/sample_times.h"

#include <errno.h>
#include <math.h>

struct levels {
	struct sample_times *gains;
};

struct levels *levels_new(uint64_t bin_ns)
{
	struct levels *l = calloc(1, sizeof(*l));

	if (l)
		l->gains = sample_times_new(&(uint32_t){ 0 }, 1, bin_ns, SAMPLE_TIMES_MAX);
	if (l && l->gains)
		return l;
	levels_free(l);
	return NULL;
}

void levels_free(struct levels *l)
{
	if (!l)
		return;
	sample_times_free(l->gains);
	free(l);
}

int levels_add(struct levels *l, uint32_t site, uint64_t ns, int64_t bytes)
{
	return sample_times_add(l->gains, site, ns, &bytes);
}

uint64_t levels_bin_ns(const struct levels *l)
{
	return sample_times_bin_ns(l->gains);
}

struct area {
	uint32_t site;
	double area;
};

/* Bytes x bins. */
static double area_of(const struct levels *l, uint32_t site, uint32_t n_bins)
{
	struct sample_time_reader at = sample_times_read(l->gains, site);
	struct sample_time entry;
	double area = 0;

	while (sample_times_next(&at, &entry))
		area += (double)entry.values[0] * (double)(n_bins - entry.bin);
	return area;
}

static int compare_areas(const void *a, const void *b)
{
	const struct area *x = a, *y = b;

	if (x->area != y->area)
		return x->area > y->area ? -1 : 1;
	return (x->site > y->site) - (x->site < y->site);
}

/* "main;grow;malloc" */
static void add_path(struct strbuf *text, const struct dict *d, stack_id stack)
{
	const struct location *l = dict_location_get(d, dict_stack_leaf(d, stack));
	stack_id parent = dict_stack_parent(d, stack);

	if (dict_stack_depth(d, parent)) {
		add_path(text, d, parent);
		strbuf_putc(text, ';');
	}
	for (uint32_t i = l->n_lines; i-- > 0;) {
		const char *name = dict_str(d, l->lines[i].function);

		strbuf_puts(text, *name ? name : "[unknown]");
		if (i)
			strbuf_putc(text, ';');
	}
	if (!l->n_lines)
		strbuf_puts(text, "[unknown]");
}

/* What a site held at the end of each row is added to `column`. */
static void add_levels(const struct levels *l, uint32_t site, const struct time_table *t,
		       uint32_t bins_a_row, double *column)
{
	struct sample_time_reader at = sample_times_read(l->gains, site);
	struct sample_time entry;
	uint32_t row = 0;
	double held = 0;

	while (sample_times_next(&at, &entry)) {
		for (; row < entry.bin / bins_a_row; row++)
			column[row] += held;
		held += (double)entry.values[0];
	}
	for (; row < t->n_rows; row++)
		column[row] += held;
}

static int make_columns(const struct levels *l, const struct dict *d, const stack_id *stacks,
			const struct area *areas, uint32_t n_sites, uint32_t bins_a_row,
			struct time_table *t)
{
	for (uint32_t c = 0; c < t->n_columns; c++) {
		struct strbuf name = { 0 };

		for (uint32_t i = 0; i < t->n_rows; i++)
			t->columns[c].values[i] = 0;
		if (c + 1 == t->n_columns) {
			for (uint32_t i = c; i < n_sites; i++)
				add_levels(l, areas[i].site, t, bins_a_row, t->columns[c].values);
			continue;
		}
		add_levels(l, areas[c].site, t, bins_a_row, t->columns[c].values);
		if (dict_stack_depth(d, stacks[areas[c].site]))
			add_path(&name, d, stacks[areas[c].site]);
		else
			strbuf_puts(&name, "[unknown]");
		free(t->columns[c].name);
		t->columns[c].name = strbuf_take(&name);
		if (!t->columns[c].name)
			return -ENOMEM;
	}
	return 0;
}

int levels_table(const struct levels *l, const struct dict *d, const stack_id *stacks,
		 uint32_t n_sites, struct time_table **ret_table)
{
	const char *names[LEVELS_COLUMNS + 1];
	uint32_t n_bins = sample_times_n_bins(l->gains), n_columns, rows, bins_a_row;
	double bin_s = (double)sample_times_bin_ns(l->gains) / 1e9;
	_cleanup_(freep) struct area *areas = NULL;
	_cleanup_(time_table_freep) struct time_table *t = NULL;

	*ret_table = NULL;
	if (!n_bins || !n_sites)
		return 0;
	areas = calloc(n_sites, sizeof(*areas));
	if (!areas)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_sites; i++)
		areas[i] = (struct area){ i, area_of(l, i, n_bins) };
	qsort(areas, n_sites, sizeof(*areas), compare_areas);
	n_columns = n_sites < LEVELS_COLUMNS ? n_sites : LEVELS_COLUMNS;
	for (uint32_t c = 0; c <= n_columns; c++)
		names[c] = "OTHER";
	bins_a_row = (n_bins - 1) / LEVELS_ROWS + 1;
	rows = (n_bins - 1) / bins_a_row + 1;
	t = time_table_new(names, n_columns + 1, rows);
	if (!t || make_columns(l, d, stacks, areas, n_sites, bins_a_row, t) < 0)
		return -ENOMEM;
	/* A row has the time at which its first bin begins: a table begins with its run. */
	for (uint32_t i = 0; i < rows; i++)
		t->times_s[i] = (double)i * bins_a_row * bin_s;
	*ret_table = TAKE_PTR(t);
	return 0;
}
