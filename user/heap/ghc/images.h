/* The images of a GHC program: where its code is, which version it is of, what its code is called. */
#ifndef MEMSCOPE_HEAP_GHC_IMAGES_H
#define MEMSCOPE_HEAP_GHC_IMAGES_H

#include "heap/blocks.h"

#include <stdbool.h>
#include <sys/types.h>

struct ghc_image;

struct ghc_images {
	pid_t pid;
	struct ghc_image *rows;
	struct heap_range *code; /* executable mappings of files, by address */
	uint32_t n;
	uint32_t version;        /* 0x090002; 0: not known                   */
};

/* -ENOENT: none of them is of GHC's making. -ENOMEM, or as proc_maps_each(). */
int ghc_images_open(pid_t pid, struct ghc_images *ret_images);
void ghc_images_close(struct ghc_images *images);
/* Is it code of the program's own, not of the C library or the loader? */
bool ghc_images_is_own(const struct ghc_images *images, uint64_t addr);
/* The address of a variable of the run-time system; 0: no image has a symbol of it. */
uint64_t ghc_images_variable(const struct ghc_images *images, const char *name);

enum { GHC_NAME_MAX = 256 };

/*
 * The names of code at these addresses, ascending: fn() is called for each. A function's is its symbol, decoded: "Main.go". What is
 * local to a function has no symbol and lies right before it: "before Main.go, keep+0x4081f8", with the place in the file.
 */
void ghc_images_names(const struct ghc_images *images, const uint64_t *addrs, uint32_t n,
		      void (*fn)(void *ctx, uint32_t i, const char *name), void *ctx);

#endif
