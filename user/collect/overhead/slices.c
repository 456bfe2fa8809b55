#include "collect/overhead/slices.h"
#include "base/clock.h"
#include "collect/overhead/costs.h"
#include "collect/overhead/realtime.h"
#include "collect/session/session_wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define LEAD_NS    500000ULL   /* programs are attached so long before their slice */
#define RESTS_MOST 15          /* then programs are taken off once, to see what that takes by now */
#define LATE_NS    20000000ULL /* or a quarter of its length: a slice that begins later is none */

struct slices {
	struct session *session;
	enum source source;
	pthread_t thread;
	int wake_fd;
	bool started;
	_Atomic bool stop;
	_Atomic uint32_t wanted, shift;
	_Atomic uint64_t strata, missed, wanted_ns, open_ns;
	_Atomic uint64_t runs_per_s, rest_each_ns; /* UINT64_MAX: not known */
	_Atomic uint64_t rested_ns, rest_ns;       /* so far; since when it rests, 0: it does not */
	_Atomic uint32_t most;
	_Atomic uint64_t done_ns, from_ns,
		until_ns;  /* open for so long before this slice; this slice */
	uint64_t begin_ns; /* strata begin at multiples since then */
	uint64_t n_strata; /* how many of them are over, or belong to a slice that is */
	uint64_t random;
	bool attached;
	uint64_t attach_ns, pair_ns; /* of CPU time, the last time; and a mean of the last times */
	uint32_t rests;              /* in a row */
};

