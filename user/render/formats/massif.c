/*
 * Massif's output (valgrind 3.19, massif/ms_main.c), for ms_print and massif-visualizer: bytes in use, by who
 * allocated them. A profile of sites (model/alloc_site.h) gives three snapshots: nothing at the start, the peak, and
 * the end of the run; any other profile one, of the value that is shown, which is in bytes. Heap administration and
 * stacks, which massif has beside it, are not measured and 0. Places below 1 % are joined, as massif's own
 * --threshold does.
 */
#include "model/about.h"
#include "model/alloc_site.h"
#include "render/formats/caller_tree.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t threshold_percent = 1;

struct massif {
	const struct profile *p;
	struct strbuf text;
	const struct caller_tree *tree;
	uint32_t n_snapshots;
};

static bool is_small(const struct massif *m, const struct caller_node *n)
{
	return (double)n->value * 100 < (double)m->tree->nodes[0].value * (double)threshold_percent;
}

static void put_label(struct massif *m, const struct code_place *at)
{
	const struct dict *d = profile_dict(m->p);
	const char *file = dict_str(d, at->function.file), *name = dict_str(d, at->function.name);

	/* "[5 places, all below massif's threshold (1.00%)]": read from such a file. */
	if (!at->vaddr && name[0] == '[' && strstr(name, " below massif's threshold (")) {
		strbuf_puts(&m->text, "in ");
		text_add(&m->text, TEXT_PLAIN, name + 1, UINT32_MAX);
		/* Without the bracket at its end. */
		if (m->text.len)
			m->text.s[--m->text.len] = '\0';
		return;
	}
	strbuf_printf(&m->text, "0x%" PRIX64 ": ", at->vaddr);
	text_add(&m->text, TEXT_PLAIN, dict_str(d, at->function.name), UINT32_MAX);
	if (*file) {
		const char *slash = strrchr(file, '/');

		strbuf_puts(&m->text, " (");
		text_add(&m->text, TEXT_PLAIN, slash && slash[1] ? slash + 1 : file, UINT32_MAX);
		strbuf_printf(&m->text, ":%" PRIu32 ")", at->line);
	} else if (*at->function.module) {
		strbuf_puts(&m->text, " (in ");
		text_add(&m->text, TEXT_PLAIN, at->function.module, UINT32_MAX);
		strbuf_putc(&m->text, ')');
	}
}

/* A line of the tree has one more space than that of its caller. */
static void put_node(struct massif *m, uint32_t node, uint32_t depth)
{
	const struct caller_node *n = &m->tree->nodes[node];
	uint32_t large = 0, small = 0;
	int64_t small_bytes = 0;

	for (uint32_t c = n->first_child; c; c = m->tree->nodes[c].next_sibling)
		if (is_small(m, &m->tree->nodes[c])) {
			small++;
			small_bytes += m->tree->nodes[c].value;
		} else {
			large++;
		}
	strbuf_printf(&m->text, "%*sn%" PRIu32 ": %" PRId64 " ", (int)depth, "",
		      large + (small > 0), n->value);
	if (node)
		put_label(m, &n->place);
	else
		strbuf_puts(&m->text,
			    "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
	strbuf_putc(&m->text, '\n');
	for (uint32_t c = n->first_child; c; c = m->tree->nodes[c].next_sibling)
		if (!is_small(m, &m->tree->nodes[c]))
			put_node(m, c, depth + 1);
	if (small)
		strbuf_printf(&m->text,
			      "%*sn0: %" PRId64 " in %" PRIu32
			      " place%s, %sbelow massif's threshold (%" PRId64 ".00%%)\n",
			      (int)depth + 1, "", small_bytes, small, small == 1 ? "" : "s",
			      small == 1 ? "" : "all ", threshold_percent);
}

/* `type` < 0: nothing yet. */
static int put_snapshot(struct massif *m, int64_t time_ns, int type, const char *kind)
{
	_cleanup_(caller_tree_free) struct caller_tree tree = { 0 };

	if (type >= 0 && caller_tree_build(m->p, (uint32_t)type, &tree) < 0)
		return -ENOMEM;
	strbuf_printf(&m->text,
		      "#-----------\nsnapshot=%" PRIu32 "\n#-----------\ntime=%" PRId64
		      "\nmem_heap_B=%" PRId64
		      "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		      m->n_snapshots++, time_ns / 1000000, type < 0 ? 0 : tree.nodes[0].value,
		      type < 0 || !tree.nodes[0].value ? "empty" : kind);
	m->tree = &tree;
	if (type >= 0 && tree.nodes[0].value)
		put_node(m, 0, 0);
	m->tree = NULL;
	return strbuf_oom(&m->text) ? -ENOMEM : 0;
}

static void put_header(struct massif *m, const struct render_opts *opts, const struct shown *shown)
{
	struct strbuf title = { 0 };

	title_who_add(&title, m->p, opts, shown, UINT32_MAX);
	strbuf_puts(&m->text, "desc: memscope\ncmd: ");
	text_add(&m->text, TEXT_PLAIN, title.s && *title.s ? title.s : "unknown", UINT32_MAX);
	strbuf_puts(&m->text, "\ntime_unit: ms\n");
	m->text.oom |= title.oom;
	strbuf_free(&title);
}

int massif_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		 struct err *e)
{
	struct massif m = { .p = p };
	struct shown shown = shown_pick(p, opts->value_type);
	int64_t end_ns = profile_get_meta(p)->duration_ns;
	const char *peak_at = profile_about(p, ABOUT_PEAK, 0);
	int peak = profile_find_type(p, alloc_site_types[SITE_PEAK_BYTES].name);
	int live = profile_find_type(p, alloc_site_types[SITE_LIVE_BYTES].name);
	bool of_sites = opts->value_type < 0 && peak >= 0 && live >= 0;
	int r = 0;

	if (!of_sites && strcmp(shown.unit, "bytes") != 0)
		return err_set(e, -EINVAL,
			       "massif has bytes, and %s is in %s; --value chooses another",
			       profile_type(p, shown.type)->name, shown.unit);
	put_header(&m, opts, &shown);
	if (of_sites) {
		double peak_s = peak_at ? strtod(peak_at, NULL) : 0;
		int64_t peak_ns = peak_s > 0 && peak_s < 1e9 ? (int64_t)(peak_s * 1e9) : 0;

		r = put_snapshot(&m, 0, -1, "empty");
		if (r == 0)
			r = put_snapshot(&m, peak_ns < end_ns ? peak_ns : end_ns, peak, "peak");
		if (r == 0)
			r = put_snapshot(&m, end_ns, live, "detailed");
	} else {
		r = put_snapshot(&m, end_ns, (int)shown.type, "peak");
	}
	if (r == 0)
		sink_write(out, m.text.s, m.text.len);
	strbuf_free(&m.text);
	return r < 0 ? err_set(e, r, "out of memory for massif's file") : 0;
}
