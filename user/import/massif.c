/*
 * Massif's output (valgrind, massif/ms_main.c; ms_print.in reads it):
 *
 *   desc: …        cmd: ./prog        time_unit: i
 *   #-----------
 *   snapshot=5
 *   #-----------
 *   time=2459341
 *   mem_heap_B=624998       mem_heap_extra_B=202       mem_stacks_B=0        (a line each)
 *   heap_tree=detailed                                                     or empty, or peak
 *   n3: 624998 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 *    n1: 550000 0x1095BC: inl (t.cpp:7)                who called it, one space deeper; n1: how many callers follow
 *     n0: 550000 0x109175: main (t.cpp:12)
 *    n0: 2226 in 5 places, all below massif's threshold (1.00%)
 *
 * What a line has beyond its callers is its own: of a path that was cut (--depth, --threshold). Lines of one address that follow each
 * other are inlined calls. The profile has two values: what was in use at the peak (of the snapshot that is marked as such,
 * else of the largest one), and in the last snapshot that has a tree; beside them the heap's administration and the stacks, which
 * ms_print adds to the total, as roots of their own. All detailed snapshots make the table of what stacks held over time,
 * and all snapshots that of the totals. Time is in instructions, milliseconds or allocated bytes (time_unit): of the first, 10^9
 * are a second here, of the last 10^6.
 */
#include "base/chunks.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "import/levels.h"
#include "import/readers.h"
#include "import/scan.h"
#include "import/valgrind_place.h"
#include "model/about.h"
#include "model/over_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_DEPTH = 1024, MAX_SNAPSHOTS = 100000 };

enum { PEAK_SPACE, INUSE_SPACE, N_VALUES };

static const struct value_type massif_types[N_VALUES] = {
	{ "peak_space", "bytes" },
	{ "inuse_space", "bytes" },
};

/* A stack of the heap's tree: what it has in the snapshot that is read, in the one before, and in those that are kept. */
struct massif_site {
	stack_id stack;
	uint32_t number, snapshot;
	int64_t now, before, peak;
	UT_hash_handle hh;
};

/* A line of the tree on the way from the root to the line that was read last. */
struct massif_node {
	int64_t left; /* of its value, what no caller has */
	uint64_t kids, seen;
	struct valgrind_place place;
};

struct massif_total {
	uint64_t ns;
	int64_t heap, extra, stacks;
};

struct massif {
	struct dict *d;
	struct import_info *info;
	char command[256], unit;
	struct chunks totals, sites;
	struct massif_site *by_stack;
	struct levels *levels;
	struct massif_node nodes[MAX_DEPTH];
	const struct valgrind_place *places[MAX_DEPTH];
	location_id frames[MAX_DEPTH];
	struct line lines[MAX_DEPTH];
	uint32_t depth; /* nodes that are open: of the tree */
	bool in_tree, is_peak, any_peak, ours;
	uint32_t n_trees;
	struct massif_total now, peak, last;
	int64_t peak_bytes;
	uint64_t bad;
};

static void massif_fini(struct massif *m)
{
	HASH_CLEAR(hh, m->by_stack);
	chunks_free(&m->totals);
	chunks_free(&m->sites);
	levels_free(m->levels);
}

bool massif_recognise(struct bytes data)
{
	struct bytes line;

	/* As a file begins that others wrote: descriptions may be missing. */
	for (int i = 0; i < 3 && bytes_line(&data, &line); i++) {
		if (i == 0 && !(line.len > 5 && memcmp(line.data, "desc:", 5) == 0))
			return false;
		if (i == 1 && !(line.len > 4 && memcmp(line.data, "cmd:", 4) == 0))
			return false;
		if (i == 2)
			return line.len > 10 && memcmp(line.data, "time_unit:", 10) == 0;
	}
	return false;
}

/* --- the tree --------------------------------------------------------------------------------- */

static struct massif_site *site_of(struct massif *m, stack_id stack)
{
	struct massif_site *s;

