/*
 * The heap of a process at one moment: every block in use, every word in one that points into another, and every root, which
 * is a word outside of all blocks that points into one.
 *
 * Conservative: a word that has the address of a block's byte is taken for a pointer, whatever the program thinks of it. So
 * what is said to be unreachable is (but for pointers that a program hides), and a chain may lead through a number that
 * looks like an address. Aligned words of 8 bytes alone are looked at. What allocators note of their own blocks is no reference,
 * nor is what lies in free memory.
 *
 * Nodes of the graph are the blocks, in the order of their addresses; `at` of an edge is its place in the block in bytes.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_SNAPSHOT_H
#define MEMSCOPE_HEAP_SNAPSHOT_SNAPSHOT_H

#include "heap/graph/reach.h"
#include "heap/census.h"
#include "heap/snapshot/types.h"
#include "heap/snapshot/block_index.h"
#include "heap/snapshot/collections.h"
#include "heap/snapshot/sites.h"

/* Kinds of roots; the first that keeps an object is the best answer. */
enum snapshot_root_kind {
	SNAPSHOT_ROOT_ANCHOR,   /* a place that the user named (anchor.h)                         */
	SNAPSHOT_ROOT_MODULE,   /* a module of CPython, which its interpreter keeps                */
	SNAPSHOT_ROOT_FRAME,    /* a local variable of a function of CPython that runs             */
	SNAPSHOT_ROOT_CAF,      /* a top-level value of a Haskell program that is evaluated          */
	SNAPSHOT_ROOT_GLOBAL,   /* a variable of an image                                        */
	SNAPSHOT_ROOT_TLS,      /* … of a thread's own                                           */
	SNAPSHOT_ROOT_STACK,    /* from the stack pointer on, and the red zone before it           */
	SNAPSHOT_ROOT_REGISTER,
	SNAPSHOT_ROOT_GREEN,    /* a thread that a runtime schedules itself                        */
	SNAPSHOT_ROOT_STABLE,   /* a reference that a runtime holds for native code                 */
	SNAPSHOT_ROOT_MAPPING,  /* memory of no allocator that is known: what is in use of it is not */
	SNAPSHOT_ROOT_KINDS
};

/* "the variable": as a sentence has it. */
const char *snapshot_root_words(uint8_t kind);

struct snapshot_root {
	uint32_t node;
	uint8_t kind;      /* enum snapshot_root_kind                        */
	uint32_t thread;   /* index, of stacks, TLS and registers            */
	uint64_t at;       /* the word's address; of a register: its number; of a module: its own; of a thread of a runtime: its id */
	const char *name;  /* of a runtime's own (exact.h); NULL: by `at`                  */
};

struct exact;

/* What a file has of the memory itself: file.h says what that is. */
enum file_contents { FILE_CONTENTS_NONE, FILE_CONTENTS_WORDS, FILE_CONTENTS_ALL };

enum { SNAPSHOT_LABELS_MAX = 64, SNAPSHOT_SAID_MAX = 32 };

struct snapshot_label {
	const char *key, *value;
};

struct snapshot_facts {
	pid_t pid;
	char comm[64], exe[256], kernel[96], machine[32];
	char container[256];             /* the caller's to fill in; ""                   */
	uint64_t taken_ns;               /* CLOCK_REALTIME                                */
	struct snapshot_label labels[SNAPSHOT_LABELS_MAX]; /* … and these, which it owns, unless `stored` */
	uint32_t n_labels;
	enum file_contents contents;     /* of a process: all                             */
};

#define SNAPSHOT_NO_LENGTH UINT32_MAX

struct snapshot {
	struct snapshot_facts facts;
	struct snapshot_stored *stored;  /* of a file; NULL: of a process                 */
	struct copy *copy;
	struct heap_census census;
	struct heap_blocks blocks;
	struct types types;
	uint32_t *lengths;                   /* of each node: items, letters or bytes of CPython's objects; SNAPSHOT_NO_LENGTH; NULL: of none */
	struct exact *exact;                 /* runtimes whose objects are known exactly    */
	struct collections collections;
	struct sites *sites;                 /* who allocated blocks; NULL: not known       */
	struct block_index *index;
	struct graph *graph, *reverse;
	struct snapshot_root *roots;         /* by node                                   */
	struct graph_root *graph_roots;      /* the same, for graph/                      */
	uint64_t n_roots;
	uint64_t words;                      /* looked at, in blocks and outside           */
	uint64_t paused_ns;                  /* the process was stopped for, in all copies   */
	uint32_t n_changing;                 /* copies that showed a change half made, and were taken again */
	uint64_t link_max;                   /* of snapshot_take_types()                   */
	uint64_t unknown;                    /* bytes of heaps that were not walked         */
	char *said[SNAPSHOT_SAID_MAX];       /* what is missing or guessed: a sentence each, which it owns */
	uint32_t n_said;
	uint32_t debug_unread;               /* images whose debug info was not read to its end: types by members are missing */
};

/*
 * Stops the process for the time that copying its memory takes, and builds the rest afterwards. An allocator that was in the
 * middle of a change is seen by what does not add up: it is tried again a few times.
 * `twin`: it goes on while a twin is copied. -ENOENT: no allocator that is known; else as copy_take().
 */
struct snapshot_how {
	const char *folder; /* as of copy_take() */
	bool twin;
	/* The process goes on, and its copy may still turn out to be of no use: then there is another one. Negative with a
	 * sentence ends it. NULL: nothing. */
	int (*copied)(void *ctx, const struct copy_facts *facts, struct err *e);
	void *ctx;
};
int snapshot_take(pid_t pid, const struct snapshot_how *how, struct snapshot **ret_snapshot, struct err *e);
/*
 * Objects and their types. Where they are more than `link_max` bytes that is all, which takes less time and memory: there are no
 * references, reverse edges and roots (graph is NULL), and a type that is known by who refers to a block (std::vector,
 * tables of CPython's objects) is not.
 */
int snapshot_take_types(pid_t pid, const char *folder, uint64_t link_max, struct snapshot **ret_snapshot, struct err *e);
/* Notes a sentence that belongs to each answer, once; those that do not fit are dropped. */
void snapshot_say(struct snapshot *s, const char *sentence);
void snapshot_free(struct snapshot *s);
DEFINE_CLEANUP(struct snapshot *, snapshot_freep, snapshot_free)

static inline uint64_t snapshot_bytes(const struct snapshot *s, uint32_t node)
{
	return 8 * (uint64_t)s->blocks.rows[node].words;
}

#endif
