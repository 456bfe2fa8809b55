#include "analyse/verdict_parts.h"

#include "base/units.h"

#include <string.h>

#define SEVERAL 1.5 /* on average: more than one request */

/* "fetch_price (app.py:33)" */
static void say_place(struct verdict *v, const struct task_row *row)
{
	size_t len = strlen(row->function);

	if (row->line && len && row->function[len - 1] == ')')
		SAY(v, "%.*s:%u)", (int)(len - 1 < 120 ? len - 1 : 120), row->function, row->line);
	else
		SAY(v, "%.120s", row->function);
}

void verdict_say_tasks(struct verdict *v, const struct run_summary *s, enum task_wait wait,
		       const char *whose)
{
	for (uint32_t i = 0; i < s->tasks.n && s->tasks.looks; i++) {
		if (s->tasks.rows[i].wait != wait)
			continue;
		SAY(v, ", with %.1f of %s on average in ",
		    (double)s->tasks.rows[i].seen / s->tasks.looks, whose);
		say_place(v, &s->tasks.rows[i]);
		return;
	}
}

void verdict_say_peer(struct verdict *v, const struct causes *c)
{
	const struct run_summary *s = c->s;
	bool for_inbound = c->peer->for_inbound > 0 && 2 * c->peer->for_inbound >= c->peer->looks;
	uint32_t looks = for_inbound ? c->peer->for_inbound : c->peer->looks;
	double waiting = s->peers.waiting ? (double)s->peers.inbound / s->peers.waiting : 0;

	SAY(v, "waited for a socket (%.63s): a request to it was outstanding %.0f%% of the time",
	    c->peer->name, 100.0 * looks / s->peers.looks);
	if (for_inbound && waiting < SEVERAL)
		SAY(v, ", while a request to port %u waited", s->peers.port);
	else if (for_inbound)
		SAY(v, ", while %.0f requests to port %u waited", waiting, s->peers.port);
	else
		SAY(v, ", for about %s each", unit_ns((int64_t)(2e6 * c->peer->age_ms)).s);
	verdict_say_tasks(v, s, TASK_WAIT_SOCKET, "its tasks");
}
