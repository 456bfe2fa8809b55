/*
 * Types by who points to a block, as debug info has it: a variable or a member whose type is "pointer to Session" says that what it
 * points to is a Session. From variables of images, and objects whose class is known by RTTI or a vtable, on through the pointers
 * of what was found, as far as that goes.
 *
 * A guess: a program may cast, or keep an object of a larger struct where a smaller one is declared. So a block is believed only
 * where the pointer has its beginning and its size is what an allocator makes of one, of several of which each has pointers
 * where it should have some, or of the only struct of that size that begins with one (a derived class). What another way has named keeps its name, and is gone through for what it points to.
 *
 * Images are read in the order of how many blocks without a type their variables refer to, until MS_MAX is over: then the rest is
 * said to be left out. Not in a census that repeats itself (snapshot_take_types()), which would read them each time.
 */
#include "heap/snapshot/type_way.h"

#include "base/clock.h"
#include "base/large.h"
#include "elf/debug_link.h"
#include "elf/dwarf.h"
#include "elf/dwarf_members.h"
#include "heap/snapshot/snapshot.h"
#include "model/dict.h"
#include "proc/proc_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	MAPPINGS_MAX = 1024,
	IMAGES_MAX = 64,
	MS_MAX = 4000,    /* for all images                                            */
	BLOCKS_LEAST = 8, /* without a type, that variables of an image refer to       */
	CHECKED_MAX = 64, /* of several in one block: so many are looked at            */
	COUNTS = 16,      /* bytes of Rust's Rc and Arc before the value               */
	GROUP = 16,       /* of hashbrown: that many control bytes are doubled         */
	NAME_BYTES = 600,
	STEPS_MAX =
		100000000, /* comparisons with layouts and names, in all: a program's debug info may have any number of them alike */
};

/* An image whose variables refer to blocks that have no type. */
struct image {
	module_id module;
	uint64_t bias, blocks;
	bool is_program;
};

/* What a node is laid out as. */
struct laid {
	uint32_t layout;     /* 0: not known                                          */
	uint32_t from, each; /* in bytes: where the first is, and how far to the next */
	uint32_t n;
};

struct finder {
	struct type_finder *f;
	struct snapshot *s;
	struct dict *dict;
	struct proc_table *procs;
	struct proc_mapping maps[MAPPINGS_MAX];
	uint32_t n_maps;
	struct image images[IMAGES_MAX];
	uint32_t n_images;

	/* Of one image, while it is gone through. */
	module_id module;
	uint64_t bias;
	const struct dwarf_layout *layouts;
	uint32_t n_layouts;
	uint32_t *one, *several; /* types, by layout; 0: none yet */
	uint32_t *larger;        /* by layout: the first that begins with it; 0: none */
	uint32_t *next_larger;   /* … and the next that begins with the same           */

	struct laid *laid; /* of each node                  */
	uint32_t *queue;   /* nodes that are to be gone through; each once */
	uint32_t n_queue;
	uint64_t steps; /* of STEPS_MAX */
};

/* --- memory --- */

/* A pointer that may be one: to nothing, which Rust has small numbers for, or to something that is there. */
static bool is_plausible(struct finder *k, uint64_t word)
{
	return word < HEAP_PAGE || heap_map_of(copy_memory(k->f->copy), word);
}

/* --- names --- */

static uint32_t type_of(struct finder *k, uint32_t layout, bool is_array)
{
	uint32_t *type = is_array ? &k->several[layout] : &k->one[layout];
	char name[NAME_BYTES];

	if (*type)
		return *type;
	snprintf(name, sizeof(name), "%.590s%s", k->layouts[layout].name, is_array ? "[]" : "");
	/* Images that have the same struct share its name. */
	k->steps += k->f->t->n;
	for (uint32_t i = k->f->t->n; i-- > 1 && !*type && k->steps < STEPS_MAX;)
		if (k->f->t->type[i].by == TYPE_MEMBER && strcmp(k->f->t->type[i].name, name) == 0)
			*type = i;
	if (!*type)
		*type = type_add(k->f, TYPE_MEMBER, name, 0);
	return *type;
}

