/*
 * Who allocated the blocks of a snapshot, and when: the stack of each one whose allocation was traced, and its age.
 *
 *   site    the function that asked for a block, and where in it: wrappers of malloc and libraries are not it
 *   stack   a site with all frames that led to it; several stacks may have one site
 *
 * Number 0 is "not known", of sites and of stacks: of blocks that are older than the tracing, and of those whose call was
 * missed. Texts are numbers: where in `texts` they begin; 0 is "".
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_SITES_H
#define MEMSCOPE_HEAP_SNAPSHOT_SITES_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in code, as files have it. */
struct site {
	uint32_t function, file, line; /* file 0, line 0: not known */
	uint32_t module;               /* base name of its image    */
};

struct site_stack {
	uint32_t site, first, n;       /* frames [first, first + n), the allocator's function first */
	uint32_t reserved;
};

#define SITES_OLDER UINT32_MAX      /* an age that is not known */

enum { SITE_NAME_MAX = 512 };

struct sites {
	const char *texts;
	uint64_t n_texts;
	struct site *site;             /* site[0]: not known                       */
	struct site_stack *stack;      /* stack[0]: not known                      */
	struct site *frame;
	uint32_t n_sites, n_stacks, n_frames;
	uint32_t *stack_of;            /* of each node                             */
	uint32_t *age_ms;              /* of each node                             */
	uint64_t traced_ns;            /* how long every allocation was traced     */
	uint64_t lost;                 /* calls of that time that were missed      */
	uint64_t known, known_bytes;   /* nodes that have a stack                  */
	bool stored;                   /* all arrays are a file's                  */
	struct sites_own *own;         /* else: what it is made of                 */
};

/* Of `nodes` nodes, all not known. NULL: out of memory. */
struct sites *sites_new(uint64_t nodes);
void sites_free(struct sites *s);
DEFINE_CLEANUP(struct sites *, sites_freep, sites_free)

/* A frame as it is given; texts are copied. */
struct site_place {
	const char *function, *file, *module;
	uint32_t line;
};

/* The number of a new stack, equal ones or not; sites are interned. 0: out of memory. `site`: one of the frames, or like one. */
uint32_t sites_add(struct sites *s, const struct site_place *site, const struct site_place *frames, uint32_t n);

struct snapshot;

/* Node `node` was allocated there, so long ago. */
void sites_set(struct snapshot *s, uint32_t node, uint32_t stack, uint64_t age_ns);

static inline uint32_t sites_of(const struct sites *s, uint32_t node)
{
	return s ? s->stack[s->stack_of[node]].site : 0;
}

const char *sites_text(const struct sites *s, uint32_t at);
/* "make_session (server.c:88)": the file without its folders; "" of 0. */
void sites_name(const struct sites *s, uint32_t site, char name[SITE_NAME_MAX]);
/* The same of any place. */
void place_name(const struct sites *s, const struct site *place, char name[SITE_NAME_MAX]);
/* Is `wanted` the function, or how it ends behind a dot or colons, with parameters or without; or FILE, or FILE:LINE? */
bool site_is_named(const struct sites *s, const struct site *place, const char *wanted);

#endif
