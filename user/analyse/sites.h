/*
 * The site of a value, when the leaf of the stack only delivers it.
 *
 * The leaf of an allocation is always malloc, the leaf of a wait always schedule(). The site is the
 * function that asked: the leaf-most user frame outside of the C and C++ libraries, Go's runtime and the packages
 * that come with it, allocators and known wrappers of malloc (sites.c lists them). What Go's runtime does for itself
 * is charged to its function nearest the leaf. A stack of only such frames is charged to the one
 * with a name nearest the root, for a wait nearest the leaf. In a stack with frames of an interpreted language the
 * site is the language's function nearest the leaf: interpreter and extension modules work for it, as do the classes that
 * come with Java and the modules that come with node. For waits the
 * kernel part of the stack says what was waited for.
 */
#ifndef MEMSCOPE_ANALYSE_SITES_H
#define MEMSCOPE_ANALYSE_SITES_H

#include "analyse/frame.h"
#include "analyse/frame_tree.h"
#include "analyse/wait_kind.h"
#include "analyse/wait_role.h"
#include "model/profile.h"

struct site_row {
	const char *function;  /* the site; "" when the stack has no user frame; borrowed from the dict */
	const char *module;    /* base name of its image, "" when unknown                    */
	const char *comm;      /* waits without a user frame: whose they are, up to a '/' (all kworkers
				* are one); else "" */
	const char *leaf;      /* malloc; the kernel function waited in                        */
	const char *caller;    /* waits in a function without a name: the program's own that called it, the nearest
				* that has one; NULL or "": none */
	enum wait_kind wait;   /* waits only                                                  */
	enum wait_role role;   /* waits only: what the wait means to the program              */
	const struct idle_pool *pool; /* waits only: of workers without work; else NULL. One row a pool */
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

/* On-CPU samples by the program's own function that runs, or for which garbage is collected: without threads that only
 * collect, and without what none of its functions asked for. Where there are frames of a language, those alone. */
int sites_work(const struct profile *p, uint32_t type, struct site_row *out, uint32_t cap);

/* The same place, whatever is in the columns of figures: rows of two calls. */
bool site_row_same(const struct site_row *a, const struct site_row *b);

/* Which values belong to a site and not to the leaf. */
enum site_kind {
	SITE_NONE,
	SITE_ALLOCATION,  /* allocated, live, made resident: the function that asked the allocator */
	SITE_WAIT,        /* time of waits: the function that waits                                */
	SITE_INTERPRETED, /* on request: what native code took, to the function of an interpreted language that
			   * called it                                                             */
};
enum site_kind sites_kind(const struct profile *p, uint32_t type);
/* Moves the self values of such leaves to the sites; the leaves lose them from their totals, too. 0 or -ENOMEM. */
int sites_charge(struct frame_tree *t, enum site_kind kind);

/* The site of one allocation's stack: function, module and leaf of *ret_row. 0 or -ENOMEM. */
int site_of_stack(struct dict *d, stack_id stack, struct site_row *ret_row);

/* The same as a place: a location of the stack, and which of its frames, as frame_get() counts. -ENOENT: it has no user
 * frame; -ENOMEM. */
int site_place_of_stack(struct dict *d, stack_id stack, location_id *ret_location, uint32_t *ret_frame);

/* The same of a wait's stack, which may be its user frames alone: what it waited for is then not known. */
int site_of_wait_stack(struct dict *d, stack_id stack, struct site_row *ret_row);
/* Is this frame of a path, root first, the program's own: none of a library, an allocator, a runtime or the kernel? */
bool site_is_own(const struct dict *d, const struct frame_path *path, uint32_t place);

/* Which frame of a path that is not empty, root first, its sample's value belongs to; the last one where it has no site. */
uint32_t site_place_of_path(const struct dict *d, const struct frame_path *path, enum site_kind kind);

/* The same in a tree: the node of the site of `node`'s self value; `node` if it has no user frame. */
uint32_t site_of_node(const struct frame_tree *t, uint32_t node);
uint32_t place_of_node(const struct frame_tree *t, uint32_t node);

/* The part of type `type` spent in malloc, free and their kin, with their page faults; for
 * verdicts. */
int sites_allocator_value(const struct profile *p, uint32_t type, int64_t *ret_value);
/* The part spent in the traps of probes, above all memscope's on the allocator; with `returns` also
 * those at returns: on x86 an entry to the kernel outside of the C library that makes no system
 * call. */
int sites_probe_value(const struct profile *p, uint32_t type, bool returns, int64_t *ret_value);
/* The part of type `type` whose leaf is in the kernel. */
int sites_kernel_value(const struct profile *p, uint32_t type, int64_t *ret_value);
/* Of waits: time runnable (type `runnable`) of threads that were pushed off a CPU, which is where they never blocked (type
 * `blocked`, a count): so they wanted to go on, and were not woken for a moment's work. */
int64_t sites_preempted_value(const struct profile *p, uint32_t blocked, uint32_t runnable);

/* Of functions here and in top.h that return rows or -errno: none when they fail. */
static inline uint32_t row_count(int n)
{
	return n < 0 ? 0 : (uint32_t)n;
}

#endif