/* --- blocks --- */

static bool is_struct_here(struct finder *k, const struct dwarf_layout *layout, uint64_t addr)
{
	for (uint32_t i = 0; i < layout->n; i++) {
		uint64_t word;

		if (!type_word(k->f, addr + layout->slots[i].off, &word) || !is_plausible(k, word))
			return false;
	}
	return true;
}

/*
 * How many of them a block has; 0: it is something else. Those without pointers have nothing but their size to be checked by.
 */
static uint32_t count_of(struct finder *k, const struct dwarf_layout *layout, uint64_t addr,
			 uint64_t bytes)
{
	uint64_t n = layout->bytes ? bytes / layout->bytes : 0, good = 0;

	if (!n || n > UINT32_MAX || layout->is_ambiguous)
		return 0;
	while (good < n && good < CHECKED_MAX &&
	       is_struct_here(k, layout, addr + good * layout->bytes))
		good++;
	if (n > 1 && bytes - n * layout->bytes < 16 && (good == n || good == CHECKED_MAX))
		return (uint32_t)n;
	return good && collection_fits(layout->bytes, bytes);
}

static void lay(struct finder *k, uint32_t node, struct laid laid)
{
	if (k->laid[node].layout)
		return;
	k->laid[node] = laid;
	if (k->layouts[laid.layout].n)
		k->queue[k->n_queue++] = node;
}

/* Words behind a pointer may look like the length and capacity of a string that it is none of. */
static bool is_open(const struct finder *k, uint32_t node)
{
	return !k->f->t->of[node] || (k->f->t->type[k->f->t->of[node]].by == TYPE_SHAPE &&
				      k->s->collections.of[node] & COLLECTION_TEXT);
}

static void set_type(struct finder *k, uint32_t node, uint32_t layout, uint32_t n)
{
	uint32_t type = is_open(k, node) ? type_of(k, layout, n > 1) : 0;

	if (!type)
		return;
	type_set(k->f, node, type, 0);
	k->s->collections.of[node] = 0;
}

static bool is_runtimes(const struct types *t, uint32_t node)
{
	enum type_by by = t->type[t->of[node]].by;

	return by == TYPE_CPYTHON || by == TYPE_CPYTHON_TABLE || by == TYPE_GHC;
}

/*
 * The only struct of this size that begins with one of those: of a derived class, or what C makes of it. 0: none, or several
 * that only differ in what they are called.
 */
static uint32_t larger_of(struct finder *k, uint32_t layout, uint64_t addr, uint64_t bytes)
{
	uint32_t found = 0;

	for (uint32_t i = k->larger[layout]; i && k->steps < STEPS_MAX; i = k->next_larger[i]) {
		k->steps += 1 + k->layouts[i].n;
		if (k->layouts[i].bytes <= k->layouts[layout].bytes ||
		    count_of(k, &k->layouts[i], addr, bytes) != 1)
			continue;
		if (found)
			return 0;
		found = i;
	}
	return found;
}

/* Does any but the first of them point to something? Else they may be the rest of a larger struct. */
static bool has_pointers(struct finder *k, const struct dwarf_layout *layout, uint64_t addr,
			 uint32_t n)
{
	uint64_t word;

	for (uint32_t i = 1; i < n && i < CHECKED_MAX; i++)
		for (uint32_t s = 0; s < layout->n; s++)
			if (type_word(k->f, addr + i * layout->bytes + layout->slots[s].off,
				      &word) &&
			    word >= HEAP_PAGE)
				return true;
	return false;
}

