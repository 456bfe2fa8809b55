/* memscope heap census: what the heap consists of. */
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/groups.h"

#include <errno.h>

static const struct answer_column columns[] = {
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "share", "share", ANSWER_PERCENT, 8 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "length", "length", ANSWER_COUNT, 0 },
	{ "known_by", "by", ANSWER_NAME, 8 },
	{ "type", "type", ANSWER_NAME, 0 },
	{ 0 },
}, site_columns[] = {
	{ "bytes", "bytes", ANSWER_BYTES, 0 },
	{ "share", "share", ANSWER_PERCENT, 8 },
	{ "objects", "objects", ANSWER_COUNT, 0 },
	{ "site", "allocated at", ANSWER_NAME, 0 },
	{ 0 },
};

int heap_census(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(groups_fini) struct groups found = { 0 };
	bool by_site = v->args->by == GROUPS_SITE;
	double all = 0;

	(void)what;
	if (by_site && !v->s->sites)
		return heap_no_sites(v, e);
	if (groups_find(v->s, (enum groups_by)v->args->by, &found) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < found.n; i++)
		all += (double)found.rows[i].bytes;
	answer_table(v->out, by_site ? "sites" : "types", by_site ? site_columns : columns);
	for (uint32_t i = 0; i < found.n && i < v->args->top; i++) {
		answer_cell(v->out, found.rows[i].bytes);
		answer_real(v->out, all > 0 ? 100 * (double)found.rows[i].bytes / all : 0);
		answer_cell(v->out, found.rows[i].objects);
		if (!by_site) {
			answer_cell(v->out,
				    found.rows[i].has_length ? found.rows[i].length : ANSWER_NONE);
			answer_text(v->out, type_by_name(found.rows[i].by));
		}
		answer_text(v->out, found.rows[i].name);
	}
	if (found.n > v->args->top)
		answer_say(v->out, "%s more rows", unit_count(found.n - v->args->top).s);
	return 0;
}
