/*
 * Locks that threads waited for: which, who owned them, and what the owners did meanwhile.
 */
#ifndef MEMSCOPE_ANALYSE_LOCKS_H
#define MEMSCOPE_ANALYSE_LOCKS_H

#include "model/dict.h"

#include <stdbool.h>
#include <stdint.h>

enum lock_part {
	LOCK_WAITED,   /* a thread waited for it                              */
	LOCK_HELD,     /* a thread owned it, while others waited              */
	LOCK_RELEASED, /* a thread released it, and by that ended others' wait */
};

/* Time of threads that waited for a lock at one place, or of an owner at one place while others waited. */
struct lock_use {
	uint32_t pid;
	uint64_t lock;    /* address in that process */
	const char *kind; /* "mutex", "rwlock", "futex", "GIL"; "": it does not say who owns it */
	stack_id stack;   /* user frames */
	uint32_t owner;   /* as the process itself numbers threads; 0: not known. Of a wait: when it began */
	enum lock_part part;
	uint64_t count, ns; /* LOCK_RELEASED: of the waits that it ended */
	const char *comm; /* LOCK_RELEASED: the thread's name            */
};

struct lock_row {
	uint32_t pid;
	uint64_t lock;
	const char *kind, *name;  /* `name`: of its variable, "" when it has none: filled in by others */
	const char *place;        /* where else it is: "[heap]", or what made the block that it is in; likewise */
	int64_t waited_ns, waits;
	const char *function, *module; /* where most of that was waited */
	int64_t known_ns;         /* of waited_ns: the owner is known                       */
	uint32_t owner;           /* the one that most of known_ns was waited for …         */
	int64_t owner_ns;         /* … and how much that is; 0: none is known                */
	uint32_t n_owners;
	const char *owner_name;   /* of that thread; "" when not known: filled in by others  */
	int64_t held_ns;          /* what owners are known to have done meanwhile …          */
	const char *held_in, *held_module; /* … and the function that most of it was in; "": none */
	int64_t held_in_ns;
	const char *held_caller;  /* what called it there, of the program's own; "": none  */
	int64_t released_ns;      /* of waited_ns: who ended those waits is known …         */
	const char *released_in, *released_module; /* … and the function that ended most of it; "": none */
	int64_t released_in_ns;
	const char *releaser;     /* the name of the thread that did most of that            */
};

/*
 * The locks waited for longest, at most `cap`, and how many they are, or -ENOMEM. Reorders `uses`. Names borrow from
 * the dict.
 */
int locks_rank(struct dict *d, struct lock_use *uses, uint32_t n, struct lock_row *out, uint32_t cap);

#endif
