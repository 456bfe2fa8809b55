/*
 * What is hard for who counts allocations: many stacks, short threads, children all the time, a
 * death in the middle. What it does it counts in memory that it shares with the test, which is there
 * when the process is not: each count before the call and again after it, so that of a process that
 * was killed in between, both bounds are known.
 *
 *   alloc_hard            waits for commands
 *   alloc_hard after FILE what children exec: allocates, frees, exits
 *
 * Its own calls go through hard_malloc() and hard_free(); those that the C library makes for a thread
 * do not. After each command: `end`.
 *
 *   stacks FILE N       N different stacks, one block from each; every other one is freed
 *   threads FILE N M    N threads, eight at a time, M blocks each; every other block is freed by
 *                       its thread, the other ones by the one that comes after
 *   children FILE N M   N children, one after the other: each frees M blocks that it inherited,
 *                       allocates M and frees every other; every second one then execs
 *   forever FILE N      (no answer) N threads allocate and free until the process is killed
 *   once FILE N         N blocks, every other one freed, then the process ends by itself (no answer)
 *   live FILE N         N blocks that stay
 *   release FILE        frees those
 */
#include "target.h"

#include <pthread.h>
#include <sys/wait.h>

struct truth {
	uint64_t begun, done, begun_bytes, done_bytes;
	uint64_t frees_begun, frees, freed_bytes; /* of own blocks */
	uint64_t inherited;                       /* frees of a parent's blocks */
	uint64_t children, execs;
};

static struct truth *truth;

static void add(uint64_t *to, uint64_t n)
{
	__atomic_add_fetch(to, n, __ATOMIC_RELAXED);
}

static NOINLINE void *hard_malloc(size_t size)
{
	void *p;

	add(&truth->begun, 1);
	add(&truth->begun_bytes, size);
	p = malloc(size);
	if (!p)
		die("malloc");
	add(&truth->done, 1);
	add(&truth->done_bytes, size);
	return p;
}

static NOINLINE void hard_free(void *p, size_t size)
{
	add(&truth->frees_begun, 1);
	free(p);
	add(&truth->frees, 1);
	add(&truth->freed_bytes, size);
}

static size_t size_of(uint64_t i)
{
	return 16 + i % 113;
}

/* --- many stacks: the bits of a number are the path to it --- */

static NOINLINE void stack_left(uint64_t i, int depth);
static NOINLINE void stack_right(uint64_t i, int depth);

static NOINLINE void stack_next(uint64_t i, int depth)
{
	void *p;

	if (depth > 0) {
		if (i >> (depth - 1) & 1)
			stack_right(i, depth - 1);
		else
			stack_left(i, depth - 1);
		return;
	}
	p = hard_malloc(size_of(i));
	if (i % 2)
		hard_free(p, size_of(i));
}

static NOINLINE void stack_left(uint64_t i, int depth)
{
	stack_next(i, depth);
}

static NOINLINE void stack_right(uint64_t i, int depth)
{
	stack_next(i, depth);
}

static void many_stacks(uint64_t n)
{
	int depth = 1;

	while (1ull << depth < n)
		depth++;
	for (uint64_t i = 0; i < n; i++)
		stack_next(i, depth);
}

/* --- short threads --- */

#define AT_ONCE 8
#define MOST    1024 /* blocks of a thread */

struct hand {
	uint64_t n;
	void *block[MOST];
};

static struct hand hands[AT_ONCE];

static NOINLINE void *short_thread(void *arg)
{
	struct hand *hand = arg;
	uint64_t n = hand->n;

	for (uint64_t i = 0; i < n; i++) {
		if (hand->block[i])
			hard_free(hand->block[i], size_of(i)); /* another's */
		hand->block[i] = hard_malloc(size_of(i));
		if (i % 2) {
			hard_free(hand->block[i], size_of(i));
			hand->block[i] = NULL;
		}
	}
	return NULL;
}

