/*
 * Which objects of a GHC program are alive, as its collector would find them: from its threads, what it holds for native code
 * (stable pointers), what registers have, and evaluated top-level values (CAFs) that code refers to which is still
 * needed, by the tables of static references (SRTs) of functions, thunks and stack frames. A weak pointer keeps its value as long as
 * its key is alive: here the key refers to it.
 */
#ifndef MEMSCOPE_HEAP_GHC_WALK_H
#define MEMSCOPE_HEAP_GHC_WALK_H

#include "heap/ghc/ghc.h"

struct ghc_object {
	uint64_t addr;
	uint32_t words;
	uint32_t info : 31, guessed : 1; /* info: index into g->infos.rows */
};

enum ghc_root_kind { GHC_ROOT_THREAD, GHC_ROOT_CAF, GHC_ROOT_STABLE, GHC_ROOT_REGISTER, GHC_ROOT_FOREIGN, GHC_ROOT_WEAK };

struct ghc_root {
	uint64_t addr;            /* of the object                                                 */
	uint64_t at;              /* of a thread: its id; of a CAF: its address; else: its number  */
	enum ghc_root_kind kind;
};

struct ghc_weak {
	uint64_t key, weak;
};

struct ghc_walk {
	struct ghc *g;
	struct ghc_object *objects;   /* in no order; after ghc_walk_finish() by address  */
	struct ghc_root *roots;
	struct ghc_weak *weaks;       /* after ghc_walk_begin(): by key                    */
	uint64_t n, room, n_roots, roots_room, n_weaks, weaks_room;
	uint64_t n_static;            /* static objects that are reached                   */
	uint64_t *marks;              /* a bit for each 8 bytes of the heap               */
	uint64_t *statics;            /* seen: open addressing                             */
	uint64_t n_slots, n_seen;
	uint64_t *queue;              /* of static ones                                    */
	uint64_t n_queue, queue_room;
	/*
	 * What only looks like a pointer, in registers and where no frames can be read, comes after all the rest: what is reached
	 * from there alone is guessed, gives way to what is known, and is not counted where it does not fit.
	 */
	uint64_t *guesses;
	uint64_t n_guesses, guesses_room;
	bool guessing;
	/* A program's lists may be rings, and its objects overlap: the nodes of lists walked so far, and the words of objects read (limits: walk.c). */
	uint64_t listed, looked_words;
};

/* Takes over threads and weak pointers of the space's generations and capabilities. -ENOMEM. */
int ghc_walk_begin(struct ghc_walk *w, struct ghc *g, const struct ghc_space *s);
void ghc_walk_root(struct ghc_walk *w, enum ghc_root_kind kind, uint64_t addr, uint64_t at);
/* All that is reached from the roots. -ENOMEM. */
int ghc_walk_finish(struct ghc_walk *w);
void ghc_walk_fini(struct ghc_walk *w);
/* The object that begins at `addr`, after ghc_walk_finish(); NULL. */
const struct ghc_object *ghc_walk_object(const struct ghc_walk *w, uint64_t addr);
/* Calls fn() with each weak pointer whose key this is. */
void ghc_walk_weaks(const struct ghc_walk *w, uint64_t key, ghc_word_fn fn, void *ctx);

#endif
