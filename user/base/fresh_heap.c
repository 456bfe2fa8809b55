#include "base/fresh_heap.h"

#include <pthread.h>

struct work {
	void (*fn)(void *ctx);
	void *ctx;
};

static void *run(void *arg)
{
	const struct work *work = arg;

	work->fn(work->ctx);
	return NULL;
}

void with_fresh_heap(void (*fn)(void *ctx), void *ctx)
{
	struct work work = { fn, ctx };
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, &work) == 0)
		pthread_join(thread, NULL);
	else
		fn(ctx);
}
