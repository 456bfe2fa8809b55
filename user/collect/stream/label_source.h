/*
 * The kernel's row of a process that sets labels, written by those who find it. Internal to the folder.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_LABEL_SOURCE_H
#define MEMSCOPE_COLLECT_STREAM_LABEL_SOURCE_H

#include "abi.h"
#include "collect/stream/label_sets.h"

/* The kernel reads the labels of this process from here on; start_ns and exec_id are filled in. One whose labels are Go's already
 * stays so. false: no room, which is counted. */
bool label_sets_read(struct label_sets *sets, const struct proc_id *proc, struct ms_label_source *from);

#endif
