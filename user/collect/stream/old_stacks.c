#include "collect/stream/old_stacks.h"
#include "collect/stream/stacks_in_use.h"

static void used(void *ctx, const struct ms_hash *user)
{
	ingest_stack_used(ctx, user);
}

static void again(void *ctx, const struct ms_hash *user)
{
	drain_send_again(ctx, user);
}

uint32_t old_stacks_forget(struct drain *d, struct ingest *in, struct wakers *wakers)
{
	if (drain_stacks_in_use(d, used, in) < 0)
		return 0;
	if (wakers) {
		wakers_age(wakers, OLD_STACKS_CALLS, again, d);
		wakers_stacks_in_use(wakers, used, in);
	}
	return ingest_age_stacks(in, OLD_STACKS_CALLS, again, d);
}
