/*
 * A program with one fault of memory, or with none.
 *
 *   sick churn          allocates, writes a little, and gives back, all the time
 *   sick bloat          holds 64 MiB for a moment, in blocks that go back to the system, and 1 MiB on
 *   sick fragmentation  takes 64 MiB in small blocks and gives back 28 of them, each between two
 *   sick healthy        holds 24 MiB, and exchanges a few blocks now and then
 *
 * go → some two seconds of it, of CPU time what churns, and no less time at rest than twice what it took before; end
 */
#include "target.h"

#include <string.h>

#define LARGE  ((size_t)1 << 20)
#define SMALL  1008
#define BLOCKS (64 * 1024)
#define KEEPS  (24 * 1024)

static void *volatile kept[BLOCKS];

static NOINLINE void churn_here(void)
{
	for (int i = 0; i < 64; i++) {
		char *p = malloc(200);

		memset(p, i, 100);
		kept[0] = p;
		free(p);
	}
	__asm__ volatile("");
}

static NOINLINE void spike_here(void)
{
	for (int i = 0; i < 64; i++) {
		kept[i] = malloc(LARGE);
		memset(kept[i], 1, LARGE);
	}
	sleep_ns(200 * NSEC_PER_MSEC);
	for (int i = 1; i < 64; i++)
		free(kept[i]);
}

static NOINLINE void take_here(int n)
{
	for (int i = 0; i < n; i++) {
		kept[i] = malloc(SMALL);
		memset(kept[i], 1, SMALL);
	}
	__asm__ volatile("");
}

static NOINLINE void give_back_here(void)
{
	for (int i = 0; i < BLOCKS; i++)
		if (i % 2 && i % 16 < 14)
			free(kept[i]);
	__asm__ volatile("");
}

static NOINLINE void exchange_here(int round)
{
	free(kept[round]);
	kept[round] = malloc(SMALL);
	__asm__ volatile("");
}

/* A program that has settled has been at its level for longer than on the way, however slow that was. */
static uint64_t rest_ns(uint64_t begin)
{
	uint64_t took = mono_ns() - begin, least = 1500 * NSEC_PER_MSEC;

	return 2 * took > least ? 2 * took : least;
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	uint64_t start, rest;

	say_ready();
	next_command();
	start = mono_ns();
	if (strcmp(fault, "churn") == 0) {
		for (uint64_t begin = cpu_ns(); cpu_ns() - begin < 1500 * NSEC_PER_MSEC;)
			churn_here();
	} else if (strcmp(fault, "bloat") == 0) {
		spike_here();
		sleep_ns(rest_ns(start));
	} else if (strcmp(fault, "fragmentation") == 0) {
		take_here(BLOCKS);
		give_back_here();
		sleep_ns(rest_ns(start));
	} else if (strcmp(fault, "healthy") == 0) {
		take_here(KEEPS);
		rest = rest_ns(start);
		for (int i = 0; i < 100; i++) {
			exchange_here(i);
			sleep_ns(rest / 100);
		}
	} else {
		die("usage: sick churn|bloat|fragmentation|healthy");
	}
	say("end");
	next_command();
	return 0;
}
