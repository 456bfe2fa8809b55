#include "collect/stream/ingest_parts.h"
#include "model/alloc_site.h"

#include <errno.h>
#include <signal.h>

static void hold(struct ingest *in, const struct ms_proc *proc, int64_t bytes)
{
	struct proc_id id = wire_id(proc);
	struct holding *h = hash_get(in->holdings, proc, &id);

	if (h)
		h->bytes += bytes;
}

void ingest_keep(struct ingest *in, pid_t pid)
{
	if (in->n_keep < sizeof(in->keep) / sizeof(*in->keep))
		in->keep[in->n_keep++] = pid;
}

bool ingest_gone(struct ingest *in, const struct proc_id *id)
{
	struct proc *proc = proc_table_find(in->procs, id);

	if (proc && proc_replaced(proc))
		return true;
	for (uint32_t i = 0; i < in->n_keep; i++)
		if (in->keep[i] == (pid_t)id->pid)
			return false;
	/* The records of this process were lost: check whether it exists. */
	return proc ? proc_exited(proc) : kill((pid_t)id->pid, 0) < 0 && errno == ESRCH;
}

int64_t ingest_live_bytes(struct ingest *in)
{
	struct holding *h, *next;
	int64_t sum = 0;

	HASH_ITER (hh, in->holdings, h, next) {
		if (ingest_gone(in, &h->proc)) {
			HASH_DEL(in->holdings, h);
			free(h);
		} else {
			sum += h->bytes;
		}
	}
	return sum;
}

static void tell(struct ingest *in, const struct proc_id *proc, stack_id stack, int64_t blocks,
		 int64_t bytes, uint64_t born_ns)
{
	for (uint32_t i = 0; i < in->n_on_alloc; i++)
		in->on_alloc[i].fn(in->on_alloc[i].ctx, proc, stack, blocks, bytes, born_ns);
}

static bool is_root(const struct ms_alloc_key *site)
{
	return !site->user.lo && site->user.hi == MS_ROOT_STACK.hi;
}

/* `lost`: records that have not arrived never will. */
static bool site_stack(struct ingest *in, struct proc *proc, const struct ms_alloc_key *site,
		       bool lost, stack_id *ret_stack)
{
	struct ms_total_key key = wire_alloc_key(&site->proc, &site->user, site->tid, site->as_gen);

	if (is_root(site))
		*ret_stack = dict_stack(in->dict, &in->no_room, 1);
	else if (lost && ingest_missing(in, &site->user))
		*ret_stack = dict_stack(in->dict, &in->lost, 1);
	else
		return ingest_resolve(in, proc, &key, ret_stack);
	return true;
}

/* Labels: the thread too in the profiles of allocations, only the process in that of sites. */
static int add_to_sites(struct ingest *in, struct proc *proc, const struct ms_alloc_key *site,
			uint64_t cgroup_id, stack_id stack, const int64_t *values)
{
	return in->profiles.sites
		       ? profile_add(in->profiles.sites, stack,
				     ingest_labels(in, proc, &site->proc, 0, cgroup_id, NULL),
				     values)
		       : 0;
}

int ingest_site(struct ingest *in, const struct site_key *key_of, uint64_t cgroup_id,
		const int64_t *values, int64_t untracked, int64_t untracked_bytes, bool lost)
{
	const struct ms_alloc_key *site = wire_site(key_of);
	const int64_t allocated[4] = { values[SITE_OBJECTS], values[SITE_BYTES] };
	int64_t gone = values[SITE_FREED] + untracked;
	int64_t gone_bytes = values[SITE_FREED_BYTES] + untracked_bytes;
	uint64_t count = (uint64_t)values[SITE_OBJECTS];
	struct proc_id id = wire_id(&site->proc);
	struct proc *proc = ingest_proc(in, &site->proc);
	struct ms_total_key key = wire_alloc_key(&site->proc, &site->user, site->tid, site->as_gen);
	stack_id stack;
	labels_id labels;
	int r = 0;

	if (!site_stack(in, proc, site, lost, &stack))
		return -EAGAIN;
	if (!is_root(site) && ingest_missing(in, &site->user))
		in->stats.lost_stacks += count;
	if (!proc)
		in->stats.unknown_process += count;
	in->stats.allocated += count;
	in->stats.allocated_bytes += (uint64_t)values[SITE_BYTES];
	in->stats.freed += (uint64_t)values[SITE_FREED];
	in->stats.freed_bytes += (uint64_t)values[SITE_FREED_BYTES];
	in->stats.untracked += (uint64_t)untracked;
	in->stats.untracked_bytes += (uint64_t)untracked_bytes;
	hold(in, &site->proc, values[SITE_BYTES] - gone_bytes);
	if (count)
		ingest_report_stack(in, &key, count);
	if (count)
		tell(in, &id, stack, allocated[0], allocated[1], 0);
	if (gone)
		tell(in, &id, stack, -gone, -gone_bytes, 0);
	labels = ingest_labels(in, proc, &site->proc, ingest_site_tid(in, &site->proc, site->tid),
			       cgroup_id, NULL);
	if (count && in->profiles.alloc)
		r = ingest_add(in, in->profiles.alloc, stack, labels, allocated);
	if (count && r == 0 && in->profiles.heap)
		r = profile_add(in->profiles.heap, stack, labels, allocated);
	return r == 0 ? add_to_sites(in, proc, site, cgroup_id, stack, values) : r;
}

