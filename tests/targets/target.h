/*
 * What every target shares: the line protocol with the test that drives it, clocks, a burn loop,
 * and system calls made from a frame of our own.
 *
 * A target prints `ready PID`, then obeys one command a line on stdin, and answers with lines of
 * `key value…` closed by `end`. It never exits on its own unless it says so, and dies with the
 * test. Nothing here allocates, so a target's own counts of its allocations stay the whole truth.
 *
 * Targets are built with frame pointers and without inlining, cloning or sibling calls: a frame
 * that the source shows is a frame on the stack. System calls that are asserted by stack go
 * through sys(), because libc's leaf functions have no frame: a frame-pointer walk that starts
 * inside libc misses the function that called it.
 */
#ifndef MEMSCOPE_TESTS_TARGET_H
#define MEMSCOPE_TESTS_TARGET_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull

#define NOINLINE __attribute__((noinline))
#define UNUSED	 __attribute__((unused))

static UNUSED uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static UNUSED uint64_t mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* What the scheduler charged this thread, to the ns. */
static UNUSED uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static UNUSED int self_tid(void)
{
	return (int)syscall(SYS_gettid);
}

static UNUSED __attribute__((noreturn)) void die(const char *what)
{
	dprintf(2, "target: %s: %s\n", what, strerror(errno));
	_exit(70);
}

/*
 * Wall time that the calling thread is on a CPU, by perf's own account of when it is switched in
 * and out. The CPU clock is less than that where the kernel takes off what interrupts or the
 * hypervisor stole, and it may take a thread's time for what was stolen from the idle CPU before:
 * a wake-up from another CPU reads a steal clock that is not up to date, and the rest of it is
 * charged later (update_rq_clock_task()).
 */
static UNUSED int on_cpu_open(void)
{
	struct perf_event_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof(attr);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		die("perf_event_open");
	return fd;
}

static UNUSED uint64_t on_cpu_ns(int fd)
{
	uint64_t got[2]; /* the count, and the time that it was counted */

	if (read(fd, got, sizeof(got)) != sizeof(got))
		die("read of a perf event");
	return got[1];
}

/*
 * What the calling thread's CPU time may be, for who counts samples of it: not below its CPU clock,
 * and not above its time on a CPU. What was stolen is in the second alone; a timer that should have
 * fired then fires once behind it, however often it was due.
 */
struct work_clock {
	int fd;
	uint64_t cpu_ns, on_ns;
};

static UNUSED struct work_clock work_begin(void)
{
	struct work_clock w = { on_cpu_open(), 0, 0 };

	w.on_ns = on_cpu_ns(w.fd);
	w.cpu_ns = cpu_ns();
	return w;
}

/* Its times become those since work_begin(). */
static UNUSED void work_end(struct work_clock *w)
{
	w->cpu_ns = cpu_ns() - w->cpu_ns;
	w->on_ns = on_cpu_ns(w->fd) - w->on_ns;
	close(w->fd);
}

/* One line to the test; whole even when several threads speak (a pipe write below PIPE_BUF). */
static UNUSED void say_args(int fd, const char *fmt, va_list ap)
{
	char line[512];
	int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);

	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (write(fd, line, (size_t)n) != n)
		_exit(71);
}

static UNUSED __attribute__((format(printf, 2, 3))) void say_to(int fd, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_args(fd, fmt, ap);
	va_end(ap);
}

static UNUSED __attribute__((format(printf, 1, 2))) void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_args(1, fmt, ap);
	va_end(ap);
}

static UNUSED void say_ready(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	say("ready %d", (int)getpid());
}

/* The next command, without its newline. The end of stdin is the end of the target. */
static UNUSED const char *next_command(void)
{
	static char line[128];
	size_t n = 0;
	char c;

	for (;;) {
		ssize_t r = read(0, &c, 1);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			_exit(0);
		if (c == '\n')
			break;
		if (n < sizeof(line) - 1)
			line[n++] = c;
	}
	line[n] = '\0';
	if (!strcmp(line, "quit"))
		_exit(0);
	return line;
}

/* In a function that calls nothing: gcc leaves its frame out, whatever the flags, unless asked. */
#define KEEP_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

/* A system call made here, in a function with a frame, so that its caller is on the stack. */
static UNUSED NOINLINE long sys(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	KEEP_FRAME();
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	KEEP_FRAME();
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "no system call here for this architecture"
#endif
}

static UNUSED void sleep_ns(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	sys(SYS_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
}

/* Work in one frame, about a cycle or two an iteration. */
static UNUSED NOINLINE uint64_t burn(uint64_t iterations)
{
	uint64_t x = iterations;

	KEEP_FRAME();
	for (uint64_t i = 0; i < iterations; i++)
		__asm__ volatile("" : "+r"(x));
	return x;
}

/* A function that burns, and has a frame of its own: what follows the call keeps it from being a jump. */
#define BURNER(name)                                                                               \
	static NOINLINE void name(uint64_t n)                                                      \
	{                                                                                          \
		burn(n);                                                                           \
		__asm__ volatile("");                                                              \
	}

/* Iterations of burn() that take about a millisecond here. */
static UNUSED uint64_t burn_per_ms(void)
{
	uint64_t best = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t start = cpu_ns(), took;

		burn(1000000);
		took = cpu_ns() - start;
		if (!best || took < best)
			best = took;
	}
	return 1000000ull * NSEC_PER_MSEC / (best ? best : 1);
}

static UNUSED uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

static UNUSED void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("sched_setaffinity");
}

/*
 * A gate that opens once: threads wait in the kernel until it does.
 */
struct gate {
	int open;
};

static UNUSED NOINLINE void gate_wait(struct gate *g)
{
	while (!__atomic_load_n(&g->open, __ATOMIC_ACQUIRE))
		sys(SYS_futex, (long)&g->open, 0 /* FUTEX_WAIT */, 0, 0, 0, 0);
}

static UNUSED void gate_open(struct gate *g)
{
	__atomic_store_n(&g->open, 1, __ATOMIC_RELEASE);
	sys(SYS_futex, (long)&g->open, 1 /* FUTEX_WAKE */, 1 << 30, 0, 0, 0);
}

static UNUSED __attribute__((noreturn)) void wait_for_ever(void)
{
	uint64_t no_signals = 0;

	for (;;)
		sys(SYS_rt_sigsuspend, (long)&no_signals, 8, 0, 0, 0, 0);
}

/* Eight bytes at the start of a file of 4096, shared with the test: counting without a call. */
static UNUSED volatile uint64_t *map_counter(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die(path);
	close(fd);
	return (volatile uint64_t *)p;
}

#endif
