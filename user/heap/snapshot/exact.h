/*
 * Runtimes whose objects are known exactly: where each begins, what it is, which of its words are references. Such a runtime
 * takes part in a snapshot with what it knows instead of what a conservative scan would find:
 *
 *   objects   nodes that no allocator has (GHC's lie in blocks of its own), each with its type
 *   edges     the references of a node: of its own objects, or of an allocator's blocks that it knows what is in (CPython's)
 *   roots     what it keeps objects by: a thread, a CAF, a module, each with a name
 *   memory    mappings that are its own, which hold no roots of anybody else
 *
 * One file a runtime, one row in exact.c. A node that no runtime knows is scanned, as are stacks and variables; but a
 * word that happens to look like the address of an object that a runtime brought itself is no reference.
 * A weak reference is no edge.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_EXACT_H
#define MEMSCOPE_HEAP_SNAPSHOT_EXACT_H

#include "heap/snapshot/snapshot.h"

struct exact_root {
	uint64_t addr;     /* any byte of the object                                      */
	uint64_t at;       /* as in struct snapshot_root                                  */
	const char *name;  /* for a sentence: "Main.cache"; lives as long as the state; NULL: none */
	uint8_t kind;      /* enum snapshot_root_kind                                     */
};

/* `type`: of types_add(). Objects come by address, and none begins in another. */
typedef void (*exact_object_fn)(void *ctx, uint64_t addr, uint64_t bytes, uint32_t type);
/* `to`: an address; nothing comes of one that lies in no node. `at`: the reference's place in its node, in bytes. */
typedef void (*exact_edge_fn)(void *ctx, uint64_t to, uint32_t at);
typedef void (*exact_root_fn)(void *ctx, const struct exact_root *root);
typedef void (*exact_say_fn)(void *ctx, const char *sentence);

struct exact_runtime {
	const char *name;
	/*
	 * Looks for itself. -ENOENT: it is not there; -EAGAIN, with a sentence: the copy was taken in the middle of a change (its
	 * collector moves objects), another one is needed; -ENOMEM. Its functions need `copy` afterwards, too.
	 */
	int (*open)(struct copy *copy, pid_t pid, void **ret_state, struct err *e);
	void (*close)(void *state);
	/* NULL: all its objects are blocks of allocators. Types are added to `types`. -ENOMEM. */
	int (*objects)(void *state, struct types *types, exact_object_fn fn, void *ctx);
	/* Once each node has its type and can be found by its address. NULL: it needs nothing of that. -ENOMEM. */
	int (*prepare)(void *state, struct snapshot *s);
	/* Is the mapping its own? NULL: none is. */
	bool (*owns)(void *state, const struct heap_map *map);
	/* Calls fn() for each reference of a node; the same each time. false: it does not know this one, which is scanned. */
	bool (*edges)(void *state, const struct snapshot *s, uint32_t node, exact_edge_fn fn, void *ctx);
	/* NULL: it has none. */
	void (*roots)(void *state, const struct snapshot *s, exact_root_fn fn, void *ctx);
	/* What its memory has besides its objects: free, metadata, a caveat. NULL: not known. */
	void (*use)(void *state, struct heap_use *use);
	/* What did not fit, is guessed or missing: a sentence for each. NULL: nothing ever. */
	void (*caveats)(void *state, exact_say_fn fn, void *ctx);
};

enum { EXACT_MAX = 4 };

/* Those of a snapshot. A node's runtime is a number: 0 for blocks of allocators, i + 1 for objects that runtime[i] brought. */
struct exact {
	const struct exact_runtime *runtime[EXACT_MAX];
	void *state[EXACT_MAX];
	uint32_t n;
	uint8_t *brought_by; /* of each node; NULL: nobody brought any */
};

/* A table that ends with NULL. -EAGAIN and the runtime's sentence: see above; -ENOMEM. */
extern const struct exact_runtime *const exact_runtimes[];
int exact_runtimes_open(struct exact *x, const struct exact_runtime *const *table, struct copy *copy, pid_t pid, struct err *e);
void exact_runtimes_close(struct exact *x);

/*
 * Adds the runtimes' objects to s->blocks, sorted in among them, and fills in x->brought_by; *ret_types is the type of each
 * node as its runtime has it, 0 of others: large_free() it. -ENOMEM.
 */
int exact_objects(struct exact *x, struct snapshot *s, uint32_t **ret_types);
/* -ENOMEM. */
int exact_prepare(struct exact *x, struct snapshot *s);
bool exact_owns(const struct exact *x, const struct heap_map *map);
bool exact_edges(const struct exact *x, const struct snapshot *s, uint32_t node, exact_edge_fn fn, void *ctx);
void exact_caveats(const struct exact *x, exact_say_fn fn, void *ctx);
void exact_roots(const struct exact *x, const struct snapshot *s, exact_root_fn fn, void *ctx);

/* Does one of them bring objects of its own? */
bool exact_brings(const struct exact *x);

static inline bool exact_brought(const struct exact *x, uint32_t node)
{
	return x->brought_by && x->brought_by[node];
}

#endif
