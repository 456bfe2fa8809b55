/*
 * The kernel's side of unwind/publish.h: the maps of the unwind tables as memory of this process,
 * and the map of spaces as a sink.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_UNWIND_MAPS_H
#define MEMSCOPE_COLLECT_SESSION_UNWIND_MAPS_H

#include "collect/session/bpf_session.h"
#include "unwind/publish.h"

struct unwind_maps;

/* The session must outlive it. */
int unwind_maps_open(struct session *s, struct unwind_maps **ret_maps, struct err *e);
void unwind_maps_close(struct unwind_maps *m);
DEFINE_CLEANUP(struct unwind_maps *, unwind_maps_closep, unwind_maps_close)

/* Both borrow from `m`. */
struct publish_mem unwind_maps_mem(const struct unwind_maps *m);
struct space_sink unwind_maps_sink(struct unwind_maps *m);

/* The entry of a process; it may be the kernel's, which copies a parent's to its child. */
bool unwind_maps_space(const struct unwind_maps *m, pid_t pid, struct ms_space *ret_space);

/*
 * How many entries of the unwind cache (bpf/walk/unwind_cache.bpf.h) each CPU has, given a budget
 * of `bytes`, for both types of programs together: at most 1 MiB on all CPUs, and a 64th of the
 * budget, but at least some.
 */
#define UNWIND_MAPS_CACHES 2
uint32_t unwind_maps_caches(uint64_t budget, uint64_t bytes);

#endif
