#include "analyse/verdict_parts.h"

#include "base/units.h"

#include <string.h>

#define LEAST_WAITS     20   /* seen, for who has a monitor to be said                          */
#define ENDPOINTS_LEAST 3    /* times that threads were seen to wait for files, or for peers */
#define ENDPOINT_PART   0.75 /* … nearly always for this one                                */
#define LOCK_PART       0.50 /* of the waits: from here on it is that lock, that owner            */

static void say_for(struct verdict *v, const struct site_row *w)
{
	bool unnamed = nameless_name(w->function) && *w->module;

	/* "[nginx+0x3a210]": an address is no name. */
	if (unnamed && w->caller && *w->caller)
		SAY(v, ", most of it in %.100s", w->caller);
	else if (unnamed)
		SAY(v, ", most of it in %.100s (no names)", w->module);
	else if (w->function[0] && strcmp(w->function, "[unknown]") != 0)
		SAY(v, ", most of it in %.100s", w->function);
	else if (w->leaf[0])
		SAY(v, ", in the kernel's %.64s", w->leaf);
}

/* The file or peer, where it is nearly always the same. */
static void say_endpoint(struct verdict *v, const struct causes *c)
{
	const struct summary_endpoint *first = NULL;
	uint32_t all = 0;

	if (c->wait_kind != WAIT_DISK && c->wait_kind != WAIT_SOCKET &&
	    c->wait_kind != WAIT_FILE_LOCK)
		return;
	for (uint32_t i = 0; i < c->s->endpoints.n; i++) {
		const struct summary_endpoint *e = &c->s->endpoints.rows[i];

		if (e->peer != (c->wait_kind == WAIT_SOCKET))
			continue;
		first = first ? first : e;
		all += e->seen;
	}
	if (all >= ENDPOINTS_LEAST && (double)first->seen >= ENDPOINT_PART * (double)all)
		SAY(v, " (%.100s)", first->name);
}

void verdict_say_wait(struct verdict *v, const struct causes *c)
{
	const struct goroutine_row *go;

	if (c->peer) {
		verdict_say_peer(v, c);
		return;
	}
	go = causes_goroutines(c->s, c->wait);
	SAY(v, "%swaited %s for %s", go ? "its goroutines " : "", unit_ns(c->wait->value).s,
	    wait_kind_text(c->wait_kind));
	if (go && *go->peer)
		SAY(v, " (%.100s)", go->peer);
	else if (!go)
		say_endpoint(v, c);
	say_for(v, c->wait);
}

/*
 * Who runs Python's code holds the GIL (Ruby's: the GVL), so the function that is on CPU most often most likely held it. It may
 * have released it for native code that it calls, so this says what ran and not who held it.
 */
static void say_runs_meanwhile(struct verdict *v, const struct run_summary *s, const char *lang)
{
	const struct top_row *top = s->oncpu.interpreted;

	if (s->oncpu.n_interpreted > 0 && top->name && strcmp(top->module, lang) == 0 &&
	    !summary_few_samples(s))
		SAY(v, "; meanwhile %.100s ran most, %.0f%% of the time on CPU", top->name,
		    100.0 * (double)top->self / (double)s->oncpu.samples);
}

/* Of Java's monitors it is known whose they are. */
static void say_monitor_owner(struct verdict *v, const struct run_summary *s)
{
	double held;

	if (!s->monitors.owner || s->monitors.waits < LEAST_WAITS)
		return;
	held = (double)s->monitors.held / (double)s->monitors.waits;
	if (held >= LOCK_PART)
		SAY(v, "; thread %.15s held it in %.0f%% of %s sampled waits", s->monitors.owner,
		    100.0 * held, unit_count((int64_t)s->monitors.waits).s);
	else
		SAY(v,
		    "; several threads held it in turn, most often %.15s (%.0f%% of %s sampled waits)",
		    s->monitors.owner, 100.0 * held, unit_count((int64_t)s->monitors.waits).s);
}

