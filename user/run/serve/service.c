/*
 * A run as a service: what its manager is told (base/notify.h), and SIGHUP.
 *
 *   READY=1       the gate has opened
 *   WATCHDOG=1    at half of $WATCHDOG_USEC, if the kernel's totals were read since the last time
 *   RELOADING=1   a run ends so that another one follows it; or what SIGHUP brought is being checked
 *   STOPPING=1    a run ends, and with it the process
 *
 * SIGHUP: another process of this program reads and checks the configuration (serve_config.check), which therefore can
 * neither block nor change this run. Is it good, this run ends as by SIGTERM, with its last window, and cmd/serve.c executes
 * the program anew in the same process: nothing of a run can be left over in the next.
 */
#include "base/clock.h"
#include "base/notify.h"
#include "base/units.h"
#include "run/component.h"
#include "run/serve/serve_config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#define CHECK_NS  10000000000ULL /* for reading a file; on a dead network it takes for ever */
#define EXTEND_US 120000000ULL   /* for each step of an end: names of all that was sampled */

extern char **environ;

struct service {
	struct run *run;
	uint64_t watchdog_ns; /* 0: nobody watches */
	uint64_t pinged_ns;
	bool drained;      /* since then */
	pid_t check;       /* reads the configuration; 0: none does */
	uint64_t check_ns; /* since when */
	bool again_asked;  /* SIGHUP came meanwhile */
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
	char *const *words = s->run->cfg->serve->check;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	tell("RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=Checking %.300s", now_ns() / 1000,
	     s->run->cfg->serve->config);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(&s->check, "/proc/self/exe", NULL, &attr, words, environ);
	posix_spawnattr_destroy(&attr);
	s->check_ns = now_ns();
	if (rc == 0)
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
		run_ends(s->run, RUN_END_AGAIN, "SIGHUP");
	} else {
		err_warn("SIGHUP: the configuration is not taken: the run goes on as it was");
		tell_ready(s);
	}
}

static void look_at_check(struct service *s, uint64_t now)
{
	int status = 0;

	if (!s->check)
		return;
	if (waitpid(s->check, &status, WNOHANG) == s->check)
		checked(s, WIFEXITED(status) && WEXITSTATUS(status) == 0);
	else if (now - s->check_ns > CHECK_NS)
		kill(s->check, SIGKILL);
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
	s->watchdog_ns = notify_watchdog_ns();
	s->pinged_ns = now_ns();
	if (s->watchdog_ns)
		tell("WATCHDOG_USEC=%" PRIu64, s->watchdog_ns / 1000);
	tell_ready(s);
	if (serve->since_ns && !s->run->cfg->quiet)
		fprintf(stderr, "memscope: the next run has begun; nothing was gathered for %s\n",
			unit_ns((int64_t)(session_start_ns(s->run->session) - serve->since_ns)).s);
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

	if (s->check) {
		kill(s->check, SIGKILL);
		waitpid(s->check, NULL, 0);
		s->check = 0;
	}
	if (s->run->end.why == RUN_END_AGAIN)
		tell("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns() / 1000);
	else
		tell("STOPPING=1");
	tell("STATUS=Writing the last window");
	take_time(s);
}

static int finish(void *self, struct err *e)
{
	(void)e;
	take_time(self);
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
