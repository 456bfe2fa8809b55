#include "base/strbuf.h"
#include "model/about.h"
#include "render/formats/text.h"
#include "render/formats/writers.h"
#include "render/shown.h"

#include <errno.h>
#include <inttypes.h>

/* As stackcollapse-perf.pl marks and flamegraph.pl colours them. */
static const char *suffix(enum frame_kind k)
{
	return k == FRAME_KERNEL ? "_[k]" : k == FRAME_INLINED ? "_[i]" : "";
}

/*
 * The path from the root to the node being visited, as text; `ends[d]` is how long it is with d
 * frames, so that going up is cutting it.
 */
struct path {
	struct strbuf text;
	size_t *ends;
};

static void path_fini(struct path *p)
{
	strbuf_free(&p->text);
	free(p->ends);
}

static void path_set(struct path *p, const struct frame_node *n)
{
	p->text.len = p->ends[n->depth - 1];
	if (n->depth > 1)
		strbuf_putc(&p->text, ';');
	text_add(&p->text, TEXT_FOLDED, *n->name ? n->name : "[unknown]", UINT32_MAX);
	strbuf_puts(&p->text, suffix(n->kind));
	p->ends[n->depth] = p->text.len;
}

/* Two counts, before and after, as difffolded.pl writes them. */
static void write_sides(struct path *p, const struct shown *shown, const struct frame_sides *s,
			struct sink *out)
{
	int64_t before = shown_number(shown, s->self[0]), after = shown_number(shown, s->self[1]);

	if (!before && !after)
		return;
	sink_write(out, p->text.s, p->text.len);
	sink_printf(out, " %" PRId64 " %" PRId64 "\n", before, after);
}

static void write_node(struct path *p, const struct shown *shown, const struct frame_tree *tree,
		       uint32_t node, struct sink *out)
{
	const struct frame_node *n = &tree->nodes[node];
	int64_t number = shown_number(shown, n->self);

	path_set(p, n);
	if (tree->sides) {
		write_sides(p, shown, &tree->sides[node], out);
		return;
	}
	if (!number)
		return;
	sink_write(out, p->text.s, p->text.len);
	sink_printf(out, " %" PRId64 "\n", number);
}

static int write_tree(const struct frame_tree *tree, const struct shown *shown, struct sink *out)
{
	_cleanup_(path_fini) struct path path = { 0 };
	uint32_t node = tree->nodes[0].first_child;

	path.ends = calloc(tree->max_depth + 1ul, sizeof(*path.ends));
	if (!path.ends)
		return -ENOMEM;
	while (node) {
		write_node(&path, shown, tree, node, out);
		if (tree->nodes[node].first_child) {
			node = tree->nodes[node].first_child;
			continue;
		}
		while (node && !tree->nodes[node].next_sibling)
			node = tree->nodes[node].parent;
		node = tree->nodes[node].next_sibling;
	}
	return strbuf_oom(&path.text) ? -ENOMEM : 0;
}

/*
 * What the recording was given to be known by, and only that: the format has no comments, and readers differ
 * in what they say of a line that is no stack. It does not end in a number, so it is none to any of them.
 */
static void write_about(const struct profile *p, struct sink *out)
{
	static const enum about lines[] = { ABOUT_TITLE, ABOUT_LABEL };
	const char *line;

	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; (line = profile_about(p, lines[k], i)); i++) {
			struct strbuf b = { 0 };

			text_add(&b, TEXT_PLAIN, line, UINT32_MAX);
			sink_printf(out, "# %s%s #\n", about_prefix(lines[k]), b.s ? b.s : "");
			strbuf_free(&b);
		}
	}
}

int folded_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		 struct err *e)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	struct shown shown = shown_pick(p, opts->value_type);
	int r;

	r = frame_tree_build(p,
			     &(struct frame_tree_opts){
				     .type = shown.type,
				     .by = opts->by,
				     .root_comm = !opts->no_comm,
				     .before = opts->before,
				     .before_type = (uint32_t)opts->before_type,
			     },
			     &tree);
	if (r == 0) {
		write_about(p, out);
		r = write_tree(tree, &shown, out);
	}
	return r < 0 ? err_set(e, r, "out of memory for folded stacks") : 0;
}
