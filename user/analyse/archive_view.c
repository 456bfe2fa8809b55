#include "analyse/archive_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_gap(struct archive_view *v, uint32_t before, int64_t from_ns, int64_t to_ns)
{
	struct archive_gap *more = reallocarray(v->gaps, v->n_gaps + 1ul, sizeof(*v->gaps));

	if (!more)
		return -ENOMEM;
	v->gaps = more;
	v->gaps[v->n_gaps++] = (struct archive_gap){ before, from_ns, to_ns };
	v->gaps_ns += to_ns - from_ns;
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct archive_folder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->name, y->name);
}

int archive_view_complete(struct archive_view *v)
{
	int64_t until_ns = INT64_MAX; /* everything before it is in some window */
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < v->n_rows; i++) {
		const struct archive_row *row = &v->rows[i];
		int64_t end_ns = row->end_ns ? row->end_ns : row->begin_ns;

		v->bytes += row->bytes;
		v->files += row->files;
		v->n_triggered += *row->trigger != '\0';
		if (*row->trigger)
			continue;
		if (until_ns != INT64_MAX && row->begin_ns - until_ns >= ARCHIVE_GAP_NS)
			r = add_gap(v, i, until_ns, row->begin_ns);
		if (until_ns == INT64_MAX || end_ns > until_ns)
			until_ns = end_ns;
	}
	if (v->n_folders)
		qsort(v->folders, v->n_folders, sizeof(*v->folders), by_bytes);
	return r;
}

static void free_all(char **list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void archive_view_fini(struct archive_view *v)
{
	free(v->rows);
	free(v->folders);
	free(v->gaps);
	free_all(v->missing, v->n_missing);
	free_all(v->damaged, v->n_damaged);
}
