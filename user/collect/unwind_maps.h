/*
 * The kernel's side of unwind/publish.h: the maps of the unwind tables as memory of this process,
 * and the map of spaces as a sink.
 */
#ifndef MEMSCOPE_COLLECT_UNWIND_MAPS_H
#define MEMSCOPE_COLLECT_UNWIND_MAPS_H

#include "collect/bpf_session.h"
#include "unwind/publish.h"

struct unwind_maps;

/* The session must outlive it. */
int unwind_maps_open(struct session *s, struct unwind_maps **ret_maps, struct err *e);
void unwind_maps_close(struct unwind_maps *m);
DEFINE_CLEANUP(struct unwind_maps *, unwind_maps_closep, unwind_maps_close)

/* Both borrow from `m`. */
struct publish_mem unwind_maps_mem(const struct unwind_maps *m);
struct space_sink unwind_maps_sink(struct unwind_maps *m);

/* The entry of a process, which may be the kernel's: it gives a child its parent's. */
bool unwind_maps_space(const struct unwind_maps *m, pid_t pid, struct ms_space *ret_space);

/*
 * How many walks of `bytes` each CPU remembers (bpf/recall.bpf.h), for both types of programs together:
 * at most 1 MiB of all CPUs, and a 64th of the budget, but some.
 */
#define UNWIND_MAPS_RECALLERS 2
uint32_t unwind_maps_recalls(uint64_t budget, uint64_t bytes);

#endif
