/*
 * --inject: memscope's library in processes that run without it, for as long as the run takes. It
 * samples, or records every call (inprocess.c).
 */
#include "inject/inject.h"
#include "base/units.h"
#include "run/alloc/alloc.h"
#include "run/sampler.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int injection_begin(struct alloc *al, pid_t pid, bool held, struct err *e)
{
	bool exact = inprocess_wanted(al->run->cfg);
	const struct inject_how how = { .rate = al->run->cfg->alloc_rate,
					.exact = exact,
					.held = held };
	struct injection *one;
	struct sampler_facts facts;
	int rc;

	sampler_look(pid, &facts);
	if (exact)
		memset(&facts, 0, sizeof(facts));
	if (facts.heard || (facts.otel && strcmp(facts.where, al->library) != 0 &&
			    strcmp(facts.where, INJECT_MEMFD_PATH) != 0)) {
		run_note(al->run, false,
			 "process %d has a sampler already (%s): nothing was injected, that one is "
			 "used",
			 (int)pid, facts.otel ? facts.where : facts.own);
		return 0;
	}
	one = calloc(1, sizeof(*one));
	if (!one)
		return err_set(e, -ENOMEM, "out of memory");
	one->pid = pid;
	one->area_fd = -1;
	rc = inject_begin(pid, al->library, &how, &one->in, e);
	if (rc == 0 && exact)
		one->area_fd = inject_area(one->in);
	if (rc < 0) {
		free(one);
		if (rc != -EALREADY)
			return rc;
		run_note(al->run, false, "%s: nothing was injected", e->msg);
		return 0;
	}
	one->next = al->injections;
	al->injections = one;
	return 0;
}

int injections_begin(struct alloc *al, struct err *e)
{
	int rc = 0;

	if (!al->run->cfg->inject)
		return 0;
	if (!sampler_library(al->library, sizeof(al->library)))
		return err_set(e, -ENOENT,
			       "cannot find " SAMPLER_LIBRARY
			       " beside memscope or in ../lib/memscope: `make` and `make install` "
			       "put it there");
	for (uint32_t i = 0; i < al->run->cfg->n_pids && rc == 0; i++)
		rc = injection_begin(al, al->run->cfg->pids[i], false, e);
	/* One that was started before (--delay); else it is not there yet. */
	if (rc == 0 && al->run->cfg->command && al->run->cfg->delay_s > 0)
		rc = injection_begin(al, targets_command(al->run), false, e);
	if (rc == 0)
		pipeline_processes(al->run); /* where it was mapped */
	return rc;
}

static int hook(struct alloc *al, struct injection *one, struct err *e)
{
	struct inject_counts counts;
	int rc = inject_hook(one->in, &counts, e);

	if (rc < 0)
		return rc;
	one->counts.places += counts.places;
	one->counts.rate = counts.rate;
	one->counts.stopped_us = counts.stopped_us;
	one->counts.python = counts.python;
	one->due = counts.left > one->counts.left; /* some are just being loaded */
	one->counts.left = counts.left;
	return 0;
}

int injections_hook(struct alloc *al, struct err *e)
{
	for (struct injection *one = al->injections; one; one = one->next) {
		int rc = hook(al, one, e);

		if (rc < 0 && rc != -ESRCH)
			return rc;
		run_say(al->run,
			"process %d: %u words lead calls to the library, %.1f ms for its thread",
			(int)one->pid, one->counts.places, (double)one->counts.stopped_us / 1000);
	}
	return 0;
}

void injections_look(struct alloc *al, pid_t pid)
{
	for (struct injection *one = al->injections; one; one = one->next)
		one->due |= one->pid == pid;
}

void injections_tick(struct alloc *al)
{
	for (struct injection *one = al->injections; one; one = one->next)
		if (one->due && (!one->in || hook(al, one, NULL) < 0))
			one->due = false;
}

/* Of CPython's objects, malloc sees those alone that do not fit into its arenas. */
static void note_python(struct alloc *al, const struct injection *one, enum inject_python python)
{
	bool exact = inprocess_wanted(al->run->cfg);

	al->objects_unseen |= python == INJECT_PYTHON_WANTED || python == INJECT_PYTHON_REFUSED;
	al->objects_seen |= python == INJECT_PYTHON_HOOKED;
	if (python == INJECT_PYTHON_WANTED)
		run_note(
			al->run, exact,
			"CPython's small objects (up to 512 bytes) in process %d were not seen: none of its threads "
			"ran Python code or called malloc",
			(int)one->pid);
	else if (python == INJECT_PYTHON_REFUSED)
		run_note(
			al->run, exact,
			"CPython's small objects (up to 512 bytes) in process %d were not seen: it has debug hooks or "
			"several interpreters, is ending, or other hooks are in the way",
			(int)one->pid);
}

static void end_one(struct alloc *al, struct injection *one)
{
	bool exact = inprocess_wanted(al->run->cfg);
	struct inject_counts counts;
	struct err e = { 0 };
	int rc = inject_end(one->in, &counts, &e);

	al->injected = true;
	if (rc < 0 && rc != -ESRCH)
		run_note(al->run, true, "%s; it restores everything as soon as it can", e.msg);
	else
		run_note(
			al->run, exact && one->counts.left,
			SAMPLER_LIBRARY
			" was injected into process %d: %u words of its data led calls there, "
			"and one of its threads was stopped for %.1f ms%s; %s",
			(int)one->pid, one->counts.places, (double)one->counts.stopped_us / 1000,
			!one->counts.left ? ""
			: exact ? "; not exact: some words could not be exchanged, and calls through "
				  "them were not recorded"
				: "; some words could not be exchanged",
			rc == 0 ? "it is idle there now"
				: "that process has ended, or runs another program");
	if (!exact && one->counts.places && one->counts.rate != al->run->cfg->alloc_rate)
		run_note(al->run, false,
			 "the library was in process %d already, with samples every %s on average: "
			 "that rate stays",
			 (int)one->pid, unit_bytes((int64_t)one->counts.rate).s);
	note_python(al, one, rc == 0 ? counts.python : one->counts.python);
	inject_free(TAKE_PTR(one->in));
}

void injections_end(struct alloc *al)
{
	for (struct injection *one = al->injections; one; one = one->next)
		if (one->in)
			end_one(al, one);
}

/* Without a word: what is undone when nobody asks for it. */
void injections_free(struct alloc *al)
{
	struct injection *one;

	while ((one = al->injections)) {
		al->injections = one->next;
		inject_free(one->in);
		if (one->area_fd >= 0)
			close(one->area_fd);
		free(one);
	}
}
