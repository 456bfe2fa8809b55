/*
 * Work that moves from one set of functions to another, at a moment that is logged, then one long wait.
 *
 *   go MS   phase a for MS ms, phase b for MS ms, each in turns of burning, allocating, touching memory and sleeping; then
 *           wait_long for 2.5 times MS
 *
 * Moments are of CLOCK_REALTIME, ns.
 *
 * go → moments BEGIN SWITCH END WAITED; end
 */
#include "target.h"

#define TOUCH (1u << 20)

static uint64_t per_ms;

/* Its pages are touched here, which is what the page faults are. */
static void *map_fresh(void)
{
	void *p = mmap(NULL, TOUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	madvise(p, TOUCH, MADV_NOHUGEPAGE);
	return p;
}

#define PHASE(letter)                                                                              \
	static NOINLINE void burn_##letter(void)                                                   \
	{                                                                                          \
		burn(5 * per_ms);                                                                  \
		__asm__ volatile("");                                                              \
	}                                                                                          \
	static NOINLINE void alloc_##letter(void)                                                  \
	{                                                                                          \
		for (int i = 0; i < 10; i++) {                                                     \
			void *volatile p = malloc(1000);                                           \
                                                                                                   \
			free(p);                                                                   \
		}                                                                                  \
	}                                                                                          \
	static NOINLINE void touch_##letter(void)                                                  \
	{                                                                                          \
		memset(map_fresh(), 1, TOUCH);                                                     \
		__asm__ volatile("");                                                              \
	}                                                                                          \
	static NOINLINE void wait_##letter(void)                                                   \
	{                                                                                          \
		struct timespec ts = { 0, 10 * NSEC_PER_MSEC };                                    \
                                                                                                   \
		sys(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);                                      \
	}                                                                                          \
	static NOINLINE void phase_##letter(uint64_t end_ns)                                       \
	{                                                                                          \
		while (clock_ns(CLOCK_REALTIME) < end_ns) {                                        \
			burn_##letter();                                                           \
			alloc_##letter();                                                          \
			touch_##letter();                                                          \
			wait_##letter();                                                           \
		}                                                                                  \
	}

PHASE(a)
PHASE(b)

static NOINLINE void wait_long(uint64_t ms)
{
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms % 1000 * NSEC_PER_MSEC) };

	sys(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
}

int main(void)
{
	per_ms = burn_per_ms();
	say_ready();
	for (;;) {
		unsigned long ms = 0;
		uint64_t at[4];

		if (sscanf(next_command(), "go %lu", &ms) != 1)
			die("what?");
		at[0] = clock_ns(CLOCK_REALTIME);
		phase_a(at[0] + ms * NSEC_PER_MSEC);
		at[1] = clock_ns(CLOCK_REALTIME);
		phase_b(at[1] + ms * NSEC_PER_MSEC);
		at[2] = clock_ns(CLOCK_REALTIME);
		wait_long(ms * 5 / 2);
		at[3] = clock_ns(CLOCK_REALTIME);
		say("moments %llu %llu %llu %llu", (unsigned long long)at[0],
		    (unsigned long long)at[1], (unsigned long long)at[2],
		    (unsigned long long)at[3]);
		say("end");
	}
}
