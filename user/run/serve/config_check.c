#include "run/serve/config_check.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

pid_t config_check_start(const struct serve_config *serve)
{
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int rc;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(&pid, "/proc/self/exe", NULL, &attr, serve->check, environ);
	posix_spawnattr_destroy(&attr);
	return rc ? -rc : pid;
}

bool config_check_ended(pid_t check, bool *ret_good)
{
	int status = 0;

	if (waitpid(check, &status, WNOHANG) == 0)
		return false;
	*ret_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return true;
}

void config_check_stop(pid_t check)
{
	kill(check, SIGKILL);
	waitpid(check, NULL, 0);
}

bool config_check(const struct serve_config *serve)
{
	uint64_t until_ns = now_ns() + CONFIG_CHECK_NS;
	pid_t check = config_check_start(serve);
	bool good;

	if (check < 0)
		return false;
	while (!config_check_ended(check, &good)) {
		if (now_ns() > until_ns) {
			config_check_stop(check);
			return false;
		}
		usleep(20000);
	}
	return good;
}
