#include "base/clock.h"
#include "collect/stream/drain.h"
#include "collect/stream/ingest_parts.h"

static enum drain_says on_stack(void *ctx, const void *record, const void *frames)
{
	struct ingest *in = ctx;

	*in->oom |= ingest_stack(in, record, frames) < 0;
	return DRAIN_TAKEN;
}

static enum drain_says on_total(void *ctx, const void *total, const void *key)
{
	struct ingest *in = ctx;

	*in->oom |= ingest_total(in, key, total) < 0;
	return DRAIN_TAKEN;
}

static enum drain_says on_thread(void *ctx, const void *thread, const void *tid)
{
	struct ingest *in = ctx;
	uint64_t end_ns = *in->end_ns ? *in->end_ns : now_ns();

	end_ns = drain_wait_clock(in->drain, end_ns);
	*in->oom |= ingest_thread(in, *(const uint32_t *)tid, thread, end_ns) < 0;
	return DRAIN_TAKEN;
}

void ingest_listen(struct ingest *in, struct drain *d, const uint64_t *end_ns, bool *oom)
{
	in->end_ns = end_ns;
	in->drain = d;
	in->oom = oom;
	drain_on(d, DRAIN_STACK, on_stack, in);
	drain_on(d, DRAIN_TOTAL, on_total, in);
	drain_on(d, DRAIN_REST, on_total, in);
	drain_on(d, DRAIN_THREAD, on_thread, in);
}
