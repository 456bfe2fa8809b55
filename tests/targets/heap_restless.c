/*
 * Changes its heap all the while, and checks itself: for snapshots that are taken in the middle of it.
 *
 *   heap_restless THREADS [fork] [unmap] [exec]
 *
 * THREADS threads allocate blocks, fill them, and compare them before they free them; others wait in system calls that must
 * not end early. Without `fork` there is no child: a wait for one ends with ECHILD, and no SIGCHLD ever comes. `fork`: children
 * that check a block and end. `unmap`: mappings that come and go. `exec`: it executes itself again now and then.
 * Answers any line with: rounds errors SIGCHLDs children generations
 */
#include "target.h"

#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

enum { BLOCKS = 512, BLOCK_MAX = 3000, EXEC_MS = 300, WAIT_MS = 20 };

static volatile uint64_t rounds, errors, sigchlds, children;
static uint64_t generation;
static bool forks, unmaps, execs;

static void on_child(int sig)
{
	(void)sig;
	__atomic_add_fetch(&sigchlds, 1, __ATOMIC_RELAXED);
}

static void wrong(const char *what)
{
	__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
	dprintf(2, "heap_restless: %s: %s\n", what, strerror(errno));
}

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* A block's bytes follow from its address and its size. */
static void fill(unsigned char *p, size_t n)
{
	memcpy(p, &n, sizeof(n));
	memset(p + sizeof(n), (int)(n * 31 + 7) & 255, n - sizeof(n));
}

static bool is_whole(const unsigned char *p)
{
	size_t n;

	memcpy(&n, p, sizeof(n));
	for (size_t i = sizeof(n); i < n; i++)
		if (p[i] != ((n * 31 + 7) & 255))
			return false;
	return n >= sizeof(n) && n < BLOCK_MAX + sizeof(n);
}

__attribute__((noreturn)) static void *allocate(void *arg)
{
	unsigned char *block[BLOCKS] = { 0 };
	uint32_t state = (uint32_t)(uintptr_t)arg;

	for (;;) {
		uint32_t i = draw(&state) % BLOCKS;
		size_t n = sizeof(size_t) + draw(&state) % BLOCK_MAX;

		if (block[i] && !is_whole(block[i]))
			wrong("a block has changed");
		free(block[i]);
		block[i] = malloc(n);
		if (!block[i])
			die("malloc");
		fill(block[i], n);
		if (i == 0)
			__atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
	}
}

/* Calls that have a time limit must take it, and end by nothing else. */
__attribute__((noreturn)) static void *wait_in_calls(void *arg)
{
	(void)arg;
	for (int i = 0;; i++) {
		struct timespec ts = { 0, WAIT_MS * 1000000 };
		uint64_t from = mono_ns();
		int r;

		if (i % 2)
			r = nanosleep(&ts, NULL);
		else
			r = poll(NULL, 0, WAIT_MS);
		if (r != 0 && errno != EINTR)
			wrong("a wait failed");
		else if (r == 0 && mono_ns() - from < WAIT_MS * 1000000)
			wrong("a wait ended early");
		else if (r != 0 && !forks)
			wrong("a wait was interrupted");
	}
}

__attribute__((noreturn)) static void *fork_children(void *arg)
{
	unsigned char *p = malloc(1000);

	(void)arg;
	if (!p)
		die("malloc");
	fill(p, 1000);
	for (;;) {
		int status = 0;
		pid_t kid = fork();

		if (kid == 0)
			_exit(is_whole(p) ? 0 : 1);
		if (kid < 0 || waitpid(kid, &status, 0) != kid || status)
			wrong("a child");
		__atomic_add_fetch(&children, 1, __ATOMIC_RELAXED);
	}
}

__attribute__((noreturn)) static void *map_and_unmap(void *arg)
{
	uint32_t state = 1;

	(void)arg;
	for (;;) {
		size_t n = (1 + draw(&state) % 256) << 12;
		char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED) {
			wrong("mmap");
			continue;
		}
		memset(p, 3, n);
		if (p[n - 1] != 3 || munmap(p, n) < 0)
			wrong("munmap");
	}
}

__attribute__((noreturn)) static void again(char **argv)
{
	char text[128], *args[16] = { argv[0], argv[1] };
	int n = 2;

	if (forks)
		args[n++] = "fork";
	if (unmaps)
		args[n++] = "unmap";
	args[n++] = "exec";
	snprintf(text, sizeof(text), "=%llu,%llu,%llu,%llu,%llu", (unsigned long long)rounds,
		 (unsigned long long)errors, (unsigned long long)sigchlds,
		 (unsigned long long)children, (unsigned long long)generation + 1);
	args[n++] = text;
	execv("/proc/self/exe", args);
	die("execv");
}

static void start(void *(*work)(void *), uintptr_t arg)
{
	pthread_t tid;

	if (pthread_create(&tid, NULL, work, (void *)arg) != 0)
		die("pthread_create");
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	uint64_t begun = mono_ns();
	char line[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, on_child);
	for (int i = 2; i < argc; i++) {
		forks |= strcmp(argv[i], "fork") == 0;
		unmaps |= strcmp(argv[i], "unmap") == 0;
		execs |= strcmp(argv[i], "exec") == 0;
		if (argv[i][0] == '=') {
			unsigned long long v[5];

			if (sscanf(argv[i], "=%llu,%llu,%llu,%llu,%llu", &v[0], &v[1], &v[2], &v[3],
				   &v[4]) != 5)
				die("arguments");
			rounds = v[0];
			errors = v[1];
			sigchlds = v[2];
			children = v[3];
			generation = v[4];
		}
	}
	for (int i = 0; i < threads; i++)
		start(allocate, (uintptr_t)i + 1);
	start(wait_in_calls, 0);
	if (forks)
		start(fork_children, 0);
	if (unmaps)
		start(map_and_unmap, 0);
	if (!generation)
		dprintf(1, "ready %d\n", getpid());
	for (;;) {
		int r = poll(&in, 1, 5);

		if (!forks && (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD))
			wrong("there is a child");
		if (execs && mono_ns() - begun > EXEC_MS * NSEC_PER_MSEC && r == 0)
			again(argv);
		if (r <= 0)
			continue;
		if (read(0, line, sizeof(line)) <= 0)
			return 0;
		dprintf(1, "state %llu %llu %llu %llu %llu\nend\n", (unsigned long long)rounds,
			(unsigned long long)errors, (unsigned long long)sigchlds,
			(unsigned long long)children, (unsigned long long)generation);
	}
}
