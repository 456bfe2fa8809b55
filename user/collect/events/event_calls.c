/* Calls that are timed (bpf/events.bpf.c). */
#include "collect/events/event_parts.h"
#include "collect/session/session_wire.h"

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

void event_probes_sweep(struct event_probes *ep, bool (*lives)(void *ctx, pid_t pid), void *ctx)
{
	int map = ep->session ? session_map_fd(ep->session, SESSION_EVENT_CALLS) : -1;
	struct ms_call_key key, next;
	bool more;

	for (uint32_t i = 0; i < ep->n; i++)
		ep->events[i].open = 0;
	more = bpf_map_get_next_key(map, NULL, &next) == 0;
	while (more) {
		struct event *ev;

		key = next;
		more = bpf_map_get_next_key(map, &key, &next) == 0;
		if (key.number >= ep->n)
			continue;
		ev = &ep->events[key.number];
		if (lives(ctx, (pid_t)key.pid))
			ev->open++;
		else
			ev->left += bpf_map_delete_elem(map, &key) == 0;
	}
}
