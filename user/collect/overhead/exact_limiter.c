#include "collect/overhead/exact_limiter.h"
#include "base/clock.h"

#include "collect/overhead/counter.h"
#include "collect/overhead/governor.h"
#include "collect/overhead/realtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_NS   20000000
#define CREDIT_NS 1e9 /* the limit of so much time may be spent at once */

struct exact_limiter {
	struct session *session;
	struct alloc_probes *probes;
	struct pacer pacer;
	uint64_t hit_ns, share_ppm; /* others set them */
	pthread_t thread;
	bool running, stopping, over;
};

static int64_t hits_left(const struct exact_limiter *w)
{
	return (int64_t)(w->pacer.credit_ns /
			 (double)__atomic_load_n(&w->hit_ns, __ATOMIC_RELAXED));
}

static void *watch_loop(void *ctx)
{
	struct exact_limiter *w = ctx;
	uint64_t hits = counter_read(w->session, STAT_PROBE_HITS), before;
	int64_t left;

	realtime_begin();
	while (!__atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE)) {
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
		before = hits;
		w->pacer.share = (double)__atomic_load_n(&w->share_ppm, __ATOMIC_RELAXED) / 1e6;
		hits = counter_read(w->session, STAT_PROBE_HITS);
		pacer_spend(
			&w->pacer, now_ns(),
			(double)((hits - before) * __atomic_load_n(&w->hit_ns, __ATOMIC_RELAXED)));
		left = hits_left(w);
		if (left > 0 && session_burst_left(w->session)) {
			session_trace_refill(w->session, left);
			continue;
		}
		session_gate_alloc(w->session, false);
		alloc_probes_burst(w->probes);
		__atomic_store_n(&w->over, true, __ATOMIC_RELEASE);
		break;
	}
	return NULL;
}

void exact_limiter_hit_costs(struct exact_limiter *w, double hit_ns)
{
	__atomic_store_n(&w->hit_ns, hit_ns > 1 ? (uint64_t)hit_ns : 1, __ATOMIC_RELAXED);
}

void exact_limiter_limit(struct exact_limiter *w, double max_percent)
{
	__atomic_store_n(&w->share_ppm, (uint64_t)(max_percent * 1e4), __ATOMIC_RELAXED);
}

int exact_limiter_start(struct session *s, struct alloc_probes *probes, double max_percent,
			double hit_ns, struct exact_limiter **ret_watch, struct err *e)
{
	struct exact_limiter *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	w->session = s;
	w->probes = probes;
	exact_limiter_hit_costs(w, hit_ns);
	exact_limiter_limit(w, max_percent);
	pacer_init(&w->pacer, max_percent, CREDIT_NS * max_percent / 100, now_ns());
	session_trace_open(s, hits_left(w) > 0 ? hits_left(w) : 1);
	r = pthread_create(&w->thread, NULL, watch_loop, w);
	if (r) {
		exact_limiter_free(w);
		return err_set(e, -r, "cannot begin a thread: %s", strerror(r));
	}
	w->running = true;
	*ret_watch = w;
	return 0;
}

bool exact_limiter_over(const struct exact_limiter *w)
{
	return __atomic_load_n(&w->over, __ATOMIC_ACQUIRE);
}

void exact_limiter_free(struct exact_limiter *w)
{
	if (!w)
		return;
	__atomic_store_n(&w->stopping, true, __ATOMIC_RELEASE);
	if (w->running)
		pthread_join(w->thread, NULL);
	free(w);
}
