/*
 * The heap of a GHC program, read from outside: what each object is, how large it is and which of its words are references, by
 * its info table, as the program's own collector knows it. Works on stripped programs.
 *
 *   closure:     [info pointer][fields …]          pointers to closures have a tag in their lowest 3 bits
 *   info table:  … [layout:8][type:4][SRT:4] code  the info pointer is the address of the code behind it
 *
 * The bytes are the process's, which may be hostile: every size and address is checked against the heap's bounds, every
 * loop ends, and what is no closure is counted in `bad`.
 */
#ifndef MEMSCOPE_HEAP_GHC_GHC_H
#define MEMSCOPE_HEAP_GHC_GHC_H

#include "heap/blocks.h"
#include "heap/ghc/layout.h"

#include <stddef.h>

/* Memory of the process, of one moment. */
struct ghc_memory {
	/* What lies from `addr` on in one piece, *ret_len bytes. NULL: nothing of the next *ret_len bytes was ever written. */
	const uint8_t *(*piece)(void *ctx, uint64_t addr, uint64_t *ret_len);
	/* The same of what does not change: code, read-only data, variables. false: it is not there. */
	bool (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

struct ghc_info {
	uint64_t at;
	enum ghc_type type;    /* GHC_INVALID: that is no info table               */
	uint32_t ptrs, nptrs;  /* of those whose layout is two numbers             */
	uint64_t layout;       /* … else a bitmap, or the offset of one            */
	uint64_t srt;          /* a static closure with references of the code; 0  */
	uint32_t fun_type;     /* of functions: how their arguments are described  */
	uint64_t fun_bitmap;
	uint32_t use;          /* the caller's                                      */
};

/* Infos by address: open addressing, ghc_info_of() fills it. */
struct ghc_infos {
	struct ghc_info *rows;
	uint32_t *slots; /* 1 + index of a row; 0: free */
	uint32_t n, room, n_slots;
};

/* A stack that a thread runs on: its stack pointer is in a register. */
struct ghc_running {
	uint64_t stack, sp;
};

enum { GHC_RUNNING_MAX = 64 };

struct ghc {
	const struct ghc_layout *layout;
	struct ghc_memory mem;
	uint64_t begin, end;            /* of the part of its address space that is in use */
	const struct heap_range *code;  /* executable, sorted; the caller's                 */
	uint32_t n_code;
	bool threaded;                  /* the run-time system with threads                 */
	struct ghc_running running[GHC_RUNNING_MAX];
	uint32_t n_running;
	struct ghc_infos infos;
	bool oom;
	/* What did not fit. */
	uint64_t forwarded;             /* objects that a collection has moved: it is under way */
	uint64_t bad, bad_frames;       /* no closures, though something refers to them; frames that are none */
	/* The piece that was read last. */
	uint64_t at, len;
	const uint8_t *bytes;
};

void ghc_fini(struct ghc *g);

/* --- memory (info.c) --- */

bool ghc_word_slowly(struct ghc *g, uint64_t addr, uint64_t *ret);

/* The word at `addr`, a multiple of 8. What was never written is 0. */
static inline bool ghc_word(struct ghc *g, uint64_t addr, uint64_t *ret)
{
	if (addr - g->at < g->len && g->len - (addr - g->at) >= 8) {
		__builtin_memcpy(ret, g->bytes + (addr - g->at), 8);
		return true;
	}
	return ghc_word_slowly(g, addr, ret);
}

static inline bool ghc_in_heap(const struct ghc *g, uint64_t addr)
{
	return addr >= g->begin && addr < g->end;
}

bool ghc_is_code(const struct ghc *g, uint64_t addr);
/* Never NULL but out of memory; one that is no info table has type GHC_INVALID. Lives until the next call. */
const struct ghc_info *ghc_info_of(struct ghc *g, uint64_t at);
/* One that ghc_info_of() was asked for; NULL: it was not. */
const struct ghc_info *ghc_info_known(const struct ghc *g, uint64_t at);
/* "ghc-prim:GHC.Types.I#", of a constructor's info table. false: there is no such text. */
bool ghc_constr_name(struct ghc *g, uint64_t info, char *text, size_t cap);

/* --- closures (closure.c) --- */

struct ghc_closure {
	uint64_t addr;
	struct ghc_info info;
	uint64_t words;
};

/* The closure at an address without a tag. false: there is none; g->forwarded or g->bad has counted it. */
bool ghc_closure_at(struct ghc *g, uint64_t addr, struct ghc_closure *ret_closure);

enum ghc_word {
	GHC_POINTER, /* to a closure, perhaps with a tag */
	GHC_SRT,     /* the same, of the code (an SRT): it is in no word of the closure */
	GHC_GUESS,   /* it looks like a pointer to a closure */
	GHC_DATA,    /* anything else, which native code may use as an address */
};

typedef void (*ghc_word_fn)(void *ctx, uint64_t word, uint32_t at, enum ghc_word what);

/* Each word of a closure; data only if asked for. `at`: in bytes. */
void ghc_closure_words(struct ghc *g, const struct ghc_closure *c, bool data, ghc_word_fn fn, void *ctx);
/* The frames of a stack (frames.c): all from `sp` on; where one is none, the words behind it as far as they look like pointers. */
void ghc_frames(struct ghc *g, uint64_t base, uint64_t sp, uint64_t end, ghc_word_fn fn, void *ctx);
/* Are there only frames from `sp` to `end`? */
bool ghc_frames_sound(struct ghc *g, uint64_t sp, uint64_t end);
/* Which of the arguments of `fun` are pointers. `bit`: a number from 0 on. */
struct ghc_bits {
	uint64_t size, small;   /* small: bits of those that are no pointers */
	uint64_t large;         /* the address of them, where there are more than fit */
};
bool ghc_fun_bits(struct ghc *g, uint64_t fun, struct ghc_bits *ret_bits);
bool ghc_large_bits(struct ghc *g, uint64_t at, struct ghc_bits *ret_bits);
bool ghc_bit_is_pointer(struct ghc *g, const struct ghc_bits *bits, uint64_t bit);
/* Does it look like a pointer into the heap: is there a closure? Counts nothing. */
bool ghc_looks_like_pointer(struct ghc *g, uint64_t word);

/* --- the heap (space.c) --- */

enum { GHC_LISTS_MAX = 64 };

struct ghc_space {
	uint64_t gens[GHC_GENS_MAX]; /* addresses of the structs; 0: none of that number */
	uint32_t collections[GHC_GENS_MAX]; /* of each, the younger ones with it */
	uint64_t lists[GHC_LISTS_MAX]; /* of threads or weak pointers, besides those of generations: their first */
	uint32_t n_lists;
	uint64_t caps[GHC_RUNNING_MAX];
	uint32_t n_caps;
	uint64_t mblocks;            /* with descriptors */
	uint64_t blocks, free_blocks, own, large, pinned, compact, nonmoving; /* in blocks of 4 KiB; own: the run-time system's */
	bool collecting;             /* a collection is under way */
	bool perhaps;                /* … or one has left threads behind that were blocked for good: threads will show it */
};

/* Are these the descriptors of a megablock? */
bool ghc_is_mblock(struct ghc *g, uint64_t mblock);
/* Looks at all descriptors from g->begin to g->end. false: this is no heap of GHC's. */
bool ghc_space_read(struct ghc *g, struct ghc_space *ret_space);
/* A word of the run-time system's variables, which may begin such a list: then it is one of s->lists. */
void ghc_space_list(struct ghc *g, struct ghc_space *s, uint64_t word);

#endif
