/*
 * Pairs of threads, each of which waits in one function for what the other does in another: who ends a wait is known.
 *
 *   wakers     `go`, then: of each kind a thread that waits in wait_KIND(), and one that sleeps for 3 ms in nap() and then
 *              ends that wait in wake_KIND(); what nap() waits for is a timer
 *
 * go    → end
 * tally → kind KIND WAKEUPS     (of each)
 *         end
 */
#include "target.h"

#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define NAP_NS (3 * NSEC_PER_MSEC)

static struct gate start;
static int pipes[2], event, unix_pair[2], tcp[2], held_file, other_file, word;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int cond_set;
static sem_t sem;
static pthread_t signalled;

static NOINLINE void nap(void)
{
	sleep_ns(NAP_NS);
}

/* What follows a call keeps it from being a jump. */
#define WAITS(kind, code)                                                                          \
	static NOINLINE void wait_##kind(void)                                                     \
	{                                                                                          \
		code;                                                                              \
		__asm__ volatile("");                                                              \
	}
#define WAKES(kind, code)                                                                          \
	static NOINLINE void wake_##kind(void)                                                     \
	{                                                                                          \
		code;                                                                              \
		__asm__ volatile("");                                                              \
	}

static NOINLINE void take_bytes(int fd, size_t n)
{
	uint64_t bytes;

	if (sys(SYS_read, fd, (long)&bytes, (long)n, 0, 0, 0) != (long)n)
		_exit(72);
}

static NOINLINE void give_bytes(int fd, size_t n)
{
	uint64_t bytes = 1;

	if (sys(SYS_write, fd, (long)&bytes, (long)n, 0, 0, 0) != (long)n)
		_exit(73);
}

WAITS(pipe, take_bytes(pipes[0], 1))
WAKES(pipe, give_bytes(pipes[1], 1))
WAITS(eventfd, take_bytes(event, 8))
WAKES(eventfd, give_bytes(event, 8))
WAITS(unix, take_bytes(unix_pair[0], 1))
WAKES(unix, give_bytes(unix_pair[1], 1))
WAITS(tcp, take_bytes(tcp[0], 1))
WAKES(tcp, give_bytes(tcp[1], 1))

WAITS(sem, while (sem_wait(&sem) < 0){})
WAKES(sem, sem_post(&sem))

static NOINLINE void wait_cond(void)
{
	pthread_mutex_lock(&cond_mutex);
	while (!cond_set)
		pthread_cond_wait(&cond, &cond_mutex);
	cond_set = 0;
	pthread_mutex_unlock(&cond_mutex);
}

static NOINLINE void wake_cond(void)
{
	pthread_mutex_lock(&cond_mutex);
	cond_set = 1;
	pthread_mutex_unlock(&cond_mutex);
	pthread_cond_signal(&cond);
	__asm__ volatile("");
}

static NOINLINE void wait_futex(void)
{
	while (!__atomic_exchange_n(&word, 0, __ATOMIC_ACQ_REL))
		sys(SYS_futex, (long)&word, 0 /* FUTEX_WAIT */, 0, 0, 0, 0);
}

static NOINLINE void wake_futex(void)
{
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	sys(SYS_futex, (long)&word, 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
}

static NOINLINE void wait_signal(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &number);
	__asm__ volatile("");
}

WAKES(signal, pthread_kill(signalled, SIGUSR1))

/* Locks, which the waker has while it naps; the other one is late enough not to be there first. */
static NOINLINE void late(uint64_t ns)
{
	sleep_ns(ns);
}

WAITS(mutex, pthread_mutex_lock(&mutex))
WAKES(mutex, pthread_mutex_unlock(&mutex))
WAITS(rwlock, pthread_rwlock_rdlock(&rwlock))
WAKES(rwlock, pthread_rwlock_unlock(&rwlock))
WAITS(flock, sys(SYS_flock, other_file, LOCK_EX, 0, 0, 0, 0))
WAKES(flock, sys(SYS_flock, held_file, LOCK_UN, 0, 0, 0, 0))

