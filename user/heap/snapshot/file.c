#include "heap/snapshot/file.h"

#include "base/large.h"
#include "heap/snapshot/contents.h"
#include "heap/snapshot/exact.h"
#include "heap/snapshot/file_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
	snprintf(to->comm, sizeof(to->comm), "%s", file_text(f, facts->comm));
	snprintf(to->exe, sizeof(to->exe), "%s", file_text(f, facts->exe));
	snprintf(to->container, sizeof(to->container), "%s", file_text(f, facts->container));
	snprintf(to->kernel, sizeof(to->kernel), "%s", file_text(f, facts->kernel));
	snprintf(to->machine, sizeof(to->machine), "%s", file_text(f, facts->machine));
	for (uint64_t i = 0; i < f->parts[FILE_LABELS].n && i < SNAPSHOT_LABELS_MAX; i++)
		to->labels[to->n_labels++] =
			(struct snapshot_label){ file_text(f, labels[i].key),
						 file_text(f, labels[i].value) };
}

static void put_said(const struct snapshot_stored *f, struct snapshot *s)
{
	const uint32_t *said = f->parts[FILE_SAID].at;

	for (uint64_t i = 0; i < f->parts[FILE_SAID].n && i < SNAPSHOT_SAID_MAX; i++)
		snapshot_say(s, file_text(f, said[i]));
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
			.allocator = file_text(f, u->allocator),
			.caveat = u->caveat ? file_text(f, u->caveat) : NULL,
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
		char *name = strdup(file_text(f, types[t->n].name));
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
			return file_damaged(f, e, "a block has a type that there is not");
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
		return file_damaged(f, e, "it has too many arenas");
	for (uint64_t i = 0; i < f->parts[FILE_PARTS].n; i++)
		if (parts[i].kind >= HEAP_PART_KINDS || (i && parts[i - 1].addr > parts[i].addr) ||
		    (n && parts[i].owner >= n))
			return file_damaged(f, e, "parts of its arenas are not in order");
	for (uint64_t i = 0; i < b->n; i++)
		if (b->rows[i].owner && b->rows[i].owner >= n)
			return file_damaged(f, e, "a block has an arena that there is not");
	b->owners = calloc(n + 1, sizeof(*b->owners));
	if (!b->owners)
		return err_set(e, -ENOMEM, "out of memory");
	for (; b->n_owners < n; b->n_owners++) {
		const struct file_owner *o = &owners[b->n_owners];

		b->owners[b->n_owners] =
			(struct heap_owner){ o->allocator ? file_text(f, o->allocator) : NULL,
					     o->arena, o->metadata, o->held };
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
		return file_damaged(f, e, "its collections are not those of its blocks");
	for (uint64_t i = 0; i < s->blocks.n; i++)
		if (of[i] > n && of[i] < COLLECTION_TEXT)
			return file_damaged(f, e, "a block has a collection that there is not");
	for (uint64_t i = 0; i < n; i++)
		if (collection_kind(file_text(f, rows[i].kind)) == COLLECTION_KINDS ||
		    rows[i].table >= s->blocks.n ||
		    (rows[i].in >= s->blocks.n && rows[i].in != BLOCK_NONE))
			return file_damaged(f, e, "a collection is none, or lies nowhere");
	s->collections.rows = large_alloc(n + 1, sizeof(*s->collections.rows));
	if (!s->collections.rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (; s->collections.n < n; s->collections.n++) {
		const struct file_collection *c = &rows[s->collections.n];

		s->collections.rows[s->collections.n] = (struct collection){
			.kind = collection_kind(file_text(f, c->kind)),
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
			.name = roots[i].name ? file_text(f, roots[i].name) : NULL,
		};
		s->graph_roots[i] = (struct graph_root){ roots[i].node, kind };
	}
	return 0;
}

static int put_sites(const struct snapshot_stored *f, struct snapshot *s)
{
	const struct file_trace *trace = f->parts[FILE_TRACE].at;
	const struct part *strings = &f->parts[FILE_STRINGS];
	struct sites *to;

	if (!trace)
		return 0;
	to = s->sites = calloc(1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	*to = (struct sites){
		.texts = strings->at,
		.n_texts = strings->n,
		.site = (struct site *)f->parts[FILE_SITES].at,
		.stack = (struct site_stack *)f->parts[FILE_STACKS].at,
		.frame = (struct site *)f->parts[FILE_STACK_FRAMES].at,
		.n_sites = (uint32_t)f->parts[FILE_SITES].n,
		.n_stacks = (uint32_t)f->parts[FILE_STACKS].n,
		.n_frames = (uint32_t)f->parts[FILE_STACK_FRAMES].n,
		.stack_of = (uint32_t *)f->parts[FILE_STACK_OF].at,
		.age_ms = (uint32_t *)f->parts[FILE_AGES].at,
		.traced_ns = trace->traced_ns,
		.lost = trace->lost,
		.stored = true,
	};
	for (uint32_t i = 0; i < s->blocks.n; i++)
		if (to->stack_of[i]) {
			to->known++;
			to->known_bytes += snapshot_bytes(s, i);
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
	if (!file_contents_are_good(f, &len) || f->parts[FILE_MAPS].n > UINT32_MAX ||
	    f->parts[FILE_THREADS].n > UINT32_MAX || f->parts[FILE_RUNS].n > UINT32_MAX)
		return file_damaged(f, e, "its contents are not where it says");
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
	return r == -E2BIG ? file_damaged(f, e, "it has more mappings or threads than there can be")
	       : r < 0     ? err_set(e, r, "out of memory")
			   : 0;
}

static int fill(struct snapshot *s, const char *folder, struct err *e)
{
	struct snapshot_stored *f = s->stored;
	int r = file_check(f, e);

	if (r < 0)
		return r;
	put_facts(f, s);
	put_said(f, s);
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
	if (put_roots(f, s) < 0 || put_sites(f, s) < 0 || !s->graph || !s->reverse || !s->index ||
	    !s->exact)
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

/*
 * The file, mapped. One that somebody else may write to is read: a private mapping shows what is written later, and what was found in order once
 * is believed afterwards. MAP_FAILED: out of memory, or it is not all there.
 */
static void *file_bytes(int fd, const struct stat *st)
{
	const bool is_ours = st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
	const size_t len = (size_t)st->st_size;
	uint8_t *at;

	if (is_ours)
		return mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	/* Nearly nothing but a hole. */
	if ((uint64_t)st->st_blocks * 512 < len / 64)
		return MAP_FAILED;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t have = 0; at != MAP_FAILED && have < len;) {
		ssize_t n = pread(fd, at + have, len - have, (off_t)have);

		if (n > 0) {
			have += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			munmap(at, len);
			return MAP_FAILED;
		}
	}
	return at;
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
	if (S_ISDIR(st.st_mode))
		return err_set(
			e, -EISDIR,
			"%s: a directory, no snapshot of a heap (memscope heap snapshot writes one)",
			path);
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct file_header))
		return err_set(e, -EBADMSG, "%s: no snapshot of a heap", path);
	f = calloc(1, sizeof(*f));
	at = f ? file_bytes(fd, &st) : MAP_FAILED;
	if (at == MAP_FAILED) {
		free(f);
		return err_set(e, -ENOMEM, "%s: cannot be read into memory", path);
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
	return s->stored ? file_text(s->stored, at) : "";
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
		       ? file_text(s->stored, names[low].name)
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
