#include "heap/snapshot/file.h"

#include "base/hash.h"
#include "base/large.h"
#include "base/new_file.h"
#include "base/strbuf.h"
#include "heap/snapshot/chain.h"
#include "heap/snapshot/contents.h"
#include "heap/snapshot/exact.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SAMPLES = 32, NAME_BYTES = 40 /* of a name, to predict */ };

struct known_text {
	uint64_t key;
	uint32_t at;
	UT_hash_handle hh;
};

struct snapshot_writer {
	struct new_file file;
	uint64_t at;
	struct file_section table[FILE_KINDS];
	uint32_t n;
	XXH3_state_t *sum; /* of the section that is written */
	struct strbuf strings;
	struct known_text *texts;
	int error;
};

/* --- the file --- */

int snapshot_writer_new(const char *path, struct snapshot_writer **ret_writer, struct err *e)
{
	_cleanup_(snapshot_writer_freep) struct snapshot_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	w->sum = XXH3_createState();
	if (!w->sum)
		return err_set(e, -ENOMEM, "out of memory");
	r = new_file_open(path, &w->file, e);
	if (r < 0)
		return r;
	*ret_writer = TAKE_PTR(w);
	return 0;
}

void snapshot_writer_free(struct snapshot_writer *w)
{
	if (!w)
		return;
	new_file_close(&w->file);
	XXH3_freeState(w->sum);
	strbuf_free(&w->strings);
	hash_free(w->texts);
	free(w);
}

/* --- sections --- */

static void put_bytes(struct snapshot_writer *w, const void *bytes, uint64_t len)
{
	if (!w->error)
		w->error = new_file_put(&w->file, w->at, bytes, len);
	w->at += len;
}

static void align(struct snapshot_writer *w)
{
	w->at = (w->at + FILE_ALIGN - 1) & ~(uint64_t)(FILE_ALIGN - 1);
}

static void begin(struct snapshot_writer *w, enum file_kind kind, uint32_t record)
{
	align(w);
	w->table[w->n] = (struct file_section){ kind, record, w->at, 0, 0 };
	XXH3_64bits_reset(w->sum);
}

static void put(struct snapshot_writer *w, const void *bytes, uint64_t len)
{
	if (!len)
		return;
	XXH3_64bits_update(w->sum, bytes, len);
	put_bytes(w, bytes, len);
	w->table[w->n].bytes += len;
}

static void end(struct snapshot_writer *w)
{
	w->table[w->n++].checksum = XXH3_64bits_digest(w->sum);
}

static void put_array(struct snapshot_writer *w, enum file_kind kind, uint32_t record,
		      const void *rows, uint64_t n)
{
	begin(w, kind, record);
	put(w, rows, n * record);
	end(w);
}

/* --- texts --- */

static uint32_t text_of(struct snapshot_writer *w, const char *text)
{
	uint64_t key = content_hash(text, strlen(text));
	struct known_text *known;
	size_t from;

	if (!*text)
		return 0;
	known = hash_get(w->texts, key, &key);
	if (!known || strbuf_oom(&w->strings) || w->strings.len + strlen(text) >= UINT32_MAX) {
		w->error = w->error ? w->error : -ENOMEM;
		return 0;
	}
	if (known->at)
		return known->at;
	from = w->strings.len;
	strbuf_add_clean(&w->strings, text, strlen(text));
	strbuf_add(&w->strings, "", 1);
	known->at = (uint32_t)from;
	return known->at;
}

/* --- small sections --- */

static void put_facts(struct snapshot_writer *w, const struct snapshot *s,
		      enum file_contents contents)
{
	struct copy_facts c = copy_facts(s->copy);
	const struct snapshot_facts *f = &s->facts;
	struct file_facts facts = {
		.pid = (uint32_t)f->pid,
		.contents = contents,
		.taken_ns = f->taken_ns,
		.pause_ns = c.pause_ns,
		.copy_ns = c.copy_ns,
		.copied = c.bytes,
		.unreadable = c.unreadable,
		.words = s->words,
		.unknown = s->unknown,
		.n_missed = c.n_missed,
		.comm = text_of(w, f->comm),
		.exe = text_of(w, f->exe),
		.container = text_of(w, f->container),
		.kernel = text_of(w, f->kernel),
		.machine = text_of(w, f->machine),
	};

