/*
 * A thread whose cycle is divided 70/20/10 between three functions by the clock on the wall: a program
 * that a sampler at a fixed period is in step with.
 *
 *   cpu_cycle CYCLE_US MS     after `go` it works for MS of CPU time
 *
 * The boundaries are multiples of the cycle since the epoch of CLOCK_MONOTONIC: what delays one piece
 * shortens the next, and no drift takes the program out of step. The truth is the thread's CPU clock
 * at each boundary. ON_NS is perf's account (work_begin() in target.h), LONGEST_NS the piece that took the
 * most of the CPU clock, WALL_NS how long all of it took.
 *
 * go → thread TID CPU_NS NS_70 NS_20 NS_10 ON_NS LONGEST_NS WALL_NS; end
 */
#include "target.h"

static uint64_t per_us;

/* Until the wall clock is there. */
static NOINLINE void hot_70(uint64_t until_ns)
{
	while (mono_ns() < until_ns)
		burn(per_us);
	__asm__ volatile("");
}

static NOINLINE void hot_20(uint64_t until_ns)
{
	while (mono_ns() < until_ns)
		burn(per_us);
	__asm__ volatile("");
}

static NOINLINE void hot_10(uint64_t until_ns)
{
	while (mono_ns() < until_ns)
		burn(per_us);
	__asm__ volatile("");
}

static const struct {
	void (*run)(uint64_t until_ns);
	uint64_t end_percent;
} parts[] = { { hot_70, 70 }, { hot_20, 90 }, { hot_10, 100 } };

static NOINLINE void work(uint64_t cycle_ns, uint64_t want_ns)
{
	uint64_t spent_ns[3] = { 0 }, longest_ns = 0, wall_ns = mono_ns(), begin, last;
	struct work_clock clock = work_begin();

	begin = last = clock.cpu_ns;
	while (last - begin < want_ns) {
		uint64_t cycle = mono_ns() / cycle_ns * cycle_ns;

		for (int i = 0; i < 3; i++) {
			uint64_t now;

			parts[i].run(cycle + cycle_ns * parts[i].end_percent / 100);
			now = cpu_ns();
			spent_ns[i] += now - last;
			if (now - last > longest_ns)
				longest_ns = now - last;
			last = now;
		}
	}
	work_end(&clock);
	say("thread %d %llu %llu %llu %llu %llu %llu %llu", self_tid(),
	    (unsigned long long)(last - begin), (unsigned long long)spent_ns[0],
	    (unsigned long long)spent_ns[1], (unsigned long long)spent_ns[2],
	    (unsigned long long)clock.on_ns, (unsigned long long)longest_ns,
	    (unsigned long long)(mono_ns() - wall_ns));
}

int main(int argc, char **argv)
{
	if (argc != 3 || atoi(argv[1]) < 1)
		die("usage: cpu_cycle CYCLE_US MS");
	per_us = burn_per_ms() / 1000 + 1;
	say_ready();
	next_command();
	work((uint64_t)atoi(argv[1]) * 1000, (uint64_t)atoi(argv[2]) * NSEC_PER_MSEC);
	say("end");
	for (;;)
		next_command();
}
