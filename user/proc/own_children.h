/* The children of the calling thread. */
#ifndef MEMSCOPE_PROC_OWN_CHILDREN_H
#define MEMSCOPE_PROC_OWN_CHILDREN_H

#include <stdint.h>
#include <sys/types.h>

#define OWN_CHILDREN_MAX 64

/* Those that live, `cap` at most; returns how many. */
uint32_t own_children(pid_t *out, uint32_t cap);

#endif