/* Something that `layout` describes begins with this block. */
static void visit(struct finder *k, uint32_t node, uint32_t layout)
{
	const struct heap_block *b = &k->s->blocks.rows[node];
	uint64_t bytes = snapshot_bytes(k->s, node);
	uint32_t n;

	if (k->laid[node].layout || is_runtimes(k->f->t, node))
		return;
	n = count_of(k, &k->layouts[layout], b->addr, bytes);
	if (n != 1 && !(n && has_pointers(k, &k->layouts[layout], b->addr, n))) {
		uint32_t larger = larger_of(k, layout, b->addr, bytes);

		layout = larger ? larger : layout;
		n = larger ? 1 : n;
	}
	if (!n)
		return;
	set_type(k, node, layout, n);
	lay(k, node, (struct laid){ layout, 0, (uint32_t)k->layouts[layout].bytes, n });
}

/*
 * A table of hashbrown: elements, the last one first, then a control byte for each and GROUP more (hashbrown/src/raw/mod.rs); `off`: from the
 * block's beginning to the control bytes.
 */
static void visit_table(struct finder *k, uint32_t node, uint32_t off, uint32_t layout)
{
	const struct dwarf_layout *l = &k->layouts[layout];
	uint64_t n = l->bytes ? off / l->bytes : 0, buckets = 1;

	if (k->laid[node].layout || !n || l->is_ambiguous)
		return;
	while (buckets * 2 <= n)
		buckets *= 2;
	if (off - buckets * l->bytes >= GROUP ||
	    !collection_fits(off + buckets + GROUP, snapshot_bytes(k->s, node)))
		return;
	lay(k, node,
	    (struct laid){ layout, off - (uint32_t)(buckets * l->bytes), (uint32_t)l->bytes,
			   (uint32_t)buckets });
}

/* The pointers of one that is at `addr`. */
static void follow(struct finder *k, uint32_t layout, uint64_t addr)
{
	const struct dwarf_layout *l = &k->layouts[layout];

	for (uint32_t i = 0; i < l->n && !k->f->oom; i++) {
		uint32_t node, off;
		uint64_t word;

		if (!type_word(k->f, addr + l->slots[i].off, &word) || !word)
			continue;
		node = block_index_find(k->s->index, word, &off);
		if (node == BLOCK_NONE)
			continue;
		if (l->slots[i].kind == DWARF_SLOT_BEFORE)
			visit_table(k, node, off, l->slots[i].layout);
		else if (!off)
			visit(k, node, l->slots[i].layout);
	}
}

static void follow_all(struct finder *k)
{
	for (uint32_t i = 0; i < k->n_queue && !k->f->oom; i++) {
		const struct laid *laid = &k->laid[k->queue[i]];
		uint64_t addr = k->s->blocks.rows[k->queue[i]].addr + laid->from;

		for (uint32_t n = 0; n < laid->n; n++)
			follow(k, laid->layout, addr + (uint64_t)n * laid->each);
	}
}

/* --- where it begins --- */

static void follow_variables(struct finder *k, const struct dwarf_members *m)
{
	uint32_t n;
	const struct dwarf_variable *v = dwarf_members_variables(m, &n);

	for (uint32_t i = 0; i < n; i++)
		if (v[i].layout < k->n_layouts && !k->layouts[v[i].layout].is_ambiguous)
			follow(k, v[i].layout, v[i].vaddr + k->bias);
}

/* Without blanks: demangled names and those of debug info have them in other places. */
static void put_key(const char *name, char key[NAME_BYTES])
{
	size_t n = 0;

	for (; *name && n < NAME_BYTES - 1; name++)
		if (*name != ' ')
			key[n++] = *name;
	key[n] = '\0';
}

struct named {
	char key[NAME_BYTES];
	uint32_t layout;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->key, ((const struct named *)b)->key);
}

static uint32_t layout_named(const struct named *rows, uint32_t n, const char *name)
{
	struct named key = { .layout = 0 };
	const struct named *found;

	put_key(name, key.key);
	found = bsearch(&key, rows, n, sizeof(*rows), by_key);
	return found ? found->layout : 0;
}

