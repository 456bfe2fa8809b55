/*
 * --inject: memscope's library in processes that run without it, for as long as the run takes.
 */
#include "base/units.h"
#include "cmd/run_parts.h"
#include "cmd/sampler.h"
#include "inject/inject.h"

#include <errno.h>
#include <string.h>

struct injection {
	struct injection *next;
	pid_t pid;
	struct injected *in;
	struct inject_counts counts;
	bool due; /* it has mapped something since */
};

static int begin_one(struct run *r, pid_t pid, struct err *e)
{
	struct injection *one;
	struct sampler_facts facts;
	int rc;

	sampler_look(pid, &facts);
	if (facts.heard || (facts.otel && strcmp(facts.where, r->library) != 0)) {
		run_note(r, false,
			 "process %d has a sampler already (%s): nothing was injected, that one is "
			 "listened to",
			 (int)pid, facts.otel ? facts.where : facts.own);
		return 0;
	}
	one = calloc(1, sizeof(*one));
	if (!one)
		return err_set(e, -ENOMEM, "out of memory");
	one->pid = pid;
	rc = inject_begin(pid, r->library, r->cfg->alloc_rate, &one->in, e);
	if (rc < 0) {
		free(one);
		if (rc != -EALREADY)
			return rc;
		run_note(r, false, "%s: nothing was injected", e->msg);
		return 0;
	}
	one->next = r->injections;
	r->injections = one;
	return 0;
}

int run_inject_begin(struct run *r, struct err *e)
{
	int rc = 0;

	if (!r->cfg->inject)
		return 0;
	if (!sampler_library(r->library, sizeof(r->library)))
		return err_set(e, -ENOENT,
			       "cannot find " SAMPLER_LIBRARY
			       " beside memscope or in ../lib/memscope: `make` and `make install` "
			       "put it there");
	for (uint32_t i = 0; i < r->cfg->n_pids && rc == 0; i++)
		rc = begin_one(r, r->cfg->pids[i], e);
	if (rc == 0)
		run_read_sideband(r); /* where it was mapped */
	return rc;
}

static int hook(struct run *r, struct injection *one, struct err *e)
{
	struct inject_counts counts;
	int rc = inject_hook(one->in, &counts, e);

	if (rc < 0)
		return rc;
	one->counts.places += counts.places;
	one->counts.rate = counts.rate;
	one->counts.stopped_us = counts.stopped_us;
	one->due = counts.left > one->counts.left; /* some are just being loaded */
	one->counts.left = counts.left;
	return 0;
}

int run_inject_hook(struct run *r, struct err *e)
{
	for (struct injection *one = r->injections; one; one = one->next) {
		int rc = hook(r, one, e);

		if (rc < 0 && rc != -ESRCH)
			return rc;
		run_say(r, "process %d: %u words lead calls to the library, %.1f ms for its thread",
			(int)one->pid, one->counts.places, (double)one->counts.stopped_us / 1000);
	}
	return 0;
}

void run_inject_look(struct run *r, pid_t pid)
{
	for (struct injection *one = r->injections; one; one = one->next)
		one->due |= one->pid == pid;
}

void run_inject_tick(struct run *r)
{
	for (struct injection *one = r->injections; one; one = one->next)
		if (one->due && hook(r, one, NULL) < 0)
			one->due = false;
}

void run_inject_end(struct run *r)
{
	struct injection *one;

	while ((one = r->injections)) {
		struct inject_counts counts;
		struct err e = { 0 };
		int rc = inject_end(one->in, &counts, &e);

		r->injections = one->next;
		r->injected = true;
		if (rc < 0 && rc != -ESRCH)
			run_note(r, true, "%s; it puts all back as soon as it can", e.msg);
		else
			run_note(
				r, false,
				SAMPLER_LIBRARY
				" was injected into process %d: %u words of its data led calls there, "
				"and one of its threads was away for %.1f ms%s; %s",
				(int)one->pid, one->counts.places,
				(double)one->counts.stopped_us / 1000,
				one->counts.left ? "; some words could not be exchanged" : "",
				rc == 0 ? "it is idle there now"
					: "that process has ended, or runs another program");
		if (one->counts.places && one->counts.rate != r->cfg->alloc_rate)
			run_note(r, false,
				 "the library was in process %d already, with samples every %s on "
				 "average: that stays",
				 (int)one->pid, unit_bytes((int64_t)one->counts.rate).s);
		inject_free(one->in);
		free(one);
	}
}

/* Without a word: what is undone when nobody asks for it. */
void run_inject_free(struct run *r)
{
	struct injection *one;

	while ((one = r->injections)) {
		r->injections = one->next;
		inject_free(one->in);
		free(one);
	}
}