	HASH_FIND(hh, m->by_stack, &stack, sizeof(stack), s);
	if (s)
		return s;
	s = chunks_add(&m->sites);
	if (!s)
		return NULL;
	s->stack = stack;
	s->number = m->sites.n - 1;
	HASH_ADD(hh, m->by_stack, stack, sizeof(s->stack), s);
	return hash_added(s) ? s : NULL;
}

/* The open nodes as a stack: the first below the root is the leaf. */
static stack_id stack_here(struct massif *m)
{
	for (uint32_t i = 1; i < m->depth; i++)
		m->places[i - 1] = &m->nodes[i].place;
	return valgrind_stack(m->d, m->places, m->depth - 1, m->lines, m->frames);
}

/* Nodes from `depth` on have all of their callers. */
static int close_nodes(struct massif *m, uint32_t depth)
{
	for (; m->depth > depth; m->depth--) {
		struct massif_node *node = &m->nodes[m->depth - 1];
		struct massif_site *s;

		m->bad += node->seen != node->kids;
		if (node->left <= 0)
			continue;
		s = site_of(m, stack_here(m));
		if (!s)
			return -ENOMEM;
		if (s->snapshot != m->n_trees)
			s->now = 0;
		s->snapshot = m->n_trees;
		s->now += node->left;
	}
	return 0;
}

/* A place, or "in 5 places, all below massif's threshold (1.00%)", which goes by that. */
static void set_place(struct massif *m, struct massif_node *node, struct bytes label)
{
	char name[128];

	if (label.len <= 3 || memcmp(label.data, "in ", 3) != 0) {
		node->place = valgrind_place(m->d, label);
		return;
	}
	snprintf(name, sizeof(name), "[%.*s]", (int)(label.len < 100 ? label.len - 3 : 97),
		 (const char *)label.data + 3);
	node->place = (struct valgrind_place){ .line.function = dict_string(m->d, name) };
}

/* " n1: 550000 0x1095BC: inl (t.cpp:7)". False: it is no such line. */
static bool take_node(struct massif *m, struct bytes line, int *ret_error)
{
	uint32_t depth = 0;
	int64_t kids, value;
	struct massif_node *node;

	while (line.len && line.data[0] == ' ') {
		bytes_skip(&line, 1);
		depth++;
	}
	if (!line.len || line.data[0] != 'n' || depth > m->depth || depth >= MAX_DEPTH)
		return false;
	bytes_skip(&line, 1);
	if (!scan_number(&line, &kids) || kids < 0 || !scan_text(&line, ":") ||
	    !scan_number(&line, &value) || value < 0)
		return false;
	*ret_error = close_nodes(m, depth);
	if (*ret_error < 0)
		return false;
	if (depth) {
		m->nodes[depth - 1].left -= value;
		m->nodes[depth - 1].seen++;
	}
	node = &m->nodes[depth];
	node->left = value;
	node->kids = (uint64_t)kids;
	node->seen = 0;
	set_place(m, node, scan_trim(line));
	m->depth = depth + 1;
	return true;
}

/* --- snapshots -------------------------------------------------------------------------------- */

/* Behind its last line: what stacks gained since the tree before, and whether it is the peak. */
static int end_tree(struct massif *m)
{
	int64_t all = m->now.heap + m->now.extra + m->now.stacks;
	bool keep;
	int r;

	if (!m->in_tree)
		return 0;
	m->in_tree = false;
	r = close_nodes(m, 0);
	keep = m->is_peak || (!m->any_peak && all >= m->peak_bytes);
	m->any_peak |= m->is_peak;
	if (keep) {
		m->peak = m->now;
		m->peak_bytes = all;
	}
	m->last = m->now;
	for (uint32_t i = 0; r == 0 && i < m->sites.n; i++) {
		struct massif_site *s = chunks_at(&m->sites, i);

		if (s->snapshot != m->n_trees)
			s->now = 0;
		if (s->now != s->before)
			r = levels_add(m->levels, i, m->now.ns, s->now - s->before);
		s->before = s->now;
		if (keep)
			s->peak = s->now;
	}
	return r;
}

