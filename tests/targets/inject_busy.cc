/*
 * A program that minds: while the library is put into it and taken away again, it checks its own work.
 *
 *   inject_busy WHAT…    threads, one of each named:
 *
 *   work     allocates in every way, fills blocks and looks at them later, in this thread and by
 *            handing them to the next; throws; errno, the rounding mode and a vector register must
 *            outlive a system call
 *   fork     has children that allocate, throw, and end well
 *   fork-load  the same, and they load a library: not beside `load`, for then a child may find the
 *            dynamic linker's lock taken, whoever is injected
 *   churn    has threads that end at once
 *   fork-within  has children while it holds the dynamic linker's lock (dl_iterate_phdr)
 *   load     loads and unloads a library
 *   signal   sends itself queued signals and has timers go off (SIGALRM, SIGPROF)
 *   read recv poll ppoll epoll select cond sem nanosleep absolute: wait in that, with all signals
 *            blocked: EINTR is wrong, and so is a sleep that is too short. recv: with a time limit
 *   main     (alone) no other thread: the main thread waits in what comes next. Behind that, but for
 *            `filtered`, to which seccomp allows no memory, or `writing` more than a pipe holds that
 *            nobody reads: should that end, it is wrong
 *
 * `report` -> errors N, rounds N for each kind, signals SENT TAKEN. WHAT is wrong is said on stderr.
 */
#include "target.h"

#include <fenv.h>
#include <limits.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

static std::atomic<uint64_t> errors, sent, taken;

static void wrong(const char *what, long got)
{
	errors++;
	dprintf(2, "inject_busy: %s: %ld (%s)\n", what, got, strerror(errno));
}

/* --- work --- */

static std::atomic<unsigned char *> handed[8];

static unsigned char *fill(unsigned char *p, uint32_t size, unsigned seed)
{
	memcpy(p, &size, sizeof(size));
	for (uint32_t i = 4; i < size; i++)
		p[i] = (unsigned char)(seed + i);
	return p;
}

static void look(const unsigned char *p)
{
	uint32_t size;

	memcpy(&size, p, sizeof(size));
	for (uint32_t i = 5; i < size; i++)
		if (p[i] != (unsigned char)(p[4] + i - 4)) {
			wrong("a block is not what was written", i);
			return;
		}
}

static NOINLINE unsigned char *allocate(unsigned seed)
{
	uint32_t size = 16 + seed % 3000;
	void *p = NULL;

	switch (seed % 7) {
	case 0:
		p = malloc(size);
		break;
	case 1:
		p = calloc(1, size);
		for (uint32_t i = 0; i < size; i++)
			if (((unsigned char *)p)[i]) {
				wrong("calloc is not zero", i);
				break;
			}
		break;
	case 2:
		p = realloc(malloc(8), size);
		break;
	case 3:
		if (posix_memalign(&p, 64, size) || (uintptr_t)p % 64)
			wrong("posix_memalign", 0);
		break;
	case 4:
		p = aligned_alloc(128, (size + 127) & ~127u);
		break;
	case 5:
		p = memalign(256, size);
		break;
	case 6: {
		std::string s(size, 'x');

		p = strdup(s.c_str());
		break;
	}
	}
	if (!p)
		wrong("no memory", seed % 7);
	return fill((unsigned char *)p, size, seed);
}

static NOINLINE int thrower(int depth)
{
	std::string s(100, 'a');

	if (!depth)
		throw std::runtime_error(s);
	return thrower(depth - 1) + (int)s.size();
}

/* A register that a system call made here must leave alone. */
static NOINLINE void hold_registers(int fd)
{
#if defined(__x86_64__)
	uint64_t in[2] = { 0x0123456789abcdef, 0xfedcba9876543210 }, out[2];
	static char c;
	long ret;

	__asm__ volatile("movdqu %[in], %%xmm13\n\tsyscall\n\tmovdqu %%xmm13, %[out]"
			 : "=a"(ret), [out] "=m"(out)
			 : "a"(SYS_read), "D"(fd), "S"(&c), "d"(1), [in] "m"(in)
			 : "rcx", "r11", "memory", "xmm13");
	if (out[0] != in[0] || out[1] != in[1])
		wrong("a vector register", ret);
#else
	(void)fd;
#endif
}

