/*
 * What the tasks of an event loop await: the stacks of their coroutines, as they were seen at each look, by the function of the
 * program that awaits.
 *
 * That is the coroutine nearest the leaf that is not of Python's own library or of a package; where all are, the leaf. What it is
 * for says the coroutine of asyncio that it awaits.
 */
#ifndef MEMSCOPE_ANALYSE_TASK_WAITS_H
#define MEMSCOPE_ANALYSE_TASK_WAITS_H

#include "model/dict.h"

#include <stdbool.h>
#include <stdint.h>

enum task_wait {
	TASK_WAIT_OTHER,
	TASK_WAIT_SOCKET,
	TASK_WAIT_LOCK,  /* asyncio.Lock: another task has it                 */
	TASK_WAIT_TURN,  /* a semaphore, a condition, a barrier               */
	TASK_WAIT_EVENT, /* asyncio.Event                                     */
	TASK_WAIT_QUEUE, /* an entry of a queue, or room in it                */
	TASK_WAIT_TIMER,
	TASK_WAIT_TASK,  /* other tasks                                       */
	N_TASK_WAITS,
};

/* One stack of coroutines, root first in the dict: tasks that were seen there. */
struct task_use {
	stack_id stack;
	bool of_task;
	uint64_t seen;      /* tasks, summed over looks             */
	uint32_t looks;     /* with one or more                     */
	uint64_t left;      /* times that a task was seen there, and then elsewhere or not waiting */
	int64_t longest_ns; /* that a task was seen there at each look: again, or still    */
};

struct task_row {
	const char *function; /* "fetch_price (app.py)" */
	uint32_t line;        /* where it awaits; 0: unknown */
	const char *awaits;   /* the coroutine nearest the leaf */
	enum task_wait wait;
	uint64_t seen;
	uint32_t looks; /* at most: of several stacks, the sum, up to all looks */
	uint64_t left;
	int64_t longest_ns;
};

/* At most `cap` rows, by tasks seen. 0 or more; -ENOMEM. */
int tasks_rank(const struct dict *d, const struct task_use *uses, uint32_t n, uint32_t looks,
	       struct task_row *rows, uint32_t cap);

/* "a socket", "an asyncio lock": fits after "waiting for"; "socket", "lock": the word in JSON. */
const char *task_wait_text(enum task_wait w);
const char *task_wait_name(enum task_wait w);

#endif