static int end_snapshot(struct massif *m)
{
	int r = end_tree(m);
	struct massif_total *t;

	if (r < 0 || !m->now.ns)
		return r;
	t = m->totals.n < MAX_SNAPSHOTS ? chunks_add(&m->totals) : NULL;
	if (!t)
		return m->totals.n < MAX_SNAPSHOTS ? -ENOMEM : 0;
	*t = m->now;
	t->ns--;
	return 0;
}

static bool take_field(struct bytes line, const char *name, int64_t *ret)
{
	return scan_text(&line, name) && scan_number(&line, ret) && *ret >= 0;
}

/* As seconds of 10^9; one more, so that 0 is "none yet". */
static uint64_t time_of(const struct massif *m, int64_t time)
{
	int64_t unit = m->unit == 'm' ? 1000000 : m->unit == 'B' ? 1000 : 1;

	return (time < INT64_MAX / 1000001 ? (uint64_t)(time * unit) : INT64_MAX - 1) + 1;
}

static int take_line(struct massif *m, struct bytes line)
{
	int64_t number = 0;
	int r = 0;

	if (!line.len || line.data[0] == '#')
		return 0;
	if (m->in_tree && take_node(m, line, &r))
		return 0;
	if (r < 0)
		return r;
	if (take_field(line, "snapshot=", &number)) {
		r = end_snapshot(m);
		m->now = (struct massif_total){ 0 };
	} else if (take_field(line, "time=", &number)) {
		m->now.ns = time_of(m, number);
	} else if (scan_text(&line, "heap_tree=")) {
		m->is_peak = scan_text(&line, "peak");
		m->in_tree = m->is_peak || scan_text(&line, "detailed");
		m->n_trees += m->in_tree;
		m->depth = 0;
	} else if (scan_text(&line, "cmd:")) {
		line = scan_trim(line);
		snprintf(m->command, sizeof(m->command), "%.*s",
			 (int)(line.len < 255 ? line.len : 255), (const char *)line.data);
	} else if (scan_text(&line, "time_unit:")) {
		line = scan_trim(line);
		/* "i", "ms" or "B" */
		m->unit = line.len ? (char)line.data[0] : 'i';
	} else if (!take_field(line, "mem_heap_B=", &m->now.heap) &&
		   !take_field(line, "mem_heap_extra_B=", &m->now.extra) &&
		   !take_field(line, "mem_stacks_B=", &m->now.stacks)) {
		m->bad += !scan_text(&line, "desc:");
		m->ours |= scan_text(&line, "memscope");
	}
	return r;
}

/* --- what came of it -------------------------------------------------------------------------- */

/* What ms_print adds to the heap's bytes. */
static int add_beside(struct massif *m, struct profile *p, const char *name, int64_t peak,
		      int64_t last)
{
	struct line line = { .function = dict_string(m->d, name) };
	location_id at = dict_location_lines(m->d, (module_id){ 0 }, 0, &line, 1);

	if (!peak && !last)
		return 0;
	return profile_add(p, dict_stack(m->d, &at, 1), (labels_id){ 0 },
			   (int64_t[]){ peak, last });
}

static int make_trend(struct massif *m, struct over_time *o)
{
	static const char *const names[] = { "live_bytes", "administration_bytes", "stacks_bytes" };
	struct time_table *t = time_table_new(names, 3, m->totals.n);

	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->totals.n; i++) {
		const struct massif_total *at = chunks_at(&m->totals, i);

		t->times_s[i] = (double)at->ns / 1e9;
		t->columns[0].values[i] = (double)at->heap;
		t->columns[1].values[i] = (double)at->extra;
		t->columns[2].values[i] = (double)at->stacks;
	}
	return over_time_add_series(o, "trend", "Memory", t);
}