static std::atomic<uint64_t> worked;

static void *work(void *arg)
{
	static std::atomic<unsigned> nth;
	unsigned me = nth++, seed = me * 7919 + 1;
	std::vector<unsigned char *> kept(64);
	int none[2];

	(void)arg;
	if (pipe2(none, O_NONBLOCK) < 0)
		die("pipe");
	fesetround(FE_UPWARD);
	for (;; worked++) {
		seed = seed * 1664525 + 1013904223;
		unsigned char *&place = kept[seed >> 8 & 63];

		if (place) {
			look(place);
			free(place);
		}
		place = allocate(seed >> 4);
		if (!(seed >> 20 & 15)) {
			unsigned char *theirs = handed[me & 7].exchange(place);

			place = theirs;
			if (place)
				look(place);
		}
		if (!(seed >> 16 & 255)) {
			try {
				thrower(5);
				wrong("nothing was thrown", 0);
			} catch (const std::exception &e) {
				if (strlen(e.what()) != 100)
					wrong("another thing was thrown", 0);
			}
			errno = EXDEV;
			hold_registers(none[0]);
			(void)getppid();
			sched_yield();
			if (errno != EXDEV)
				wrong("errno", errno);
			if (fegetround() != FE_UPWARD)
				wrong("the rounding mode", fegetround());
			usleep(100);
		}
	}
}

/* --- fork, load, signal --- */

static std::atomic<uint64_t> forked, loaded;

static void *forks(void *arg)
{
	for (;; forked++) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0) {
			for (int i = 0; i < 200; i++) {
				char *p = (char *)malloc(1000 + (size_t)i);

				std::string s(500, 'c');
				memset(p, i, 1000);
				free(realloc(p, 3000));
			}
			alarm(20); /* rather than wait for a lock for ever */
			try {
				thrower(3);
			} catch (const std::exception &e) {
			}
			_exit(arg && !dlopen((const char *)arg, RTLD_NOW));
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			wrong("a child", status);
		usleep(20000);
	}
}

static void *nothing(void *)
{
	return NULL;
}

static void *churn(void *)
{
	for (;;) {
		pthread_t threads[4];

		for (pthread_t &t : threads)
			if (pthread_create(&t, NULL, nothing, NULL))
				die("pthread_create");
		for (pthread_t t : threads)
			pthread_join(t, NULL);
	}
}

static int on_object(struct dl_phdr_info *, size_t, void *)
{
	int status = 0;
	pid_t pid;

	usleep(3000);
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		wrong("a child", status);
	return 1;
}

static void *forks_within(void *)
{
	for (;; forked++) {
		dl_iterate_phdr(on_object, NULL);
		usleep(5000);
	}
}

static void *loads(void *arg)
{
	std::string path = (const char *)arg;

	for (;; loaded++) {
		void *library = dlopen(path.c_str(), RTLD_NOW);
		void *f = library ? dlsym(library, "je_mallocx") : NULL;

		if (!f)
			wrong("dlopen", 0);
		else
			((void *(*)(size_t, int))f)(16, 0);
		if (library)
			dlclose(library);
		usleep(2000);
	}
}

static void count(int number)
{
	int before = errno;
	char here[64];

	/* What a handler does that may be called at any time. */
	snprintf(here, sizeof(here), "%d", number);
	if (number == SIGRTMIN)
		taken++;
	errno = before;
}

