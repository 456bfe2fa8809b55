/*
 * Works at a known stack depth, counting what it gets done.
 *
 *   deep DEPTH
 *
 * rate FILE  (no answer)  works until the end; the first 8 bytes of FILE count units of work
 */
#include "target.h"

static volatile uint64_t *counter;

static NOINLINE void work(void)
{
	while (counter) {
		burn(1000);
		++*counter;
	}
}

static NOINLINE void descend(int depth)
{
	if (depth > 0)
		descend(depth - 1);
	else
		work();
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	const char *command;

	say_ready();
	command = next_command();
	if (argc != 2 || strncmp(command, "rate ", 5))
		die("usage: deep DEPTH, then `rate FILE`");
	counter = map_counter(command + 5);
	descend(atoi(argv[1]));
}