static void short_threads(uint64_t n, uint64_t blocks)
{
	pthread_t t[AT_ONCE];

	for (uint64_t i = 0; i < n; i += AT_ONCE) {
		for (int j = 0; j < AT_ONCE; j++) {
			hands[j].n = blocks < MOST ? blocks : MOST;
			if (pthread_create(&t[j], NULL, short_thread, &hands[j]))
				die("pthread_create");
		}
		for (int j = 0; j < AT_ONCE; j++)
			pthread_join(t[j], NULL);
	}
}

/* --- children --- */

static void some_blocks(void **block, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		block[i] = hard_malloc(size_of(i));
		if (i % 2)
			hard_free(block[i], size_of(i));
	}
}

static char self[256], file[112];

static __attribute__((noreturn)) void child_main(void **inherited, uint64_t n, bool exec)
{
	static void *own[MOST];

	for (uint64_t i = 0; i < n; i++) {
		free(inherited[i]);
		add(&truth->inherited, 1);
	}
	some_blocks(own, n);
	if (exec) {
		add(&truth->execs, 1);
		execl(self, self, "after", file, (char *)NULL);
		die(self);
	}
	_exit(0);
}

static void many_children(uint64_t n, uint64_t blocks)
{
	static void *mine[MOST];

	if (blocks > MOST)
		blocks = MOST;
	for (uint64_t i = 0; i < blocks; i++)
		mine[i] = hard_malloc(size_of(i));
	for (uint64_t i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			child_main(mine, blocks, i % 2);
		add(&truth->children, 1);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	for (uint64_t i = 0; i < blocks; i++)
		hard_free(mine[i], size_of(i));
}

/* --- until it is killed --- */

static NOINLINE void *forever(void *arg)
{
	static __thread void *kept[64];
	uint64_t i = 0;

	for (;;) {
		void **at = &kept[i % 64];

		if (*at)
			hard_free(*at, size_of(i % 64));
		*at = hard_malloc(size_of(i % 64));
		i++;
	}
	return arg;
}

static __attribute__((noreturn)) void many_forever(uint64_t n)
{
	pthread_t t;

	for (uint64_t i = 0; i < n; i++)
		if (pthread_create(&t, NULL, forever, NULL))
			die("pthread_create");
	wait_for_ever();
}

/* --- blocks that stay: linked, so that nothing else is allocated --- */

struct kept {
	struct kept *next;
};

static struct kept *all_kept;

static void keep_live(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		struct kept *k = hard_malloc(24);

		k->next = all_kept;
		all_kept = k;
	}
}

static void release(void)
{
	while (all_kept) {
		struct kept *next = all_kept->next;

		hard_free(all_kept, 24);
		all_kept = next;
	}
}

int main(int argc, char **argv)
{
	static void *block[MOST];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		die("/proc/self/exe");
	if (argc == 3 && !strcmp(argv[1], "after")) {
		truth = (struct truth *)(uintptr_t)map_counter(argv[2]);
		some_blocks(block, 100);
		_exit(0);
	}
	say_ready();
	for (;;) {
		const char *command = next_command();
		unsigned long long n = 0, m = 0;
		char what[16];

		if (sscanf(command, "%15s %111s %llu %llu", what, file, &n, &m) < 2)
			die(command);
		if (!truth)
			truth = (struct truth *)(uintptr_t)map_counter(file);
		if (!strcmp(what, "stacks"))
			many_stacks(n);
		else if (!strcmp(what, "threads"))
			short_threads(n, m);
		else if (!strcmp(what, "children"))
			many_children(n, m);
		else if (!strcmp(what, "forever"))
			many_forever(n);
		else if (!strcmp(what, "live"))
			keep_live(n);
		else if (!strcmp(what, "release"))
			release();
		else if (!strcmp(what, "once")) {
			for (uint64_t i = 0; i < n; i++) {
				void *p = hard_malloc(size_of(i));

				if (i % 2)
					hard_free(p, size_of(i));
			}
			_exit(0);
		} else {
			die(command);
		}
		say("end");
	}
}