static void *signals(void *arg)
{
	struct itimerval every = { { 0, 3000 }, { 0, 3000 } };

	(void)arg;
	setitimer(ITIMER_REAL, &every, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	for (;;) {
		union sigval v = {};

		if (sent - taken < 100 && sigqueue(getpid(), SIGRTMIN, v) == 0)
			sent++;
		usleep(500);
	}
}

/* --- waits --- */

struct wait {
	const char *name;
	int (*once)(struct wait *); /* 0: as it should be */
	int fds[2] = {}, epoll = 0;
	sem_t sem = {};
	pthread_mutex_t lock = {};
	pthread_cond_t cond = {};
	bool flag = false;
	std::atomic<uint64_t> rounds{ 0 };
};

static int slept(const timespec *ts, uint64_t from_ns, int r)
{
	uint64_t ns = (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;

	if (r == 0 && mono_ns() - from_ns < ns) {
		errno = 0;
		return -1;
	}
	return r;
}

static int take(struct wait *w)
{
	char c;

	return read(w->fds[0], &c, 1) == 1 && c == 'x' ? 0 : -1;
}

static int in_recv(struct wait *w)
{
	char c;

	return recv(w->fds[0], &c, 1, 0) == 1 && c == 'x' ? 0 : -1;
}

static int in_poll(struct wait *w)
{
	struct pollfd p = { w->fds[0], POLLIN, 0 };

	return poll(&p, 1, -1) == 1 ? take(w) : -1;
}

static int in_ppoll(struct wait *w)
{
	struct pollfd p = { w->fds[0], POLLIN, 0 };
	timespec long_enough = { 100, 0 };

	return ppoll(&p, 1, &long_enough, NULL) == 1 ? take(w) : -1;
}

static int in_epoll(struct wait *w)
{
	struct epoll_event ev;

	return epoll_wait(w->epoll, &ev, 1, -1) == 1 ? take(w) : -1;
}

static int in_select(struct wait *w)
{
	struct timeval long_enough = { 100, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(w->fds[0], &set);
	return select(w->fds[0] + 1, &set, NULL, NULL, &long_enough) == 1 ? take(w) : -1;
}

static int in_cond(struct wait *w)
{
	timespec until;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 100;
	pthread_mutex_lock(&w->lock);
	while (!w->flag && r == 0)
		r = pthread_cond_timedwait(&w->cond, &w->lock, &until);
	w->flag = false;
	pthread_mutex_unlock(&w->lock);
	errno = r;
	return r ? -1 : take(w);
}

static int in_sem(struct wait *w)
{
	return sem_wait(&w->sem) == 0 ? take(w) : -1;
}

static int in_nanosleep(struct wait *w)
{
	timespec ts = { 0, 3000000 };
	uint64_t from_ns = mono_ns();

	(void)w;
	return slept(&ts, from_ns, nanosleep(&ts, NULL));
}

static int in_absolute(struct wait *w)
{
	timespec ts = { 0, 3000000 }, until;
	uint64_t from_ns = mono_ns();

	(void)w;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ts.tv_nsec;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return slept(&ts, from_ns, clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
}

static struct wait waits[] = {
	{ "read", take },           { "recv", in_recv },           { "poll", in_poll },
	{ "ppoll", in_ppoll },      { "epoll", in_epoll },         { "select", in_select },
	{ "cond", in_cond },        { "sem", in_sem },             { "nanosleep", in_nanosleep },
	{ "absolute", in_absolute },
};

static void *wait_on(void *arg)
{
	struct wait *w = (struct wait *)arg;

	for (;; w->rounds++) {
		errno = EXDEV;
		if (w->once(w) < 0)
			wrong(w->name, errno);
	}
}

static void *wake(void *arg)
{
	(void)arg;
	for (unsigned i = 0;; i++) {
		usleep(1000 + i % 7 * 700);
		for (struct wait &w : waits) {
			if (!w.epoll)
				continue;
			uint64_t n = w.rounds;

			if (write(w.fds[1], "x", 1) != 1)
				wrong("write", 0);
			pthread_mutex_lock(&w.lock);
			w.flag = true;
			pthread_cond_signal(&w.cond);
			pthread_mutex_unlock(&w.lock);
			sem_post(&w.sem);
			/* Each is taken before the next comes. */
			while (n == w.rounds && w.once != in_nanosleep && w.once != in_absolute)
				usleep(50);
			if (w.once == in_nanosleep || w.once == in_absolute)
				take(&w);
		}
	}
}

static void begin(struct wait *w)
{
	const struct timeval limit = { 100, 0 };
	struct epoll_event ev = {};

	if (w->once == in_recv) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, w->fds) < 0)
			die("socketpair");
		setsockopt(w->fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	} else if (pipe(w->fds) < 0) {
		die("pipe");
	}
	if ((w->epoll = epoll_create1(0)) < 0)
		die("epoll_create1");
	ev.events = EPOLLIN;
	epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->fds[0], &ev);
	sem_init(&w->sem, 0, 0);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->cond, NULL);
}

