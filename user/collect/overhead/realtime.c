#include "collect/overhead/realtime.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#define PROMPT_NICE                                                                                \
	-10 /* has ten times the claim of others: enough beside 16 of them for each CPU */

struct realtime realtime_begin(void)
{
	struct realtime was = { .policy = -1 };
	struct sched_param param;

	if (pthread_getschedparam(pthread_self(), &was.policy, &param))
		return (struct realtime){ .policy = -1 };
	was.priority = param.sched_priority;
	param.sched_priority = 2;
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		was.policy = -1;
	return was;
}

void realtime_end(const struct realtime *was)
{
	struct sched_param param = { .sched_priority = was->priority };

	if (was->policy >= 0)
		pthread_setschedparam(pthread_self(), was->policy, &param);
}

struct prompt prompt_begin(void)
{
	const struct sched_param param = { 0 };
	struct prompt was = { .policy = sched_getscheduler(0) };

	errno = 0;
	was.nice = getpriority(PRIO_PROCESS, 0); /* of this thread, on Linux */
	if (was.policy != SCHED_OTHER || errno || was.nice <= PROMPT_NICE ||
	    sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &param) < 0)
		return (struct prompt){ .policy = -1 };
	if (setpriority(PRIO_PROCESS, 0, PROMPT_NICE) < 0) {
		sched_setscheduler(0, was.policy, &param);
		was.policy = -1;
	}
	return was;
}

void prompt_end(const struct prompt *was)
{
	const struct sched_param param = { 0 };

	if (was->policy < 0)
		return;
	setpriority(PRIO_PROCESS, 0, was->nice);
	sched_setscheduler(0, was->policy, &param);
}
