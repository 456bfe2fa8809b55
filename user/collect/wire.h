/*
 * What bpf/abi.h has, in the terms of the rooms above: for files of this room. Headers that those rooms
 * include speak of processes as proc/ does, and of sources as model/ does; `make lint` checks that no name
 * of abi.h is in them.
 */
#ifndef MEMSCOPE_COLLECT_WIRE_H
#define MEMSCOPE_COLLECT_WIRE_H

#include "abi.h"
#include "proc/proc_table.h"

static inline struct proc_id wire_id(const struct ms_proc *p)
{
	return (struct proc_id){ .pid = p->tgid, .exec_id = p->exec_id, .start_ns = p->start_ns };
}

static inline struct ms_proc wire_proc(const struct proc_id *id)
{
	return (struct ms_proc){ .start_ns = id->start_ns, .tgid = id->pid, .exec_id = id->exec_id };
}

#endif
