/*
 * Threads that wait for locks whose owners are known.
 *
 *   locks mutex|rwlock|pi|robust|heap|own|waitv MS
 *                                `go`, then: two workers take the lock all the time; a keeper holds it for MS ms at a
 *                                time, asleep in two functions that one calls, then leaves it for MS / 4 ms
 *                                heap: a mutex in a block of memory that table_new() allocates at `go`; own: a word that says
 *                                whether it is locked and waited for, and not by whom; waitv: the same, by futex_waitv(2)
 *   locks deadlock 0             before `ready`: two threads wait for ever, each for a lock of the other's
 *
 * What workers waited is measured by themselves: wall time in the call that takes the lock.
 *
 * go    → end
 * tally → lock ADDRESS TID WAITED_NS WAITS KEPT_NS   (TID: of the keeper; waited by both workers while it held the
 *         lock, and by the keeper itself)
 *         deadlock: lock ADDRESS TID         (twice)
 *         end
 */
#include "target.h"

#include <pthread.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t *the_mutex = &table_lock;
static int own_word;
static bool by_waitv;
static enum { MUTEX, RWLOCK, OWN } kind;
static struct gate start;
static uint64_t hold_ns, waited_ns, waits, kept_ns;
static struct timespec half; /* of hold_ns */
static int keeper_tid;

/* Ulrich Drepper, Futexes Are Tricky: 0 free, 1 locked, 2 and others wait. */
static NOINLINE void own_lock(void)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} one = { 2, (uintptr_t)&own_word, 2 | 128 /* FUTEX2_SIZE_U32, FUTEX2_PRIVATE */, 0 };
	int c = 0;

	if (__atomic_compare_exchange_n(&own_word, &c, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return;
	while (__atomic_exchange_n(&own_word, 2, __ATOMIC_ACQ_REL))
		if (by_waitv)
			syscall(449 /* futex_waitv */, &one, 1, 0, NULL, 0);
		else
			syscall(SYS_futex, &own_word, 128 /* FUTEX_WAIT_PRIVATE */, 2, NULL, NULL,
				0);
}

static NOINLINE void own_unlock(void)
{
	if (__atomic_exchange_n(&own_word, 0, __ATOMIC_ACQ_REL) == 2)
		syscall(SYS_futex, &own_word, 129 /* FUTEX_WAKE_PRIVATE */, 1, NULL, NULL, 0);
}

struct table {
	char name[64];
	pthread_mutex_t lock;
	char rest[200];
};

static NOINLINE void table_new(void)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		die("calloc");
	pthread_mutex_init(&t->lock, NULL);
	the_mutex = &t->lock;
}

static NOINLINE void lookup(void)
{
	uint64_t from = mono_ns(), ns;

	if (kind == OWN)
		own_lock();
	else if (kind == MUTEX)
		pthread_mutex_lock(the_mutex);
	else
		pthread_rwlock_rdlock(&table_rwlock);
	ns = mono_ns() - from;
	if (kind == OWN)
		own_unlock();
	else if (kind == MUTEX)
		pthread_mutex_unlock(the_mutex);
	else
		pthread_rwlock_unlock(&table_rwlock);
	if (ns < hold_ns / 8)
		return;
	__atomic_add_fetch(&waited_ns, ns, __ATOMIC_RELAXED);
	__atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
}

static NOINLINE void write_out(void)
{
	nanosleep(&half, NULL); /* in the C library: the program's own function is this one */
	__asm__ volatile("");
}

static NOINLINE void read_in(void)
{
	nanosleep(&half, NULL); /* in the C library: the program's own function is this one */
	__asm__ volatile("");
}

static NOINLINE void rebuild(void)
{
	uint64_t from = mono_ns();

	if (kind == OWN)
		own_lock();
	else if (kind == MUTEX)
		pthread_mutex_lock(the_mutex);
	else
		pthread_rwlock_wrlock(&table_rwlock);
	__atomic_add_fetch(&kept_ns, mono_ns() - from, __ATOMIC_RELAXED);
	write_out();
	read_in();
	if (kind == OWN)
		own_unlock();
	else if (kind == MUTEX)
		pthread_mutex_unlock(the_mutex);
	else
		pthread_rwlock_unlock(&table_rwlock);
}