	put_array(w, FILE_FACTS, sizeof(facts), &facts, 1);
	begin(w, FILE_LABELS, sizeof(struct file_label));
	for (uint32_t i = 0; i < f->n_labels; i++) {
		struct file_label label = { text_of(w, f->labels[i].key),
					    text_of(w, f->labels[i].value) };

		put(w, &label, sizeof(label));
	}
	end(w);
}

static void put_said(struct snapshot_writer *w, const struct snapshot *s)
{
	begin(w, FILE_SAID, 4);
	for (uint32_t i = 0; i < s->n_said; i++) {
		uint32_t text = text_of(w, s->said[i]);

		put(w, &text, sizeof(text));
	}
	end(w);
}

static struct file_amount amount(const struct heap_amount *a)
{
	return (struct file_amount){ a->blocks, a->bytes, a->resident };
}

static void put_uses(struct snapshot_writer *w, const struct heap_census *c)
{
	begin(w, FILE_USES, sizeof(struct file_use));
	for (uint32_t i = 0; i < c->n; i++) {
		const struct heap_use *u = &c->use[i];
		struct file_use use = {
			.allocator = text_of(w, u->allocator),
			.caveat = text_of(w, u->caveat ? u->caveat : ""),
			.arenas = u->arenas,
			.caches = u->caches,
			.objects = u->objects,
			.live = amount(&u->live),
			.mapped = amount(&u->mapped),
			.cached = amount(&u->cached),
			.fast = amount(&u->fast),
			.free = amount(&u->free),
			.top = amount(&u->top),
			.metadata = amount(&u->metadata),
			.unknown = amount(&u->unknown),
		};

		put(w, &use, sizeof(use));
	}
	end(w);
}

static void put_types(struct snapshot_writer *w, const struct types *t)
{
	begin(w, FILE_TYPES, sizeof(struct file_type));
	for (uint32_t i = 0; i < t->n; i++) {
		struct file_type type = { text_of(w, t->type[i].name),
					  file_type_number(t->type[i].by), t->type[i].at };

		put(w, &type, sizeof(type));
	}
	end(w);
}

static void put_threads(struct snapshot_writer *w, const struct snapshot *s, bool registers)
{
	uint32_t n;
	const struct stopped_thread *t = copy_threads(s->copy, &n);

	begin(w, FILE_THREADS, sizeof(struct file_thread));
	for (uint32_t i = 0; i < n; i++) {
		struct file_thread thread = { (uint32_t)t[i].tid, t[i].is_stopped,
					      registers ? t[i].n_regs : 0, 0 };

		put(w, &thread, sizeof(thread));
	}
	end(w);
	begin(w, FILE_REGISTERS, sizeof(t->regs));
	for (uint32_t i = 0; registers && i < n; i++)
		put(w, t[i].regs, sizeof(t[i].regs));
	end(w);
}

static void put_arenas(struct snapshot_writer *w, const struct heap_blocks *b)
{
	begin(w, FILE_OWNERS, sizeof(struct file_owner));
	for (uint32_t i = 0; i < b->n_owners; i++) {
		const struct heap_owner *o = &b->owners[i];
		struct file_owner owner = { text_of(w, o->allocator ? o->allocator : ""), o->arena,
					    o->metadata, o->held };

		put(w, &owner, sizeof(owner));
	}
	end(w);
	put_array(w, FILE_PARTS, sizeof(*b->parts), b->parts, b->n_parts);
	put_array(w, FILE_UNKNOWN, sizeof(*b->unknown), b->unknown, b->n_unknown);
}

