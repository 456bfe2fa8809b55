#include "screen/help.h"
#include "base/cleanup.h"

#include <string.h>

struct help {
	struct view view;      /* first */
	const struct view *of; /* below it */
};

static const struct column columns[] = {
	{ "KEY", 14, 0, "", true },
	{ "", 0, 0, "", true },
};

static const struct help *help_of(const struct view *v)
{
	return (const struct help *)v;
}

static bool is_for(const struct help *h, const struct key_row *row)
{
	return row->in & h->of->ops->kind;
}

static uint32_t n_keys(const struct help *h)
{
	uint32_t n = 0;

	for (const struct key_row *row = key_rows; row->name; row++)
		n += is_for(h, row);
	return n;
}

/* Keys, a line between, columns. */
static int arrange(struct view *v)
{
	v->n_rows = n_keys(help_of(v)) +
		    (help_of(v)->of->n_columns ? 1 + help_of(v)->of->n_columns : 0);
	return 0;
}

static struct view_row row(const struct view *v, uint32_t i)
{
	return (struct view_row){ .key = i + 1, .fold = FOLD_LEAF };
}

static void cell(const struct view *v, uint32_t i, uint32_t column, struct strbuf *to)
{
	const struct help *h = help_of(v);
	uint32_t keys = n_keys(h);

	if (i == keys) {
		strbuf_puts(to, column ? "" : "COLUMN");
		return;
	}
	if (i > keys) {
		const struct column *c = &h->of->columns[i - keys - 1];

		strbuf_puts(to, column ? c->help : c->title);
		return;
	}
	for (const struct key_row *k = key_rows; k->name; k++)
		if (is_for(h, k) && i-- == 0)
			strbuf_puts(to, column ? k->help : k->name);
}

static void title(const struct view *v, struct strbuf *to)
{
	strbuf_printf(to, "keys: %s", help_of(v)->of->ops->name);
}

static void help_free(struct view *v)
{
	free(v);
}

static const struct view_ops ops = {
	.kind = IN_HELP,
	.name = "Help",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(*columns),
	.sort = UINT32_MAX,
	.arrange = arrange,
	.row = row,
	.cell = cell,
	.title = title,
	.free = help_free,
};

struct view *help_new(const struct view *of)
{
	struct help *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	view_init(&h->view, &ops);
	h->of = of;
	return &h->view;
}
