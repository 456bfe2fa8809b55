#include "base/units.h"
#include "model/pprof.h"
#include "screen/profile_parts.h"

#include <errno.h>
#include <string.h>

/* What is live now is the same in all stretches of time. */
static int show_live(struct profile_view *pv)
{
	call_tree_zero(&pv->tree, CALL_LIVE);
	return profile_set_show(&pv->all, &pv->tree, ~CALL_BIT(CALL_LIVE));
}

int profile_rebuild(struct profile_view *pv)
{
	int r = 0;

	for (int i = 0; i < N_CALL_VALUES; i++)
		call_tree_zero(&pv->tree, (enum call_value)i);
	pv->behind = false;
	pv->shown_ns = pv->recent ? 0 : pv->all.duration_ns;
	for (uint32_t w = 0; pv->recent && w < WINDOW; w++)
		pv->shown_ns += pv->window[w].duration_ns;
	if (!pv->recent)
		r = profile_set_show(&pv->all, &pv->tree, 0);
	for (uint32_t w = 0; r == 0 && pv->recent && w < WINDOW; w++)
		r = profile_set_show(&pv->window[w], &pv->tree, CALL_BIT(CALL_LIVE));
	if (r == 0 && pv->recent)
		r = show_live(pv);
	pv->view.stale = true;
	return r;
}

/* What one would unfold first: all but frames, as long as there are few. */
void profile_open_first(struct profile_view *pv)
{
	uint32_t tops = 0;

	for (uint32_t i = 1; i < pv->tree.n; i++)
		tops += pv->tree.nodes[i].parent == 0;
	for (uint32_t i = 1; i < pv->tree.n; i++) {
		struct call_node *n = &pv->tree.nodes[i];

		if (n->kind == CALL_CONTAINER || (n->kind == CALL_PROCESS && tops < 4))
			call_tree_open(&pv->tree, i);
	}
	pv->opened |= pv->tree.n > 1;
}

/* A stretch of time is complete. */
static int add_window(struct profile_view *pv, uint64_t ns, bool paused)
{
	struct profile_set *slot = &pv->window[pv->windows++ % WINDOW];
	int r = 0;

	profile_set_fini(slot);
	*slot = pv->coming;
	slot->duration_ns = (int64_t)ns;
	pv->coming = (struct profile_set){ 0 };
	pv->all.duration_ns += (int64_t)ns;
	for (uint32_t i = 0; r == 0 && i < slot->n; i++)
		r = profile_set_add(&pv->all, slot->kinds[i].name, slot->kinds[i].profile);
	if (r < 0)
		return r;
	if (paused) {
		pv->behind = true;
		return 0;
	}
	if (pv->recent || pv->behind) {
		r = profile_rebuild(pv);
	} else {
		pv->shown_ns = pv->all.duration_ns;
		r = profile_set_show(slot, &pv->tree, CALL_BIT(CALL_LIVE));
		if (r == 0)
			r = show_live(pv);
	}
	profile_choose_columns(pv);
	if (!pv->opened)
		profile_open_first(pv);
	*pv->state = '\0';
	pv->view.stale = true;
	return r;
}

/* "oncpu", 0, and the profile. */
static int add_profile(struct profile_view *pv, const char *data, size_t bytes, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	size_t name = strnlen(data, bytes);
	int r;

	if (name == bytes)
		return err_set(e, -EBADMSG, "a profile without a name");
	r = pprof_read(pv->d, data + name + 1, bytes - name - 1, data, &p, e);
	return r < 0 ? r : profile_set_add(&pv->coming, data, p);
}

static int take_message(struct profile_view *pv, bool paused, enum worker_message kind,
			const char *data, size_t bytes, struct err *e)
{
	uint64_t ns;

	switch (kind) {
	case WORKER_NOTE:
		snprintf(pv->note, sizeof(pv->note), "%.*s", (int)(bytes < 500 ? bytes : 500),
			 data);
		return 0;
	case WORKER_SAYS:
	case WORKER_FAILED:
		snprintf(pv->state, sizeof(pv->state), "%.*s", (int)(bytes < 500 ? bytes : 500),
			 data);
		return 0;
	case WORKER_ENDED:
		pv->ended = true;
		snprintf(pv->state, sizeof(pv->state), "%.*s", (int)(bytes < 500 ? bytes : 500),
			 data);
		return 0;
	case WORKER_PROFILE:
		return add_profile(pv, data, bytes, e);
	case WORKER_WINDOW:
		if (bytes != sizeof(ns))
			return 0;
		memcpy(&ns, data, sizeof(ns));
		return add_window(pv, ns, paused);
	default:
		return 0;
	}
}

void profile_tick(struct view *v, struct screen *s)
{
	struct profile_view *pv = profile_view(v);
	enum worker_message kind;
	struct err e = { 0 };
	const char *data;
	size_t bytes;
	int r;

	if (pv->worker.from < 0)
		return;
	r = worker_read(&pv->worker);
	while (worker_next(&pv->worker, &kind, &data, &bytes)) {
		int r2 = take_message(pv, s->paused, kind, data, bytes, &e);

		if (r2 < 0 && !*pv->state)
			snprintf(pv->state, sizeof(pv->state), "%s",
				 *e.msg ? e.msg : strerror(-r2));
	}
	if (r < 0) {
		if (!pv->ended && !*pv->state)
			snprintf(pv->state, sizeof(pv->state), "profiling has ended unexpectedly");
		pv->ended = true;
		worker_stop(&pv->worker);
	}
}

int profile_fd(const struct view *v)
{
	return profile_view(v)->worker.from;
}

bool profile_ready(const struct view *v)
{
	return profile_view(v)->all.duration_ns || profile_view(v)->all.n ||
	       profile_view(v)->ended || profile_view(v)->worker.from < 0;
}

bool profile_ended(const struct view *v)
{
	return profile_view(v)->ended || profile_view(v)->worker.from < 0;
}
