/*
 * A run as a service: what its manager is told (base/notify.h), and SIGHUP.
 *
 *   READY=1       the gate has opened
 *   WATCHDOG=1    at half of $WATCHDOG_USEC, if the kernel's totals were read since the last time
 *   RELOADING=1   a run ends so that another one follows it; or what SIGHUP brought is being checked
 *   STOPPING=1    a run ends, and with it the process
 *
 * SIGHUP: the configuration is read and checked (config_check.h). Is it good, this run ends as by SIGTERM, with its last window, and cmd/serve.c executes
 * the program anew in the same process: nothing of a run can be left over in the next. A run that follows for another reason
 * goes on with the configuration of this one, whatever the file says by then.
 */
#include "base/clock.h"
#include "base/notify.h"
#include "base/units.h"
#include "run/component.h"
#include "run/serve/config_check.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define EXTEND_US 120000000ULL /* for each step of an end: names of all that was sampled */

struct service {
	struct run *run;
	uint64_t watchdog_ns; /* 0: nobody watches */
	uint64_t pinged_ns;
	bool drained;                 /* since then */
	pid_t check;                  /* reads the configuration; 0: none does */
	uint64_t check_ns;            /* since when */
	bool again_asked;             /* SIGHUP came meanwhile */
	pid_t writers[SERVE_WRITERS]; /* of the run before; 0: has ended */
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve != NULL;
}

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *fmt, ...)
{
	char lines[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(lines, sizeof(lines), fmt, ap);
	va_end(ap);
	notify_send(lines);
}

/* "whole host" */
static void target_words(const struct run *r, char *out, size_t cap)
{
	const struct run_config *cfg = r->cfg;

	if (cfg->all)
		snprintf(out, cap, "the whole host");
	else if (cfg->n_groups)
		snprintf(out, cap, "%.64s%s", group_title(&cfg->groups[0]),
			 cfg->n_groups > 1 ? " and others" : "");
	else
		snprintf(out, cap, "process %d%s", cfg->n_pids ? (int)cfg->pids[0] : 0,
			 cfg->n_pids > 1 ? " and others" : "");
}

static void tell_ready(const struct service *s)
{
	char target[100];

	target_words(s->run, target, sizeof(target));
	tell("READY=1\nWATCHDOG=1\nSTATUS=Profiling %s: a window of %g s after the other, in %.300s",
	     target, s->run->cfg->every_s, s->run->cfg->dir);
}

/* --- SIGHUP --- */

static void start_check(struct service *s)
{
	tell("RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=Checking %.300s", now_ns() / 1000,
	     s->run->cfg->serve->config);
	s->check = config_check_start(s->run->cfg->serve);
	s->check_ns = now_ns();
	if (s->check > 0)
		return;
	s->check = 0;
	err_warn("SIGHUP: the configuration could not be checked: the run goes on as it was");
	tell_ready(s);
}

static void on_hup(void *ctx, int number)
{
	struct service *s = ctx;

	(void)number;
	if (!s->run->cfg->serve->config)
		err_notice("SIGHUP: there is no --config FILE to read again: the run goes on");
	else if (s->check)
		s->again_asked = true;
	else
		start_check(s);
}

/* It has printed what is wrong. */
static void checked(struct service *s, bool good)
{
	s->check = 0;
	if (s->again_asked) { /* the file may have changed since */
		s->again_asked = false;
		start_check(s);
	} else if (good) {
		s->run->serving.new_config = true;
		run_ends(s->run, RUN_END_AGAIN, "SIGHUP");
	} else {
		err_warn("SIGHUP: the configuration is not taken: the run goes on as it was");
		tell_ready(s);
	}
}

static void look_at_check(struct service *s, uint64_t now)
{
	bool good;

	if (!s->check)
		return;
	if (config_check_ended(s->check, &good))
		checked(s, good);
	else if (now - s->check_ns > CONFIG_CHECK_NS)
		kill(s->check, SIGKILL);
}

/* --- writers of the run before --- */

/* Those that have ended; `wait`: all, when they have. They have said themselves what went wrong. */
static void reap(struct service *s, bool wait)
{
	for (int i = 0; i < SERVE_WRITERS; i++) {
		int status = 0;

		if (!s->writers[i] ||
		    waitpid(s->writers[i], &status, wait ? 0 : WNOHANG) != s->writers[i])
			continue;
		s->writers[i] = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status) == EXIT_FAILURE)
			err_warn("a window of the run before is not complete");
	}
}

/* --- in the order of a run --- */

/* Before programs are loaded: SIGHUP ends nothing from here on. */
static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct service *s = self;
	int rc = loop_signal(s->run->loop, SIGHUP, on_hup, s);

	(void)opts;
	return rc < 0 ? err_set(e, rc, "cannot wait for SIGHUP: %s", strerror(-rc)) : 0;
}

static int ready(void *self, struct err *e)
{
	struct service *s = self;
	const struct serve_config *serve = s->run->cfg->serve;

	(void)e;
	memcpy(s->writers, serve->past.writers, sizeof(s->writers));
	s->watchdog_ns = notify_watchdog_ns();
	s->pinged_ns = now_ns();
	if (s->watchdog_ns)
		tell("WATCHDOG_USEC=%" PRIu64, s->watchdog_ns / 1000);
	tell_ready(s);
	if (serve->past.since_ns && !s->run->cfg->quiet)
		fprintf(stderr, "memscope: the next run has begun; nothing was gathered for %s\n",
			unit_ns((int64_t)(session_start_ns(s->run->session) - serve->past.since_ns))
				.s);
	return 0;
}

static void drained(void *self, uint64_t now)
{
	struct service *s = self;

	(void)now;
	s->drained = true;
}

static void tick(void *self, uint64_t now)
{
	struct service *s = self;

	look_at_check(s, now);
	reap(s, false);
	if (!s->watchdog_ns || !s->drained || now - s->pinged_ns < s->watchdog_ns / 2)
		return;
	tell("WATCHDOG=1");
	s->pinged_ns = now;
	s->drained = false;
}

/* What comes is no loop's turn: it takes as long as it takes. */
static void take_time(const struct service *s)
{
	if (s->watchdog_ns)
		tell("WATCHDOG_USEC=%" PRIu64 "\nWATCHDOG=1", s->watchdog_ns / 1000 > EXTEND_US
								      ? s->watchdog_ns / 1000
								      : (uint64_t)EXTEND_US);
	tell("EXTEND_TIMEOUT_USEC=%" PRIu64, (uint64_t)EXTEND_US);
}

static void closing(void *self)
{
	struct service *s = self;

	if (s->check)
		config_check_stop(s->check);
	s->check = 0;
	if (serve_goes_on(s->run))
		tell("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns() / 1000);
	else
		tell("STOPPING=1");
	tell("STATUS=Writing the last window");
	take_time(s);
}

static int finish(void *self, struct err *e)
{
	struct service *s = self;

	(void)e;
	take_time(s);
	if (!serve_goes_on(s->run)) /* with this process, its manager ends the others */
		reap(s, true);
	return 0;
}

const struct component service_component = {
	.name = "service",
	.size = sizeof(struct service),
	.wanted = wanted,
	.prepare = prepare,
	.ready = ready,
	.drained = drained,
	.tick = tick,
	.closing = closing,
	.finish = finish,
};
