/*
 * Massif's output (valgrind 3.19, massif/ms_main.c), for ms_print and massif-visualizer: bytes in use, by who
 * allocated them. A profile of sites (model/alloc_site.h), or of anything else that has peak_space and inuse_space, gives
 * a snapshot of nothing at the start, the peak, and the end of the run; between these, where what was held over time is
 * known (moments.h), up to 100 snapshots, each tenth of them by stack, as massif's own --detailed-freq does. Any other
 * profile gives one, of the value that is shown, which is in bytes. Heap administration and stacks, which massif has
 * beside it, are not measured and 0. Places below 1 % are joined, as massif's own --threshold does.
 */
#include "base/saturate.h"
#include "model/about.h"
#include "model/alloc_site.h"
#include "render/formats/caller_tree.h"
#include "render/formats/moments.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t threshold_percent = 1;
enum { DETAILED_FREQUENCY = 10 };

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
			small_bytes = add_saturating(small_bytes, m->tree->nodes[c].value);
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

static void put_figures(struct massif *m, int64_t time_ns, int64_t bytes, const char *tree)
{
	strbuf_printf(&m->text,
		      "#-----------\nsnapshot=%" PRIu32 "\n#-----------\ntime=%" PRId64
		      "\nmem_heap_B=%" PRId64
		      "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		      m->n_snapshots++, time_ns / 1000000, bytes, bytes ? tree : "empty");
}

/* By stack: a value of a profile. */
static int put_tree(struct massif *m, int64_t time_ns, const struct profile *p, int type,
		    const char *kind)
{
	_cleanup_(caller_tree_free) struct caller_tree tree = { 0 };

	if (caller_tree_build(p, (uint32_t)type, &tree) < 0)
		return -ENOMEM;
	put_figures(m, time_ns, tree.nodes[0].value, kind);
	m->tree = &tree;
	if (tree.nodes[0].value)
		put_node(m, 0, 0);
	m->tree = NULL;
	return strbuf_oom(&m->text) ? -ENOMEM : 0;
}

static int put_moment(struct massif *m, const struct moments *all, uint32_t i, const char *kind)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r;

	if (!kind) {
		put_figures(m, all->all[i].ns, all->all[i].bytes, "empty");
		return 0;
	}
	r = moments_profile(all, i, &p);
	return r < 0 ? r : put_tree(m, all->all[i].ns, p, 0, kind);
}

/* What is held at the start, over time, at the peak and at the end. */
static int put_run(struct massif *m, int peak, int live)
{
	int64_t end_ns = profile_get_meta(m->p)->duration_ns, peak_ns = 0;
	const char *peak_at = profile_about(m->p, ABOUT_PEAK, 0);
	double peak_s = peak_at ? strtod(peak_at, NULL) : 0;
	bool had_peak = false;
	struct moments moments;
	int r = moments_find(m->p, &moments);

	if (peak_s > 0 && peak_s < 1e9)
		peak_ns = (int64_t)(peak_s * 1e9);
	peak_ns = peak_ns < end_ns ? peak_ns : end_ns;
	put_figures(m, 0, 0, "empty");
	for (uint32_t i = 0; i < moments.n && r == 0; i++) {
		if (moments.all[i].ns >= end_ns)
			continue;
		if (!had_peak && moments.all[i].ns >= peak_ns) {
			r = put_tree(m, peak_ns, m->p, peak, "peak");
			had_peak = true;
		}
		if (r == 0)
			r = put_moment(m, &moments, i,
				       m->n_snapshots % DETAILED_FREQUENCY ? NULL : "detailed");
	}
	if (r == 0 && !had_peak)
		r = put_tree(m, peak_ns, m->p, peak, "peak");
	return r < 0 ? r : put_tree(m, end_ns, m->p, live, "detailed");
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
	int peak = profile_find_type(p, alloc_site_types[SITE_PEAK_BYTES].name);
	int live = profile_find_type(p, alloc_site_types[SITE_LIVE_BYTES].name);
	bool of_sites = opts->value_type < 0 && peak >= 0 && live >= 0;
	int r;

	if (!of_sites && strcmp(shown.unit, "bytes") != 0)
		return err_set(e, -EINVAL,
			       "massif has bytes, and %s is in %s; --value chooses another",
			       profile_type(p, shown.type)->name, shown.unit);
	put_header(&m, opts, &shown);
	r = of_sites ? put_run(&m, peak, live)
		     : put_tree(&m, profile_get_meta(p)->duration_ns, p, (int)shown.type, "peak");
	if (r == 0)
		sink_write(out, m.text.s, m.text.len);
	strbuf_free(&m.text);
	return r < 0 ? err_set(e, r, "out of memory for massif's file") : 0;
}
