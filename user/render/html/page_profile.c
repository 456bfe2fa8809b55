#include "render/html/page_profile.h"

#include "analyse/frame.h"
#include "base/hash.h"
#include "base/saturate.h"
#include "render/html/packed.h"
#include "render/html/page_data.h"
#include "render/html/page_names.h"

#include <errno.h>

struct frame_key {
	uint32_t name, module, file, line, kind;
};
struct page_frame {
	struct frame_key key;
	uint32_t number;
	UT_hash_handle hh;
};

struct node_key {
	uint32_t parent, frame;
};
struct page_node {
	struct node_key key;
	uint32_t number;
	UT_hash_handle hh;
};

/* A function is a frame without its line; a site is a stack of them. */
struct function_key {
	uint32_t name, module, kind;
};
struct page_function {
	struct function_key key;
	uint32_t number;
	UT_hash_handle hh;
};

struct site_key {
	uint32_t parent, function; /* the parent's site */
};
struct page_site {
	struct site_key key;
	uint32_t node;
	UT_hash_handle hh;
};

struct page_set {
	uint32_t pid, tid, comm, thread, container;
};

struct numbers {
	uint32_t *of;
	uint32_t n, cap;
};

/* `names`, `frame` and `node` hold the columns as they grow; the tables find what is there. */
struct encoder {
	const struct profile *p;
	struct dict *d;
	struct page_names names;
	struct page_frame *by_frame;
	struct page_node *by_node;
	struct page_function *by_function;
	struct page_site *by_site;
	struct strbuf frame[5], node[2], set[5];
	uint32_t n_frames, n_nodes, n_sets;
	uint32_t n_functions;
	struct numbers function_of_frame, site_of_node;
	struct numbers nodes_of_stack; /* 0: not known yet, else the node's number + 1 */
	struct numbers sets_of_labels; /* likewise */
	bool oom;
};

static uint32_t *number_of(struct encoder *n, struct numbers *list, uint32_t ix)
{
	if (ix >= list->cap) {
		uint32_t cap = ix + ix / 2 + 64;
		uint32_t *grown = reallocarray(list->of, cap, sizeof(*grown));

		if (!grown) {
			n->oom = true;
			return NULL;
		}
		memset(grown + list->cap, 0, (cap - list->cap) * sizeof(*grown));
		list->of = grown;
		list->cap = cap;
	}
	return &list->of[ix];
}

static uint32_t frame_kind(const struct encoder *n, const struct frame *f, location_id loc)
{
	const struct location *l = dict_location_get(n->d, loc);
	const struct module *m = dict_module_get(n->d, l->module);

	switch (f->kind) {
	case FRAME_KERNEL:
		return PAGE_FRAME_KERNEL;
	case FRAME_LANG:
		return PAGE_FRAME_INTERPRETED;
	case FRAME_INLINED:
		return frame_in_kernel(f) ? PAGE_FRAME_KERNEL : PAGE_FRAME_INLINED;
	case FRAME_UNKNOWN:
	case FRAME_PROCESS:
		return PAGE_FRAME_MARKER;
	case FRAME_USER:
		break;
	}
	return l->module.ix && m->kind == MODULE_ANON ? PAGE_FRAME_JIT : PAGE_FRAME_NATIVE;
}

static uint32_t function_number(struct encoder *n, const struct frame_key *frame)
{
	const struct function_key key = { frame->name, frame->module, frame->kind };
	struct page_function *found = hash_get(n->by_function, key, &key);

	if (!found) {
		n->oom = true;
		return 0;
	}
	if (!found->number)
		found->number = ++n->n_functions;
	return found->number;
}

static uint32_t frame_number(struct encoder *n, location_id loc, uint32_t i)
{
	const struct frame f = frame_get(n->d, loc, i);
	const struct location *l = dict_location_get(n->d, loc);
	const struct line *line = i < l->n_lines ? &l->lines[i] : NULL;
	const struct frame_key key = {
		.name = page_name_number(&n->names, dict_str(n->d, f.name)),
		.module = page_name_number(&n->names, f.module),
		.file = line ? page_name_number(&n->names, dict_str(n->d, line->file)) : 0,
		.line = line ? line->line : 0,
		.kind = frame_kind(n, &f, loc),
	};
	struct page_frame *found = hash_get(n->by_frame, key, &key);
	uint32_t *function;

	if (!found) {
		n->oom = true;
		return 0;
	}
	if (!found->number) { /* frames are numbered from 0: one more here */
		packed_number(&n->frame[0], key.name);
		packed_number(&n->frame[1], key.module);
		packed_number(&n->frame[2], key.file);
		packed_number(&n->frame[3], key.line);
		packed_number(&n->frame[4], key.kind);
		found->number = ++n->n_frames;
		function = number_of(n, &n->function_of_frame, found->number - 1);
		if (function)
			*function = function_number(n, &key);
	}
	return found->number - 1;
}

