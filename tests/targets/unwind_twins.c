/*
 * Allocates and waits below functions that differ in nothing but where they are: from the same leaf, with
 * the same frames, registers and depth, so that a single return address, deep in the stack, tells who it
 * was. Which one comes is drawn by a fixed seed. Without frame pointers.
 *
 *   unwind_twins
 *
 * go ROUNDS → NAME CALLS WAITS (each: calls of malloc below it, and voluntary switches as the kernel
 *             counts them), end
 */
#include "target.h"

#include <alloca.h>
#include <sys/resource.h>

#define WORD __attribute__((noinline, noclone, noipa))

static volatile int sink;
static void *volatile block;

static uint64_t switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (uint64_t)u.ru_nvcsw;
}

WORD static void leaf(bool waits)
{
	struct timespec ts = { 0, 50000 };

	if (waits) {
		nanosleep(&ts, NULL);
		return;
	}
	block = malloc(64);
	free(block);
}

WORD static void lower(bool waits)
{
	leaf(waits);
	sink++;
}

/* A frame that only rbp tells. */
WORD static void middle(bool waits, int n)
{
	char *room = (char *)alloca((size_t)n);

	room[0] = 1;
	__asm__ volatile("" : : "r"(room) : "memory");
	lower(waits);
	sink += room[0];
}

WORD static void upper(bool waits)
{
	middle(waits, 32);
	sink++;
}

#define TWIN(name, number)                                                                         \
	WORD static void name(bool waits)                                                          \
	{                                                                                          \
		upper(waits);                                                                      \
		sink += number;                                                                    \
	}
#define TWIN_BY_RBP(name, number)                                                                  \
	WORD static void name(bool waits)                                                          \
	{                                                                                          \
		char *room = (char *)alloca((size_t)(sink & 1) + 16);                              \
                                                                                                   \
		room[0] = number;                                                                  \
		__asm__ volatile("" : : "r"(room) : "memory");                                     \
		upper(waits);                                                                      \
		sink += room[0];                                                                   \
	}

TWIN(first, 1)
TWIN(second, 2)
TWIN(third, 3)
TWIN_BY_RBP(fourth, 4)
TWIN_BY_RBP(fifth, 5)

static struct twin {
	const char *name;
	void (*call)(bool waits);
	uint64_t calls, waits;
} twins[] = {
	{ "first", first, 0, 0 },   { "second", second, 0, 0 }, { "third", third, 0, 0 },
	{ "fourth", fourth, 0, 0 }, { "fifth", fifth, 0, 0 },
};

enum { N_TWINS = sizeof(twins) / sizeof(twins[0]) };

WORD static void play(uint64_t rounds)
{
	uint64_t x = 88172645463325252ULL;

	for (uint64_t i = 0; i < rounds; i++) {
		struct twin *t;
		bool waits;
		uint64_t before;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		t = &twins[(x >> 32) % N_TWINS];
		waits = (x >> 20) % 32 == 0;
		before = waits ? switches() : 0;
		t->call(waits);
		t->calls += !waits;
		t->waits += waits ? switches() - before : 0;
	}
}

int main(void)
{
	say_ready();
	for (;;) {
		const char *command = next_command();

		play(strtoull(command + strcspn(command, " "), NULL, 10));
		for (int i = 0; i < N_TWINS; i++)
			say("%s %llu %llu", twins[i].name, (unsigned long long)twins[i].calls,
			    (unsigned long long)twins[i].waits);
		say("end");
	}
}
