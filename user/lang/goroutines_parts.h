/* What goroutines_find.c and goroutines.c share. */
#ifndef MEMSCOPE_LANG_GOROUTINES_PARTS_H
#define MEMSCOPE_LANG_GOROUTINES_PARTS_H

#include "lang/goroutines.h"

/* Offsets in runtime.g; in runtime.pollDesc from its begin. */
struct goroutine_layout {
	uint16_t sp, pc, syscallsp, syscallpc, status, goid, waitsince, waitreason;
	uint16_t seq; /* trackingSeq; 0: where it is was not found out */
	uint16_t startpc;
	uint16_t rg, wg;
	bool tried;
};

enum {
	STACK_LO = 0,
	STACK_HI = 8,
	POLL_FD = 8,
	G_BYTES = 328,         /* of a g that are read: up to startpc, and its word */
	REFS_MAX = 512,
	GO_TABLE_MAX = 1 << 24, /* goroutines */
};

struct go_program {
	uint32_t version;
	struct goroutine_layout layout;
	uint64_t main;                      /* vaddr of runtime.main */
	/* Addresses in data that the functions refer to which use runtime.allgs, and runtime.waitReasonStrings. */
	uint64_t allgs[REFS_MAX], reasons[REFS_MAX];
	uint32_t n_allgs, n_reasons;
	struct go_place *places; /* a hash table */
	uint32_t n_places, cap_places;
};

/* What the table says of an address. */
struct go_place go_place_read(const struct gopclntab *tab, uint64_t vaddr);
/* Of a program that came from a cell: its layout is put in by version, its places begin anew. -EBADMSG: it is none that was read. */
int go_program_check(struct go_program *p);

static inline bool go_read_one(const struct go_memory *mem, uint64_t addr, void *to, uint32_t len)
{
	struct go_piece piece = { addr, to, len, false };

	mem->read(mem->ctx, &piece, 1);
	return piece.there;
}

static inline uint64_t go_word(const uint8_t *bytes, uint32_t at)
{
	uint64_t w;

	__builtin_memcpy(&w, bytes + at, sizeof(w));
	return w;
}

#endif
