#include "collect/session/dither.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>

#define SAMPLES_HELD    10.0       /* on average, until the period changes */
#define HOLD_LEAST_NS   20000000.0 /* on average */
#define PERIOD_LEAST_NS 10000      /* the kernel's own bound: perf_swevent_hrtimer() */

/* splitmix64: [0, 1) */
static double uniform(struct dither *d)
{
	uint64_t x = d->random += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return (double)(x >> 11) / 0x1p53;
}

/*
 * A period of p gives hold / p samples less a half, for the part of a period that the next change cuts off.
 * Of 1 / p the mean is ln 3 / mean where p is uniform over half of the mean to three halves.
 */
void dither_init(struct dither *d, double hz, uint64_t least_ns, uint64_t seed)
{
	*d = (struct dither){ .random = seed, .least_ns = fmax((double)least_ns, HOLD_LEAST_NS) };
	dither_rate(d, hz);
}

void dither_rate(struct dither *d, double hz)
{
	double wanted_ns = 1e9 / hz;

	d->hold_ns = fmax(SAMPLES_HELD * wanted_ns, d->least_ns);
	d->mean_ns = wanted_ns * log(3) / (1 + 0.5 * wanted_ns / d->hold_ns);
}

uint64_t dither_period_ns(struct dither *d)
{
	double u = d->second ? d->other : uniform(d);
	uint64_t ns = (uint64_t)(d->mean_ns * (0.5 + u));

	d->other = 1 - u;
	d->second = !d->second;
	return ns > PERIOD_LEAST_NS ? ns : PERIOD_LEAST_NS;
}

uint64_t dither_hold_ns(struct dither *d)
{
	return (uint64_t)(d->hold_ns * (0.75 + 0.5 * uniform(d)));
}

struct dither_thread {
	pthread_t thread;
	_Atomic double hz; /* wanted */
	double has_hz;
	int stop_fd;
	const int *fds;
	uint32_t n;
	struct dither when, cpus[]; /* of `n` */
};

static void *work(void *arg)
{
	struct dither_thread *t = arg;
	struct pollfd stop = { .fd = t->stop_fd, .events = POLLIN };

	for (;;) {
		struct timespec wait;
		uint64_t hold_ns;
		double hz = t->hz;

		if (hz != t->has_hz) {
			dither_rate(&t->when, hz);
			for (uint32_t i = 0; i < t->n; i++)
				dither_rate(&t->cpus[i], hz);
			t->has_hz = hz;
		}
		hold_ns = dither_hold_ns(&t->when);
		wait.tv_sec = (time_t)(hold_ns / 1000000000);
		wait.tv_nsec = (long)(hold_ns % 1000000000);

		/* The event of a CPU that has gone offline refuses; it does not fire any more either. */
		for (uint32_t i = 0; i < t->n; i++) {
			uint64_t ns = dither_period_ns(&t->cpus[i]);

			(void)!ioctl(t->fds[i], PERF_EVENT_IOC_PERIOD, &ns);
		}
		if (ppoll(&stop, 1, &wait, NULL) > 0)
			return NULL;
	}
}

int dither_start(const int *fds, uint32_t n, uint32_t hz, uint64_t least_ns,
		 struct dither_thread **ret_thread)
{
	struct dither_thread *t = calloc(1, sizeof(*t) + n * sizeof(*t->cpus));
	uint64_t seed;
	int r;

	if (!t)
		return -ENOMEM;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = now_ns();
	t->fds = fds;
	t->n = n;
	t->hz = t->has_hz = hz;
	dither_init(&t->when, hz, least_ns, seed);
	for (uint32_t i = 0; i < n; i++)
		dither_init(&t->cpus[i], hz, least_ns, seed ^ (uint64_t)(i + 1) << 32);
	t->stop_fd = eventfd(0, EFD_CLOEXEC);
	r = t->stop_fd < 0 ? -errno : -pthread_create(&t->thread, NULL, work, t);
	if (r < 0) {
		closep(&t->stop_fd);
		free(t);
		return r;
	}
	*ret_thread = t;
	return 0;
}

void dither_hz(struct dither_thread *t, double hz)
{
	if (t)
		t->hz = hz;
}

void dither_stop(struct dither_thread *t)
{
	if (!t)
		return;
	eventfd_write(t->stop_fd, 1);
	pthread_join(t->thread, NULL);
	close(t->stop_fd);
	free(t);
}
