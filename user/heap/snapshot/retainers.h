/*
 * What keeps objects alive: of each one a shortest chain of references from a root, and chains that are alike as one, with how
 * many of the objects they keep. A link is said exactly (`dict["sessions"]`) where a good part of the objects that its source
 * keeps hang on it, else by its shape (`dict[…]`): ten thousand sessions are then one row. Links
 * of the same shape behind each other (a list, a tree) are one, however many there are. Objects of GHC's that stand for another
 * (IND, BLACKHOLE, AP, PAP, THUNK_SELECTOR) are no links. Of very many objects a sample is looked
 * at, of very long chains the end next to the object.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_RETAINERS_H
#define MEMSCOPE_HEAP_SNAPSHOT_RETAINERS_H

#include "heap/snapshot/chain.h"

enum { RETAINERS_LINKS_MAX = 64 };

struct retainer {
	uint64_t objects, bytes;       /* that are kept by such a chain            */
	uint64_t root;                 /* one of them: index into s->roots         */
	uint32_t node;                 /* … and the object at its other end        */
	uint32_t n_links;
	char *links[RETAINERS_LINKS_MAX]; /* from the root on; cut off in the middle where there are more */
	bool repeats[RETAINERS_LINKS_MAX]; /* once or several times                 */
	uint32_t sites[RETAINERS_LINKS_MAX]; /* who allocated the objects of a link (sites.h); 0: not known */
	bool differ[RETAINERS_LINKS_MAX]; /* … some of them                          */
	uint32_t left_out;             /* so many, in the middle                   */
	bool cut;                      /* the chain is longer: its beginning is not shown */
};

struct retainers {
	struct retainer *rows;         /* most objects first                        */
	uint32_t n;
	uint64_t objects, bytes;       /* asked about                               */
	uint64_t one_in;               /* 1: rows count all; else chains of one object in so many were looked at, which
	                                * stands for as many */
	uint64_t indirections;         /* links that are left out, of the chains that were looked at  */
	uint64_t unreached, unreached_bytes; /* of those no root of these kinds reaches */
};

/* `kinds`: bits of enum snapshot_root_kind. -ENOMEM. */
int retainers_find(const struct snapshot *s, const uint32_t *objects, uint64_t n, uint32_t kinds,
		   struct retainers *ret_retainers);
void retainers_fini(struct retainers *r);

#endif
