#include "cmd/awaiting.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/notify.h"
#include "run/serve/config_check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define LOOK_NS 1000000000ULL
#define TURN_NS 1000000000ULL /* the manager hears of us so often */
#define REST    500           /* a look may take one part in so many of the time */

static void tell_status(const char *why)
{
	char lines[700];

	snprintf(lines, sizeof(lines), "READY=1\nWATCHDOG=1\nSTATUS=Waiting: %.500s", why);
	notify_send(lines);
}

static bool reload(const struct run_config *cfg, const char *why)
{
	char lines[100];

	if (!cfg->serve->config) {
		err_notice("SIGHUP: there is no --config FILE to read again");
		return false;
	}
	snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns() / 1000);
	notify_send(lines);
	if (config_check(cfg->serve))
		return true;
	err_warn("SIGHUP: the configuration is not taken");
	tell_status(why);
	return false;
}

enum awaiting_end awaiting_turn(struct awaiting *w, const struct run_config *cfg, uint64_t cost_ns,
				const char *why)
{
	const struct timespec turn = { .tv_sec = TURN_NS / 1000000000 };
	uint64_t until_ns = now_ns() + (cost_ns * REST > LOOK_NS ? cost_ns * REST : LOOK_NS);
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1); /* there is no window to take */
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!w->said) {
		char sentence[600];

		snprintf(sentence, sizeof(sentence), "waiting: %.512s", why);
		err_notice(sentence);
		tell_status(why);
	}
	w->said = true;
	while (now_ns() < until_ns) {
		number = sigtimedwait(&set, NULL, &turn);
		if (number == SIGINT || number == SIGTERM) {
			notify_send("STOPPING=1");
			return AWAITING_ENDED;
		}
		if (number == SIGHUP && reload(cfg, why))
			return AWAITING_RELOAD;
		notify_send("WATCHDOG=1");
	}
	return AWAITING_GOES_ON;
}
