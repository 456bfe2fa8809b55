/*
 * One thread that spends half its CPU time in user code and half inside one system call.
 *
 *   user_kernel MS
 *
 * in_kernel() fills a buffer from /dev/zero: all but a sliver of its time is the kernel's.
 *
 * go → spent TID USER_NS KERNEL_NS; end
 */
#include "target.h"

#include <fcntl.h>

static char buffer[8 << 20];

BURNER(in_user)

static NOINLINE void in_kernel(int fd)
{
	sys(SYS_read, fd, (long)buffer, sizeof(buffer), 0, 0, 0);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	uint64_t want_ns = (uint64_t)atoi(argc > 1 ? argv[1] : "1000") * NSEC_PER_MSEC;
	uint64_t per_ms = burn_per_ms(), seed = 1, user = 0, kernel = 0;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("/dev/zero");
	memset(buffer, 1, sizeof(buffer));
	say_ready();
	next_command();
	while (user + kernel < want_ns) {
		uint64_t begin = cpu_ns();

		if (user <= kernel) {
			in_user(per_ms * (300 + random_next(&seed) % 1700) / 1000);
			user += cpu_ns() - begin;
		} else {
			in_kernel(fd);
			kernel += cpu_ns() - begin;
		}
	}
	say("spent %d %llu %llu", self_tid(), (unsigned long long)user, (unsigned long long)kernel);
	say("end");
	for (;;)
		next_command();
}
