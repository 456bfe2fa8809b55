#include "heap/snapshot/file.h"

#include "base/large.h"
#include "heap/snapshot/contents.h"
#include "heap/snapshot/exact.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Bytes of a record of each kind. */
static const uint32_t records[FILE_KINDS] = {
	[FILE_FACTS] = sizeof(struct file_facts),
	[FILE_STRINGS] = 1,
	[FILE_LABELS] = sizeof(struct file_label),
	[FILE_USES] = sizeof(struct file_use),
	[FILE_TYPES] = sizeof(struct file_type),
	[FILE_BLOCKS] = sizeof(struct heap_block),
	[FILE_TYPE_OF] = 4,
	[FILE_OBJECT] = 1,
	[FILE_FIRST] = 8,
	[FILE_EDGES] = sizeof(struct graph_edge),
	[FILE_REVERSE_FIRST] = 8,
	[FILE_REVERSE_EDGES] = sizeof(struct graph_edge),
	[FILE_ROOTS] = sizeof(struct file_root),
	[FILE_LINK_NAMES] = sizeof(struct file_link_name),
	[FILE_FIELD_NAMES] = sizeof(struct file_link_name),
	[FILE_THREADS] = sizeof(struct file_thread),
	[FILE_MAPS] = sizeof(struct file_map),
	[FILE_REGISTERS] = 8 * STOP_REGS_MAX,
	[FILE_OWNERS] = sizeof(struct file_owner),
	[FILE_PARTS] = sizeof(struct heap_part),
	[FILE_UNKNOWN] = sizeof(struct heap_range),
	[FILE_BROUGHT_BY] = 1,
	[FILE_LENGTHS] = 4,
	[FILE_COLLECTIONS] = sizeof(struct file_collection),
	[FILE_COLLECTION_OF] = 4,
	[FILE_RUNS] = sizeof(struct file_run),
	[FILE_FRAMES] = 8,
	[FILE_CONTENTS] = 1,
};

static const uint8_t root_numbers[SNAPSHOT_ROOT_KINDS] = {
	[SNAPSHOT_ROOT_MODULE] = 1,  [SNAPSHOT_ROOT_GLOBAL] = 2,   [SNAPSHOT_ROOT_TLS] = 3,
	[SNAPSHOT_ROOT_STACK] = 4,   [SNAPSHOT_ROOT_REGISTER] = 5, [SNAPSHOT_ROOT_MAPPING] = 6,
	[SNAPSHOT_ROOT_CAF] = 7,     [SNAPSHOT_ROOT_GREEN] = 8,    [SNAPSHOT_ROOT_STABLE] = 9,
	[SNAPSHOT_ROOT_ANCHOR] = 10, [SNAPSHOT_ROOT_FRAME] = 11,
};

static const uint8_t type_numbers[TYPE_WAYS] = {
	[TYPE_CPYTHON] = 1, [TYPE_RTTI] = 2, [TYPE_GHC] = 3,           [TYPE_COUNTED] = 4,
	[TYPE_SHAPE] = 5,   [TYPE_TEXT] = 6, [TYPE_CPYTHON_TABLE] = 7, [TYPE_RUST] = 8,
};

uint32_t file_root_number(uint32_t kind)
{
	return kind < SNAPSHOT_ROOT_KINDS && root_numbers[kind]
		       ? root_numbers[kind]
		       : root_numbers[SNAPSHOT_ROOT_MAPPING];
}

uint32_t file_type_number(uint32_t by)
{
	return by < TYPE_WAYS ? type_numbers[by] : 0;
}

static int index_of(const uint8_t *numbers, int n, uint32_t number)
{
	for (int i = 0; i < n; i++)
		if (numbers[i] == number)
			return i;
	return -1;
}

int file_root_kind(uint32_t number)
{
	return number ? index_of(root_numbers, SNAPSHOT_ROOT_KINDS, number) : -1;
}

int file_type_by(uint32_t number)
{
	return index_of(type_numbers, TYPE_WAYS, number);
}

struct part {
	const void *at;
	uint64_t n;
};

struct snapshot_stored {
	const uint8_t *data;
	uint64_t len;
	bool mapped;
	const char *path; /* for sentences, while it is opened */
	struct part parts[FILE_KINDS];
	struct contents *contents;
};