static void mutex_before(void)
{
	pthread_mutex_lock(&mutex);
}
static void mutex_after(void)
{
	pthread_mutex_unlock(&mutex);
	late(NAP_NS / 3);
}
static void rwlock_before(void)
{
	pthread_rwlock_wrlock(&rwlock);
}
static void rwlock_after(void)
{
	pthread_rwlock_unlock(&rwlock);
	late(NAP_NS / 3);
}
static void flock_before(void)
{
	flock(held_file, LOCK_EX);
}
static void flock_after(void)
{
	flock(other_file, LOCK_UN);
	late(NAP_NS / 3);
}
static void signal_first(void)
{
	signalled = pthread_self();
}

static const struct kind {
	const char *name;
	void (*wait)(void), (*wake)(void);
	void (*before)(void); /* what the waker does before it naps        */
	void (*after)(void);  /* … and the one that waits when it has waited */
	void (*first)(void);
} kinds[] = {
	{ "pipe", wait_pipe, wake_pipe, NULL, NULL, NULL },
	{ "eventfd", wait_eventfd, wake_eventfd, NULL, NULL, NULL },
	{ "unix", wait_unix, wake_unix, NULL, NULL, NULL },
	{ "tcp", wait_tcp, wake_tcp, NULL, NULL, NULL },
	{ "sem", wait_sem, wake_sem, NULL, NULL, NULL },
	{ "cond", wait_cond, wake_cond, NULL, NULL, NULL },
	{ "futex", wait_futex, wake_futex, NULL, NULL, NULL },
	{ "signal", wait_signal, wake_signal, NULL, NULL, signal_first },
	{ "mutex", wait_mutex, wake_mutex, mutex_before, mutex_after, NULL },
	{ "rwlock", wait_rwlock, wake_rwlock, rwlock_before, rwlock_after, NULL },
	{ "flock", wait_flock, wake_flock, flock_before, flock_after, NULL },
};
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))
static uint64_t woken[N_KINDS];

static void *waiter(void *arg)
{
	const struct kind *k = arg;

	if (k->first)
		k->first();
	gate_wait(&start);
	for (;;) {
		k->wait();
		__atomic_add_fetch(&woken[k - kinds], 1, __ATOMIC_RELAXED);
		if (k->after)
			k->after();
	}
	return arg;
}

static void *waker(void *arg)
{
	const struct kind *k = arg;
	char name[16];

	snprintf(name, sizeof(name), "wakes-%s", k->name);
	prctl(PR_SET_NAME, name);
	gate_wait(&start);
	for (;;) {
		if (k->before)
			k->before();
		nap();
		k->wake();
		if (k->before)
			late(NAP_NS / 10);
	}
	return arg;
}

static void connect_tcp(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	if (listening < 0 || bind(listening, (void *)&at, sizeof(at)) < 0 ||
	    listen(listening, 1) < 0 || getsockname(listening, (void *)&at, &len) < 0)
		die("listen");
	tcp[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(tcp[1], (void *)&at, sizeof(at)) < 0)
		die("connect");
	tcp[0] = accept(listening, NULL, NULL);
	close(listening);
}

int main(void)
{
	char path[] = "/tmp/memscope-wakers-XXXXXX";
	sigset_t set;
	pthread_t t;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	event = eventfd(0, EFD_CLOEXEC);
	held_file = mkstemp(path);
	other_file = open(path, O_RDWR | O_CLOEXEC);
	if (pipe(pipes) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, unix_pair) < 0 ||
	    held_file < 0 || other_file < 0 || unlink(path) < 0 || sem_init(&sem, 0, 0) < 0)
		die("what threads wait for");
	connect_tcp();
	for (size_t i = 0; i < N_KINDS; i++)
		if (pthread_create(&t, NULL, waiter, (void *)&kinds[i]) ||
		    pthread_create(&t, NULL, waker, (void *)&kinds[i]))
			die("pthread_create");
	sleep_ns(50 * NSEC_PER_MSEC);
	say_ready();
	for (;;) {
		if (strcmp(next_command(), "go") == 0)
			gate_open(&start);
		else
			for (size_t i = 0; i < N_KINDS; i++)
				say("kind %s %llu", kinds[i].name,
				    (unsigned long long)__atomic_load_n(&woken[i],
									__ATOMIC_RELAXED));
		say("end");
	}
}
