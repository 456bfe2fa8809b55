/*
 * What a wait in user space means to the program: new work that is not there, or something that holds it up.
 *
 * The kernel sees a futex in either case; the functions on the stack tell them apart. One table in wait_role.c has
 * the workers of runtimes and servers, a row a pool: the function of its loop, and the function by which it waits.
 * A worker counts as idle by its place: it is in that loop, and it waits in what the loop does only when its queue is
 * empty, or until its time has come. A wait for a mutex is never idle, wherever it is made.
 */
#ifndef MEMSCOPE_ANALYSE_WAIT_ROLE_H
#define MEMSCOPE_ANALYSE_WAIT_ROLE_H

#include "analyse/frame.h"

#include <stdbool.h>

enum wait_role {
	WAIT_ROLE_UNKNOWN,
	WAIT_ROLE_IDLE,      /* a pool's worker without work               */
	WAIT_ROLE_CONDITION, /* for something that another thread is to do */
	WAIT_ROLE_JOIN,      /* for another thread of the program to end   */
	WAIT_ROLE_MUTEX,     /* for what another thread holds              */
	N_WAIT_ROLES,
};

/* Why nothing is queued while a worker waits where it does. */
enum idle_evidence {
	IDLE_QUEUE_EMPTY, /* its loop waits there only when the queue is empty        */
	IDLE_PERIOD,      /* it looks for work after a time, or when it is woken for it */
	IDLE_EVENTS,      /* it has asked the kernel for events, and there was none   */
};

struct idle_pool {
	const char *name; /* as shown: "HotSpot: GC workers" */
	/* Functions, the caller first: `wait` is called by `loop`, with any frames between. `wait` NULL: `loop` itself,
	 * whatever it waits in. A name that ends in * stands for all that begin so. */
	const char *loop, *wait;
	const char *module; /* beginning of the loop's image, where the name alone is too common; else NULL */
	enum idle_evidence evidence;
	bool by_mutex;    /* its workers are parked by a lock: being there is enough */
};

struct wait_meaning {
	enum wait_role role;
	const struct idle_pool *pool; /* WAIT_ROLE_IDLE: which; else NULL */
	uint32_t loop;                /* WAIT_ROLE_IDLE: the place of its loop's frame in the path */
	uint32_t by;                  /* the frames of the path up to the one that says the role; 0: none */
};

/* "idle", "condition", "join", "mutex", "unknown": the word in JSON. */
const char *wait_role_name(enum wait_role role);
/* Of a wait's stack, root first. */
struct wait_meaning wait_meaning_of(const struct dict *d, const struct frame_path *path);
/* The kernel's own workers, by the name of their thread: NULL when `comm` is none of them without work. */
const struct idle_pool *idle_kernel_pool(const char *comm, const char *kernel_function);

/* The table, for those who show or test it; ends with a row without a name. */
extern const struct idle_pool idle_pools[];

#endif