/* The site of a new node. */
static void put_site(struct encoder *n, uint32_t node, uint32_t parent, uint32_t frame)
{
	const uint32_t *function = number_of(n, &n->function_of_frame, frame);
	uint32_t *own =
		number_of(n, &n->site_of_node, node); /* which makes room for the parent's, too */
	struct site_key key = { 0 };
	struct page_site *found;

	if (!function || !own)
		return;
	key = (struct site_key){ n->site_of_node.of[parent], *function };
	found = hash_get(n->by_site, key, &key);
	if (!found) {
		n->oom = true;
		return;
	}
	if (!found->node)
		found->node = node;
	*own = found->node;
}

static uint32_t child_of(struct encoder *n, uint32_t parent, uint32_t frame)
{
	const struct node_key key = { parent, frame };
	struct page_node *found = hash_get(n->by_node, key, &key);

	if (!found) {
		n->oom = true;
		return 0;
	}
	if (!found->number) {
		found->number = ++n->n_nodes;
		packed_number(&n->node[0], found->number - parent);
		packed_number(&n->node[1], frame);
		put_site(n, found->number, parent, frame);
	}
	return found->number;
}

/* The node of a stack: from the nearest caller whose node is known, down to its leaf. */
static uint32_t node_of(struct encoder *n, stack_id stack)
{
	_cleanup_(freep) stack_id *way = NULL;
	uint32_t depth = dict_stack_depth(n->d, stack), known = 0, len = 0;

	way = depth ? reallocarray(NULL, depth, sizeof(*way)) : NULL;
	if (depth && !way)
		n->oom = true;
	for (stack_id s = stack; way && s.ix; s = dict_stack_parent(n->d, s)) {
		uint32_t *there = number_of(n, &n->nodes_of_stack, s.ix);

		if (there && *there) {
			known = *there - 1;
			break;
		}
		way[len++] = s;
	}
	while (len && !n->oom) {
		stack_id s = way[--len];
		location_id loc = dict_stack_leaf(n->d, s);

		/* Root first: the innermost inlined call comes last. */
		for (uint32_t i = frame_count(n->d, loc); i-- > 0;)
			known = child_of(n, known, frame_number(n, loc, i));
		*number_of(n, &n->nodes_of_stack, s.ix) = known + 1;
	}
	return known;
}

static uint32_t label_number(const struct encoder *n, labels_id labels, const char *key)
{
	const struct label *l = dict_label_find(n->d, labels, key);

	return l && !l->str.ix && l->num > 0 && l->num <= INT32_MAX ? (uint32_t)l->num : 0;
}

static uint32_t label_text(struct encoder *n, labels_id labels, const char *key)
{
	const struct label *l = dict_label_find(n->d, labels, key);

	return l ? page_name_number(&n->names, dict_str(n->d, l->str)) : 0;
}

static uint32_t set_of(struct encoder *n, labels_id labels)
{
	uint32_t *there = number_of(n, &n->sets_of_labels, labels.ix);

	if (!there)
		return 0;
	if (!*there) {
		packed_number(&n->set[0], label_number(n, labels, "pid"));
		packed_number(&n->set[1], label_number(n, labels, "tid"));
		packed_number(&n->set[2], label_text(n, labels, "comm"));
		packed_number(&n->set[3], label_text(n, labels, "thread"));
		packed_number(&n->set[4], label_text(n, labels, "container"));
		*there = ++n->n_sets;
	}
	return *there - 1;
}

static int by_node(const void *a, const void *b)
{
	const struct page_row *x = a, *y = b;

	return x->node != y->node ? (x->node > y->node ? 1 : -1)
	       : x->set != y->set ? (x->set > y->set ? 1 : -1)
				  : (x->sample > y->sample) - (x->sample < y->sample);
}

static void put_columns(struct strbuf *out, uint32_t count, const struct strbuf *columns,
			uint32_t n)
{
	packed_number(out, count);
	for (uint32_t i = 0; i < n; i++) {
		strbuf_add(out, columns[i].s ? columns[i].s : "", columns[i].len);
		out->oom |= columns[i].oom;
	}
}