static int damaged(const struct snapshot_stored *f, struct err *e, const char *what)
{
	return err_set(e, -EBADMSG, "%s: a damaged snapshot: %s", f->path, what);
}

/* --- the table --- */

static int read_section(struct snapshot_stored *f, const struct file_section *s, struct err *e)
{
	if (s->at % FILE_ALIGN || s->at > f->len || s->bytes > f->len - s->at)
		return damaged(f, e, "a section lies outside of the file");
	if (!s->kind || s->kind >= FILE_KINDS)
		return 0;
	if (s->record != records[s->kind] || s->bytes % s->record || f->parts[s->kind].at)
		return damaged(f, e, "a section has records of another size, or is there twice");
	if (s->kind != FILE_CONTENTS && XXH3_64bits(f->data + s->at, s->bytes) != s->checksum)
		return damaged(f, e, "the checksum of a section is wrong");
	f->parts[s->kind] = (struct part){ f->data + s->at, s->bytes / s->record };
	return 0;
}

static int read_table(struct snapshot_stored *f, struct err *e)
{
	struct file_header h;
	uint64_t bytes;
	int r = 0;

	if (f->len < sizeof(h) || memcmp(f->data, FILE_MAGIC, sizeof(h.magic)) != 0)
		return err_set(e, -EBADMSG,
			       "%s: no snapshot of a heap (memscope heap snapshot writes one)",
			       f->path);
	memcpy(&h, f->data, sizeof(h));
	if (h.version != FILE_VERSION)
		return err_set(e, -EBADMSG,
			       "%s: a snapshot of version %u; this program reads version %d",
			       f->path, h.version, FILE_VERSION);
	bytes = h.n_sections * sizeof(struct file_section);
	if (h.bytes != f->len || h.n_sections > FILE_SECTIONS_MAX || h.table % FILE_ALIGN ||
	    h.table > f->len || bytes > f->len - h.table)
		return damaged(f, e, "it is not as long as it says");
	if (XXH3_64bits(f->data + h.table, bytes) != h.table_checksum)
		return damaged(f, e, "the checksum of its table is wrong");
	for (uint32_t i = 0; i < h.n_sections && r == 0; i++) {
		struct file_section s;

		memcpy(&s, f->data + h.table + i * sizeof(s), sizeof(s));
		r = read_section(f, &s, e);
	}
	return r;
}

/* --- what sections may say --- */

static const char *text(const struct snapshot_stored *f, uint32_t at)
{
	const struct part *p = &f->parts[FILE_STRINGS];

	return at < p->n ? (const char *)p->at + at : "";
}

static bool strings_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_STRINGS];
	const uint8_t *at = p->at;

	if (!p->n || at[0] || at[p->n - 1])
		return false;
	for (uint64_t i = 0; i < p->n; i++)
		if ((at[i] && at[i] < 0x20) || at[i] == 0x7f)
			return false;
	return true;
}

static bool blocks_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_BLOCKS];
	const struct heap_block *rows = p->at;
	bool good = p->n < BLOCK_NONE;

	for (uint64_t i = 1; i < p->n; i++)
		good &= rows[i - 1].addr < rows[i].addr;
	return good;
}

static bool graph_is_good(const struct snapshot_stored *f, enum file_kind firsts,
			  enum file_kind edges)
{
	const uint64_t *first = f->parts[firsts].at;
	const struct graph_edge *edge = f->parts[edges].at;
	uint64_t n = f->parts[FILE_BLOCKS].n, n_edges = f->parts[edges].n;
	uint32_t most = 0;
	bool good = true;

	if (f->parts[firsts].n != n + 1 || first[0] || first[n] != n_edges)
		return false;
	for (uint64_t i = 0; i < n; i++)
		good &= first[i] <= first[i + 1];
	for (uint64_t i = 0; i < n_edges; i++)
		most = edge[i].to > most ? edge[i].to : most;
	return good && (!n_edges || most < n);
}

