/* poll() and ppoll() as glibc's headers call them where they know an array's size, by the names that libfaketime knows. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stddef.h>

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t size);

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	(void)size;
	return poll(fds, n, timeout);
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t size)
{
	(void)size;
	return ppoll(fds, n, timeout, mask);
}
