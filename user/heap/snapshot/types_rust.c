/*
 * Values behind `dyn` of Rust: they have no word of their own that says what they are, but who refers to them has two words, their
 * address and a vtable's: { drop or 0, size, align, methods… } (rustc_middle/src/ty/vtable.rs). A block is believed to
 * be such a value where size and align fit it and the vtable's functions are code; its type is named by their symbols,
 * core::ptr::drop_in_place<T> or <T as Trait>::method, so programs without symbols have no names. Functions that are equal byte for
 * byte may have been made one by the linker: then the name is that of another type.
 *
 * Rc and Arc have two counts before the value. And buffers of String, in programs that have such values: capacity, address,
 * length, of text.
 */
#include "heap/snapshot/type_way.h"

#include "base/clock.h"
#include "base/hash.h"
#include "heap/image_cell.h"
#include "heap/snapshot/snapshot.h"
#include "model/dict.h"
#include "proc/proc_table.h"

#include <stdio.h>
#include <string.h>

enum {
	MAPPINGS_MAX = 1024,
	COUNTS = 16, /* bytes of Rc and Arc before the value */
	ALIGN_MAX = 4096,
	COUNT_MAX = 1 << 28,
	TEXT_LOOKS = 8, /* at each byte: a buffer has one String, and copies of it are left over */
};

#define NAMES_NS 30000000000ULL

struct vtable {
	uint64_t at;
	uint64_t drop, size, align, method;
	bool good;
	uint32_t type, counted; /* once it has a name: of a value, and of one behind counts */
	UT_hash_handle hh;
};

struct finder {
	struct type_finder *f;
	struct snapshot *s;
	struct vtable *vtables;
	struct function *functions;
	uint64_t until_ns; /* when their names have had their time */
	uint32_t n_named, string;
	uint64_t text_left; /* bytes that may still be looked at as text */
	struct dict *dict;
	struct proc_table *procs;
	struct proc_mapping maps[MAPPINGS_MAX];
	uint32_t n_maps;
};

/* --- vtables --- */

static const struct proc_mapping *code_at(const struct finder *k, uint64_t addr)
{
	for (uint32_t i = 0; i < k->n_maps; i++)
		if (addr >= k->maps[i].addr && addr < k->maps[i].end)
			return &k->maps[i];
	return NULL;
}

static bool is_good(const struct finder *k, const struct vtable *v)
{
	return v->size && v->align && !(v->align & (v->align - 1)) && v->align <= ALIGN_MAX &&
	       v->size % v->align == 0 && (v->drop || v->method) &&
	       (!v->drop || code_at(k, v->drop)) && (!v->method || code_at(k, v->method));
}

static struct vtable *see(struct finder *k, uint64_t at)
{
	struct vtable *v;
	uint64_t words[4];

	HASH_FIND(hh, k->vtables, &at, sizeof(at), v);
	if (v)
		return v;
	v = hash_new(k->vtables, at, &at);
	if (!v) {
		k->f->oom = true;
		return NULL;
	}
	if (type_read(k->f, at, words, sizeof(words))) {
		v->drop = words[0];
		v->size = words[1];
		v->align = words[2];
		v->method = words[3];
		/* Of a trait without methods the next vtable is behind it. */
		if (v->drop && v->method && !code_at(k, v->method))
			v->method = 0;
		v->good = is_good(k, v);
	}
	return v;
}

/* --- names --- */

/* "T" of "core::ptr::drop_in_place<T>" and of "<T as Trait>::method". false: it is another function. */
static bool type_in(const char *symbol, char name[TYPE_TEXT_MAX])
{
	const char *from = strstr(symbol, "drop_in_place<"), *end = NULL;
	int depth = 0;

	if (from)
		from += strlen("drop_in_place<");
	else if (symbol[0] == '<')
		from = symbol + 1;
	else
		return false;
	for (const char *at = from; *at && !end; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && at > from && at[-1] != '-' && depth-- == 0)
			end = at;
		else if (depth == 0 && strncmp(at, " as ", 4) == 0)
			end = at;
	}
	if (!end || end == from || end - from >= TYPE_TEXT_MAX)
		return false;
	memcpy(name, from, (size_t)(end - from));
	name[end - from] = '\0';
	return strcmp(name, "_") != 0;
}