static bool roots_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_ROOTS];
	const struct file_root *roots = p->at;
	bool good = true;

	for (uint64_t i = 0; i < p->n; i++)
		good &= roots[i].node < f->parts[FILE_BLOCKS].n &&
			file_root_kind(roots[i].kind) >= 0;
	for (uint64_t i = 1; i < p->n; i++)
		good &= roots[i - 1].node <= roots[i].node;
	return good;
}

static bool maps_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_MAPS];
	const struct file_map *maps = p->at;
	bool good = true;

	for (uint64_t i = 0; i < p->n; i++)
		good &= maps[i].start < maps[i].end && maps[i].kind <= HEAP_MAP_ANON &&
			(!i || maps[i - 1].end <= maps[i].start);
	return good;
}

/* Runs, their frames, and how many bytes they are in all. */
static bool contents_are_good(const struct snapshot_stored *f, uint64_t *ret_len)
{
	const struct part *runs = &f->parts[FILE_RUNS], *frames = &f->parts[FILE_FRAMES];
	const struct file_run *run = runs->at;
	const uint64_t *at = frames->at;
	uint64_t len = 0;

	for (uint64_t i = 0; i < runs->n; i++) {
		if (!run[i].bytes || run[i].addr + run[i].bytes < run[i].addr ||
		    (i && run[i - 1].addr + run[i - 1].bytes > run[i].addr) ||
		    len + run[i].bytes < len)
			return false;
		len += run[i].bytes;
	}
	*ret_len = len;
	if (!runs->n)
		return true;
	if (!frames->n || frames->n - 1 != (len - 1) / FILE_FRAME + 1 || at[0])
		return false;
	for (uint64_t i = 1; i < frames->n; i++)
		if (at[i - 1] > at[i])
			return false;
	return at[frames->n - 1] <= f->parts[FILE_CONTENTS].n;
}