static void put_samples(const struct encoder *n, const struct page_row *rows, struct strbuf *out)
{
	uint32_t n_rows = profile_n_samples(n->p), before = 0;

	packed_number(out, n_rows);
	for (uint32_t i = 0; i < n_rows; i++) {
		packed_signed(out, (int64_t)rows[i].node - before);
		before = rows[i].node;
	}
	for (uint32_t i = 0; i < n_rows; i++)
		packed_number(out, rows[i].set);
	for (uint32_t t = 0; t < profile_n_types(n->p); t++)
		for (uint32_t i = 0; i < n_rows; i++)
			packed_signed(out, profile_sample(n->p, rows[i].sample).values[t]);
}

/* Of one type: each sample's values by the bins of the page, several of the store's bins in one. */
static void put_times(const struct page_row *rows, uint32_t n_rows, const struct page_times *at,
		      uint32_t type, struct strbuf *out)
{
	uint64_t own_ns = sample_times_bin_ns(at->times);
	_cleanup_(strbuf_free) struct strbuf pairs = { 0 };

	packed_number(out, sample_times_type(at->times, type));
	for (uint32_t i = 0; i < n_rows; i++) {
		struct sample_time_reader read = sample_times_read(at->times, rows[i].sample);
		uint64_t bin = 0, before = 0, count = 0;
		struct sample_time entry;
		int64_t value = 0;
		bool more;

		strbuf_reset(&pairs);
		do {
			uint64_t next;

			more = sample_times_next(&read, &entry);
			next = more ? entry.bin * own_ns / at->bin_ns : 0;
			if (value && (!more || next != bin)) {
				packed_number(&pairs, bin - before);
				packed_signed(&pairs, value);
				before = bin;
				count++;
				value = 0;
			}
			bin = next;
			value = add_saturating(value, more ? entry.values[type] : 0);
		} while (more);
		packed_number(out, count);
		strbuf_add(out, pairs.s ? pairs.s : "", pairs.len);
	}
	out->oom |= pairs.oom;
}

static void encoder_fini(struct encoder *n)
{
	hash_free(n->by_frame);
	hash_free(n->by_node);
	hash_free(n->by_function);
	hash_free(n->by_site);
	page_names_fini(&n->names);
	for (int i = 0; i < 5; i++) {
		strbuf_free(&n->frame[i]);
		strbuf_free(&n->set[i]);
	}
	strbuf_free(&n->node[0]);
	strbuf_free(&n->node[1]);
	free(n->function_of_frame.of);
	free(n->site_of_node.of);
	free(n->nodes_of_stack.of);
	free(n->sets_of_labels.of);
}

int page_profile_encode(const struct profile *p, const struct page_times *at, struct strbuf *out,
			struct page_row **ret_rows)
{
	_cleanup_(encoder_fini) struct encoder n = { .p = p, .d = profile_dict(p) };
	uint32_t n_samples = profile_n_samples(p);
	_cleanup_(freep) struct page_row *rows = calloc(n_samples ? n_samples : 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	page_name_number(&n.names, "");
	for (uint32_t i = 0; i < n_samples && !n.oom && !n.names.oom; i++) {
		struct profile_sample s = profile_sample(p, i);

		rows[i] = (struct page_row){ node_of(&n, s.stack), set_of(&n, s.labels), i, 0 };
		rows[i].site = rows[i].node ? n.site_of_node.of[rows[i].node] : 0;
	}
	qsort(rows, n_samples, sizeof(*rows), by_node);
	if (n.oom || n.names.oom || dict_oom(n.d))
		return -ENOMEM;
	packed_number(out, PAGE_DATA_VERSION);
	put_columns(out, n.names.n, &n.names.bytes, 1);
	put_columns(out, n.n_frames, n.frame, 5);
	put_columns(out, n.n_nodes, n.node, 2);
	put_columns(out, n.n_sets, n.set, 5);
	put_samples(&n, rows, out);
	packed_number(out, at ? sample_times_n_types(at->times) : 0);
	for (uint32_t t = 0; at && t < sample_times_n_types(at->times); t++)
		put_times(rows, n_samples, at, t, out);
	if (strbuf_oom(out))
		return -ENOMEM;
	if (ret_rows)
		*ret_rows = TAKE_PTR(rows);
	return 0;
}
