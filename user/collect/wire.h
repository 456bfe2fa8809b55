/*
 * What bpf/abi.h has, in the terms of the rooms above: for files of this room. Headers that those rooms
 * include speak of processes as proc/ does, and of sources as model/ does; `make lint` checks that no name
 * of abi.h is in them.
 */
#ifndef MEMSCOPE_COLLECT_WIRE_H
#define MEMSCOPE_COLLECT_WIRE_H

#include "abi.h"
#include "collect/stream/event_key.h"

#include <string.h>

static inline struct proc_id wire_id(const struct ms_proc *p)
{
	return (struct proc_id){ .pid = p->tgid, .exec_id = p->exec_id, .start_ns = p->start_ns };
}

static inline struct ms_proc wire_proc(const struct proc_id *id)
{
	return (struct ms_proc){ .start_ns = id->start_ns, .tgid = id->pid, .exec_id = id->exec_id };
}

_Static_assert(sizeof(struct event_key) == sizeof(struct ms_total_key), "event_key");

static inline struct ms_total_key wire_key(const struct event_key *key)
{
	struct ms_total_key k;

	memcpy(&k, key, sizeof(k));
	return k;
}

static inline struct event_key wire_event(const struct ms_total_key *key)
{
	struct event_key k;

	memcpy(&k, key, sizeof(k));
	return k;
}

/* Of allocations: not of a state, a kind of memory or a bucket. */
static inline struct ms_total_key wire_alloc_key(const struct ms_proc *proc, const struct ms_hash *user,
						 uint32_t tid, uint32_t as_gen)
{
	return (struct ms_total_key){
		.proc = *proc, .user = *user, .tid = tid, .as_gen = as_gen, .source = MS_ALLOC
	};
}

static inline const struct ms_alloc_key *wire_site(const struct site_key *site)
{
	return (const struct ms_alloc_key *)site;
}

static inline const struct site_key *wire_site_key(const struct ms_alloc_key *key)
{
	return (const struct site_key *)key;
}

#endif
