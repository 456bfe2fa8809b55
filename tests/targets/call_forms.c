/*
 * System calls whose arguments are structures, once each, for what is written of them: buffers, messages, signal actions, requests of
 * ioctl. It takes no commands and ends.
 */
#include "target.h"

#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <termios.h>

static void *volatile nowhere = (void *)16; /* no address of a program */

static void must(bool good)
{
	if (!good)
		die("call_forms");
}

static void buffers(int from, int to)
{
	static char letters[] = "abcdefgh", more[100], a[3], b[10];
	struct iovec many[20], two[2] = { { more, 100 }, { "a\n", 2 } },
			       in[2] = { { a, 3 }, { b, 10 } },
			       bad[2] = { { "ab", 2 }, { nowhere, 5 } };

	for (size_t i = 0; i < 20; i++)
		many[i] = (struct iovec){ letters, i % 9 };
	memset(more, 'x', sizeof(more));
	must(writev(to, many, 3) == 3);
	must(writev(to, many, 12) == 39);
	must(writev(to, two, 2) == 102);
	must(readv(from, in, 2) == 13);
	must(readv(from, in, 1) == 3);
	must(writev(to, bad, 2) < 0 && writev(to, nowhere, 2) < 0 && writev(to, many, 0) == 0);
}

static void requests(int fd)
{
	struct winsize size;
	struct termios term;
	int n = 1;

	must(ioctl(fd, FIONREAD, &n) == 0 && n > 0);
	n = 1;
	must(ioctl(fd, FIONBIO, &n) == 0 && ioctl(fd, FIOCLEX) == 0);
	must(ioctl(fd, TIOCGWINSZ, &size) < 0 && ioctl(fd, TCGETS, &term) < 0);
	must(ioctl(fd, _IOC(0, 0x12, 0x34, 0), &n) < 0 && ioctl(fd, _IOR('z', 5, int), &n) < 0 &&
	     ioctl(fd, _IOWR('z', 5, long), 0) < 0);
}

static void messages(int fd)
{
	static char buf[200], control[CMSG_SPACE(sizeof(int))], got[100];
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_storage peer;
	int one = 1;
	socklen_t len = sizeof(in), option_len = sizeof(one);
	int pair[2], to = socket(AF_INET, SOCK_DGRAM, 0), from = socket(AF_INET, SOCK_DGRAM, 0);
	struct iovec out[2] = { { "hello", 5 }, { "world!", 6 } },
		     room[2] = { { buf, 3 }, { buf + 3, 100 } };
	struct msghdr sent = { .msg_iov = out, .msg_iovlen = 2 },
		      received = { .msg_iov = room, .msg_iovlen = 2 };
	struct cmsghdr *head;

	must(setsockopt(to, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
	must(setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0);
	must(getsockopt(to, SOL_SOCKET, SO_ERROR, &one, &option_len) == 0);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	must(sendmsg(pair[0], &sent, MSG_NOSIGNAL) == 11 && recvmsg(pair[1], &received, 0) == 11);
	must(bind(to, (void *)&in, sizeof(in)) == 0 && getsockname(to, (void *)&in, &len) == 0);
	sent = (struct msghdr){
		.msg_name = &in, .msg_namelen = sizeof(in), .msg_iov = out, .msg_iovlen = 1
	};
	must(sendmsg(from, &sent, 0) == 5);
	received = (struct msghdr){ .msg_name = &peer,
				    .msg_namelen = sizeof(peer),
				    .msg_iov = room + 1,
				    .msg_iovlen = 1,
				    .msg_flags = 7 };
	must(recvmsg(to, &received, 0) == 5 && recvmsg(to, &received, MSG_DONTWAIT) < 0);
	sent = (struct msghdr){ .msg_iov = out,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control) };
	head = CMSG_FIRSTHDR(&sent);
	*head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	must(sendmsg(pair[0], &sent, 0) == 5);
	received = (struct msghdr){ .msg_iov = room + 1,
				    .msg_iovlen = 1,
				    .msg_control = got,
				    .msg_controllen = sizeof(got) };
	must(recvmsg(pair[1], &received, MSG_CMSG_CLOEXEC) == 5);
	must(sendmsg(pair[0], nowhere, 0) < 0);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
}

static void signals(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | SA_ONSTACK,
				    .sa_sigaction = on_signal },
			 old;
	sigset_t set, before;

	must(signal(SIGINT, SIG_IGN) != SIG_ERR && signal(SIGINT, SIG_DFL) == SIG_IGN);
	sigaddset(&action.sa_mask, SIGUSR1);
	sigaddset(&action.sa_mask, SIGRTMIN + 2);
	must(sigaction(SIGUSR2, &action, NULL) == 0);
	sigfillset(&action.sa_mask);
	must(sigaction(SIGUSR2, &action, &old) == 0 && sigaction(SIGCHLD, NULL, &old) == 0 &&
	     sigaction(SIGKILL, &action, NULL) < 0);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	must(sigprocmask(SIG_BLOCK, &set, &before) == 0 &&
	     sigprocmask(SIG_SETMASK, NULL, &set) == 0);
}

int main(void)
{
	int ends[2];

	must(pipe(ends) == 0);
	buffers(ends[0], ends[1]);
	requests(ends[0]);
	messages(ends[0]);
	signals();
	return 0;
}
