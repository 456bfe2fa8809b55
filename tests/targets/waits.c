/*
 * Threads that wait for known times: in a sleep, for a lock, for a pipe.
 *
 *   waits ROUNDS MS [MS…] [/FILE]    each kind of wait, ROUNDS times through the list of lengths; as often
 *                                    a page of FILE is brought to its disk, however long that takes
 *
 * What each wait really took is measured by the thread itself: wall time less its own CPU time, and
 * less what was stolen while it was on a CPU, which its CPU clock leaves out and perf's account does
 * not (see on_cpu_open()). Perf looks at another moment of the switch, always by about as much: what
 * was stolen is what the difference of the two is above its median. Two more threads: one begins a wait at `go` that is
 * never answered, one has been blocked since before `ready`.
 *
 * go → wait FUNCTION TID COUNT ASKED_NS OFF_NS BLOCKS STOLEN_NS (do_sleep, do_lock, do_pipe,
 *      do_fsync);
 *      BLOCKS is how often the kernel says it gave up the CPU (a sleep that is over before it
 *      began is none), STOLEN_NS what was stolen, not in OFF_NS
 *      open FUNCTION TID BEGIN_NS (do_open; CLOCK_MONOTONIC)
 *      before FUNCTION TID (do_before)
 *      end
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

static int n_ms, rounds, file_fd = -1;
static uint64_t length_ns[32];
static struct gate start, done;
static int left = 4, before_tid;

#define MAX_WAITS 4096
#define NOISE_NS  20000 /* the difference of two clocks read one after the other, and caches */

struct tally {
	uint64_t count, asked_ns, off_ns, blocks;
	int64_t ahead_ns[MAX_WAITS]; /* of each wait: perf's account before the CPU clock */
};

/* A lock that one helper holds while the other side waits for it; 0 free, 1 taken. */
static int lock_word;
static int to_locker[2], from_locker[2];
static int to_reader[2], from_reader[2];

static NOINLINE void do_sleep(uint64_t ns)
{
	sleep_ns(ns);
	__asm__ volatile("");
}

static NOINLINE void do_lock(void)
{
	while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
		sys(SYS_futex, (long)&lock_word, 0 /* FUTEX_WAIT */, 1, 0, 0, 0);
}

static NOINLINE void do_unlock(void)
{
	__atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
	sys(SYS_futex, (long)&lock_word, 1 /* FUTEX_WAKE */, 1 << 30, 0, 0, 0);
}

static NOINLINE void do_pipe(int fd)
{
	char c;

	if (sys(SYS_read, fd, (long)&c, 1, 0, 0, 0) != 1)
		die("do_pipe");
}

static NOINLINE void do_fsync(int fd)
{
	if (sys(SYS_fsync, fd, 0, 0, 0, 0, 0) < 0)
		die("do_fsync");
}

static NOINLINE void do_open(int *never)
{
	for (;;)
		sys(SYS_futex, (long)never, 0 /* FUTEX_WAIT */, 0, 0, 0, 0);
}

static NOINLINE void do_before(int *never)
{
	for (;;)
		sys(SYS_futex, (long)never, 0 /* FUTEX_WAIT */, 0, 0, 0, 0);
}

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		die("write");
}

static void get(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		die("read");
}

struct stamp {
	uint64_t blocks, wall, on, cpu;
};

static _Thread_local int on_cpu_fd;

static uint64_t blocks_now(void)
{
	struct rusage ru;

	getrusage(RUSAGE_THREAD, &ru);
	return (uint64_t)ru.ru_nvcsw;
}

/* The clocks last, and in tally_add() first: what is between is the wait. */
static NOINLINE struct stamp stamp_now(void)
{
	struct stamp s = { .blocks = blocks_now() };

	s.wall = mono_ns();
	s.on = on_cpu_ns(on_cpu_fd);
	s.cpu = cpu_ns();
	return s;
}

static NOINLINE void tally_add(struct tally *t, struct stamp a, uint64_t asked_ns)
{
	uint64_t cpu = cpu_ns() - a.cpu, on = on_cpu_ns(on_cpu_fd) - a.on,
		 wall = mono_ns() - a.wall;

	t->ahead_ns[t->count++] = (int64_t)(on - cpu);
	t->asked_ns += asked_ns;
	t->off_ns += wall - cpu;
	t->blocks += blocks_now() - a.blocks;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t stolen_ns(struct tally *t)
{
	uint64_t sum = 0;
	int64_t median;

	qsort(t->ahead_ns, t->count, sizeof(*t->ahead_ns), compare);
	median = t->ahead_ns[t->count / 2];
	for (uint64_t i = 0; i < t->count; i++)
		if (t->ahead_ns[i] > median + NOISE_NS)
			sum += (uint64_t)(t->ahead_ns[i] - median);
	return sum;
}

static void finish(const char *function, struct tally *t)
{
	uint64_t stolen = stolen_ns(t);

	say("wait %s %d %llu %llu %llu %llu %llu", function, self_tid(),
	    (unsigned long long)t->count, (unsigned long long)t->asked_ns,
	    (unsigned long long)(t->off_ns - stolen), (unsigned long long)t->blocks,
	    (unsigned long long)stolen);
	if (!__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL))
		gate_open(&done);
	wait_for_ever();
}