/* Functions of vtables, by address: those of one image have their names of one cell. */
struct function {
	uint64_t addr;
	char *type; /* that its symbol names; NULL: none */
	UT_hash_handle hh;
};

static int by_addr(const struct function *a, const struct function *b)
{
	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void see_function(struct finder *k, uint64_t addr)
{
	if (addr && !hash_get(k->functions, addr, &addr))
		k->f->oom = true;
}

struct symbols {
	struct finder *k;
	const uint64_t *vaddrs;
	uint64_t bias;
};

static void on_symbol(void *ctx, uint32_t i, const char *name)
{
	const struct symbols *x = ctx;
	uint64_t addr = x->vaddrs[i] + x->bias;
	char type[TYPE_TEXT_MAX];
	struct function *fn;

	HASH_FIND(hh, x->k->functions, &addr, sizeof(addr), fn);
	if (fn && !fn->type && type_in(name, type))
		fn->type = strdup(type);
}

/* All functions that are in the image of this one. The next one behind them. */
static struct function *name_image(struct finder *k, struct function *first)
{
	const struct proc_mapping *m = code_at(k, first->addr);
	_cleanup_(freep) uint64_t *vaddrs = calloc(HASH_COUNT(k->functions) + 1ul, sizeof(*vaddrs));
	_cleanup_(closep) int fd = m ? proc_table_open_module(k->procs, m->module, NULL) : -1;
	struct symbols x = { k, vaddrs, m ? m->bias : 0 };
	struct function *fn = first;
	uint32_t n = 0;

	for (; fn && (fn == first || code_at(k, fn->addr) == m); fn = fn->hh.next)
		if (vaddrs && m)
			vaddrs[n++] = fn->addr - m->bias;
	if (fd >= 0 && n && now_ns() < k->until_ns &&
	    heap_image_names(fd, "", vaddrs, n, on_symbol, &x) < 0)
		k->until_ns = now_ns(); /* what one takes in vain, others would, too */
	return fn;
}

static void name_functions(struct finder *k)
{
	for (struct vtable *v = k->vtables; v; v = v->hh.next)
		if (v->good) {
			see_function(k, v->method);
			see_function(k, v->drop);
		}
	HASH_SORT(k->functions, by_addr);
	for (struct function *fn = k->functions; fn;)
		fn = name_image(k, fn);
}

static void functions_free(struct finder *k)
{
	for (struct function *fn = k->functions; fn; fn = fn->hh.next)
		free(fn->type);
	hash_free(k->functions);
}

/* By the function's symbol, if it has one. */
static bool name_by(struct finder *k, uint64_t addr, char name[TYPE_TEXT_MAX])
{
	struct function *fn;

	HASH_FIND(hh, k->functions, &addr, sizeof(addr), fn);
	return fn && fn->type && snprintf(name, TYPE_TEXT_MAX, "%s", fn->type) > 0;
}

static void name_all(struct finder *k)
{
	char name[TYPE_TEXT_MAX], counted[TYPE_TEXT_MAX + 32];

	k->until_ns = now_ns() + NAMES_NS;
	name_functions(k);
	for (struct vtable *v = k->vtables; v && !k->f->oom; v = v->hh.next) {
		if (!v->good || (!name_by(k, v->method, name) && !name_by(k, v->drop, name)))
			continue;
		snprintf(counted, sizeof(counted), "Rc or Arc of %s", name);
		v->type = type_add(k->f, TYPE_RUST, name, v->at);
		v->counted = type_add(k->f, TYPE_RUST, counted, v->at);
		k->n_named++;
	}
}

/* --- words --- */

struct word {
	uint64_t at; /* where it is */
	uint32_t to; /* the block whose beginning it has */
};

typedef void (*word_fn)(struct finder *k, struct word w);

/* Each word that has the address where a block without a type begins. */
static void each_word(struct finder *k, word_fn fn)
{
	const struct snapshot *s = k->s;

	for (uint64_t i = 0; i < s->n_roots && !k->f->oom; i++)
		if (s->roots[i].kind != SNAPSHOT_ROOT_MODULE &&
		    s->roots[i].kind != SNAPSHOT_ROOT_REGISTER && !s->types.of[s->roots[i].node])
			fn(k, (struct word){ s->roots[i].at, s->roots[i].node });
	for (uint32_t from = 0; from < s->graph->n && !k->f->oom; from++)
		for (uint64_t i = s->graph->first[from]; i < s->graph->first[from + 1]; i++)
			if (!s->types.of[s->graph->edges[i].to])
				fn(k,
				   (struct word){ s->blocks.rows[from].addr + s->graph->edges[i].at,
						  s->graph->edges[i].to });
}

/* words[1] is the one at w.at; false: it has another address of the block, or less is there. */
static bool read_words(struct finder *k, struct word w, uint64_t words[3])
{
	uint64_t n;
	const uint8_t *bytes = w.at >= 8 ? copy_bytes(k->f->copy, w.at - 8, &n) : NULL;

	if (!bytes || n < 24)
		return false;
	memcpy(words, bytes, 24);
	return words[1] == k->s->blocks.rows[w.to].addr;
}

/* The vtable whose address is behind the block's, if there may be one. */
static struct vtable *vtable_of(struct finder *k, struct word w)
{
	uint64_t words[3];
	const struct heap_map *m;
	struct vtable *v;

	if (!read_words(k, w, words) || !type_is_address(words[2]))
		return NULL;
	m = heap_map_of(copy_memory(k->f->copy), words[2]);
	if (m && m->kind != HEAP_MAP_OTHER && m->kind != HEAP_MAP_DATA)
		return NULL;
	v = see(k, words[2]);
	return v && v->good ? v : NULL;
}

static void collect(struct finder *k, struct word w)
{
	vtable_of(k, w);
}

static void set_value(struct finder *k, struct word w)
{
	struct vtable *v = vtable_of(k, w);
	uint64_t size = snapshot_bytes(k->s, w.to), counts[2], before;

	if (!v || !v->type)
		return;
	before = v->align > COUNTS ? v->align : COUNTS;
	if (collection_fits(before + v->size, size) &&
	    type_read(k->f, k->s->blocks.rows[w.to].addr, counts, COUNTS) && counts[0] &&
	    counts[0] < COUNT_MAX && counts[1] && counts[1] < COUNT_MAX)
		type_set(k->f, w.to, v->counted, 0);
	else if (collection_fits(v->size, size))
		type_set(k->f, w.to, v->type, 0);
}

static void set_string(struct finder *k, struct word w)
{
	uint64_t words[3], size = snapshot_bytes(k->s, w.to), n;
	const uint8_t *bytes;

	if (!read_words(k, w, words) || !words[2] || words[2] > words[0] ||
	    words[2] > COLLECTION_TEXT_MAX || !collection_fits(words[0], size))
		return;
	bytes = copy_bytes(k->f->copy, words[1], &n);
	if (!bytes || n < words[2] || words[2] > k->text_left)
		return;
	k->text_left -= words[2];
	if (!type_is_text(bytes, words[2]))
		return;
	if (!k->string)
		k->string = type_add(k->f, TYPE_SHAPE, "String buffer", 0);
	type_set(k->f, w.to, k->string, 0);
	k->s->collections.of[w.to] = COLLECTION_TEXT | (uint32_t)words[2];
}

/* --- */

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

void types_of_rust(struct type_finder *f)
{
	struct finder *k = calloc(1, sizeof(*k));

	if (!k) {
		f->oom = true;
		return;
	}
	k->f = f;
	k->s = f->s;
	for (uint32_t i = 0; i < f->blocks->n; i++)
		k->text_left += TEXT_LOOKS * 8 * (uint64_t)f->blocks->rows[i].words;
	if (open_images(k) == 0) {
		each_word(k, collect);
		name_all(k);
		if (k->n_named) {
			each_word(k, set_value);
			each_word(k, set_string);
		}
	}
	hash_free(k->vtables);
	functions_free(k);
	proc_table_free(k->procs);
	dict_free(k->dict);
	free(k);
}
