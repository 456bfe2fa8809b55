/*
 * A thread's number here, by the one that it knows itself by in its process's own namespace.
 *
 * Of each thread the kernel is asked once: a number that is not known yet has the list of threads
 * read, and of those that are new in it what numbers they have. That is done once between two calls
 * of thread_ids_refresh(), however many numbers are asked for, since threads that have ended are in no
 * list.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_THREAD_IDS_H
#define MEMSCOPE_COLLECT_STREAM_THREAD_IDS_H

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct thread_ids;

/* `proc`: where procfs is; borrowed. NULL: out of memory. */
struct thread_ids *thread_ids_new(const char *proc, pid_t pid);
void thread_ids_free(struct thread_ids *t);
DEFINE_CLEANUP(struct thread_ids *, thread_ids_freep, thread_ids_free)

/* From here on a number that is not known is looked for once more. */
void thread_ids_refresh(struct thread_ids *t);
/* One that cannot be found counts as the process's first thread. */
uint32_t thread_ids_here(struct thread_ids *t, uint32_t there);

#endif