/* splitmix64 */
static uint64_t draw(struct slices *s)
{
	uint64_t x = s->random += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

uint64_t slice_begin_ns(uint64_t begin_ns, uint32_t shift, uint64_t random)
{
	return begin_ns + (random & ((1ULL << shift) - 1)) * (STRATUM_NS >> shift);
}

/* false: it is to stop. */
static bool wait_until(struct slices *s, uint64_t ns)
{
	struct pollfd fd = { .fd = s->wake_fd, .events = POLLIN };
	uint64_t now, count;

	while (!s->stop && (now = now_ns()) < ns) {
		struct timespec left = { .tv_sec = (time_t)((ns - now) / 1000000000),
					 .tv_nsec = (long)((ns - now) % 1000000000) };

		if (ppoll(&fd, 1, &left, NULL) > 0)
			eventfd_read(s->wake_fd, &count);
	}
	return !s->stop;
}

/* false: it is to stop. */
static bool wait_for_change(struct slices *s)
{
	struct pollfd fd = { .fd = s->wake_fd, .events = POLLIN };
	uint64_t count;

	while (!s->stop && s->wanted == s->shift)
		if (poll(&fd, 1, -1) > 0)
			eventfd_read(s->wake_fd, &count);
	return !s->stop;
}

static void next_slice(struct slices *s, const struct ms_slice *slice)
{
	uint64_t done = slices_open_ns(s);

	s->from_ns = s->until_ns = 0;
	s->done_ns = done;
	s->until_ns = slice->until_ns;
	s->from_ns = slice->from_ns;
	session_slice_next(s->session, s->source, slice);
}

bool slices_rest_pays(double runs_per_s, double each_ns, uint64_t pair_ns)
{
	return runs_per_s * (STRATUM_NS / 1e9) * each_ns < (double)pair_ns;
}

uint64_t slices_rest_ns(const struct slices *s)
{
	uint64_t since = s->rest_ns;

	return s->rested_ns + (since ? now_ns() - since : 0);
}

static void attach(struct slices *s)
{
	uint64_t begin_ns = thread_cpu_ns();

	if (s->attached && !s->rest_ns)
		return;
	s->attached = session_attach_slice(s->session, s->source) == 0;
	if (s->rest_ns) {
		s->rested_ns = slices_rest_ns(s);
		s->rest_ns = 0;
		return;
	}
	s->attach_ns = thread_cpu_ns() - begin_ns;
}

static void detach(struct slices *s)
{
	uint64_t begin_ns = thread_cpu_ns(), pair_ns;

	session_detach_slice(s->session, s->source);
	s->attached = false;
	s->rests = 0;
	if (!s->attach_ns)
		return;
	/* One of them may wait for another CPU for long. */
	pair_ns = s->attach_ns + thread_cpu_ns() - begin_ns;
	s->pair_ns = s->pair_ns ? (3 * s->pair_ns + pair_ns) / 4 : pair_ns;
}

/* What lies between two slices begins. */
static void leave(struct slices *s)
{
	if (!s->attached || s->rests >= RESTS_MOST ||
	    !slices_rest_pays((double)s->runs_per_s, (double)s->rest_each_ns, s->pair_ns)) {
		detach(s);
		return;
	}
	s->rests++;
	session_rest_slice(s->session, s->source);
	s->rest_ns = now_ns();
}

/* All of the time, from `begin_ns` on, when the slices' clock shows the time of day. */
static bool all_of_it(struct slices *s, uint64_t begin_ns)
{
	struct ms_slice all = { .from_ns = begin_ns, .until_ns = UINT64_MAX, .at_ns = begin_ns };

	attach(s);
	/* The kernel was short of memory, say: until they are, nothing is seen, and the clock stands still. */
	while (!s->attached) {
		if (!wait_until(s, now_ns() + STRATUM_NS))
			return false;
		attach(s);
		all.from_ns = now_ns();
		all.at_ns += all.from_ns - begin_ns;
		begin_ns = all.from_ns;
	}
	next_slice(s, &all);
	s->shift = 0;
	if (s->source == SOURCE_OFFCPU)
		session_slice_resume(s->session);
	return wait_for_change(s);
}

/* One slice of the stratum that begins at `begin_ns`. false: it is to stop. */
static bool one_of(struct slices *s, uint64_t begin_ns, uint32_t shift)
{
	uint64_t length = STRATUM_NS >> shift, from = slice_begin_ns(begin_ns, shift, draw(s));
	uint64_t late = length / 4 < LATE_NS ? length / 4 : LATE_NS, now;
	struct ms_slice slice = { .at_ns = begin_ns, .shift = shift };

	s->shift = shift;
	s->strata++;
	s->wanted_ns += STRATUM_NS;
	if (!wait_until(s, from - LEAD_NS))
		return false;
	attach(s);
	now = now_ns();
	if (now > from + late || !s->attached) {
		/* Nothing of it was seen: the clock jumps over it. */
		s->missed++;
		leave(s);
		return true;
	}
	slice.from_ns = now > from ? now : from;
	slice.until_ns = slice.from_ns + length;
	next_slice(s, &slice);
	if (!wait_until(s, slice.from_ns))
		return false;
	if (s->source == SOURCE_OFFCPU)
		session_slice_resume(s->session);
	if (!wait_until(s, slice.until_ns))
		return false;
	s->open_ns += length;
	leave(s);
	return true;
}

/* The one after the last, or, where that has passed meanwhile, the present one. */
static uint64_t next_stratum(struct slices *s)
{
	uint64_t now = (now_ns() - s->begin_ns) / STRATUM_NS;

	if (s->shift == 0)
		return now + 1; /* what is open ends with a stratum */
	s->missed += now > s->n_strata ? now - s->n_strata : 0;
	return now > s->n_strata ? now : s->n_strata;
}

static void *work(void *arg)
{
	struct slices *s = arg;
	bool goes_on;

	realtime_begin();
	goes_on = wait_for_change(s);
	while (goes_on) {
		uint64_t no = next_stratum(s), begin_ns = s->begin_ns + no * STRATUM_NS;
		uint32_t wanted = s->wanted;

		s->n_strata = no + 1;
		if (s->shift == 0) {
			s->until_ns = begin_ns;
			session_slice_until(s->session, s->source, begin_ns);
		}
		if (!s->shift || !wanted)
			goes_on = wait_until(s, begin_ns);
		if (s->shift == 0)
			leave(s);
		if (wanted > s->most)
			s->most = wanted;
		if (goes_on)
			goes_on = wanted ? one_of(s, begin_ns, wanted) : all_of_it(s, begin_ns);
	}
	return NULL;
}

int slices_new(struct session *session, enum source source, struct slices **ret_slices)
{
	_cleanup_(slices_freep) struct slices *s = NULL;
	int r;

	if (!session_can_slice(session, source))
		return -EOPNOTSUPP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->session = session;
	s->source = source;
	s->attached = true;
	s->begin_ns = session_start_ns(session);
	s->from_ns = s->begin_ns;
	s->until_ns = UINT64_MAX;
	s->runs_per_s = s->rest_each_ns = UINT64_MAX;
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return -errno;
	if (getrandom(&s->random, sizeof(s->random), 0) != sizeof(s->random))
		s->random = now_ns();
	r = -pthread_create(&s->thread, NULL, work, s);
	if (r < 0)
		return r;
	s->started = true;
	*ret_slices = TAKE_PTR(s);
	return 0;
}

void slices_stop(struct slices *s)
{
	if (!s || !s->started)
		return;
	s->stop = true;
	eventfd_write(s->wake_fd, 1);
	pthread_join(s->thread, NULL);
	s->started = false;
}

void slices_free(struct slices *s)
{
	if (!s)
		return;
	slices_stop(s);
	closep(&s->wake_fd);
	free(s);
}

void slices_shift(struct slices *s, uint32_t shift)
{
	s->wanted = shift < SLICES_SHIFT_MAX ? shift : SLICES_SHIFT_MAX;
	eventfd_write(s->wake_fd, 1);
}

void slices_runs(struct slices *s, double runs_per_s, double each_ns)
{
	s->rest_each_ns = (uint64_t)each_ns;
	s->runs_per_s = (uint64_t)runs_per_s;
}

uint64_t slices_open_ns(const struct slices *s)
{
	uint64_t from = s->from_ns, until = s->until_ns, now = now_ns();

	if (now > until)
		now = until;
	return s->done_ns + (from && now > from ? now - from : 0);
}

uint32_t slices_shift_now(const struct slices *s)
{
	return s->shift;
}

void slices_stats(const struct slices *s, struct slices_stats *ret_stats)
{
	*ret_stats = (struct slices_stats){ .strata = s->strata,
					    .missed = s->missed,
					    .wanted_ns = s->wanted_ns,
					    .open_ns = s->open_ns,
					    .most = s->most };
}
