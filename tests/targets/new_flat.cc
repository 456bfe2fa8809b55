/*
 * Nothing but operator new and delete, as fast as it goes.
 *
 *   new_flat
 *
 * rate FILE      (no answer) plays until the end, counting pairs in the first 8 bytes of FILE
 */
#include "target.h"

#include <new>

static NOINLINE void new_and_delete()
{
	void *volatile p = ::operator new(48);

	::operator delete(p);
}

int main()
{
	volatile uint64_t *counter;
	const char *path;

	say_ready();
	path = strchr(next_command(), ' ');
	if (!path)
		die("rate FILE");
	counter = map_counter(path + 1);
	for (;;) {
		for (int i = 0; i < 100; i++)
			new_and_delete();
		*counter = *counter + 100;
	}
}
