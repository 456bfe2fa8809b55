/*
 * A source of names: one file sym_NAME.c, one row in resolvers.c.
 *
 * A resolver is opened for one image, asked for addresses in it, and closed. It answers with one
 * frame, or several where calls were inlined: innermost first, the function that was really called
 * last.
 */
#ifndef MEMSCOPE_SYMBOLIZE_RESOLVER_H
#define MEMSCOPE_SYMBOLIZE_RESOLVER_H

#include "symbolize/sym_image.h"

#include <stddef.h>

/* Inlined calls deeper than this are cut: the outermost frames are kept. */
enum { SYM_FRAMES_MAX = 128 };

struct sym_frame {
	const char *name;     /* `len` bytes; borrowed from the resolver until it is closed; NULL:
			       * not known */
	size_t len;
	const char *suffix;   /* shown behind it ("@plt"), static; NULL for none             */
	const char *file;     /* source file, borrowed; NULL: not known                      */
	uint32_t line;        /* the line executed, or that called the frame before; 0       */
	uint32_t start_line;  /* where the function begins; 0                                */
	bool label;           /* its name is not from a typed symbol with a size             */
};

struct sym_answer {
	uint32_t n;
	bool sure;   /* no symbol replaces the outermost name */
	struct sym_frame frames[SYM_FRAMES_MAX];
};

enum sym_role {
	SYM_NAMES,   /* names functions                                                         */
	SYM_LINES,   /* has inlined calls and lines; SYM_NAMES replaces its outermost name     */
	SYM_RANGES,  /* has only function ranges: its answer is shown, but is no name          */
};

struct resolver {
	const char *name;
	unsigned kinds;    /* a bit for each module kind it knows: RESOLVES(MODULE_ELF) | … */
	enum sym_role role;
	/* 0 and a state, or -errno and `*ret_why`, a few static words for the user. */
	int (*open)(struct sym_image *img, void **ret_state, const char **ret_why);
	/* Does it know `vaddr`? Then at least one frame. */
	bool (*find)(void *state, uint64_t vaddr, struct sym_answer *ret_answer);
	/* Why an address that it did not find has no name. Only called for the first resolver of a
	 * kind. */
	const char *(*why_not)(const void *state);
	void (*close)(void *state);
};

#define RESOLVES(kind) (1u << (kind))

/* In the order in which they are asked; ends with NULL. */
extern const struct resolver *const resolvers[];

extern const struct resolver sym_kernel, sym_vdso, sym_dwarf, sym_elf, sym_plt, sym_go, sym_fde,
	sym_jitdump, sym_perf_map;

/* The usual answer: one frame that has a name. */
static inline bool sym_answer_name(struct sym_answer *ret_answer, const char *name, size_t len,
				   const char *suffix)
{
	ret_answer->n = 1;
	ret_answer->sure = false;
	ret_answer->frames[0] = (struct sym_frame){ .name = name, .len = len, .suffix = suffix };
	return true;
}

#endif
