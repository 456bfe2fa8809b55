/*
 * What is known of the blocks that one stack allocated while every call was traced: the value types of
 * the profile of sites, which sites.csv and the summary are made from. Labels: the process, not the
 * thread.
 *
 * Temporary: freed by the thread that allocated it, before that thread allocated anything else (what a
 * realloc replaces is freed, too). heaptrack 1.4 has two counts of its own. What it prints when the program
 * ends takes a free whose address is that of the very last call of any thread, where other frees in
 * between end it: fewer than ours. Its report (heaptrack_print, the window) identifies blocks by size and
 * stack alone, so that in a loop which allocates the next block before it frees the one before, each free
 * seems to be that of the last: more than ours. Of the 93,498 allocations of one run of sqlite3 these were
 * 30,255 and 60,253; ours are 30,263.
 *
 * A lifetime is from the return of the allocation to the call of free; the cost of tracing is in it.
 */
#ifndef MEMSCOPE_MODEL_ALLOC_SITE_H
#define MEMSCOPE_MODEL_ALLOC_SITE_H

#include "model/value_type.h"

#define ALLOC_LIVES 8  /* classes: shorter than 10 us, 100 us … 10 s; all others */
#define ALLOC_SIZES 32 /* classes: at most 8 bytes, 16, 32 …; all others         */

enum alloc_site_value {
	SITE_OBJECTS,
	SITE_BYTES,
	SITE_FREED,        /* of SITE_OBJECTS                                            */
	SITE_FREED_BYTES,
	SITE_TEMPORARY,    /* of SITE_FREED                                              */
	SITE_CROSS,        /* of SITE_FREED: by another thread than allocated            */
	SITE_LIFE_NS,      /* sum over SITE_FREED                                        */
	SITE_LIVES,        /* ALLOC_LIVES of them: SITE_FREED by how long they were there */
	SITE_PEAK_OBJECTS = SITE_LIVES + ALLOC_LIVES, /* live at the highest point of the process */
	SITE_PEAK_BYTES,
	SITE_LIVE_OBJECTS, /* live at the end                                            */
	SITE_LIVE_BYTES,
	N_SITE_VALUES,
};

extern const struct value_type alloc_site_types[N_SITE_VALUES];

#endif