static int make_over_time(struct massif *m, struct profile *p)
{
	_cleanup_(freep) stack_id *stacks = calloc(m->sites.n + 1ul, sizeof(*stacks));
	struct over_time *o = over_time_new();
	struct time_table *t = NULL;
	int r = o && stacks ? make_trend(m, o) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < m->sites.n; i++)
		stacks[i] = ((const struct massif_site *)chunks_at(&m->sites, i))->stack;
	if (r == 0)
		r = levels_table(m->levels, m->d, stacks, m->sites.n, &t);
	if (r == 0 && t)
		r = over_time_add_series(o, "live_series", "Live bytes by stack", t);
	profile_set_over_time(p, o);
	return r;
}

static int set_meta(const struct massif *m, struct profile *p)
{
	const struct massif_total *last = chunks_at(&m->totals, m->totals.n - 1);
	char target[300], peak[100];
	const char *comments[4] = { target, peak };

	/* What memscope writes there is a title, which begins with the target. */
	snprintf(target, sizeof(target), "%s%.*s", about_prefix(ABOUT_TARGET),
		 (int)(m->ours ? strcspn(m->command, ",") : strlen(m->command)), m->command);
	snprintf(peak, sizeof(peak), "%s%.6f s after the start", about_prefix(ABOUT_PEAK),
		 m->peak.ns ? (double)(m->peak.ns - 1) / 1e9 : 0);
	if (m->unit == 'i')
		comments[2] = "Times are instructions: 10^9 are shown as a second";
	else if (m->unit == 'B')
		comments[2] = "Times are allocated bytes: 10^6 are shown as a second";
	return profile_set_meta(p, &(struct profile_meta){ .duration_ns = (int64_t)last->ns,
							   .period_type = { "space", "bytes" },
							   .period = 1,
							   .default_type = PEAK_SPACE,
							   .comments = comments });
}

static int make_profile(struct massif *m, struct profile *p)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < m->sites.n; i++) {
		const struct massif_site *s = chunks_at(&m->sites, i);

		if (s->peak || s->now)
			r = profile_add(p, s->stack, (labels_id){ 0 },
					(int64_t[]){ s->peak, s->now });
	}
	if (r == 0)
		r = add_beside(m, p, "[heap administration]", m->peak.extra, m->last.extra);
	if (r == 0)
		r = add_beside(m, p, "[stacks]", m->peak.stacks, m->last.stacks);
	if (r == 0)
		r = set_meta(m, p);
	if (r == 0)
		r = make_over_time(m, p);
	return r;
}

static void note_damage(struct massif *m, const struct input *in)
{
	import_note_fault(in, m->info);
	if (!m->info->damage[0] && !input_line_whole(in))
		snprintf(m->info->damage, sizeof(m->info->damage),
			 "it ends within line %" PRIu64
			 ", which was left out; the %u snapshots before it were kept",
			 input_n_lines(in), m->totals.n);
}

int massif_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		struct profile **ret_profile, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(d, massif_types, N_VALUES);
	struct massif *m = calloc(1, sizeof(*m));
	struct bytes line;
	int r = p && m ? 0 : -ENOMEM;

	if (m) {
		m->d = d;
		m->info = info;
		m->totals = CHUNKS_OF(struct massif_total);
		m->sites = CHUNKS_OF(struct massif_site);
		m->levels = levels_new(1000000);
	}
	if (m && !m->levels)
		r = -ENOMEM;
	while (r == 0 && input_line(in, &line) && (input_line_whole(in) || line.len < 2))
		r = take_line(m, line);
	if (r == 0)
		r = end_snapshot(m);
	if (r == 0 && !m->totals.n)
		r = err_set(e, -EBADMSG, "%s: massif's output without a snapshot", name);
	else if (r == 0 && (make_profile(m, p) < 0 || dict_oom(d)))
		r = -ENOMEM;
	if (r == -ENOMEM)
		err_set(e, r, "%s: out of memory while reading it", name);
	if (r == 0) {
		note_damage(m, in);
		info->skipped_lines = m->bad;
		*ret_profile = TAKE_PTR(p);
	}
	if (m)
		massif_fini(m);
	free(m);
	return r;
}
