#include "screen/worker.h"
#include "base/clock.h"
#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAGIC       0x6d73776du
#define MESSAGE_MAX (1ULL << 30)
#define PIPE_BYTES  (1 << 20)
enum { STOPPED_MAX = 32 };

static pid_t stopped[STOPPED_MAX];
static uint32_t n_stopped;

/* --- the child --- */

static void leave_the_terminal(void)
{
	static const int signals[] = { SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGSEGV,  SIGBUS,
				       SIGABRT, SIGFPE,  SIGILL, SIGPIPE, SIGWINCH, SIGTSTP };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	setpgid(0, 0); /* what is typed is no signal to it */
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
}

int worker_start(struct worker *w, int (*work)(void *ctx, int in, int out), void *ctx,
		 struct err *e)
{
	int from[2], to[2];
	pid_t parent = getpid();

	*w = (struct worker){ .from = -1, .to = -1 };
	if (pipe2(from, O_CLOEXEC) < 0)
		return err_set(e, -errno, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(to, O_CLOEXEC) < 0) {
		close(from[0]);
		close(from[1]);
		return err_set(e, -errno, "cannot make a pipe: %s", strerror(errno));
	}
	fcntl(from[1], F_SETPIPE_SZ, PIPE_BYTES);
	w->pid = fork();
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		close(from[0]);
		close(to[1]);
		leave_the_terminal();
		_exit(work(ctx, to[0], from[1]));
	}
	close(from[1]);
	close(to[0]);
	if (w->pid < 0) {
		close(from[0]);
		close(to[1]);
		*w = (struct worker){ .from = -1, .to = -1 };
		return err_set(e, -errno, "cannot start a process: %s", strerror(errno));
	}
	w->from = from[0];
	w->to = to[1];
	fcntl(w->from, F_SETFL, O_NONBLOCK);
	return 0;
}

int worker_send(int out, enum worker_message kind, const void *data, size_t bytes)
{
	struct worker_head head = { MAGIC, kind, bytes };
	const char *parts[] = { (const char *)&head, data };
	size_t sizes[] = { sizeof(head), bytes };

	for (int i = 0; i < 2; i++)
		if (whole_file_write(out, parts[i], sizes[i]) < 0)
			return -EPIPE;
	return 0;
}

int worker_say(int out, enum worker_message kind, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return worker_send(out, kind, text, strlen(text));
}

/* --- the screen's side --- */

void worker_stop(struct worker *w)
{
	if (w->pid > 0) {
		kill(w->pid, SIGTERM);
		for (uint32_t i = 0; i < n_stopped; i++)
			if (waitpid(stopped[i], NULL, WNOHANG) != 0)
				stopped[i--] = stopped[--n_stopped];
		if (n_stopped < STOPPED_MAX)
			stopped[n_stopped++] = w->pid;
	}
	if (w->from >= 0)
		close(w->from);
	if (w->to >= 0)
		close(w->to);
	free(w->buf);
	*w = (struct worker){ .from = -1, .to = -1 };
}

void workers_wait(unsigned ms)
{
	uint64_t until = now_ns() + ms * 1000000ULL;

	while (n_stopped && now_ns() < until) {
		if (waitpid(stopped[n_stopped - 1], NULL, WNOHANG) != 0)
			n_stopped--;
		else
			poll(NULL, 0, 10);
	}
}

int worker_read(struct worker *w)
{
	for (;;) {
		ssize_t n;

		if (w->len + 65536 > w->cap) {
			size_t cap = 2 * w->cap + 131072;
			char *buf = realloc(w->buf, cap + 1);

			if (!buf)
				return -ENOMEM;
			w->buf = buf;
			w->cap = cap;
		}
		n = read(w->from, w->buf + w->len, w->cap - w->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return -EPIPE;
		w->len += (size_t)n;
	}
}

bool worker_next(struct worker *w, enum worker_message *ret_kind, const char **ret_data,
		 size_t *ret_bytes)
{
	struct worker_head head;

	/* The one before is done with. */
	if (w->taken) {
		memmove(w->buf, w->buf + w->taken, w->len - w->taken);
		w->len -= w->taken;
		w->taken = 0;
	}
	if (w->len < sizeof(head))
		return false;
	memcpy(&head, w->buf, sizeof(head));
	if (head.magic != MAGIC || head.kind >= N_WORKER_MESSAGES || head.bytes > MESSAGE_MAX) {
		w->len = 0;
		return false;
	}
	if (w->len - sizeof(head) < head.bytes)
		return false;
	*ret_kind = head.kind;
	*ret_data = w->buf + sizeof(head);
	*ret_bytes = head.bytes;
	w->taken = sizeof(head) + head.bytes;
	return true;
}

int worker_ask(const struct worker *w, const char *line)
{
	size_t len = strlen(line);

	return write(w->to, line, len) == (ssize_t)len && write(w->to, "\n", 1) == 1 ? 0 : -EPIPE;
}
