/*
 * A run without a kernel, for unit tests of user/run/: its services with nothing behind them. What is
 * defined here stands in for the functions of the same name (the linker takes the first definition), and
 * notes its call in `calls`. Include it once in a test.
 */
#ifndef MEMSCOPE_TESTS_RUN_FIXTURE_H
#define MEMSCOPE_TESTS_RUN_FIXTURE_H

#include "base/clock.h"
#include "collect/overhead/costs.h"
#include "collect/stream/syscalls.h"
#include "run/budget.h"
#include "run/component.h"
#include "run/pipeline.h"
#include "run/targets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct {
	char calls[1024];
	struct { enum drain_kind kind; drain_fn fn; void *ctx; } on[32];
	uint32_t n_on;
	uint64_t stats[N_STATS];
	uint64_t start_ns;
	void (*on_threads)(void); /* what drain_threads() hands over */
	void (*take_syscalls)(bool all, const struct syscall_fns *fns, void *ctx);
	uint32_t syscall_shift, syscall_stack_shift;
} fake;

static void called(const char *what)
{
	size_t n = strlen(fake.calls);

	snprintf(fake.calls + n, sizeof(fake.calls) - n, "%s%s", n ? " " : "", what);
}

void drain_on(struct drain *d, enum drain_kind kind, drain_fn fn, void *ctx)
{
	fake.on[fake.n_on].kind = kind;
	fake.on[fake.n_on].fn = fn;
	fake.on[fake.n_on++].ctx = ctx;
}

/* All of the time is in slices. */
uint64_t drain_wait_clock(const struct drain *d, uint64_t ns)
{
	(void)d;
	return ns;
}

/* As drain.c does it: in order, until one takes it. */
static enum drain_says __attribute__((unused)) deliver(enum drain_kind kind, const void *record, const void *more)
{
	for (uint32_t i = 0; i < fake.n_on; i++)
		if (fake.on[i].kind == kind &&
		    fake.on[i].fn(fake.on[i].ctx, record, more) == DRAIN_TAKEN)
			return DRAIN_TAKEN;
	return DRAIN_NEXT;
}

int drain_flip(struct drain *d, struct err *e) { called("flip"); return 0; }
int drain_totals(struct drain *d, struct err *e) { called("totals"); return 0; }
int drain_sent(struct drain *d) { called("sent"); return 0; }
int drain_events(struct drain *d) { return 0; }
bool drain_sent_waits(const struct drain *d) { return false; }
int drain_threads(struct drain *d, bool all, struct err *e) { called(all ? "threads(all)" : "threads"); if (fake.on_threads) fake.on_threads(); return 0; }
void drain_stats(const struct drain *d, uint64_t *ret) { memcpy(ret, fake.stats, sizeof(fake.stats)); }
void drain_verdicts(const struct drain *d, uint64_t v[N_SOURCES][N_STACK_VERDICTS]) { memset(v, 0, sizeof(uint64_t) * N_SOURCES * N_STACK_VERDICTS); }
uint32_t drain_last_totals(const struct drain *d) { return 0; }
int drain_memories(struct drain *d, drain_memory_fn fn, void *ctx) { called("memories"); return 0; }
int drain_blocks(struct drain *d, struct err *e) { called("blocks"); return 0; }
int drain_inflight(struct drain *d, struct err *e) { return 0; }
void session_syscalls(struct session *s, uint32_t calls, uint32_t stacks) { fake.syscall_shift = calls; fake.syscall_stack_shift = stacks; }
int syscalls_take(struct session *s, bool all, const struct syscall_fns *fns, void *ctx) { if (fake.take_syscalls) fake.take_syscalls(all, fns, ctx); return 0; }
uint64_t session_start_ns(const struct session *s) { return fake.start_ns; }
uint32_t session_map_max(const struct session *s, enum session_map m) { return 1024; }
bool session_has(const struct session *s, enum source source, const char **why) { *why = NULL; return true; }
const char *session_oncpu_event(const struct session *s) { return "cpu-clock"; }

/* The component of that name in the table. */
static const struct component *__attribute__((unused)) component_named(const char *name)
{
	for (uint32_t i = 0; components[i]; i++)
		if (strcmp(components[i]->name, name) == 0)
			return components[i];
	fail_msg("there is no component \"%s\"", name);
	return NULL;
}

/* A run in which nobody takes part; `cfg` must outlive it. */
__attribute__((unused)) static struct run *bare_run(const struct run_config *cfg)
{
	static struct ingest_profiles none;
	struct run *r = calloc(1, sizeof(*r));
	uint32_t n = 0;

	memset(&fake, 0, sizeof(fake));
	fake.start_ns = now_ns();
	while (components[n])
		n++;
	r->cfg = cfg;
	r->states = calloc(n + 1, sizeof(*r->states));
	r->dict = dict_new();
	r->procs = proc_table_new(r->dict);
	r->ingest = ingest_new(r->dict, r->procs, &none, 0);
	assert_int_equal(loop_new(&r->loop, NULL), 0);
	return r;
}

/* `name` alone takes part. Returns its state, in which only the run is known. */
__attribute__((unused)) static void *alone(struct run *r, const char *name)
{
	for (uint32_t i = 0; components[i]; i++)
		if (components[i] == component_named(name)) {
			r->states[i] = calloc(1, components[i]->size);
			*(struct run **)r->states[i] = r;
			return r->states[i];
		}
	return NULL;
}

__attribute__((unused)) static void bare_run_free(struct run *r)
{
	for (uint32_t i = 0; components[i]; i++)
		if (r->states[i]) {
			if (components[i]->free)
				components[i]->free(r->states[i]);
			free(r->states[i]);
		}
	free(r->states);
	ingest_free(r->ingest);
	for (int i = 0; i < profile_kinds(); i++)
		profile_free(r->profiles[i]);
	proc_table_free(r->procs);
	dict_free(r->dict);
	loop_free(r->loop);
	notes_fini(&r->notes);
	free(r);
}

#endif
