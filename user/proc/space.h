/*
 * The executable mappings of one address space, now and in the generations before.
 *
 * What is mapped now is a sorted list of disjoint ranges. A mapping that covers part of an older
 * one begins a new generation; the older one is kept aside with the last one it was good for. The
 * kernel does not report munmap(), so a range stays until something covers it, and a mapping in a
 * place that never held one is good for all generations.
 *
 * A forked process shares its parent's space, generations included, until one of them changes it.
 */
#ifndef MEMSCOPE_PROC_SPACE_H
#define MEMSCOPE_PROC_SPACE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct image;

enum {
	SPACE_MAX = 1 << 16,       /* mappings now: the kernel's own default limit is 65,530 */
	SPACE_PAST_MAX = 1 << 12,  /* kept from generations before; the oldest go first      */
};

struct mapping {
	uint64_t addr, end, off;
	struct image *image;       /* borrowed */
	uint32_t last;             /* of the past: the last generation it was good for */
	bool merges;               /* memory without a file: neighbours are one */
};

struct space {
	uint32_t refs, gen;
	uint32_t n, cap, n_past, cap_past;
	struct mapping *now;       /* by address, disjoint */
	struct mapping *past;      /* by `last`            */
};

struct space *space_new(void);  /* NULL: out of memory */
struct space *space_ref(struct space *s);  /* one more owner */
void space_unref(struct space *s);
DEFINE_CLEANUP(struct space *, space_unrefp, space_unref)

/*
 * Adds a mapping. A shared space is replaced by a copy of its own in *s.
 * -ENOMEM; -ENOSPC: SPACE_MAX ranges.
 */
int space_map(struct space **s, const struct mapping *m);

/* Drops what `keep` says no to (for a space that is full). A shared space: as space_map(). */
int space_prune(struct space **s, bool (*keep)(void *ctx, const struct mapping *m), void *ctx);

/* Does anything of the present lie in [addr, end)? O(log n) */
bool space_meets(const struct space *s, uint64_t addr, uint64_t end);

/* Is all of [addr, end) one range of memory without a file? O(log n) */
bool space_holds(const struct space *s, uint64_t addr, uint64_t end);

/* The mapping that held `addr` in generation `gen`, NULL when none did. O(log n) in the present
 * one. */
const struct mapping *space_find(const struct space *s, uint32_t gen, uint64_t addr);

#endif
