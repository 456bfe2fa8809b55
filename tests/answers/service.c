/*
 * A small service in C whose trouble is known: service MODE [ADDRESS]. Requests are made by its own threads, so that no
 * client takes part. "ready" on stdout when it works; runs until it is killed.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static volatile uint64_t sink;
static volatile int queued;

static void sleep_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

NOINLINE static uint64_t parse_request(uint64_t n)
{
	uint64_t h = n;

	for (int i = 0; i < 2000; i++)
		h = h * 31 + (uint64_t)i;
	return h;
}

NOINLINE static uint64_t hash_records(uint64_t n)
{
	uint64_t h = n;

	for (int i = 0; i < 20000; i++)
		h = (h ^ (h >> 7)) * 1099511628211u;
	return h;
}

static void *hot(void *arg)
{
	for (uint64_t n = 0;; n++)
		sink += hash_records(parse_request(n));
	return arg;
}

struct session {
	struct session *next;
	char data[16384];
};
static struct session *sessions;

NOINLINE static void remember_session(uint64_t n)
{
	struct session *s = malloc(sizeof(*s));

	memset(s->data, (int)n, sizeof(s->data));
	s->next = sessions;
	sessions = s;
}

static void *leak(void *arg)
{
	for (uint64_t n = 0;; n++) {
		void *scratch = malloc(4096);

		sink += parse_request(n) + (uintptr_t)scratch;
		remember_session(n);
		free(scratch);
		sleep_us(2000);
	}
	return arg;
}

NOINLINE static void update_totals(uint64_t n)
{
	pthread_mutex_lock(&totals_lock);
	sink += n;
	sleep_us(3000);
	pthread_mutex_unlock(&totals_lock);
}

static void *contend(void *arg)
{
	for (uint64_t n = 0;; n++)
		update_totals(parse_request(n));
	return arg;
}

NOINLINE static void write_journal(int fd, uint64_t n)
{
	char line[4096];

	memset(line, 'a' + (int)(n % 26), sizeof(line));
	if (pwrite(fd, line, sizeof(line), (off_t)(n % 64 * sizeof(line))) < 0 || fsync(fd) < 0)
		exit(1);
}

static int open_journal(void *arg)
{
	return open(arg, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void *journal(void *arg)
{
	int fd = open_journal(arg);

	for (uint64_t n = 0; fd >= 0; n++) {
		sink += parse_request(n);
		write_journal(fd, n);
	}
	exit(1);
}

/* A group commit: one writes, the others wait for its lock. */
NOINLINE static void commit_order(int fd, uint64_t n)
{
	pthread_mutex_lock(&totals_lock);
	write_journal(fd, n);
	pthread_mutex_unlock(&totals_lock);
}

static void *commit(void *arg)
{
	int fd = open_journal(arg);

	for (uint64_t n = 0; fd >= 0; n++)
		commit_order(fd, parse_request(n));
	exit(1);
}

NOINLINE static void ask_backend(int fd, uint64_t n)
{
	char answer[64];

	if (write(fd, &n, sizeof(n)) < 0 || read(fd, answer, sizeof(answer)) <= 0)
		exit(1);
}

static void *ask(void *arg)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atoi(arg)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		exit(1);
	for (uint64_t n = 0;; n++) {
		sink += parse_request(n);
		ask_backend(fd, n);
	}
}

static void *take_jobs(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&queue_lock);
		while (!queued)
			pthread_cond_wait(&queue_filled, &queue_lock);
		queued--;
		pthread_mutex_unlock(&queue_lock);
		sink += parse_request((uint64_t)queued);
	}
	return arg;
}

/* 64 MiB that are full and stay so: each request puts a new entry in the place of an old one. */
enum { ENTRIES = 4096, ENTRY = 16384 };
static char *cache[ENTRIES];

NOINLINE static void cache_put(uint64_t n)
{
	char **at = &cache[parse_request(n) % ENTRIES];

	free(*at);
	*at = malloc(ENTRY);
	memset(*at, (int)n, ENTRY);
}

static void *fill(void *arg)
{
	for (uint64_t n = 0;; n++) {
		cache_put(n);
		sleep_us(500);
	}
	return arg;
}

static void start(void *(*work)(void *), int n, void *arg)
{
	pthread_t t;

	while (n--)
		pthread_create(&t, NULL, work, arg);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	void *arg = argc > 2 ? argv[2] : NULL;
	struct epoll_event ev;

	start(take_jobs, 4, NULL); /* nobody queues anything: idle in every mode */
	for (uint64_t n = 0; n < ENTRIES && strcmp(mode, "cache") == 0; n++) {
		cache[n] = malloc(ENTRY);
		memset(cache[n], 1, ENTRY);
	}
	if (strcmp(mode, "hot") == 0)
		start(hot, 1, NULL);
	else if (strcmp(mode, "leak") == 0)
		start(leak, 1, NULL);
	else if (strcmp(mode, "lock") == 0)
		start(contend, 6, NULL);
	else if (strcmp(mode, "disk") == 0)
		start(journal, 1, arg);
	else if (strcmp(mode, "commit") == 0)
		start(commit, 6, arg);
	else if (strcmp(mode, "mix") == 0) {
		start(leak, 1, NULL);
		start(journal, 1, arg);
	} else if (strcmp(mode, "peer") == 0)
		start(ask, 2, arg);
	else if (strcmp(mode, "cache") == 0)
		start(fill, 1, NULL);
	else if (strcmp(mode, "idle") != 0)
		return 2;
	puts("ready");
	fflush(stdout);
	epoll_wait(epoll_create1(EPOLL_CLOEXEC), &ev, 1, -1);
	return 0;
}