static void *sleeper(void *arg)
{
	static struct tally t;

	on_cpu_fd = on_cpu_open();
	gate_wait(&start);
	for (int i = 0; i < rounds * n_ms; i++) {
		struct stamp a = stamp_now();

		do_sleep(length_ns[i % n_ms]);
		tally_add(&t, a, length_ns[i % n_ms]);
	}
	finish("do_sleep", &t);
	return arg;
}

static void *locker(void *arg)
{
	static struct tally t;

	on_cpu_fd = on_cpu_open();
	gate_wait(&start);
	for (int i = 0; i < rounds * n_ms; i++) {
		struct stamp a;

		get(to_locker[0]);
		a = stamp_now();
		do_lock();
		tally_add(&t, a, length_ns[i % n_ms]);
		do_unlock();
		put(from_locker[1]);
	}
	finish("do_lock", &t);
	return arg;
}

static void *lock_holder(void *arg)
{
	gate_wait(&start);
	for (int i = 0; i < rounds * n_ms; i++) {
		do_lock();
		put(to_locker[1]);
		sleep_ns(length_ns[i % n_ms]);
		do_unlock();
		get(from_locker[0]);
	}
	wait_for_ever();
	return arg;
}

static void *reader(void *arg)
{
	static struct tally t;

	on_cpu_fd = on_cpu_open();
	gate_wait(&start);
	for (int i = 0; i < rounds * n_ms; i++) {
		struct stamp a;

		put(from_reader[1]);
		a = stamp_now();
		do_pipe(to_reader[0]);
		tally_add(&t, a, length_ns[i % n_ms]);
	}
	finish("do_pipe", &t);
	return arg;
}

static void *writer(void *arg)
{
	gate_wait(&start);
	for (int i = 0; i < rounds * n_ms; i++) {
		get(from_reader[0]);
		sleep_ns(length_ns[i % n_ms]);
		put(to_reader[1]);
	}
	wait_for_ever();
	return arg;
}

static void *syncer(void *arg)
{
	static struct tally t;
	static char page[4096];

	on_cpu_fd = on_cpu_open();
	gate_wait(&start);
	for (int i = 0; i < rounds * n_ms; i++) {
		struct stamp a;

		page[0]++;
		if (pwrite(file_fd, page, sizeof(page), i % 16 * (off_t)sizeof(page)) < 0)
			die("write");
		a = stamp_now();
		do_fsync(file_fd);
		tally_add(&t, a, 0);
	}
	finish("do_fsync", &t);
	return arg;
}

static void *opener(void *arg)
{
	static int never;

	gate_wait(&start);
	say("open do_open %d %llu", self_tid(), (unsigned long long)mono_ns());
	if (!__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL))
		gate_open(&done);
	do_open(&never);
	return arg;
}

static void *blocked_before(void *arg)
{
	static int never;

	__atomic_store_n(&before_tid, self_tid(), __ATOMIC_RELEASE);
	do_before(&never);
	return arg;
}

int main(int argc, char **argv)
{
	static void *(*const threads[])(void *) = { sleeper, locker, lock_holder,   reader,
						    writer,  opener, blocked_before };
	pthread_t t;

	rounds = argc > 1 ? atoi(argv[1]) : 0;
	if (argc > 2 && argv[argc - 1][0] == '/') {
		file_fd = open(argv[--argc], O_RDWR | O_CREAT, 0600);
		if (file_fd < 0)
			die("open");
		left++;
	}
	if (argc < 3 || argc - 2 > 32 || rounds * (argc - 2) > MAX_WAITS)
		die("usage: waits ROUNDS MS… [/FILE]");
	for (int i = 2; i < argc; i++)
		length_ns[n_ms++] = (uint64_t)atoi(argv[i]) * NSEC_PER_MSEC;
	/* The sum of off-CPU time is asked for to 1 %: the default slack of 50 µs is not an error
	 * (it is in the measured time), but keeps the asked time from being a lower bound check. */
	prctl(PR_SET_TIMERSLACK, 1);
	if (pipe(to_locker) || pipe(from_locker) || pipe(to_reader) || pipe(from_reader))
		die("pipe");
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++)
		if (pthread_create(&t, NULL, threads[i], NULL))
			die("pthread_create");
	if (file_fd >= 0 && pthread_create(&t, NULL, syncer, NULL))
		die("pthread_create");
	while (!__atomic_load_n(&before_tid, __ATOMIC_ACQUIRE))
		sleep_ns(NSEC_PER_MSEC);
	sleep_ns(20 * NSEC_PER_MSEC);
	say_ready();
	next_command();
	gate_open(&start);
	gate_wait(&done);
	say("before do_before %d", before_tid);
	say("end");
	for (;;)
		next_command();
}
