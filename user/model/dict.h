/*
 * The interned nouns that the profiles of one run share: strings, modules, locations, stacks
 * and label sets. Each is stored once and known by a typed id (ids.h); symbolize/ names each
 * location once for all profiles. A dict is grow-only but for label sets (dict_labels_sweep()); dict_free() releases
 * everything, and pointers it gave are good until then: things are added, and filled in, but never move.
 *
 * Functions that intern return id 0 when memory runs out and remember it: check once with
 * dict_oom() before results are used. Not thread-safe.
 *
 * One source file per noun (strtab.c, module.c, location.c, stack.c, labels.c) over the
 * tables in tables.h.
 */
#ifndef MEMSCOPE_MODEL_DICT_H
#define MEMSCOPE_MODEL_DICT_H

#include "base/cleanup.h"
#include "model/ids.h"

#include <stddef.h>

struct dict;

enum module_kind {
	MODULE_NONE,    /* an address that no mapping covers; vaddr is the address itself */
	MODULE_ELF,     /* a file; vaddr is the ELF's own                                  */
	MODULE_KERNEL,  /* [kernel]; vaddr is the kernel address                           */
	MODULE_VDSO,    /* [vdso]; vaddr is the offset into the image                      */
	MODULE_ANON,    /* executable memory without a file (JIT); vaddr is the address    */
	MODULE_LANG,    /* code that an interpreter executes, of a language: [Python]; vaddr is 0 */
};

/*
 * One code image. Equal (kind, path, build_id, dev, ino) is the same module; given again with
 * another range, it covers both (`start` and `file_off` of the lower, `limit` of the higher).
 */
struct module {
	enum module_kind kind;
	string_id path;      /* as the target sees it: /usr/lib/…/libc.so.6, [kernel], [vdso], //anon */
	string_id build_id;  /* lower-case hex, empty when unknown                          */
	uint64_t dev, ino;   /* file identity when it was mapped; 0 in a profile read back  */
	uint64_t start;      /* vaddr of the executable part; 0 when unknown                */
	uint64_t limit;      /* one past its end                                            */
	uint64_t file_off;   /* file offset of `start`                                      */
};

/* One source line of a location; inlined callees come first (pprof's order). */
struct line {
	string_id function;     /* as shown: demangled                 */
	string_id system_name;  /* as the linker knows it; may be empty */
	string_id file;
	uint32_t line;
	uint32_t start_line;
};

/*
 * One place in code. `vaddr` has been moved back into the call for return addresses (pc - 1) by
 * whoever interned it, so that lookup needs no flag.
 */
struct location {
	uint64_t vaddr;
	module_id module;
	bool named;            /* symbolize/ has been here; lines may still be empty */
	bool lines_unread;     /* … and debug info that may know more of it was left unread */
	uint32_t n_lines;
	const struct line *lines;
};

struct label {
	string_id key;
	string_id str;   /* a text label when not empty */
	int64_t num;     /* else a number … */
	string_id unit;  /* … with an optional unit */
};

struct dict *dict_new(void);
void dict_free(struct dict *d);
DEFINE_CLEANUP(struct dict *, dict_freep, dict_free)
bool dict_oom(const struct dict *d);

string_id dict_string(struct dict *d, const char *s);
/* Up to `len` bytes, or to the first NUL in them. */
string_id dict_string_n(struct dict *d, const char *s, size_t len);
const char *dict_str(const struct dict *d, string_id id);  /* never NULL */
uint32_t dict_string_count(const struct dict *d);          /* ids run 1 … count */

/* Id 0 for a MODULE_NONE without a path: the absence of an image is "no module". */
module_id dict_module(struct dict *d, const struct module *m);
const struct module *dict_module_get(const struct dict *d, module_id id);  /* never NULL */
/*
 * Fills in what was not known when the module was interned: what `m` knows is stored where nothing
 * was, and changes nothing else. The module is still found under what it was first interned as.
 */
void dict_module_learn(struct dict *d, module_id id, const struct module *m);
uint32_t dict_module_count(const struct dict *d);  /* ids run 1 … count */

location_id dict_location(struct dict *d, module_id module, uint64_t vaddr);
/*
 * A place that came with its names (a profile read back, a folded line): named from the start, and
 * equal only to a place of equal module, vaddr and lines. Never the same as a dict_location().
 */
location_id dict_location_lines(struct dict *d, module_id module, uint64_t vaddr,
				const struct line *lines, uint32_t n);
const struct location *dict_location_get(const struct dict *d, location_id id);  /* never NULL */
/* Names a location: copies `lines` (innermost inlined first), sets `named`, and nothing of it is unread. */
void dict_location_name(struct dict *d, location_id id, const struct line *lines, uint32_t n);
/* The same, with `lines_unread`. */
void dict_location_name_unread(struct dict *d, location_id id, const struct line *lines, uint32_t n);
uint32_t dict_location_count(const struct dict *d);

/*
 * A stack: `frames` leaf first, as pprof and the kernel give them. Stored as a parent-linked
 * tree with the root at the top, so equal prefixes from the root are stored once.
 */
stack_id dict_stack(struct dict *d, const location_id *frames, uint32_t n);
/* Extends `parent` (towards the leaf) by one frame. */
stack_id dict_stack_push(struct dict *d, stack_id parent, location_id frame);
location_id dict_stack_leaf(const struct dict *d, stack_id s);
stack_id dict_stack_parent(const struct dict *d, stack_id s);
uint32_t dict_stack_depth(const struct dict *d, stack_id s);
/* With the empty one, 0: numbers run 0 … count − 1, and a stack's parent has a smaller one. */
uint32_t dict_stack_count(const struct dict *d);

/* A set of labels; order and repetition in what is given do not matter. */
labels_id dict_labels(struct dict *d, const struct label *labels, uint32_t n);
/* Those that are there now, with the empty one. */
uint32_t dict_labels_count(const struct dict *d);
const struct label *dict_labels_get(const struct dict *d, labels_id id, uint32_t *ret_n);
/*
 * Forgets the label sets that no sample of a profile of this dict has: on a host where processes and containers come and go their
 * numbers and names would fill memory. Their ids, and what pointed to their labels, are those of others later: to be called where
 * nobody else holds any. How many there were.
 */
uint32_t dict_labels_sweep(struct dict *d);
/* How often that found some: who remembers something by the ids of label sets begins anew when it is another number. */
uint32_t dict_labels_swept(const struct dict *d);
/* The label `key` of the set, NULL when it has none. */
const struct label *dict_label_find(const struct dict *d, labels_id id, const char *key);
/* Does memscope give samples labels of this key? Those that programs set themselves have other ones. */
bool label_is_reserved(const char *key);

#endif
