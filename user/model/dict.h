/*
 * The interned nouns that the profiles of one run share: strings, modules, locations, stacks
 * and label sets. Each is stored once and known by a typed id (ids.h); symbolize/ names each
 * location once for all profiles. A dict is grow-only; dict_free() releases everything, and
 * pointers it gave (strings, struct module) are good until then, those to struct location
 * until the next dict_location().
 *
 * Functions that intern return id 0 when memory runs out and remember it: check once with
 * dict_oom() before results are used. Not thread-safe.
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
};

/* One code image. Equal (kind, path, build_id, dev, ino) is the same module. */
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
	module_id module;
	uint64_t vaddr;
	bool named;            /* symbolize/ has been here; lines may still be empty */
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
string_id dict_string_n(struct dict *d, const char *s, size_t len);
const char *dict_str(const struct dict *d, string_id id);  /* never NULL */

module_id dict_module(struct dict *d, const struct module *m);
const struct module *dict_module_get(const struct dict *d, module_id id);
/* Fills in what was not known when the module was interned; empty fields of `m` are left alone. */
void dict_module_learn(struct dict *d, module_id id, const struct module *m);
uint32_t dict_module_count(const struct dict *d);  /* ids run 1 … count */

location_id dict_location(struct dict *d, module_id module, uint64_t vaddr);
const struct location *dict_location_get(const struct dict *d, location_id id);
/* Names a location: copies `lines` (innermost inlined first) and sets `named`. */
void dict_location_name(struct dict *d, location_id id, const struct line *lines, uint32_t n);
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

/* A set of labels; the order in which they are given does not matter. */
labels_id dict_labels(struct dict *d, const struct label *labels, uint32_t n);
const struct label *dict_labels_get(const struct dict *d, labels_id id, uint32_t *ret_n);
/* The label `key` of the set, NULL when it has none. */
const struct label *dict_label_find(const struct dict *d, labels_id id, const char *key);

#endif
