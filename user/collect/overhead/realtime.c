#include "collect/overhead/realtime.h"

#include <pthread.h>
#include <sched.h>

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