static void *worker(void *arg)
{
	gate_wait(&start);
	for (;;) {
		lookup();
		sleep_ns(100000);
	}
	return arg;
}

static void *keeper(void *arg)
{
	prctl(PR_SET_NAME, "keeper");
	__atomic_store_n(&keeper_tid, self_tid(), __ATOMIC_RELEASE);
	gate_wait(&start);
	for (;;) {
		rebuild();
		sleep_ns(hold_ns / 4);
	}
	return arg;
}

static pthread_mutex_t pair[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static int pair_tids[2], pair_n;

static NOINLINE void take_other(int other)
{
	pthread_mutex_lock(&pair[other]);
	__asm__ volatile("");
}

static void *one_of_two(void *arg)
{
	int mine = (int)(intptr_t)arg;

	pthread_mutex_lock(&pair[mine]);
	pair_tids[mine] = self_tid();
	__atomic_add_fetch(&pair_n, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&pair_n, __ATOMIC_ACQUIRE) < 2)
		sleep_ns(NSEC_PER_MSEC);
	take_other(!mine);
	return arg;
}

static __attribute__((noreturn)) void deadlock(void)
{
	pthread_t t;

	for (intptr_t i = 0; i < 2; i++)
		if (pthread_create(&t, NULL, one_of_two, (void *)i))
			die("pthread_create");
	while (__atomic_load_n(&pair_n, __ATOMIC_ACQUIRE) < 2)
		sleep_ns(NSEC_PER_MSEC);
	sleep_ns(50 * NSEC_PER_MSEC);
	say_ready();
	for (;;) {
		next_command();
		for (int i = 0; i < 2; i++)
			say("lock %llu %d", (unsigned long long)(uintptr_t)&pair[i], pair_tids[i]);
		say("end");
	}
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;
	pthread_t t;

	if (argc != 3)
		die("usage: locks mutex|rwlock|pi|robust|heap|own|waitv|deadlock MS");
	if (strcmp(argv[1], "deadlock") == 0)
		deadlock();
	by_waitv = strcmp(argv[1], "waitv") == 0;
	kind = strcmp(argv[1], "rwlock") == 0            ? RWLOCK
	       : by_waitv || strcmp(argv[1], "own") == 0 ? OWN
							 : MUTEX;
	hold_ns = (uint64_t)atoi(argv[2]) * NSEC_PER_MSEC;
	half.tv_nsec = (long)hold_ns / 2;
	pthread_mutexattr_init(&attr);
	if (strcmp(argv[1], "pi") == 0)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (strcmp(argv[1], "robust") == 0)
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (kind == MUTEX)
		pthread_mutex_init(&table_lock, &attr);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&t, NULL, i ? worker : keeper, NULL))
			die("pthread_create");
	while (!__atomic_load_n(&keeper_tid, __ATOMIC_ACQUIRE))
		sleep_ns(NSEC_PER_MSEC);
	say_ready();
	for (;;) {
		const char *command = next_command();

		if (strcmp(command, "go") == 0 && strcmp(argv[1], "heap") == 0)
			table_new();
		if (strcmp(command, "go") == 0)
			gate_open(&start);
		else
			say("lock %llu %d %llu %llu %llu",
			    (unsigned long long)(kind == MUTEX ? (uintptr_t)the_mutex
						 : kind == OWN ? (uintptr_t)&own_word
							       : (uintptr_t)&table_rwlock),
			    keeper_tid,
			    (unsigned long long)__atomic_load_n(&waited_ns, __ATOMIC_RELAXED),
			    (unsigned long long)__atomic_load_n(&waits, __ATOMIC_RELAXED),
			    (unsigned long long)__atomic_load_n(&kept_ns, __ATOMIC_RELAXED));
		say("end");
	}
}
