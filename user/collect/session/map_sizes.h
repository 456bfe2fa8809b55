/*
 * The size of each of the kernel's maps: shares of --mem (session_opts.mem_mb), by what a run
 * needs.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_MAP_SIZES_H
#define MEMSCOPE_COLLECT_SESSION_MAP_SIZES_H

#include "collect/session/bpf_session.h"

struct memscope_bpf;

/* Before the maps are made. */
void map_sizes_set(struct memscope_bpf *k, const struct session_opts *opts);

#endif
