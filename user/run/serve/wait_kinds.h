/*
 * What stacks of waits wait for (analyse/wait_kind.h), while a run is at work: kernel functions are looked up by
 * address, as no place has a name before the end. Each stack is asked about once.
 *
 * The kernel's own functions alone: of a file system that is a module, its frames are passed over, and the block layer below it
 * decides. Locks of languages (GIL, monitors) are known by the names of user frames, which are not there yet: here they are WAIT_LOCK.
 */
#ifndef MEMSCOPE_RUN_SERVE_WAIT_KINDS_H
#define MEMSCOPE_RUN_SERVE_WAIT_KINDS_H

#include "analyse/wait_kind.h"
#include "model/dict.h"

struct kallsyms;

struct wait_kinds {
	const char *(*name)(const struct kallsyms *k,
			    uint64_t addr); /* kallsyms_find()           */
	struct kallsyms *kernel;            /* NULL: addresses are hidden, or not asked for yet  */
	bool tried;
	uint8_t *by_stack; /* the kind and 1; 0: not asked about                     */
	uint32_t n;
};

/* Can kernel functions be looked up? The first call reads them. */
bool wait_kinds_known(struct wait_kinds *w);
/* WAIT_OTHER, too, where it is not known. O(depth) the first time. -ENOMEM: nothing was asked. */
int wait_kinds_of(struct wait_kinds *w, const struct dict *d, stack_id stack,
		  enum wait_kind *ret_kind);
void wait_kinds_fini(struct wait_kinds *w);

#endif
