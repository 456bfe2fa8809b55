/*
 * System calls one after the other, for what it costs to log them: of eight, six read, one writes and one asks where in the
 * file it is.
 *
 * rate FILE  (no answer)  calls until the end, counting calls in the first 8 bytes of FILE
 */
#include "target.h"

#include <fcntl.h>

static char block[64];

static NOINLINE void calls_make(int from, int to, volatile uint64_t *counter)
{
	for (;;) {
		for (int i = 0; i < 6; i++)
			sys(SYS_pread64, from, (long)block, sizeof(block), 0, 0, 0);
		sys(SYS_write, to, (long)block, sizeof(block), 0, 0, 0);
		sys(SYS_lseek, from, 0, SEEK_CUR, 0, 0, 0);
		*counter += 8;
	}
}

int main(void)
{
	int from = open("/dev/zero", O_RDONLY), to = open("/dev/null", O_WRONLY);

	if (from < 0 || to < 0)
		die("set-up");
	say_ready();
	for (;;) {
		const char *command = next_command();

		if (!strncmp(command, "rate ", 5))
			calls_make(from, to, map_counter(command + 5));
	}
}
