#include "proc/peek.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/served.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#define LOOKED_NS 1000000000ull

enum { SEEN = 256, PAGES_AT_ONCE = 64 };

/* Whether a process sees a file system that is served, as of a moment ago. */
static struct seen {
	pid_t pid;
	uint64_t looked_ns;
	bool served;
} seen[SEEN];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool sees_served(pid_t pid)
{
	struct seen *s = &seen[(uint32_t)pid % SEEN];
	uint64_t now = now_ns();
	bool served;

	pthread_mutex_lock(&lock);
	if (s->pid != pid || now - s->looked_ns > LOOKED_NS)
		*s = (struct seen){ pid, now, served_any(pid) > 0 };
	served = s->served;
	pthread_mutex_unlock(&lock);
	return served;
}

/* pagemap, a word a page: bit 63 present, bit 62 swapped out. */
static bool are_there(pid_t pid, uint64_t first, uint64_t end)
{
	_cleanup_(closep) int fd = -1;
	uint64_t words[PAGES_AT_ONCE];
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (first < end) {
		uint64_t n = end - first < PAGES_AT_ONCE ? end - first : PAGES_AT_ONCE;
		ssize_t bytes = (ssize_t)(n * sizeof(*words));

		if (pread(fd, words, (size_t)bytes, (off_t)(first * sizeof(*words))) != bytes)
			return false;
		for (uint64_t i = 0; i < n; i++)
			if (!(words[i] >> 62))
				return false;
		first += n;
	}
	return true;
}

bool peek_may(pid_t pid, uint64_t addr, size_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!len || !sees_served(pid))
		return true;
	return addr + len - 1 >= addr && are_there(pid, addr / page, (addr + len - 1) / page + 1);
}

bool peek(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process */
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };

	return peek_may(pid, addr, len) &&
	       process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)len;
}