static void start(void *(*f)(void *), void *arg, bool blocked)
{
	sigset_t all, before;
	pthread_t t;

	sigfillset(&all);
	if (blocked)
		pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&t, NULL, f, arg))
		die("pthread_create");
	if (blocked)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Who asks this thread for memory ends the program. */
static void *filtered(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, code };
	int none[2];
	char c;

	(void)arg;
	if (pipe(none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		die("seccomp");
	for (;;)
		if (read(none[0], &c, 1) != 1)
			wrong("read", errno);
}

static void *writing(void *arg)
{
	static char block[1 << 20];
	int fds[2];

	(void)arg;
	if (pipe(fds) < 0)
		die("pipe");
	wrong("a write", write(fds[1], block, sizeof(block)));
	return NULL;
}

/* A child wakes the only thread there is. */
static void alone(struct wait *w)
{
	begin(w);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			usleep(3000);
			if (write(w->fds[1], "x", 1) != 1)
				_exit(0);
		}
	}
	for (uint64_t next_ns = 0;; w->rounds++) {
		errno = EXDEV;
		if (w->once(w) < 0)
			wrong(w->name, errno);
		free(allocate((unsigned)w->rounds * 31));
		if (mono_ns() > next_ns) {
			next_ns = mono_ns() + 50 * NSEC_PER_MSEC;
			say("alone %llu %llu", (unsigned long long)errors,
			    (unsigned long long)w->rounds);
		}
	}
}

int main(int argc, char **argv)
{
	struct sigaction sa = {};
	char path[PATH_MAX];

	sa.sa_handler = count;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGRTMIN, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGPROF, &sa, NULL);
	snprintf(path, sizeof(path), "%.*slib_late.so", (int)(strrchr(argv[0], '/') + 1 - argv[0]),
		 argv[0]);
	say_ready();
	if (argc > 2 && !strcmp(argv[1], "main"))
		for (struct wait &w : waits)
			if (!strcmp(argv[2], w.name)) {
				if (argc > 3 && !strcmp(argv[3], "filtered"))
					start(filtered, NULL, true);
				if (argc > 3 && !strcmp(argv[3], "writing"))
					start(writing, NULL, true);
				alone(&w);
			}
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "work"))
			start(work, NULL, false);
		else if (!strcmp(argv[i], "fork"))
			start(forks, NULL, false);
		else if (!strcmp(argv[i], "fork-load"))
			start(forks, path, false);
		else if (!strcmp(argv[i], "churn"))
			start(churn, NULL, false);
		else if (!strcmp(argv[i], "fork-within"))
			start(forks_within, NULL, false);
		else if (!strcmp(argv[i], "load"))
			start(loads, path, false);
		else if (!strcmp(argv[i], "signal"))
			start(signals, NULL, false);
		for (struct wait &w : waits)
			if (!strcmp(argv[i], w.name)) {
				begin(&w);
				start(wait_on, &w, true);
			}
	}
	start(wake, NULL, true);
	for (;;) {
		const char *command = next_command();

		if (strcmp(command, "report"))
			continue;
		/* What is under way arrives. */
		for (int i = 0; i < 200 && sent != taken; i++)
			usleep(5000);
		say("errors %llu", (unsigned long long)errors);
		say("signals %llu %llu", (unsigned long long)sent, (unsigned long long)taken);
		say("work %llu", (unsigned long long)worked);
		say("fork %llu", (unsigned long long)forked);
		say("load %llu", (unsigned long long)loaded);
		for (struct wait &w : waits)
			say("%s %llu", w.name, (unsigned long long)w.rounds);
		say("end");
	}
}
