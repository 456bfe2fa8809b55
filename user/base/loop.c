#include "base/loop.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct watch {
	struct watch *next;
	int fd; /* -1: forgotten */
	bool is_out; /* the kernel has no more of it: freed before the next round, as this one may still hold it */
	loop_fn fn;
	void *ctx;
};

struct timer {
	loop_due_fn due; /* NULL: `due_ns`, every `period_ns` */
	uint64_t due_ns, period_ns;
	loop_fn fn;
	void *ctx;
};

enum { N_OTHERS = 4 };

/* A signal by itself. */
struct other {
	int fd;
	loop_signal_fn fn;
	void *ctx;
};

struct each {
	loop_fn fn;
	void *ctx;
};

struct loop {
	int epoll_fd, signal_fd;
	sigset_t signals;
	loop_signal_fn signal_fn;
	void *signal_ctx;
	struct other others[N_OTHERS];
	uint32_t n_others;
	struct watch *watches;
	struct timer *timers;
	struct each *each;
	uint32_t n_timers, n_each;
	bool ended, has_forgotten;
};

int loop_new(struct loop **ret_loop, struct err *e)
{
	_cleanup_(loop_freep) struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(e, -ENOMEM, "out of memory");
	l->signal_fd = -1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return err_set(e, -errno, "cannot wait for events: %s", strerror(errno));
	*ret_loop = TAKE_PTR(l);
	return 0;
}

void loop_free(struct loop *l)
{
	struct watch *w, *next;

	if (!l)
		return;
	for (w = l->watches; w; w = next) {
		next = w->next;
		free(w);
	}
	free(l->timers);
	free(l->each);
	closep(&l->signal_fd);
	for (uint32_t i = 0; i < l->n_others; i++)
		closep(&l->others[i].fd);
	closep(&l->epoll_fd);
	free(l);
}

int loop_fd(struct loop *l, int fd, loop_fn fn, void *ctx)
{
	struct watch *w = calloc(1, sizeof(*w));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = w };

	if (!w)
		return -ENOMEM;
	*w = (struct watch){ .next = l->watches, .fd = fd, .fn = fn, .ctx = ctx };
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(w);
		return -errno;
	}
	l->watches = w;
	return 0;
}

void loop_fd_forget(struct loop *l, int fd)
{
	for (struct watch *w = l->watches; w; w = w->next)
		if (w->fd == fd) {
			w->is_out = epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL) == 0;
			w->fd = -1;
			l->has_forgotten |= w->is_out;
		}
}

/* A service watches a descriptor for each of its answers. */
static void free_forgotten(struct loop *l)
{
	struct watch **at = &l->watches, *w;

	while ((w = *at)) {
		if (!w->is_out) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
	l->has_forgotten = false;
}

static int timer_add(struct loop *l, const struct timer *t)
{
	struct timer *more = reallocarray(l->timers, l->n_timers + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->timers = more;
	more[l->n_timers++] = *t;
	return 0;
}

int loop_every(struct loop *l, uint64_t period_ns, loop_fn fn, void *ctx)
{
	return timer_add(l, &(struct timer){ .due_ns = now_ns() + period_ns,
					     .period_ns = period_ns,
					     .fn = fn,
					     .ctx = ctx });
}

int loop_at(struct loop *l, loop_due_fn due, loop_fn fn, void *ctx)
{
	return timer_add(l, &(struct timer){ .due = due, .fn = fn, .ctx = ctx });
}

int loop_each(struct loop *l, loop_fn fn, void *ctx)
{
	struct each *more = reallocarray(l->each, l->n_each + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	l->each = more;
	more[l->n_each++] = (struct each){ fn, ctx };
	return 0;
}

/* --- signals --- */

static int on_signal(void *ctx, struct err *e)
{
	struct signalfd_siginfo info;
	struct loop *l = ctx;

	(void)e;
	if (read(l->signal_fd, &info, sizeof(info)) == sizeof(info))
		l->signal_fn(l->signal_ctx, (int)info.ssi_signo);
	return 0;
}

int loop_signals(struct loop *l, const sigset_t *set, loop_signal_fn fn, void *ctx)
{
	int r;

	l->signals = *set;
	l->signal_fn = fn;
	l->signal_ctx = ctx;
	sigprocmask(SIG_BLOCK, set, NULL);
	l->signal_fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signal_fd < 0)
		return -errno;
	r = loop_fd(l, l->signal_fd, on_signal, l);
	return r;
}

static int on_other(void *ctx, struct err *e)
{
	struct signalfd_siginfo info;
	const struct other *o = ctx;

	(void)e;
	if (read(o->fd, &info, sizeof(info)) == sizeof(info))
		o->fn(o->ctx, (int)info.ssi_signo);
	return 0;
}

int loop_signal(struct loop *l, int number, loop_signal_fn fn, void *ctx)
{
	struct other *o = &l->others[l->n_others];
	sigset_t set;

	if (l->n_others == N_OTHERS)
		return -ENOSPC;
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*o = (struct other){ signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), fn, ctx };
	if (o->fd < 0)
		return -errno;
	l->n_others++;
	return loop_fd(l, o->fd, on_other, o);
}

bool loop_signal_waits(const struct loop *l, int timeout_ms)
{
	struct pollfd pfd = { .fd = l->signal_fd, .events = POLLIN };

	return l->signal_fd >= 0 && poll(&pfd, 1, timeout_ms) > 0;
}

void loop_signals_end(struct loop *l, bool let_through)
{
	if (l->signal_fd < 0)
		return;
	loop_fd_forget(l, l->signal_fd);
	close(TAKE_FD(l->signal_fd));
	if (let_through)
		sigprocmask(SIG_UNBLOCK, &l->signals, NULL);
}

/* --- running --- */

static uint64_t due_of(const struct timer *t)
{
	return t->due ? t->due(t->ctx) : t->due_ns;
}

/* Until the next timer, ms, never early; -1: there is none. */
static int ms_to_wait(const struct loop *l)
{
	uint64_t next = LOOP_NEVER, now, ms;

	for (uint32_t i = 0; i < l->n_timers; i++) {
		uint64_t due = due_of(&l->timers[i]);

		if (due < next)
			next = due;
	}
	if (next == LOOP_NEVER)
		return -1;
	now = now_ns();
	ms = next > now ? (next - now + 999999) / 1000000 : 0;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static int run_timers(struct loop *l, struct err *e)
{
	int r = 0;

	for (uint32_t i = 0; i < l->n_timers && r == 0; i++) {
		struct timer *t = &l->timers[i];
		uint64_t now = now_ns();

		if (due_of(t) > now)
			continue;
		if (!t->due)
			t->due_ns += (now - t->due_ns) / t->period_ns * t->period_ns + t->period_ns;
		r = t->fn(t->ctx, e);
	}
	return r;
}

int loop_run(struct loop *l, struct err *e)
{
	int r = 0;

	while (r == 0 && !l->ended) {
		struct epoll_event events[64];
		int n;

		if (l->has_forgotten)
			free_forgotten(l);
		n = epoll_wait(l->epoll_fd, events, 64, ms_to_wait(l));
		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "cannot wait for events: %s", strerror(errno));
		for (int i = 0; i < n && r == 0; i++) {
			const struct watch *w = events[i].data.ptr;

			if (w->fd >= 0)
				r = w->fn(w->ctx, e);
		}
		if (r == 0)
			r = run_timers(l, e);
		for (uint32_t i = 0; i < l->n_each && r == 0; i++)
			r = l->each[i].fn(l->each[i].ctx, e);
	}
	return r;
}

void loop_end(struct loop *l)
{
	l->ended = true;
}