static int check(const struct snapshot_stored *f, struct err *e)
{
	static const enum file_kind wanted[] = {
		FILE_FACTS,         FILE_STRINGS,       FILE_TYPES, FILE_BLOCKS,
		FILE_TYPE_OF,       FILE_OBJECT,        FILE_FIRST, FILE_EDGES,
		FILE_REVERSE_FIRST, FILE_REVERSE_EDGES, FILE_ROOTS,
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if (!f->parts[wanted[i]].at)
			return damaged(f, e, "a section is missing");
	if (f->parts[FILE_FACTS].n != 1 || !f->parts[FILE_TYPES].n ||
	    f->parts[FILE_TYPE_OF].n != f->parts[FILE_BLOCKS].n ||
	    f->parts[FILE_OBJECT].n != f->parts[FILE_BLOCKS].n ||
	    f->parts[FILE_TYPES].n >= UINT32_MAX ||
	    (f->parts[FILE_LENGTHS].at && f->parts[FILE_LENGTHS].n != f->parts[FILE_BLOCKS].n) ||
	    (f->parts[FILE_BROUGHT_BY].at &&
	     f->parts[FILE_BROUGHT_BY].n != f->parts[FILE_BLOCKS].n) ||
	    (f->parts[FILE_REGISTERS].n && f->parts[FILE_REGISTERS].n != f->parts[FILE_THREADS].n))
		return damaged(f, e, "sections do not fit together");
	if (!strings_are_good(f))
		return damaged(f, e, "its texts are none");
	if (!blocks_are_good(f))
		return damaged(f, e, "its blocks are not in order");
	if (!graph_is_good(f, FILE_FIRST, FILE_EDGES) ||
	    !graph_is_good(f, FILE_REVERSE_FIRST, FILE_REVERSE_EDGES) || !roots_are_good(f))
		return damaged(f, e, "a reference leads nowhere");
	if (!maps_are_good(f))
		return damaged(f, e, "its mappings are not in order");
	return 0;
}

/* --- the snapshot --- */

static void put_facts(const struct snapshot_stored *f, struct snapshot *s)
{
	const struct file_facts *facts = f->parts[FILE_FACTS].at;
	const struct file_label *labels = f->parts[FILE_LABELS].at;
	struct snapshot_facts *to = &s->facts;

	to->pid = (pid_t)facts->pid;
	to->taken_ns = facts->taken_ns;
	to->contents = facts->contents <= FILE_CONTENTS_ALL ? facts->contents : FILE_CONTENTS_NONE;
	s->words = facts->words;
	s->unknown = facts->unknown;
	snprintf(to->comm, sizeof(to->comm), "%s", text(f, facts->comm));
	snprintf(to->exe, sizeof(to->exe), "%s", text(f, facts->exe));
	snprintf(to->container, sizeof(to->container), "%s", text(f, facts->container));
	snprintf(to->kernel, sizeof(to->kernel), "%s", text(f, facts->kernel));
	snprintf(to->machine, sizeof(to->machine), "%s", text(f, facts->machine));
	for (uint64_t i = 0; i < f->parts[FILE_LABELS].n && i < SNAPSHOT_LABELS_MAX; i++)
		to->labels[to->n_labels++] =
			(struct snapshot_label){ text(f, labels[i].key), text(f, labels[i].value) };
}

static struct heap_amount amount(const struct file_amount *a)
{
	return (struct heap_amount){ a->blocks, a->bytes, a->resident };
}

static void put_uses(const struct snapshot_stored *f, struct heap_census *c)
{
	const struct file_use *uses = f->parts[FILE_USES].at;

	for (uint64_t i = 0; i < f->parts[FILE_USES].n && i < HEAP_ALLOCATORS_MAX; i++) {
		const struct file_use *u = &uses[i];

		c->use[c->n++] = (struct heap_use){
			.allocator = text(f, u->allocator),
			.caveat = u->caveat ? text(f, u->caveat) : NULL,
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
	}
}

static int put_types(const struct snapshot_stored *f, struct snapshot *s, struct err *e)
{
	const struct file_type *types = f->parts[FILE_TYPES].at;
	struct types *t = &s->types;
	uint32_t n = (uint32_t)f->parts[FILE_TYPES].n;

	t->type = calloc(n, sizeof(*t->type));
	if (!t->type)
		return err_set(e, -ENOMEM, "out of memory");
	t->room = n;
	for (; t->n < n; t->n++) {
		char *name = strdup(text(f, types[t->n].name));
		int by = file_type_by(types[t->n].by);

		if (!name)
			return err_set(e, -ENOMEM, "out of memory");
		t->type[t->n] = (struct type){ .by = by < 0 ? TYPE_UNKNOWN : (enum type_by)by,
					       .name = name,
					       .at = types[t->n].at };
	}
	t->of = (uint32_t *)f->parts[FILE_TYPE_OF].at;
	t->object = (uint8_t *)f->parts[FILE_OBJECT].at;
	for (uint64_t i = 0; i < s->blocks.n; i++) {
		if (t->of[i] >= n)
			return damaged(f, e, "a block has a type that there is not");
		t->type[t->of[i]].blocks++;
		t->type[t->of[i]].bytes += 8 * (uint64_t)s->blocks.rows[i].words;
		s->blocks.all.words += s->blocks.rows[i].words;
	}
	s->blocks.all.blocks = s->blocks.n;
	return 0;
}

/* Arenas, and what they hold besides blocks. Rows that lead nowhere belong to nobody: heap_blocks_owner(). */
static int put_arenas(const struct snapshot_stored *f, struct heap_blocks *b, struct err *e)
{
	const struct file_owner *owners = f->parts[FILE_OWNERS].at;
	const struct heap_part *parts = f->parts[FILE_PARTS].at;
	uint64_t n = f->parts[FILE_OWNERS].n;

	if (n > HEAP_OWNERS_MAX || f->parts[FILE_UNKNOWN].n > UINT32_MAX)
		return damaged(f, e, "it has too many arenas");
	for (uint64_t i = 0; i < f->parts[FILE_PARTS].n; i++)
		if (parts[i].kind >= HEAP_PART_KINDS || (i && parts[i - 1].addr > parts[i].addr) ||
		    (n && parts[i].owner >= n))
			return damaged(f, e, "parts of its arenas are not in order");
	for (uint64_t i = 0; i < b->n; i++)
		if (b->rows[i].owner && b->rows[i].owner >= n)
			return damaged(f, e, "a block has an arena that there is not");
	b->owners = calloc(n + 1, sizeof(*b->owners));
	if (!b->owners)
		return err_set(e, -ENOMEM, "out of memory");
	for (; b->n_owners < n; b->n_owners++) {
		const struct file_owner *o = &owners[b->n_owners];

		b->owners[b->n_owners] =
			(struct heap_owner){ o->allocator ? text(f, o->allocator) : NULL, o->arena,
					     o->metadata, o->held };
	}
	b->parts = (struct heap_part *)parts;
	b->n_parts = f->parts[FILE_PARTS].n;
	b->unknown = (struct heap_range *)f->parts[FILE_UNKNOWN].at;
	b->n_unknown = (uint32_t)f->parts[FILE_UNKNOWN].n;
	return 0;
}

/* COLLECTION_KINDS: none. */
static uint8_t collection_kind(const char *name)
{
	struct collection c = { .kind = 0 };

	while (c.kind < COLLECTION_KINDS && strcmp(collection_name(&c), name) != 0)
		c.kind++;
	return c.kind;
}

static int put_collections(const struct snapshot_stored *f, struct snapshot *s, struct err *e)
{
	const struct file_collection *rows = f->parts[FILE_COLLECTIONS].at;
	uint32_t *of = (uint32_t *)f->parts[FILE_COLLECTION_OF].at;
	uint64_t n = f->parts[FILE_COLLECTIONS].n;

	if (!of)
		return 0;
	if (n >= COLLECTION_TEXT || f->parts[FILE_COLLECTION_OF].n != s->blocks.n)
		return damaged(f, e, "its collections are not those of its blocks");
	for (uint64_t i = 0; i < s->blocks.n; i++)
		if (of[i] > n && of[i] < COLLECTION_TEXT)
			return damaged(f, e, "a block has a collection that there is not");
	for (uint64_t i = 0; i < n; i++)
		if (collection_kind(text(f, rows[i].kind)) == COLLECTION_KINDS ||
		    rows[i].table >= s->blocks.n ||
		    (rows[i].in >= s->blocks.n && rows[i].in != BLOCK_NONE))
			return damaged(f, e, "a collection is none, or lies nowhere");
	s->collections.rows = large_alloc(n + 1, sizeof(*s->collections.rows));
	if (!s->collections.rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (; s->collections.n < n; s->collections.n++) {
		const struct file_collection *c = &rows[s->collections.n];

		s->collections.rows[s->collections.n] = (struct collection){
			.kind = collection_kind(text(f, c->kind)),
			.at = c->at,
			.in = c->in,
			.table = c->table,
			.elements = c->elements,
			.unused = c->unused,
			.live = c->live,
			.blocks = c->blocks,
			.bytes = c->bytes,
		};
	}
	s->collections.of = of;
	return 0;
}

static struct graph *put_graph(const struct snapshot_stored *f, enum file_kind firsts,
			       enum file_kind edges)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->n = (uint32_t)f->parts[FILE_BLOCKS].n;
	g->first = (uint64_t *)f->parts[firsts].at;
	g->edges = (struct graph_edge *)f->parts[edges].at;
	g->borrowed = true;
	return g;
}

static int put_roots(const struct snapshot_stored *f, struct snapshot *s)
{
	const struct file_root *roots = f->parts[FILE_ROOTS].at;
	uint64_t n = f->parts[FILE_ROOTS].n;

	s->roots = large_alloc(n + 1, sizeof(*s->roots));
	s->graph_roots = large_alloc(n + 1, sizeof(*s->graph_roots));
	if (!s->roots || !s->graph_roots)
		return -ENOMEM;
	s->n_roots = n;
	for (uint64_t i = 0; i < n; i++) {
		uint8_t kind = (uint8_t)file_root_kind(roots[i].kind);

		s->roots[i] = (struct snapshot_root){
			.node = roots[i].node,
			.kind = kind,
			.thread = roots[i].thread,
			.at = roots[i].at,
			.name = roots[i].name ? text(f, roots[i].name) : NULL,
		};
		s->graph_roots[i] = (struct graph_root){ roots[i].node, kind };
	}
	return 0;
}

/* --- its memory --- */

static struct heap_map *maps_of(const struct snapshot_stored *f)
{
	const struct file_map *maps = f->parts[FILE_MAPS].at;
	uint64_t n = f->parts[FILE_MAPS].n;
	struct heap_map *to = calloc(n + 1, sizeof(*to));

	for (uint64_t i = 0; to && i < n; i++)
		to[i] = (struct heap_map){ .start = maps[i].start,
					   .end = maps[i].end,
					   .rss = maps[i].rss,
					   .kind = maps[i].kind };
	return to;
}

static struct stopped_thread *threads_of(const struct snapshot_stored *f)
{
	const struct file_thread *threads = f->parts[FILE_THREADS].at;
	const uint64_t *regs = f->parts[FILE_REGISTERS].at;
	uint64_t n = f->parts[FILE_THREADS].n;
	struct stopped_thread *to = calloc(n + 1, sizeof(*to));

	for (uint64_t i = 0; to && i < n; i++) {
		to[i].tid = (pid_t)threads[i].tid;
		to[i].is_stopped = threads[i].is_stopped;
		if (!f->parts[FILE_REGISTERS].n || threads[i].n_regs > STOP_REGS_MAX)
			continue;
		to[i].n_regs = threads[i].n_regs;
		memcpy(to[i].regs, regs + i * STOP_REGS_MAX, sizeof(to[i].regs));
	}
	return to;
}

static struct copy_run *runs_of(const struct snapshot_stored *f)
{
	const struct file_run *runs = f->parts[FILE_RUNS].at;
	uint64_t n = f->parts[FILE_RUNS].n, at = 0;
	struct copy_run *to = calloc(n + 1, sizeof(*to));

	for (uint64_t i = 0; to && i < n; i++) {
		to[i] = (struct copy_run){ runs[i].addr, runs[i].bytes, at };
		at += runs[i].bytes;
	}
	return to;
}

static struct copy_facts copy_facts_of(const struct snapshot_stored *f)
{
	const struct file_facts *facts = f->parts[FILE_FACTS].at;

	return (struct copy_facts){ .bytes = facts->copied,
				    .unreadable = facts->unreadable,
				    .pause_ns = facts->pause_ns,
				    .copy_ns = facts->copy_ns,
				    .n_missed = facts->n_missed };
}

static int put_memory(struct snapshot_stored *f, const char *folder, struct snapshot *s,
		      struct err *e)
{
	_cleanup_(freep) struct stopped_thread *threads = threads_of(f);
	_cleanup_(freep) struct heap_map *maps = maps_of(f);
	_cleanup_(freep) struct copy_run *runs = runs_of(f);
	struct copy_parts parts = { .maps = maps, .threads = threads, .runs = runs };
	uint64_t len = 0;
	int r = 0;

	if (!maps || !threads || !runs)
		return err_set(e, -ENOMEM, "out of memory");
	if (!contents_are_good(f, &len) || f->parts[FILE_MAPS].n > UINT32_MAX ||
	    f->parts[FILE_THREADS].n > UINT32_MAX || f->parts[FILE_RUNS].n > UINT32_MAX)
		return damaged(f, e, "its contents are not where it says");
	parts.n_maps = (uint32_t)f->parts[FILE_MAPS].n;
	parts.n_threads = (uint32_t)f->parts[FILE_THREADS].n;
	parts.n_runs = (uint32_t)f->parts[FILE_RUNS].n;
	parts.facts = copy_facts_of(f);
	if (parts.n_runs) {
		r = contents_open(f->parts[FILE_CONTENTS].at, f->parts[FILE_FRAMES].at,
				  f->parts[FILE_FRAMES].n - 1, len, folder, &f->contents);
		if (r < 0)
			return err_set(e, r, "%s: no room to unpack its contents in %s", f->path,
				       folder);
		parts.has_bytes = true;
		parts.bytes = contents_bytes(f->contents);
		parts.load = contents_load;
		parts.ctx = f->contents;
	}
	r = copy_of_parts(&parts, &s->copy);
	return r == -E2BIG ? damaged(f, e, "it has more mappings or threads than there can be")
	       : r < 0     ? err_set(e, r, "out of memory")
			   : 0;
}

static int fill(struct snapshot *s, const char *folder, struct err *e)
{
	struct snapshot_stored *f = s->stored;
	int r = read_table(f, e);

	if (r == 0)
		r = check(f, e);
	if (r < 0)
		return r;
	put_facts(f, s);
	put_uses(f, &s->census);
	s->blocks.rows = (struct heap_block *)f->parts[FILE_BLOCKS].at;
	s->blocks.n = f->parts[FILE_BLOCKS].n;
	s->blocks.max = UINT64_MAX;
	s->blocks.objects = s->blocks.wants_parts = true;
	r = put_types(f, s, e);
	if (r == 0)
		r = put_arenas(f, &s->blocks, e);
	if (r == 0)
		r = put_collections(f, s, e);
	if (r == 0)
		r = put_memory(f, folder, s, e);
	if (r < 0)
		return r;
	s->lengths = (uint32_t *)f->parts[FILE_LENGTHS].at;
	s->exact = calloc(1, sizeof(*s->exact));
	if (s->exact)
		s->exact->brought_by = (uint8_t *)f->parts[FILE_BROUGHT_BY].at;
	s->graph = put_graph(f, FILE_FIRST, FILE_EDGES);
	s->reverse = put_graph(f, FILE_REVERSE_FIRST, FILE_REVERSE_EDGES);
	s->index = block_index_sorted(s->blocks.rows, s->blocks.n);
	if (put_roots(f, s) < 0 || !s->graph || !s->reverse || !s->index || !s->exact)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int open_bytes(struct snapshot_stored *f, const char *folder, struct snapshot **ret_snapshot,
		      struct err *e)
{
	_cleanup_(snapshot_freep) struct snapshot *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		snapshot_stored_free(f);
		return err_set(e, -ENOMEM, "out of memory");
	}
	s->stored = f;
	r = fill(s, folder, e);
	if (r < 0)
		return r;
	f->path = NULL;
	*ret_snapshot = TAKE_PTR(s);
	return 0;
}

int snapshot_file_read(const uint8_t *data, uint64_t len, const char *path, const char *folder,
		       struct snapshot **ret_snapshot, struct err *e)
{
	struct snapshot_stored *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(e, -ENOMEM, "out of memory");
	f->data = data;
	f->len = len;
	f->path = path;
	return open_bytes(f, folder, ret_snapshot, e);
}

int snapshot_file_open(const char *path, const char *folder, struct snapshot **ret_snapshot,
		       struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct snapshot_stored *f;
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct file_header))
		return err_set(e, -EBADMSG, "%s: no snapshot of a heap", path);
	f = calloc(1, sizeof(*f));
	at = f ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (at == MAP_FAILED) {
		free(f);
		return err_set(e, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
	}
	f->data = at;
	f->len = (uint64_t)st.st_size;
	f->mapped = true;
	f->path = path;
	return open_bytes(f, folder, ret_snapshot, e);
}

bool snapshot_file_is(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[8];

	return fd >= 0 && pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       memcmp(magic, FILE_MAGIC, sizeof(magic)) == 0;
}

void snapshot_stored_free(struct snapshot_stored *f)
{
	if (!f)
		return;
	contents_close(f->contents);
	if (f->mapped)
		munmap((void *)f->data, f->len);
	free(f);
}

/* --- names --- */

const char *snapshot_file_text(const struct snapshot *s, uint32_t at)
{
	return s->stored ? text(s->stored, at) : "";
}

static const char *name_of(const struct snapshot *s, enum file_kind kind, uint32_t node, int32_t at)
{
	const struct part *p = s->stored ? &s->stored->parts[kind] : NULL;
	const struct file_link_name *names = p ? p->at : NULL;
	uint64_t low = 0, high = p ? p->n : 0;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (names[mid].node < node || (names[mid].node == node && names[mid].at < at))
			low = mid + 1;
		else
			high = mid;
	}
	return p && low < p->n && names[low].node == node && names[low].at == at
		       ? text(s->stored, names[low].name)
		       : NULL;
}

const char *snapshot_file_link_name(const struct snapshot *s, uint32_t node, uint32_t at)
{
	return name_of(s, FILE_LINK_NAMES, node, (int32_t)at);
}

const char *snapshot_file_field_name(const struct snapshot *s, uint32_t type, int32_t at)
{
	return name_of(s, FILE_FIELD_NAMES, type, at);
}
