/*
 * A marked moment, and how the profile since then differs from the one before it.
 *
 * The tree only grows and its values only add up, so what each node had at the mark is all that has to be kept. Times and
 * allocations are compared as rates, since the two stretches of time are never equally long; memory as it was and is.
 */
#include "base/units.h"
#include "screen/profile_parts.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void profile_moment_forget(struct profile_view *pv)
{
	free(pv->mark.self);
	free(pv->mark.total);
	pv->mark = (struct profile_moment){ 0 };
}

int profile_moment_set(struct profile_view *pv)
{
	struct profile_moment m = { .n = pv->tree.n,
				    .duration_ns = pv->shown_ns,
				    .at = time(NULL) };

	m.self = calloc(m.n, sizeof(*m.self));
	m.total = calloc(m.n, sizeof(*m.total));
	if (!m.self || !m.total) {
		free(m.self);
		free(m.total);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < m.n; i++) {
		memcpy(m.self[i], pv->tree.nodes[i].self, sizeof(*m.self));
		memcpy(m.total[i], pv->tree.nodes[i].total, sizeof(*m.total));
	}
	profile_moment_forget(pv);
	pv->mark = m;
	return 0;
}

static double rate(int64_t value, int64_t ns)
{
	return ns > 0 ? (double)value * 1e9 / (double)ns : 0;
}

int64_t profile_moment_change(const struct profile_view *pv, const struct call_node *n,
			      const struct shown_value *s)
{
	const struct profile_moment *m = &pv->mark;
	uint32_t node = (uint32_t)(n - pv->tree.nodes);
	int64_t now = s->self ? n->self[s->value] : n->total[s->value];
	int64_t then = node >= m->n ? 0
		       : s->self    ? m->self[node][s->value]
				    : m->total[node][s->value];

	if (s->as == AS_BYTES)
		return now - then;
	return (int64_t)(rate(now - then, pv->shown_ns - m->duration_ns) -
			 rate(then, m->duration_ns));
}

void profile_moment_title(const struct profile_view *pv, struct strbuf *to)
{
	const struct profile_moment *m = &pv->mark;
	char clock[16];
	struct tm tm;

	if (m->shown) {
		strbuf_printf(to, "  CHANGE: last %s less ",
			      unit_ns(pv->shown_ns - m->duration_ns).s);
		strbuf_printf(to, "%s before", unit_ns(m->duration_ns).s);
	} else if (m->n) {
		strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&m->at, &tm));
		strbuf_printf(to, "  marked at %s", clock);
	}
}