/* What of each type of RTTI or of a vtable of Rust is its layout; 0: none. The caller's. */
static uint32_t *layouts_of_types(struct finder *k)
{
	struct named *rows = large_alloc(k->n_layouts + 1ul, sizeof(*rows));
	uint32_t *found = calloc(k->f->t->n, sizeof(*found)), n = 0;

	for (uint32_t i = 1; rows && i < k->n_layouts; i++)
		if (k->layouts[i].bytes && !k->layouts[i].is_ambiguous) {
			put_key(k->layouts[i].name, rows[n].key);
			rows[n++].layout = i;
		}
	if (n)
		qsort(rows, n, sizeof(*rows), by_key);
	for (uint32_t i = 1; found && rows && i < k->f->t->n; i++) {
		const struct type *t = &k->f->t->type[i];
		const char *name = t->name;

		if (t->by == TYPE_RUST && strncmp(name, "Rc or Arc of ", 13) == 0)
			name += 13;
		if (t->by == TYPE_RTTI || t->by == TYPE_RUST)
			found[i] = layout_named(rows, n, name);
	}
	large_free(rows);
	return found;
}

static void begin_at_objects(struct finder *k)
{
	_cleanup_(freep) uint32_t *of_type = layouts_of_types(k);
	const struct types *t = k->f->t;

	for (uint32_t i = 0; of_type && i < k->s->blocks.n; i++) {
		uint32_t layout = of_type[t->of[i]], from = 0;

		if (!layout)
			continue;
		if (strncmp(t->type[t->of[i]].name, "Rc or Arc of ", 13) == 0)
			from = COUNTS;
		if (from + k->layouts[layout].bytes <= snapshot_bytes(k->s, i))
			lay(k, i,
			    (struct laid){ layout, from, (uint32_t)k->layouts[layout].bytes, 1 });
	}
}

/* --- images --- */

static int open_beside(void *ctx, const char *path, bool host)
{
	const struct finder *k = ctx;

	return proc_table_open_beside(k->procs, k->module, path, host);
}

static void link_larger(struct finder *k)
{
	for (uint32_t i = 1; i < k->n_layouts; i++)
		if (k->layouts[i].head && k->layouts[i].bytes) {
			k->next_larger[i] = k->larger[k->layouts[i].head];
			k->larger[k->layouts[i].head] = i;
		}
}

static void go_through(struct finder *k, const struct dwarf_members *m)
{
	k->layouts = dwarf_members_layouts(m, &k->n_layouts);
	k->one = calloc(k->n_layouts + 1ul, sizeof(*k->one));
	k->several = calloc(k->n_layouts + 1ul, sizeof(*k->several));
	k->larger = calloc(k->n_layouts + 1ul, sizeof(*k->larger));
	k->next_larger = calloc(k->n_layouts + 1ul, sizeof(*k->next_larger));
	k->n_queue = 0;
	memset(k->laid, 0, k->s->blocks.n * sizeof(*k->laid));
	if (k->one && k->several && k->larger && k->next_larger) {
		link_larger(k);
		follow_variables(k, m);
		begin_at_objects(k);
		follow_all(k);
	} else {
		k->f->oom = true;
	}
	free(k->one);
	free(k->several);
	free(k->larger);
	free(k->next_larger);
}

/* false: its time was not enough, or that of what it says. */
static bool read_image(struct finder *k, const struct image *image, int64_t max_ms)
{
	_cleanup_(dwarf_members_freep) struct dwarf_members *m = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(debug_file_freep) struct debug_file *debug = NULL, *alt = NULL;
	_cleanup_(closep) int fd = proc_table_open_module(k->procs, image->module, NULL);
	struct elf_file *with;

	k->module = image->module;
	k->bias = image->bias;
	if (fd < 0 || elf_file_open(fd, "", &elf, NULL) < 0)
		return true;
	if (!dwarf_present(elf))
		debug_link_find(elf, open_beside, k, &debug);
	with = debug ? debug->elf : elf;
	if (!dwarf_present(with))
		return true;
	if (max_ms <= 0)
		return false;
	debug_link_alt(with, debug ? debug->path : "", open_beside, k, &alt);
	if (dwarf_members_read(with, alt ? alt->elf : NULL, max_ms, &m, NULL) < 0)
		return false;
	go_through(k, m);
	return dwarf_members_complete(m) && k->steps < STEPS_MAX;
}

