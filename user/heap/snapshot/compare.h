/*
 * What changed between snapshots of one process, the oldest first: by type how much there was and is, and which objects came.
 *
 * An object of the last snapshot is one of the first when it has the same address, the same size and a type of the same name.
 * Where an object was freed and another one like it was put in its place, it seems to have stayed. Objects of a
 * runtime that moves them (exact.h) have no address to know them by: of those only sums are compared.
 * Types that are known of blocks whose allocation was traced alone (types_sites.c) are no types here: of the same block one snapshot
 * knows them and another does not.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_COMPARE_H
#define MEMSCOPE_HEAP_SNAPSHOT_COMPARE_H

#include "heap/snapshot/snapshot.h"

struct compare_row {
	const char *name;                  /* of the type; lives as long as the snapshots        */
	uint64_t objects[2], bytes[2];     /* in the first, in the last                          */
	uint64_t came, came_bytes;         /* in the last and not in the first                   */
	uint64_t gone, gone_bytes;         /* the other way round                                */
	bool moves;                        /* came and gone are not known                        */
	bool always_more;                  /* more bytes in each snapshot than in the one before  */
};

struct compare {
	struct compare_row *rows; /* whose bytes grew most first */
	uint32_t n;
	uint8_t *came;            /* of each node of the last snapshot: 1, it was not in the first and would be known again */
};

/* The name of a type as rows have it. */
const char *compare_type_name(const struct types *types, uint32_t type);

/* `n` of them, two at least. -ENOMEM. */
int compare_snapshots(const struct snapshot *const *s, uint32_t n, struct compare *ret_compare);
void compare_fini(struct compare *c);

#endif