static void put_collections(struct snapshot_writer *w, const struct collections *c, uint64_t nodes)
{
	if (!c->of)
		return;
	begin(w, FILE_COLLECTIONS, sizeof(struct file_collection));
	for (uint32_t i = 0; i < c->n; i++) {
		const struct collection *from = &c->rows[i];
		struct file_collection row = {
			.kind = text_of(w, collection_name(from)),
			.in = from->in,
			.table = from->table,
			.unused = from->unused < UINT32_MAX ? (uint32_t)from->unused : UINT32_MAX,
			.at = from->at,
			.elements = from->elements,
			.live = from->live,
			.blocks = from->blocks,
			.bytes = from->bytes,
		};

		put(w, &row, sizeof(row));
	}
	end(w);
	put_array(w, FILE_COLLECTION_OF, 4, c->of, nodes);
}

/* Sites or frames, whose texts have other numbers in the file. */
static void put_places(struct snapshot_writer *w, enum file_kind kind, const struct sites *s,
		       const struct site *rows, uint32_t n)
{
	begin(w, kind, sizeof(*rows));
	for (uint32_t i = 0; i < n; i++) {
		struct site row = { text_of(w, sites_text(s, rows[i].function)),
				    text_of(w, sites_text(s, rows[i].file)), rows[i].line,
				    text_of(w, sites_text(s, rows[i].module)) };

		put(w, &row, sizeof(row));
	}
	end(w);
}

static void put_sites(struct snapshot_writer *w, const struct sites *s, uint64_t nodes)
{
	struct file_trace trace;

	if (!s)
		return;
	trace = (struct file_trace){ .traced_ns = s->traced_ns, .lost = s->lost };
	put_array(w, FILE_TRACE, sizeof(trace), &trace, 1);
	put_places(w, FILE_SITES, s, s->site, s->n_sites);
	put_places(w, FILE_STACK_FRAMES, s, s->frame, s->n_frames);
	put_array(w, FILE_STACKS, sizeof(*s->stack), s->stack, s->n_stacks);
	put_array(w, FILE_STACK_OF, 4, s->stack_of, nodes);
	put_array(w, FILE_AGES, 4, s->age_ms, nodes);
}

static void put_maps(struct snapshot_writer *w, const struct heap_memory *mem)
{
	begin(w, FILE_MAPS, sizeof(struct file_map));
	for (uint32_t i = 0; i < mem->n_maps; i++) {
		const struct heap_map *m = &mem->maps[i];
		struct file_map map = { m->start, m->end, m->rss, m->kind, 0 };

		put(w, &map, sizeof(map));
	}
	end(w);
}

/* --- names --- */

static void put_roots(struct snapshot_writer *w, struct snapshot *s,
		      const struct snapshot_write *how)
{
	char name[256];

	begin(w, FILE_ROOTS, sizeof(struct file_root));
	for (uint64_t i = 0; i < s->n_roots && !w->error; i++) {
		const struct snapshot_root *from = &s->roots[i];
		struct file_root root = { from->node, file_root_number(from->kind), from->thread, 0,
					  from->at };

		if (how->root_name && how->root_name(how->ctx, from, name, sizeof(name)))
			root.name = text_of(w, name);
		put(w, &root, sizeof(root));
	}
	end(w);
}

/* Rows that wait for their order. */
struct names {
	struct snapshot_writer *w;
	struct file_link_name *rows[2]; /* of places in nodes, in types */
	uint64_t n[2], room[2];
};

static void on_name(void *ctx, bool of_type, uint32_t node_or_type, int32_t at, const char *name)
{
	struct names *names = ctx;
	uint64_t n = names->n[of_type];

	if (!GROW_LARGE(names->rows[of_type], n, names->room[of_type])) {
		names->w->error = -ENOMEM;
		return;
	}
	names->rows[of_type][n] =
		(struct file_link_name){ node_or_type, at, text_of(names->w, name), 0 };
	names->n[of_type]++;
}

