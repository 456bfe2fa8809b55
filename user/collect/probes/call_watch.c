#include "collect/probes/call_watch.h"

#include "collect/session/session_wire.h"

#include <errno.h>
#include <stdlib.h>

bool call_watch_can(struct session *s)
{
	return session_call_prog(s);
}

/* One that cannot be probed makes all of a link fail: then each is tried by itself. */
static int attach_each(struct call_watch *w, const uint64_t *offsets, const uint64_t *cookies,
		       uint32_t n)
{
	const struct bpf_program *prog = session_call_prog(w->session);
	int r = -ENOENT;

	for (uint32_t i = 0; i < n; i++) {
		int one = uprobes_attach(prog, w->fd, offsets + i, cookies + i, 1, w->pid,
					 UPROBE_ENTRY, w->fds + w->n_fds);

		if (one == -ESRCH)
			return one;
		if (one > 0)
			w->n_fds += (uint32_t)one;
		else
			w->refused++;
		r = w->n_fds ? 0 : one;
	}
	return r;
}

int call_watch_begin(struct call_watch *w, const uint64_t *offsets, const bool *behind, uint32_t n,
		     int64_t calls)
{
	_cleanup_(freep) uint64_t *cookies = calloc(n + 1ul, sizeof(*cookies));
	int r;

	w->n_fds = 0;
	w->most = calls;
	w->fds = calloc(n + 1ul, sizeof(*w->fds));
	if (!w->fds || !cookies) {
		free(TAKE_PTR(w->fds));
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		cookies[i] = behind[i] ? MS_COOKIE_BEHIND : 0;
	r = uprobes_attach(session_call_prog(w->session), w->fd, offsets, cookies, n, w->pid,
			   UPROBE_ENTRY, w->fds);
	if (r > 0)
		w->n_fds = (uint32_t)r;
	else if (r != -ESRCH)
		r = attach_each(w, offsets, cookies, n);
	if (r < 0) {
		uprobes_detach(w->fds, w->n_fds);
		free(TAKE_PTR(w->fds));
		w->n_fds = 0;
		return r;
	}
	session_calls_open(w->session, calls);
	return 0;
}

uint64_t call_watch_end(struct call_watch *w)
{
	int64_t left = session_calls_left(w->session);

	session_calls_open(w->session, 0);
	uprobes_detach(w->fds, w->n_fds);
	free(TAKE_PTR(w->fds));
	w->n_fds = 0;
	return (uint64_t)(w->most - left);
}
