/*
 * A service that works evenly, in which three faults begin at known times: one function leaks from then on, another
 * keeps the lock that all requests need, and a third computes.
 *
 *   faults LEAK_MS LOCK_MS BURN_MS FAULT_MS END_MS
 *
 * go → works for END_MS. The leak begins at LEAK_MS and goes on to the end, the other faults last FAULT_MS each. When
 *      `go` was, by CLOCK_REALTIME; when each began and ended, in ns since then, as it happened; what was leaked:
 *      began NS
 *      leak BEGIN_NS END_NS BYTES
 *      lock BEGIN_NS END_NS
 *      burn BEGIN_NS END_NS
 *      end
 */
#include "target.h"

#include <pthread.h>

#define LEAK_BYTES 16384
#define PERIOD_NS  (10 * NSEC_PER_MSEC)

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t began_ns, leak_ns, lock_ns, burn_ns, fault_ns, end_ns;
static uint64_t locked_ns[2], burnt_ns[2]; /* as it happened */
static void *volatile kept;
static volatile uint64_t sum;

static uint64_t since_ns(void)
{
	return mono_ns() - began_ns;
}

static void sleep_until(uint64_t ns)
{
	uint64_t at = began_ns + ns;
	struct timespec ts = { (time_t)(at / NSEC_PER_SEC), (long)(at % NSEC_PER_SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static NOINLINE void work_a_little(void)
{
	for (int i = 0; i < 200000; i++)
		sum += (uint64_t)i;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void serve_request(void)
{
	pthread_mutex_lock(&table_lock);
	work_a_little();
	pthread_mutex_unlock(&table_lock);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void index_grow(void)
{
	char *block = malloc(LEAK_BYTES);

	if (!block)
		die("malloc");
	memset(block, 1, LEAK_BYTES);
	kept = block;
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void log_rotate(void)
{
	pthread_mutex_lock(&table_lock);
	locked_ns[0] = since_ns();
	sleep_until(lock_ns + fault_ns);
	locked_ns[1] = since_ns();
	pthread_mutex_unlock(&table_lock);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void totals_recompute(void)
{
	burnt_ns[0] = since_ns();
	while ((burnt_ns[1] = since_ns()) < burnt_ns[0] + fault_ns)
		for (int i = 0; i < 100000; i++)
			sum += (uint64_t)i;
	__asm__ volatile("" ::: "memory");
}

static void *requests(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "requests");
	for (uint64_t at = 0; at < end_ns; at += PERIOD_NS) {
		sleep_until(at);
		serve_request();
	}
	return NULL;
}

static void *housekeeping(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "housekeeping");
	sleep_until(lock_ns);
	log_rotate();
	return NULL;
}

static void *statistics(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "statistics");
	sleep_until(burn_ns);
	totals_recompute();
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t ms[5], real_ns, leaked = 0, first = 0, last = 0;
	pthread_t threads[3];

	if (argc != 6)
		die("usage: faults LEAK_MS LOCK_MS BURN_MS FAULT_MS END_MS");
	for (int i = 0; i < 5; i++)
		ms[i] = strtoull(argv[i + 1], NULL, 10) * NSEC_PER_MSEC;
	leak_ns = ms[0], lock_ns = ms[1], burn_ns = ms[2], fault_ns = ms[3], end_ns = ms[4];
	say_ready();
	next_command();
	real_ns = clock_ns(CLOCK_REALTIME);
	began_ns = mono_ns();
	pthread_create(&threads[0], NULL, requests, NULL);
	pthread_create(&threads[1], NULL, housekeeping, NULL);
	pthread_create(&threads[2], NULL, statistics, NULL);
	for (uint64_t at = leak_ns; at < end_ns; at += PERIOD_NS) {
		sleep_until(at);
		last = since_ns();
		first = leaked ? first : last;
		index_grow();
		leaked += LEAK_BYTES;
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say("began %llu", (unsigned long long)real_ns);
	say("leak %llu %llu %llu", (unsigned long long)first, (unsigned long long)last,
	    (unsigned long long)leaked);
	say("lock %llu %llu", (unsigned long long)locked_ns[0], (unsigned long long)locked_ns[1]);
	say("burn %llu %llu", (unsigned long long)burnt_ns[0], (unsigned long long)burnt_ns[1]);
	say("end");
	for (;;)
		next_command();
}
