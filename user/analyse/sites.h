/*
 * Where a value belongs, when the leaf of the stack is only the messenger.
 *
 * The leaf of an allocation is always malloc, the leaf of a wait always schedule(). The site is
 * the function that asked: the leaf-most user frame that is no messenger itself: no function
 * of the C or C++ library, of Go's runtime or of an allocator, no wrapper known to call malloc (sites.c
 * lists them). What Go's runtime does of its own is charged to its function nearest the leaf.
 * A stack of nothing but messengers is charged to the one with a name nearest the root, for a wait
 * nearest the leaf. For waits the kernel part of the stack says what was waited for.
 */
#ifndef MEMSCOPE_ANALYSE_SITES_H
#define MEMSCOPE_ANALYSE_SITES_H

#include "analyse/frame_tree.h"
#include "analyse/wait_kind.h"
#include "model/profile.h"

struct site_row {
	const char *function;  /* the site; "" when the stack has no user frame; borrowed from the dict */
	const char *module;    /* base name of its image, "" when unknown                    */
	const char *comm;      /* waits without a user frame: whose they are, up to a '/' (all kworkers
				* are one); else "" */
	const char *leaf;      /* the messenger: malloc; the kernel function waited in         */
	enum wait_kind wait;   /* waits only                                                  */
	int64_t value;         /* of the type asked for                                       */
	int64_t count;         /* of the count type, 0 when there is none                     */
	int64_t low, high;     /* estimates only (sample_sites.h): the value's 95 % interval  */
	uint64_t samples;      /* estimates only: how many samples it rests on; else 0        */
};

/*
 * At most `cap` rows by value, largest first, ties by name; rows with value 0 are left out.
 * `type` is the value, `count_type` the count shown beside it or -1.
 * Returns the number of rows, or -ENOMEM.
 */
int sites_allocations(const struct profile *p, uint32_t type, int count_type,
		      struct site_row *out, uint32_t cap);
int sites_waits(const struct profile *p, uint32_t type, int count_type, struct site_row *out,
		uint32_t cap);

/* The site of one allocation's stack: function, module and leaf of *ret_row. 0 or -ENOMEM. */
int site_of_stack(struct dict *d, stack_id stack, struct site_row *ret_row);

/* The same in a tree: the node of the site of what `node` has of its own; `node` when it has no user frame. */
uint32_t site_of_node(const struct frame_tree *t, uint32_t node);
uint32_t wait_site_of_node(const struct frame_tree *t, uint32_t node);

/* The part of type `type` spent in malloc, free and their kin (page faults of theirs too); for
 * verdicts. */
int sites_allocator_value(const struct profile *p, uint32_t type, int64_t *ret_value);
/* The part spent in the traps of probes, memscope's own on the allocator above all; with `returns` those at
 * returns, too: on x86 what enters the kernel outside of the C library and makes no system call there. */
int sites_probe_value(const struct profile *p, uint32_t type, bool returns, int64_t *ret_value);
/* The part of type `type` whose leaf is in the kernel. */
int sites_kernel_value(const struct profile *p, uint32_t type, int64_t *ret_value);

#endif
