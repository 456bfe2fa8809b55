/* Calls that are timed (bpf/events.bpf.c). */
#include "collect/events/event_parts.h"
#include "collect/session/session_wire.h"
#include "proc/thread_gone.h"

#include <bpf/bpf.h>
#include <string.h>

_Static_assert(CALL_PARTS == MS_SYSCALL_PARTS, "parts of the histogram");

const char *event_probes_untimed(const struct event_probes *ep, uint32_t number)
{
	return ep->events[number].untimed;
}

void event_probes_times(const struct event_probes *ep, uint32_t number,
			struct call_times *ret_times)
{
	const struct event *ev = &ep->events[number];
	struct ms_call_total total = { 0 };

	if (ep->session)
		bpf_map_lookup_elem(session_map_fd(ep->session, SESSION_EVENT_CALL_TOTALS), &number,
				    &total);
	*ret_times = (struct call_times){
		.returned = total.returned,
		.ns = total.ns,
		.outer = total.outer,
		.outer_ns = total.outer_ns,
		.left = total.left + ev->left,
		.lost = total.lost,
		.open = ev->open,
	};
	memcpy(ret_times->parts, total.parts, sizeof(total.parts));
}

/* Behind a row that a program has just removed the kernel begins anew: calls may come and go as fast as they are looked at. */
enum { ROUNDS = 2 };

/* Has a thread ended? Rows of a thread often come one after the other. */
struct sweeping {
	bool (*lives)(void *ctx, pid_t pid);
	void *ctx;
	uint32_t pid, tid;
	bool gone; /* that one */
};

static bool has_ended(struct sweeping *s, uint32_t pid, uint32_t tid)
{
	if (pid != s->pid || tid != s->tid)
		s->gone = !s->lives(s->ctx, (pid_t)pid) || thread_is_gone((pid_t)pid, (pid_t)tid);
	s->pid = pid;
	s->tid = tid;
	return s->gone;
}

static void sweep_calls(struct event_probes *ep, struct sweeping *s)
{
	int map = session_map_fd(ep->session, SESSION_EVENT_CALLS);
	uint32_t left = ROUNDS * session_map_max(ep->session, SESSION_EVENT_CALLS);
	struct ms_call_key key, next;
	bool more = bpf_map_get_next_key(map, NULL, &next) == 0;

	for (uint32_t i = 0; i < ep->n; i++)
		ep->events[i].open = 0;
	while (more && left--) {
		struct ms_call call;
		struct event *ev;

		key = next;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (key.number >= ep->n || bpf_map_lookup_elem(map, &key, &call) < 0)
			continue;
		ev = &ep->events[key.number];
		if (!has_ended(s, key.pid, call.tid))
			ev->open++;
		else
			ev->left += bpf_map_delete_elem(map, &key) == 0;
	}
}

static void sweep_outermost(struct event_probes *ep, struct sweeping *s)
{
	int map = session_map_fd(ep->session, SESSION_EVENT_OUTERMOST);
	uint32_t left = ROUNDS * session_map_max(ep->session, SESSION_EVENT_OUTERMOST);
	struct ms_call_thread key, next;
	bool more = bpf_map_get_next_key(map, NULL, &next) == 0;

	while (more && left--) {
		key = next;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (has_ended(s, (uint32_t)(key.id >> 32), (uint32_t)key.id))
			bpf_map_delete_elem(map, &key);
	}
}

void event_probes_sweep(struct event_probes *ep, bool (*lives)(void *ctx, pid_t pid), void *ctx)
{
	struct sweeping s = { .lives = lives, .ctx = ctx };

	if (!ep->session)
		return;
	sweep_calls(ep, &s);
	sweep_outermost(ep, &s);
}
