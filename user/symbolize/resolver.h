/*
 * A source of names: one file sym_NAME.c, one row in resolvers.c.
 *
 * A resolver is opened for one image, asked for addresses in it, and closed.
 */
#ifndef MEMSCOPE_SYMBOLIZE_RESOLVER_H
#define MEMSCOPE_SYMBOLIZE_RESOLVER_H

#include "symbolize/symbolize.h"

#include <stddef.h>

struct sym_name {
	const char *name;    /* `len` bytes; borrowed from the resolver until it is closed  */
	size_t len;
	const char *suffix;  /* shown behind it ("@plt"), static; NULL for none             */
};

struct resolver {
	const char *name;
	unsigned kinds;    /* a bit for each module kind it knows: RESOLVES(MODULE_ELF) | … */
	/*
	 * 0 and a state, or -errno and `*ret_why`, a few static words for the user.
	 */
	int (*open)(const struct symbolize_opts *opts, const struct dict *d, module_id m,
		    void **ret_state, const char **ret_why);
	/* Does a symbol cover `vaddr`? */
	bool (*find)(void *state, uint64_t vaddr, struct sym_name *ret_name);
	/* Why an address that it does not find has no name. Only asked of the first of a kind. */
	const char *(*why_not)(const void *state);
	void (*close)(void *state);
};

#define RESOLVES(kind) (1u << (kind))

/* In the order in which they are asked; ends with NULL. */
extern const struct resolver *const resolvers[];

extern const struct resolver sym_kernel, sym_vdso, sym_elf, sym_plt;

#endif