/* The mapping of code nearest below a variable: variables are mapped behind their image's code. */
static const struct proc_mapping *image_below(const struct finder *k, uint64_t addr)
{
	const struct proc_mapping *found = NULL;

	for (uint32_t i = 0; i < k->n_maps && k->maps[i].addr <= addr; i++)
		if (k->maps[i].kind == MODULE_ELF && k->maps[i].readable)
			found = &k->maps[i];
	return found;
}

/* A program at a fixed address, or by habit of the kernel one that is not, lies below its libraries. NULL: there is none. */
static const struct proc_mapping *first_image(const struct finder *k)
{
	for (uint32_t i = 0; i < k->n_maps; i++)
		if (k->maps[i].kind == MODULE_ELF && k->maps[i].readable)
			return &k->maps[i];
	return NULL;
}

static void count_root(struct finder *k, uint64_t addr)
{
	const struct proc_mapping *map = image_below(k, addr);
	uint32_t i = 0;

	while (map && i < k->n_images && k->images[i].module.ix != map->module.ix)
		i++;
	if (!map || i == IMAGES_MAX)
		return;
	if (i == k->n_images)
		k->images[k->n_images++] =
			(struct image){ map->module, map->bias, 0, map == first_image(k) };
	k->images[i].blocks++;
}

static int by_blocks(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	return (x->blocks < y->blocks) - (x->blocks > y->blocks);
}

/* The program itself is read in any case: objects of its classes may be all there is. */
static void find_images(struct finder *k)
{
	const struct snapshot *s = k->s;

	for (uint64_t i = 0; i < s->n_roots; i++)
		if (s->roots[i].kind == SNAPSHOT_ROOT_GLOBAL && !s->types.of[s->roots[i].node])
			count_root(k, s->roots[i].at);
	if (first_image(k))
		count_root(k, first_image(k)->addr);
	if (k->n_images)
		qsort(k->images, k->n_images, sizeof(*k->images), by_blocks);
}

static int open_images(struct finder *k)
{
	struct proc *proc;

	k->dict = dict_new();
	k->procs = k->dict ? proc_table_new(k->dict) : NULL;
	if (!k->procs || proc_table_scan(k->procs, k->f->pid, 0, now_ns(), NULL) < 0)
		return -1;
	proc = proc_table_first(k->procs, k->f->pid);
	k->n_maps = proc ? proc_mappings(k->procs, proc, k->maps, MAPPINGS_MAX) : 0;
	k->n_maps = k->n_maps < MAPPINGS_MAX ? k->n_maps : MAPPINGS_MAX;
	return 0;
}

static void read_images(struct finder *k)
{
	int64_t until = (int64_t)now_ns() + MS_MAX * 1000000ll;

	find_images(k);
	for (uint32_t i = 0; i < k->n_images && !k->f->oom; i++)
		if ((k->images[i].blocks >= BLOCKS_LEAST || k->images[i].is_program) &&
		    !read_image(k, &k->images[i], (until - (int64_t)now_ns()) / 1000000))
			k->s->debug_unread++;
}

void types_of_members(struct type_finder *f)
{
	struct finder *k;

	if (f->s->link_max != UINT64_MAX)
		return;
	k = calloc(1, sizeof(*k));
	if (k) {
		k->f = f;
		k->s = f->s;
		k->laid = large_alloc(f->blocks->n + 1, sizeof(*k->laid));
		k->queue = large_alloc(f->blocks->n + 1, sizeof(*k->queue));
	}
	f->oom |= !k || !k->laid || !k->queue;
	if (!f->oom && open_images(k) == 0)
		read_images(k);
	if (!k)
		return;
	large_free(k->laid);
	large_free(k->queue);
	proc_table_free(k->procs);
	dict_free(k->dict);
	free(k);
}