int ingest_site_end(struct ingest *in, const struct site_key *key_of, uint64_t cgroup_id,
		    const int64_t *values)
{
	const struct ms_alloc_key *site = wire_site(key_of);
	const int64_t live[4] = { 0, 0, values[SITE_LIVE_OBJECTS], values[SITE_LIVE_BYTES] };
	struct proc_id id = wire_id(&site->proc);
	struct proc *proc = ingest_proc(in, &site->proc);
	int64_t end[N_SITE_VALUES] = {
		[SITE_PEAK_OBJECTS] = values[SITE_PEAK_OBJECTS],
		[SITE_PEAK_BYTES] = values[SITE_PEAK_BYTES],
	};
	labels_id labels;
	stack_id stack;
	int r = 0;

	if (!site_stack(in, proc, site, true, &stack))
		return -EAGAIN;
	labels = ingest_labels(in, proc, &site->proc, ingest_site_tid(in, &site->proc, site->tid),
			       cgroup_id, NULL);
	if (ingest_gone(in, &id)) {
		in->stats.ended += (uint64_t)live[2];
		in->stats.ended_bytes += (uint64_t)live[3];
	} else {
		in->stats.live += (uint64_t)live[2];
		in->stats.live_bytes += (uint64_t)live[3];
		end[SITE_LIVE_OBJECTS] = live[2];
		end[SITE_LIVE_BYTES] = live[3];
		if (live[2] && in->profiles.heap)
			r = profile_add(in->profiles.heap, stack, labels, live);
	}
	if (r == 0 && end[SITE_PEAK_OBJECTS] && in->profiles.peak)
		r = profile_add(in->profiles.peak, stack, labels, &end[SITE_PEAK_OBJECTS]);
	return r == 0 ? add_to_sites(in, proc, site, cgroup_id, stack, end) : r;
}

int ingest_block(struct ingest *in, const struct site_key *key_of, int64_t bytes, uint64_t born_ns)
{
	const struct ms_alloc_key *site = wire_site(key_of);
	struct proc_id id = wire_id(&site->proc);
	stack_id stack;

	if (!in->n_on_alloc || ingest_gone(in, &id) ||
	    !site_stack(in, ingest_proc(in, &site->proc), site, false, &stack))
		return 0;
	tell(in, &id, stack, 1, bytes, born_ns);
	return 0;
}

bool ingest_site_stack(struct ingest *in, const struct site_key *key_of, stack_id *ret_stack)
{
	const struct ms_alloc_key *site = wire_site(key_of);
	struct proc_id id = wire_id(&site->proc);

	return !is_root(site) && !ingest_gone(in, &id) && !ingest_missing(in, &site->user) &&
	       site_stack(in, ingest_proc(in, &site->proc), site, false, ret_stack);
}

int ingest_estimate(struct ingest *in, const struct event_key *of, const int64_t values[4],
		    uint64_t samples, stack_id *ret_stack, labels_id *ret_labels)
{
	struct ms_total_key key = wire_key(of);
	struct proc *proc = ingest_proc(in, &key.proc);
	stack_id stack;
	labels_id labels;
	int r;

	if (!ingest_resolve(in, proc, &key, &stack))
		return -EAGAIN;
	if (ingest_missing(in, &key.user))
		in->stats.lost_stacks += samples;
	if (!proc)
		in->stats.unknown_process += samples;
	ingest_report_stack(in, &key, samples);
	labels = ingest_labels(in, proc, &key.proc, key.tid, 0, NULL);
	r = in->profiles.alloc ? ingest_add(in, in->profiles.alloc, stack, labels, values) : 0;
	if (r == 0 && in->profiles.heap)
		r = profile_add(in->profiles.heap, stack, labels, values);
	if (r == 0) {
		*ret_stack = stack;
		*ret_labels = labels;
	}
	return r;
}

int ingest_mapping(struct ingest *in, const struct event_key *of, uint64_t cgroup_id,
		   const int64_t values[4])
{
	struct ms_total_key key = wire_key(of);
	struct proc *proc = ingest_proc(in, &key.proc);
	stack_id stack;

	if (!ingest_resolve(in, proc, &key, &stack))
		return -EAGAIN;
	if (ingest_missing(in, &key.user))
		in->stats.lost_stacks += (uint64_t)values[0];
	if (!proc)
		in->stats.unknown_process += (uint64_t)values[0];
	ingest_report_stack(in, &key, (uint64_t)values[0]);
	return in->profiles.mappings
		       ? profile_add(in->profiles.mappings, stack,
				     ingest_labels(in, proc, &key.proc, key.tid, cgroup_id,
						   ingest_memory_name(&key)),
				     values)
		       : 0;
}
