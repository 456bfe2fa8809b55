#include "collect/stream/run_delays.h"
#include "collect/wire.h"

#include <stdlib.h>

struct run_delays {
	run_delay_fn fn;
	void *ctx;
};

static enum run_delay_by by_of(const struct ms_total_key *key)
{
	switch (key->state) {
	case MS_RAN:
		return key->as_gen ? RUN_DELAY_KERNEL
		       : key->tid  ? RUN_DELAY_PROCESS
				   : RUN_DELAY_IDLE;
	case MS_RAN_ELSEWHERE:
		return RUN_DELAY_ELSEWHERE;
	default:
		return RUN_DELAY_UNKNOWN;
	}
}

static enum drain_says on_total(void *ctx, const void *record, const void *more)
{
	const struct ms_total_key *key = more;
	const struct ms_total *total = record;
	struct run_delays *r = ctx;
	struct run_delay_event event = { .count = total->count, .ns = total->value };

	if (key->source != MS_RUN_DELAYS)
		return DRAIN_NEXT;
	event.proc = wire_id(&key->proc);
	event.by = by_of(key);
	if (event.by == RUN_DELAY_PROCESS)
		event.other = (struct proc_id){ .pid = key->tid, .start_ns = key->user.lo };
	if (event.by == RUN_DELAY_PROCESS || event.by == RUN_DELAY_KERNEL)
		memcpy(event.comm, &key->kernel, sizeof(event.comm));
	event.comm[sizeof(event.comm) - 1] = '\0';
	if (event.by == RUN_DELAY_KERNEL)
		event.comm[strcspn(event.comm, "/")] = '\0';
	/* The idle tasks are threads of the kernel, of no process. */
	if (event.by == RUN_DELAY_KERNEL && !key->tid)
		event.by = RUN_DELAY_IDLE;
	r->fn(r->ctx, &event);
	return DRAIN_TAKEN;
}

struct run_delays *run_delays_new(struct drain *d, run_delay_fn fn, void *ctx)
{
	struct run_delays *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->fn = fn;
	r->ctx = ctx;
	drain_on(d, DRAIN_TOTAL, on_total, r);
	return r;
}

void run_delays_free(struct run_delays *r)
{
	free(r);
}
