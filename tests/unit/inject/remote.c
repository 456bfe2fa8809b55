#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/remote.h"

#if defined(__x86_64__)

/* What a signal handler returns into; the C library's has no name. */
extern const char test_restore[];
asm(".text\ntest_restore: mov $15, %eax\nsyscall\n");

/* What a child and we see of each other. A child has our addresses. */
static struct shared {
	int called, inside;
	int handled[2]; /* of the C library's signals: 1 within the call, 2 when it was over */
	ssize_t result;
	int error, ended;
} *volatile shared;

static int ends[2]; /* of a pair of sockets: the child's, ours */

static int begin(void **state)
{
	const struct timeval limit = { .tv_sec = 60 };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return 0;
}

static int end(void **state)
{
	munmap(shared, sizeof(*shared));
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void wait_until(volatile int *word)
{
	while (!*word)
		usleep(100);
}

/* A child that makes a system call, and is blocked in it: its number is `number`. */
static pid_t start(ssize_t (*call)(void), long number)
{
	char path[64], line[256];
	long at = -1;
	pid_t pid;

	shared->ended = 0;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		errno = 0;
		shared->result = call();
		shared->error = errno;
		shared->ended = 1;
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	while (at != number) {
		FILE *f = fopen(path, "re");

		if (!f) /* Linux is built without it, or it is not ours to read */
			break;
		if (!fgets(line, sizeof(line), f) || sscanf(line, "%ld", &at) != 1)
			at = -1;
		fclose(f);
		usleep(100);
	}
	return pid;
}

static void finish(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* false: this may not be done here. The descriptor stays open for as long as `t` is used. */
static bool stop(pid_t pid, struct remote *t)
{
	char path[64];
	struct err e = { 0 };
	int fd, r;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	r = remote_stop(pid, pid, fd, 1000000, false, t, &e);
	if (r == -EPERM)
		return false;
	assert_int_equal(r, 0);
	return true;
}

static ssize_t one_byte_read(void)
{
	char c;

	return read(ends[0], &c, 1);
}

static ssize_t one_byte_received(void)
{
	char c;

	return recv(ends[0], &c, 1, 0);
}

static ssize_t one_byte_received_as_a_message(void)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(ends[0], &m, 0);
}

static ssize_t one_byte_sent(void)
{
	static char block[65536];

	while (send(ends[0], block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	while (send(ends[0], block, 1, MSG_DONTWAIT) > 0)
		;
	errno = 0;
	return send(ends[0], block, 1, 0);
}

/* The other side does what ends it. */
static void lets_go(pid_t pid)
{
	static char block[65536];

	if (write(ends[1], "x", 1) != 1)
		fail_msg("write: %s", strerror(errno));
	while (!shared->ended)
		if (recv(ends[1], block, sizeof(block), MSG_DONTWAIT) <= 0)
			usleep(100);
	finish(pid);
}

static void wait_on_a_socket_with_a_time_limit_goes_on_after_a_stop(void **state)
{
	static const struct {
		ssize_t (*call)(void);
		long number;
	} calls[] = {
		{ one_byte_read, SYS_read },
		{ one_byte_received, SYS_recvfrom },
		{ one_byte_received_as_a_message, SYS_recvmsg },
		{ one_byte_sent, SYS_sendto },
	};
	static struct remote t;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		pid_t pid = start(calls[i].call, calls[i].number);

		if (!stop(pid, &t)) {
			finish(pid);
			print_message("ptrace is not permitted here\n");
			skip();
		}
		remote_release(&t);
		close(t.mem_fd);
		lets_go(pid);
		assert_int_equal(shared->error, 0);
		assert_int_equal(shared->result, 1);
	}
}

static void on_librarys_signal(int number)
{
	shared->handled[number - 32] = shared->inside ? 1 : 2;
}

/* The C library does not let a program have these. */
static void handle(int number)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		const void *restorer;
		uint64_t mask;
	} sa = { on_librarys_signal, SA_RESTART | 0x04000000, test_restore, 0 };

	if (syscall(SYS_rt_sigaction, number, &sa, NULL, 8) < 0)
		_exit(1);
}

static ssize_t handlers_and_a_byte(void)
{
	handle(32);
	handle(33);
	return one_byte_read();
}

/* In the child, in the middle of its read. */
static void called(void)
{
	shared->inside = 1;
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 32);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 33);
	shared->inside = 0;
	shared->called = 1;
}

/* pthread_cancel() would end the thread there, with what locks it has; setuid() waits for all threads. */
static void cancellation_waits_until_a_call_is_over_and_setuid_does_not(void **state)
{
	const uint64_t none[6] = { 0 };
	struct err e = { 0 };
	static struct remote t;
	pid_t pid = start(handlers_and_a_byte, SYS_read);

	if (!stop(pid, &t)) {
		finish(pid);
		print_message("ptrace is not permitted here\n");
		skip();
	}
	assert_int_equal(
		remote_call(&t, (uintptr_t)called, none, 0, (uintptr_t)test_restore, 10000000, &e),
		0);
	remote_release(&t);
	close(t.mem_fd);
	assert_int_equal(shared->called, 1);
	wait_until(&shared->handled[0]);
	lets_go(pid);
	assert_int_equal(shared->handled[0], 2);
	assert_int_equal(shared->handled[1], 1);
	assert_int_equal(shared->result, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			wait_on_a_socket_with_a_time_limit_goes_on_after_a_stop, begin, end),
		cmocka_unit_test_setup_teardown(
			cancellation_waits_until_a_call_is_over_and_setuid_does_not, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("1..0 # SKIP a library can be injected on x86-64 only");
	return 0;
}

#endif