static int by_place(const void *a, const void *b)
{
	const struct file_link_name *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void put_names(struct snapshot_writer *w, const struct names *names)
{
	static const enum file_kind kinds[] = { FILE_LINK_NAMES, FILE_FIELD_NAMES };

	for (int i = 0; i < 2; i++) {
		if (names->n[i])
			qsort(names->rows[i], names->n[i], sizeof(*names->rows[i]), by_place);
		put_array(w, kinds[i], sizeof(*names->rows[i]), names->rows[i], names->n[i]);
	}
}

/* --- contents --- */

static uint64_t bytes_of_runs(const struct snapshot *s)
{
	uint32_t n;
	const struct copy_run *runs = copy_runs(s->copy, &n);
	uint64_t len = 0;

	for (uint32_t i = 0; i < n; i++)
		len += runs[i].len;
	return len;
}

/* Runs lie behind each other in the copy, from 0 on. */
static void put_contents(struct snapshot_writer *w, const struct snapshot *s,
			 struct contents_packer *p)
{
	_cleanup_(large_freep) uint64_t *frames = NULL;
	uint64_t len = bytes_of_runs(s), n = (len + FILE_FRAME - 1) / FILE_FRAME;
	uint32_t n_runs;
	const struct copy_run *runs = copy_runs(s->copy, &n_runs);

	frames = large_alloc(n + 1, sizeof(*frames));
	if (!frames)
		w->error = -ENOMEM;
	begin(w, FILE_RUNS, sizeof(struct file_run));
	for (uint32_t i = 0; i < n_runs; i++) {
		struct file_run run = { runs[i].addr, runs[i].len };

		put(w, &run, sizeof(run));
	}
	end(w);
	begin(w, FILE_CONTENTS, 1);
	for (uint64_t i = 0; i < n && !w->error; i++) {
		uint64_t at = i * FILE_FRAME, part = len - at < FILE_FRAME ? len - at : FILE_FRAME;
		const uint8_t *bytes = copy_stored(s->copy, at, part), *frame;
		size_t packed;
		int r = bytes ? contents_pack(p, bytes, part, &frame, &packed) : -EIO;

		if (r < 0) {
			w->error = r;
			break;
		}
		put_bytes(w, frame, packed);
		w->table[w->n].bytes += packed;
		frames[i + 1] = w->table[w->n].bytes;
	}
	end(w);
	put_array(w, FILE_FRAMES, 8, frames, frames ? n + 1 : 0);
}

/* By some frames. */
static uint64_t predict_contents(const struct snapshot *s, struct contents_packer *p)
{
	uint64_t len = bytes_of_runs(s), n = len / FILE_FRAME, in = 0, out = 0;

	if (n <= SAMPLES)
		return len;
	for (uint64_t i = 0; i < SAMPLES; i++) {
		const uint8_t *bytes = copy_stored(s->copy, i * (n / SAMPLES) * FILE_FRAME,
						   FILE_FRAME),
			      *frame;
		size_t packed;

		if (bytes && contents_pack(p, bytes, FILE_FRAME, &frame, &packed) == 0) {
			in += FILE_FRAME;
			out += packed;
		}
	}
	return in ? (uint64_t)((double)len * ((double)out / (double)in) * 1.25) : len;
}

/* --- all of it --- */

static uint64_t predict(const struct snapshot_writer *w, const struct snapshot *s,
			const struct names *names, struct contents_packer *p)
{
	uint64_t nodes = s->blocks.n, edges = graph_edges(s->graph);

	const struct sites *sites = s->sites;
	uint64_t of_sites =
		sites ? (sites->n_sites + (uint64_t)sites->n_frames) * sizeof(struct site) +
				sites->n_stacks * sizeof(struct site_stack) + sites->n_texts +
				8 * nodes
		      : 0;

	return of_sites + nodes * (sizeof(struct heap_block) + 4 + 1 + 2 * 8) +
	       2 * edges * sizeof(struct graph_edge) +
	       s->blocks.n_parts * sizeof(struct heap_part) +
	       s->collections.n * sizeof(struct file_collection) +
	       (s->collections.of ? 4 * nodes : 0) +
	       s->n_roots * (sizeof(struct file_root) + NAME_BYTES) +
	       (names->n[0] + names->n[1]) * sizeof(struct file_link_name) + w->strings.len +
	       s->types.n * (sizeof(struct file_type) + NAME_BYTES) + (1 << 20) +
	       (p ? predict_contents(s, p) : 0);
}

static void put_graph(struct snapshot_writer *w, const struct graph *g, enum file_kind firsts,
		      enum file_kind edges)
{
	put_array(w, firsts, 8, g->first, (uint64_t)g->n + 1);
	put_array(w, edges, sizeof(struct graph_edge), g->edges, graph_edges(g));
}

static void put_header(struct snapshot_writer *w)
{
	struct file_header h = { .magic = FILE_MAGIC, .version = FILE_VERSION };
	uint64_t bytes;

	align(w);
	h.n_sections = w->n;
	h.table = w->at;
	bytes = w->n * sizeof(*w->table);
	h.table_checksum = content_hash(w->table, bytes);
	h.bytes = h.table + bytes;
	put_bytes(w, w->table, bytes);
	w->at = 0;
	put_bytes(w, &h, sizeof(h));
	w->at = h.bytes;
}

static void put_all(struct snapshot_writer *w, struct snapshot *s, const struct snapshot_write *how,
		    const struct names *names, struct contents_packer *p)
{
	w->at = sizeof(struct file_header);
	put_facts(w, s, how->contents);
	put_said(w, s);
	put_uses(w, &s->census);
	put_types(w, &s->types);
	put_array(w, FILE_BLOCKS, sizeof(*s->blocks.rows), s->blocks.rows, s->blocks.n);
	put_array(w, FILE_TYPE_OF, 4, s->types.of, s->blocks.n);
	put_array(w, FILE_OBJECT, 1, s->types.object, s->blocks.n);
	if (s->exact && s->exact->brought_by)
		put_array(w, FILE_BROUGHT_BY, 1, s->exact->brought_by, s->blocks.n);
	if (s->lengths)
		put_array(w, FILE_LENGTHS, 4, s->lengths, s->blocks.n);
	put_graph(w, s->graph, FILE_FIRST, FILE_EDGES);
	put_graph(w, s->reverse, FILE_REVERSE_FIRST, FILE_REVERSE_EDGES);
	put_roots(w, s, how);
	put_names(w, names);
	put_threads(w, s, how->contents != FILE_CONTENTS_NONE);
	put_maps(w, copy_memory(s->copy));
	put_arenas(w, &s->blocks);
	put_collections(w, &s->collections, s->blocks.n);
	put_sites(w, s->sites, s->blocks.n);
	if (p)
		put_contents(w, s, p);
	put_array(w, FILE_STRINGS, 1, w->strings.s, w->strings.len);
	put_header(w);
}

int snapshot_writer_put(struct snapshot_writer *w, struct snapshot *s,
			const struct snapshot_write *how, uint64_t *ret_bytes, struct err *e)
{
	_cleanup_(contents_packer_freep) struct contents_packer *p = NULL;
	struct names names = { .w = w };
	int r = 0;

	if (how->contents != FILE_CONTENTS_NONE)
		p = contents_packer_new(copy_memory(s->copy), how->contents == FILE_CONTENTS_WORDS);
	strbuf_add(&w->strings, "", 1);
	if ((how->contents != FILE_CONTENTS_NONE && !p) || python_names(s, on_name, &names) < 0 ||
	    w->error)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = new_file_check_room(&w->file, "a snapshot", predict(w, s, &names, p), e);
	if (r == 0) {
		put_all(w, s, how, &names, p);
		r = w->error < 0 ? err_set(e, w->error, "%s: cannot be written: %s", w->file.path,
					   strerror(-w->error))
				 : new_file_commit(&w->file, e);
	}
	large_free(names.rows[0]);
	large_free(names.rows[1]);
	*ret_bytes = w->at;
	return r;
}