/* false: it is not known. */
static bool say_owner(struct verdict *v, const struct lock_row *row)
{
	if (!row || (double)row->known_ns < LOCK_PART * (double)row->waited_ns)
		return false;
	if ((double)row->owner_ns >= LOCK_PART * (double)row->known_ns) {
		SAY(v, "; thread %u", row->owner);
		if (*row->owner_name)
			SAY(v, " (%.40s)", row->owner_name);
		SAY(v, " held it for %.0f%% of that",
		    100.0 * (double)row->owner_ns / (double)row->waited_ns);
	} else {
		SAY(v, "; %u threads held it in turn", row->n_owners);
	}
	if (!*row->held_in || (double)row->held_in_ns < LOCK_PART * (double)row->held_ns)
		return true;
	SAY(v, ", in %.100s", row->held_in);
	if (*row->held_caller)
		SAY(v, " (called by %.100s)", row->held_caller);
	return true;
}

/* What goroutines do that are in the same function and do not wait for the lock: one of them may have it. */
static void say_others(struct verdict *v, const struct run_summary *s,
		       const struct goroutine_row *waiting)
{
	for (uint32_t i = 0; i < s->goroutines.n_rows; i++) {
		const struct goroutine_row *row = &s->goroutines.rows[i];

		if (row->at.role == WAIT_ROLE_MUTEX || !row->own ||
		    strcmp(row->at.function, waiting->at.function) != 0 ||
		    (double)row->at.value < LOCK_PART * (double)s->duration_ns)
			continue;
		SAY(v, "; meanwhile others in %.100s were %s %s for %s", row->at.function,
		    row->waits ? "waiting:" : "in state", row->reason, unit_ns(row->at.value).s);
		return;
	}
}

static void say_goroutines_lock(struct verdict *v, const struct run_summary *s,
				const struct goroutine_row *row)
{
	SAY(v, "its goroutines waited %s for %s that others of them hold", unit_ns(row->at.value).s,
	    row->lock);
	say_for(v, &row->at);
	say_others(v, s, row);
}

static void say_which_lock(struct verdict *v, const struct site_row *w, const struct lock_row *row)
{
	if (w->wait == WAIT_GIL || w->wait == WAIT_GVL)
		SAY(v, "%s", wait_kind_text(w->wait));
	else if (row && *row->name)
		SAY(v, "the lock %.100s", row->name);
	else
		SAY(v, "a %s that others of them hold",
		    w->wait == WAIT_MONITOR ? "monitor" : "lock");
}

void verdict_say_handed_on(struct verdict *v, const struct causes *c)
{
	const struct lock_row *row = causes_lock_row(c->s, c->lock);

	SAY(v, "; it holds ");
	if (row && *row->name)
		SAY(v, "the lock %.100s", row->name);
	else
		SAY(v, "a lock");
	SAY(v, " meanwhile, for which others waited %s", unit_ns(c->lock->value).s);
	say_for(v, c->lock);
}

void verdict_say_lock(struct verdict *v, const struct causes *c)
{
	const struct site_row *w = c->lock;
	const struct goroutine_row *go;
	const struct lock_row *row;

	if (!w) {
		SAY(v, "its tasks take turns at an asyncio lock");
		verdict_say_tasks(v, c->s, TASK_WAIT_LOCK, "them");
		return;
	}
	go = causes_goroutines(c->s, w);
	row = w->wait == WAIT_MONITOR ? NULL : causes_lock_row(c->s, w);
	if (go) {
		say_goroutines_lock(v, c->s, go);
		return;
	}
	SAY(v, "its threads waited %s for ", unit_ns(w->value).s);
	say_which_lock(v, w, row);
	say_for(v, w);
	if (w->wait == WAIT_MONITOR)
		say_monitor_owner(v, c->s);
	else if (!say_owner(v, row) && (w->wait == WAIT_GIL || w->wait == WAIT_GVL))
		say_runs_meanwhile(v, c->s, w->wait == WAIT_GIL ? "[Python]" : "[Ruby]");
}
