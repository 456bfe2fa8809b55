/*
 * Threads that divide their CPU time 70/20/10 between three functions, by the thread's own clock.
 *
 *   cpu_split MS [MS…]     one thread for each MS, which burns that much CPU time after `go`
 *
 * Pieces have random lengths (0.3 to 3 ms) so that they cannot keep step with a sampling period,
 * and the next piece goes to the function that is furthest behind its share: at the end each share
 * is right to one piece. ON_NS is perf's account (work_begin() in target.h), LONGEST_NS the piece that
 * took the most of the CPU clock.
 *
 * `go PERCENT` works for so much of the time only, and sleeps after each piece.
 *
 * go [PERCENT] → thread TID CPU_NS NS_70 NS_20 NS_10 ON_NS LONGEST_NS (for each thread); end
 */
#include "target.h"

#include <pthread.h>

#define MAX_THREADS 32

static uint64_t per_ms;
static struct gate start;
static int left;
static unsigned percent = 100;
static struct gate done;

BURNER(hot_70)
BURNER(hot_20)
BURNER(hot_10)

static const struct {
	void (*run)(uint64_t n);
	double share;
} parts[] = { { hot_70, 0.70 }, { hot_20, 0.20 }, { hot_10, 0.10 } };

static int furthest_behind(const uint64_t *spent_ns, uint64_t total_ns)
{
	double worst = -1e18;
	int which = 0;

	for (int i = 0; i < 3; i++) {
		double behind = parts[i].share * (double)total_ns - (double)spent_ns[i];

		if (behind > worst) {
			worst = behind;
			which = i;
		}
	}
	return which;
}

static void *work(void *arg)
{
	uint64_t want_ns = (uintptr_t)arg * NSEC_PER_MSEC, seed = (uintptr_t)&want_ns;
	uint64_t spent_ns[3] = { 0 }, longest_ns = 0, begin, last;
	struct work_clock clock;

	gate_wait(&start);
	clock = work_begin();
	begin = last = clock.cpu_ns;
	while (last - begin < want_ns) {
		int i = furthest_behind(spent_ns, last - begin);
		uint64_t piece = per_ms * (300 + random_next(&seed) % 2700) / 1000, now;

		parts[i].run(piece);
		now = cpu_ns();
		spent_ns[i] += now - last;
		if (now - last > longest_ns)
			longest_ns = now - last;
		if (percent < 100)
			sleep_ns((now - last) * (100 - percent) / percent);
		last = now;
	}
	work_end(&clock);
	say("thread %d %llu %llu %llu %llu %llu %llu", self_tid(),
	    (unsigned long long)(last - begin), (unsigned long long)spent_ns[0],
	    (unsigned long long)spent_ns[1], (unsigned long long)spent_ns[2],
	    (unsigned long long)clock.on_ns, (unsigned long long)longest_ns);
	if (!__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL))
		gate_open(&done);
	wait_for_ever();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	left = argc - 1;
	if (left < 1 || left > MAX_THREADS)
		die("usage: cpu_split MS…");
	per_ms = burn_per_ms();
	for (int i = 1; i < argc; i++)
		if (pthread_create(&t, NULL, work, (void *)(uintptr_t)atoi(argv[i])))
			die("pthread_create");
	say_ready();
	if (sscanf(next_command(), "go %u", &percent) == 1 && !percent)
		die("usage: go [PERCENT]");
	gate_open(&start);
	gate_wait(&done);
	say("end");
	for (;;)
		next_command();
}
