/* alloc_sites.h of a file that is read in a cell (collect/probes/places_cell.h), and its answer, checked. */
#ifndef MEMSCOPE_COLLECT_STREAM_ALLOC_SITES_CELL_H
#define MEMSCOPE_COLLECT_STREAM_ALLOC_SITES_CELL_H

#include "base/bytes.h"
#include "base/err.h"
#include "collect/stream/alloc_sites.h"

/*
 * As alloc_sites_find(). A cell that ends early, takes too long or lies is -errno with a sentence, and then the file has no sites;
 * `ret_sites` is set in any case.
 */
int alloc_sites_ask(const struct alloc_image *im, bool moved, bool objects,
		    struct alloc_sites *ret_sites, struct err *e);
/* As alloc_sites_of(), ALLOC_SITES_MAX functions at most, with a sentence. `ret_sites` is set in any case. */
int alloc_sites_ask_of(const struct alloc_image *im, const struct alloc_function *functions,
		       uint32_t n, bool moved, struct alloc_sites *ret_sites, uint64_t *ret_probed,
		       struct err *e);

/*
 * What a cell answered: of a file of `file_bytes`, and of the `n` functions it was asked about (0: of those with names).
 *
 *   code:4  flags:1  hidden:1  n:4  { off:8 place:8 shape:1 flags:1 }×n  probed:8 × functions
 *
 * 0; an error that alloc_sites_of() has; -EBADMSG: it does not hold together. `ret_sites` is set in any case: without sites but for 0.
 */
int alloc_sites_take(struct bytes answer, uint64_t file_bytes,
		     const struct alloc_function *functions, uint32_t n,
		     struct alloc_sites *ret_sites, uint64_t *ret_probed);

#endif
