/*
 * speedscope's file format (src/lib/file-format-spec.ts): frames once, then for every value type a
 * profile of stacks, root first, with their weights. A stack is a path of the call tree that has a
 * value of its own, so equal paths are one.
 */
#include "base/chunks.h"
#include "base/hash.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct scope_key {
	const char *name, *module;
};

struct scope_frame {
	struct scope_key key;
	uint32_t ix;
	UT_hash_handle hh;
};

struct scope {
	const struct profile *p;
	struct sink *out;
	struct strbuf text;
	struct frame_tree *trees[PROFILE_MAX_TYPES];
	struct chunks frames;
	struct scope_frame *by_key;
};

static void scope_fini(struct scope *s)
{
	for (uint32_t t = 0; t < PROFILE_MAX_TYPES; t++)
		frame_tree_free(s->trees[t]);
	HASH_CLEAR(hh, s->by_key);
	chunks_free(&s->frames);
	strbuf_free(&s->text);
}

static void flush(struct scope *s, size_t above)
{
	if (s->text.len <= above || strbuf_oom(&s->text))
		return;
	sink_write(s->out, s->text.s, s->text.len);
	strbuf_reset(&s->text);
}

static void add_string(struct scope *s, const char *text)
{
	strbuf_putc(&s->text, '"');
	text_add(&s->text, TEXT_JSON, text, UINT32_MAX);
	strbuf_putc(&s->text, '"');
}

/* Names and modules are interned: equal ones have equal addresses. */
static struct scope_frame *find_frame(struct scope *s, const struct frame_node *n)
{
	struct scope_key key = { n->name, n->module };
	struct scope_frame *f;

	HASH_FIND(hh, s->by_key, &key, sizeof(key), f);
	return f;
}

static int collect_frames(struct scope *s, const struct frame_tree *tree)
{
	for (uint32_t i = 1; i < tree->n_nodes; i++) {
		const struct frame_node *n = &tree->nodes[i];
		struct scope_frame *f;

		if (find_frame(s, n))
			continue;
		f = chunks_add(&s->frames);
		if (!f)
			return -ENOMEM;
		f->key = (struct scope_key){ n->name, n->module };
		f->ix = s->frames.n - 1;
		HASH_ADD(hh, s->by_key, key, sizeof(f->key), f);
		if (!hash_added(f))
			return -ENOMEM;
	}
	return 0;
}

static void write_frames(struct scope *s)
{
	strbuf_puts(&s->text, "\"shared\":{\"frames\":[");
	for (uint32_t i = 0; i < s->frames.n; i++) {
		const struct scope_frame *f = chunks_at(&s->frames, i);

		strbuf_puts(&s->text, i ? ",\n{\"name\":" : "\n{\"name\":");
		add_string(s, *f->key.name ? f->key.name : "[unknown]");
		if (*f->key.module) {
			strbuf_puts(&s->text, ",\"file\":");
			add_string(s, f->key.module);
		}
		strbuf_putc(&s->text, '}');
		flush(s, 1 << 16);
	}
	strbuf_puts(&s->text, "]},\n");
}

static const char *unit_name(const char *unit)
{
	static const char *const known[] = { "nanoseconds", "microseconds", "milliseconds",
					     "seconds", "bytes" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(unit, known[i]) == 0)
			return known[i];
	return "none";
}

static void write_stack(struct scope *s, const struct frame_tree *tree, uint32_t node,
			uint32_t *path)
{
	uint32_t depth = tree->nodes[node].depth;

	for (uint32_t i = depth; i > 0; i--) {
		path[i - 1] = find_frame(s, &tree->nodes[node])->ix;
		node = tree->nodes[node].parent;
	}
	for (uint32_t i = 0; i < depth; i++)
		strbuf_printf(&s->text, "%s%" PRIu32, i ? "," : "[", path[i]);
	strbuf_puts(&s->text, depth ? "]" : "[]");
	flush(s, 1 << 16);
}

static int write_profile(struct scope *s, uint32_t type)
{
	const struct value_type *t = profile_type(s->p, type);
	const struct frame_tree *tree = s->trees[type];
	_cleanup_(freep) uint32_t *path = calloc(tree->max_depth + 1ul, sizeof(*path));
	bool first = true;

	if (!path)
		return -ENOMEM;
	strbuf_puts(&s->text, type ? ",\n{\"type\":\"sampled\",\"name\":"
				   : "{\"type\":\"sampled\",\"name\":");
	add_string(s, t->name);
	strbuf_printf(&s->text, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64,
		      unit_name(t->unit), tree->nodes[0].total);
	strbuf_puts(&s->text, ",\n\"samples\":[");
	for (uint32_t i = 0; i < tree->n_nodes; i++) {
		if (!tree->nodes[i].self)
			continue;
		strbuf_puts(&s->text, first ? "" : ",");
		first = false;
		write_stack(s, tree, i, path);
	}
	strbuf_puts(&s->text, "],\n\"weights\":[");
	first = true;
	for (uint32_t i = 0; i < tree->n_nodes; i++) {
		if (!tree->nodes[i].self)
			continue;
		strbuf_printf(&s->text, "%s%" PRId64, first ? "" : ",", tree->nodes[i].self);
		first = false;
		flush(s, 1 << 16);
	}
	strbuf_puts(&s->text, "]}");
	return 0;
}

static void add_name(struct scope *s, const struct render_opts *opts)
{
	struct shown shown = shown_pick(s->p, -1);
	struct strbuf title = { 0 };

	if (opts->title)
		strbuf_puts(&title, opts->title);
	else
		title_add(&title, s->p, opts, &shown, s->trees[shown.type]->nodes[0].total);
	add_string(s, title.s ? title.s : "");
	s->text.oom |= title.oom;
	strbuf_free(&title);
}

static int write_all(struct scope *s, const struct render_opts *opts)
{
	uint32_t n_types = profile_n_types(s->p);
	int r = 0;

	for (uint32_t t = 0; r == 0 && t < n_types; t++) {
		r = frame_tree_build(s->p,
				     &(struct frame_tree_opts){ .type = t,
								.by = opts->by,
								.root_comm = !opts->no_comm },
				     &s->trees[t]);
		if (r == 0)
			r = collect_frames(s, s->trees[t]);
	}
	if (r < 0)
		return r;
	strbuf_puts(&s->text,
		    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n");
	write_frames(s);
	strbuf_puts(&s->text, "\"profiles\":[");
	for (uint32_t t = 0; r == 0 && t < n_types; t++)
		r = write_profile(s, t);
	strbuf_puts(&s->text, "],\n\"name\":");
	add_name(s, opts);
	strbuf_printf(&s->text,
		      ",\n\"activeProfileIndex\":%" PRIu32 ",\"exporter\":\"memscope\"}\n",
		      profile_get_meta(s->p)->default_type);
	if (r < 0 || strbuf_oom(&s->text))
		return -ENOMEM;
	flush(s, 0);
	return 0;
}

int speedscope_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
		     struct err *e)
{
	_cleanup_(scope_fini) struct scope s = {
		.p = p,
		.out = out,
		.frames = CHUNKS_OF(struct scope_frame),
	};
	int r = write_all(&s, opts);

	return r < 0 ? err_set(e, r, "out of memory for speedscope's file") : 0;
}
