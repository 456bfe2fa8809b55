/*
 * A program that knows every allocation it makes.
 *
 *   alloc_truth THREADS OPS        waits for commands
 *   alloc_truth now FILE OPS       one thread, at once; the truth goes to FILE; exits
 *   alloc_truth after              what `exec` becomes
 *
 * Each call goes through one function per allocator function (do_malloc, do_calloc, …), which
 * counts what succeeded: calls, bytes as asked for, and which of them are still live. Sizes and the
 * order of calls come from a fixed seed. Threads exist before `ready`, since pthread_create()
 * allocates; nothing else here calls an allocator behind our back.
 *
 * The rules, which are memscope's too: bytes are those asked for (calloc: n × size); a successful
 * realloc is one allocation of the new size and one free of the old block; a call that fails is
 * nothing; realloc(p, 0) frees (glibc) and allocates nothing; realloc(NULL, n) allocates.
 * With ALLOC_TRUTH_OTHER in its environment it expects another allocator than glibc's: pvalloc is
 * left out, and realloc(p, 0) may be a block of no bytes.
 * 64 blocks are older than any profiler: half of them are freed, and some grown, during the run.
 *
 * run  → site NAME CALLS BYTES LIVE_CALLS LIVE_BYTES (each); total …; frees N; end
 * fork → as run for the child alone (`child PID` first), then for the parent (`parent PID`); end.
 *        The child waits half a second before it allocates, and lives until the end.
 * exec → `execing`, then the new image: `after PID`, half a second, the sites, end
 */
#include "target.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#define MAX_THREADS 8
#define SLOTS       512 /* blocks a thread keeps at most        */
#define POOL        (MAX_THREADS * SLOTS * 2)
#define BEFORE      64 /* blocks older than the run             */
#define MAILBOXES   64 /* where threads leave blocks for others */
#define LEAKS       137
#define LEAK_BYTES  1234
#define HUGE_SIZE   ((size_t)1 << 62)

/* clang-format off */
#define SITES(X)            \
	X(do_malloc)        \
	X(do_calloc)        \
	X(do_realloc_null)  \
	X(do_realloc)       \
	X(do_realloc_zero)  \
	X(do_reallocarray)  \
	X(do_posix_memalign) \
	X(do_aligned_alloc) \
	X(do_memalign)      \
	X(do_valloc)        \
	X(do_pvalloc)       \
	X(leak_here)        \
	X(child_malloc)
/* clang-format on */

enum site_id {
#define X(name) SITE_##name,
	SITES(X)
#undef X
		N_SITES,
	SITE_NONE = -1,
};

static struct site {
	const char *name;
	uint64_t calls, bytes, live_calls, live_bytes;
} sites[N_SITES] = {
#define X(site_name) [SITE_##site_name] = { .name = #site_name },
	SITES(X)
#undef X
};

struct block {
	void *p;
	size_t size;
	int site; /* SITE_NONE: older than the run */
};

struct worker {
	uint64_t seed;
	uint32_t n_held, n_spare;
	uint32_t held[SLOTS]; /* indices into pool[] */
	uint32_t spare[POOL];
};

static struct block pool[POOL];
static struct worker workers[MAX_THREADS];
static struct block before[BEFORE];
static uint32_t mailbox[MAILBOXES]; /* index + 1; 0: empty */
static uint64_t n_frees;
static int n_threads, n_ops;
static pthread_barrier_t barrier;
static volatile size_t huge = HUGE_SIZE;
static int out_fd = 1;
static bool other; /* not glibc's allocator */

/* --- the truth ------------------------------------------------------------------------------- */

static void count_alloc(struct block *b, void *p, size_t size, int site)
{
	*b = (struct block){ p, size, site };
	__atomic_add_fetch(&sites[site].calls, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sites[site].bytes, size, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sites[site].live_calls, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sites[site].live_bytes, size, __ATOMIC_RELAXED);
}

static void count_free(const struct block *b)
{
	__atomic_add_fetch(&n_frees, 1, __ATOMIC_RELAXED);
	if (b->site == SITE_NONE)
		return;
	__atomic_sub_fetch(&sites[b->site].live_calls, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&sites[b->site].live_bytes, b->size, __ATOMIC_RELAXED);
}

static void say_truth(void)
{
	uint64_t calls = 0, bytes = 0, live_calls = 0, live_bytes = 0;

	for (int i = 0; i < N_SITES; i++) {
		const struct site *s = &sites[i];

		say_to(out_fd, "site %s %llu %llu %llu %llu", s->name, (unsigned long long)s->calls,
		       (unsigned long long)s->bytes, (unsigned long long)s->live_calls,
		       (unsigned long long)s->live_bytes);
		calls += s->calls;
		bytes += s->bytes;
		live_calls += s->live_calls;
		live_bytes += s->live_bytes;
	}
	say_to(out_fd, "total %llu %llu %llu %llu", (unsigned long long)calls,
	       (unsigned long long)bytes, (unsigned long long)live_calls,
	       (unsigned long long)live_bytes);
	say_to(out_fd, "frees %llu", (unsigned long long)n_frees);
}

static void must_fail(const void *p)
{
	if (p)
		die("an allocation that should fail did not");
}

/* --- one function for each allocator function
 * ---------------------------------------------------- */

#define PLAIN(site, call)                                                                          \
	static NOINLINE void site(struct block *b, size_t size)                                    \
	{                                                                                          \
		void *p = call;                                                                    \
                                                                                                   \
		if (!p)                                                                            \
			die(#site);                                                                \
		count_alloc(b, p, size, SITE_##site);                                              \
	}

PLAIN(do_malloc, malloc(size))
PLAIN(do_realloc_null, realloc(NULL, size))
PLAIN(do_memalign, memalign(64, size))
PLAIN(do_aligned_alloc, aligned_alloc(32, size))
PLAIN(do_valloc, valloc(size))
PLAIN(do_pvalloc, pvalloc(size))
PLAIN(leak_here, malloc(size))
PLAIN(child_malloc, malloc(size))

static NOINLINE void do_calloc(struct block *b, size_t size)
{
	size_t each = size % 7 + 1, n = size / each;
	void *p = calloc(n, each);

	if (!p)
		die("do_calloc");
	count_alloc(b, p, n * each, SITE_do_calloc);
}

static NOINLINE void do_posix_memalign(struct block *b, size_t size)
{
	void *p = NULL;

	if (posix_memalign(&p, 128, size))
		die("do_posix_memalign");
	count_alloc(b, p, size, SITE_do_posix_memalign);
}

static NOINLINE void do_realloc(struct block *b, size_t size)
{
	void *p = realloc(b->p, size);

	if (!p)
		die("do_realloc");
	count_free(b);
	count_alloc(b, p, size, SITE_do_realloc);
}

static NOINLINE void do_reallocarray(struct block *b, size_t size)
{
	size_t each = size % 5 + 1, n = size / each + 1;
	void *p = reallocarray(b->p, n, each);

	if (!p)
		die("do_reallocarray");
	count_free(b);
	count_alloc(b, p, n * each, SITE_do_reallocarray);
}

/* true: the block is gone. */
static NOINLINE bool do_realloc_zero(struct block *b)
{
	void *p = realloc(b->p, 0);

	if (p && !other)
		die("realloc(p, 0) is expected to free");
	count_free(b);
	if (p)
		count_alloc(b, p, 0, SITE_do_realloc_zero);
	return !p;
}

static NOINLINE void do_free(struct block *b)
{
	free(b->p);
	count_free(b);
}

/* Every way to fail; none may count, and a block whose realloc failed is still there. */
static NOINLINE void do_failures(struct block *b)
{
	void *p = NULL;

	must_fail(malloc(huge));
	must_fail(calloc(huge, 8));
	must_fail(calloc(2, huge));
	must_fail(realloc(NULL, huge));
	must_fail(reallocarray(NULL, huge, 8));
	must_fail(memalign(64, huge));
	must_fail(aligned_alloc(64, huge));
	must_fail(valloc(huge));
	if (!other)
		must_fail(pvalloc(huge));
	if (posix_memalign(&p, 24, 100) != EINVAL || posix_memalign(&p, 64, huge) != ENOMEM)
		die("posix_memalign should fail");
	if (b) {
		must_fail(realloc(b->p, huge));
		must_fail(reallocarray(b->p, huge, 8));
	}
	free(NULL);
}

/* --- the work
 * ------------------------------------------------------------------------------------ */

/* Mostly small, some that cross the mmap threshold (128 KiB), some of no size at all. */
static size_t size_next(struct worker *w)
{
	uint32_t r = random_next(&w->seed);

	if (r % 97 == 0)
		return 0;
	if (r % 61 == 0)
		return 131072 + r % 200000;
	return 1 + r % 2000;
}

static void (*const allocators[])(struct block *b, size_t size) = {
	do_malloc,         do_calloc,        do_realloc_null, do_malloc, do_malloc,
	do_posix_memalign, do_aligned_alloc, do_memalign,     do_valloc, do_pvalloc,
};
#define N_ALLOCATORS (sizeof(allocators) / sizeof(*allocators)) /* pvalloc is the last */

static void release(struct worker *w, uint32_t slot)
{
	uint32_t ix = w->held[slot];

	w->held[slot] = w->held[--w->n_held];
	w->spare[w->n_spare++] = ix;
}

/* Leave one of our blocks for whoever comes by; free what another left there. */
static void trade(struct worker *w, uint32_t slot)
{
	uint32_t mine = w->held[slot] + 1;
	uint32_t *box = &mailbox[random_next(&w->seed) % MAILBOXES];
	uint32_t other = __atomic_exchange_n(box, mine, __ATOMIC_ACQ_REL);

	w->held[slot] = w->held[--w->n_held];
	if (!other)
		return;
	do_free(&pool[other - 1]);
	w->spare[w->n_spare++] = other - 1;
}

static void step(struct worker *w)
{
	uint32_t what = random_next(&w->seed) % 16, slot;
	struct block *b;
	size_t size;

	if (!w->n_held || (what < 8 && w->n_held < SLOTS && w->n_spare)) {
		uint32_t ix = w->spare[--w->n_spare];

		allocators[random_next(&w->seed) % (N_ALLOCATORS - other)](&pool[ix], size_next(w));
		w->held[w->n_held++] = ix;
		return;
	}
	slot = random_next(&w->seed) % w->n_held;
	b = &pool[w->held[slot]];
	size = size_next(w);
	switch (what % 8) {
	case 0:
		do_realloc(b, b->size + 1 + size); /* grow: may move */
		break;
	case 1:
		do_realloc(b, b->size / 2 + 1); /* shrink, or 0 → 1 */
		break;
	case 2:
		do_reallocarray(b, size);
		break;
	case 3:
		if (do_realloc_zero(b))
			release(w, slot);
		break;
	case 4:
		if (size % 16 == 0)
			do_failures(b);
		break;
	case 5:
		trade(w, slot);
		break;
	default:
		do_free(b);
		release(w, slot);
	}
}

static void use_older_blocks(void)
{
	if (!before[0].p)
		return;
	for (int i = 0; i < BEFORE / 2; i++)
		do_free(&before[i]);
	for (int i = BEFORE / 2; i < BEFORE * 3 / 4; i++)
		do_realloc(&before[i], 5000);
	before[0].p = NULL; /* the first run has used them up */
}

static NOINLINE void leak(void)
{
	struct block b;

	for (int i = 0; i < LEAKS; i++)
		leak_here(&b, LEAK_BYTES);
}

static void work(struct worker *w)
{
	for (int i = 0; i < n_ops; i++)
		step(w);
}

static void *thread_main(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&barrier);
		work(arg);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void set_up(void)
{
	for (int i = 0; i < n_threads; i++) {
		struct worker *w = &workers[i];

		w->seed = 20261121 + (uint64_t)i;
		/* A share of the pool each; a thread that frees others' blocks keeps the index. */
		for (uint32_t k = 0; k < SLOTS * 2; k++)
			w->spare[w->n_spare++] = (uint32_t)i * SLOTS * 2 + k;
	}
}

static void run(void)
{
	pthread_barrier_wait(&barrier);
	use_older_blocks();
	leak();
	do_failures(NULL);
	work(&workers[0]);
	pthread_barrier_wait(&barrier);
}

/* --- fork and exec
 * ------------------------------------------------------------------------------- */

static void forget(void)
{
	n_frees = 0;
	for (int i = 0; i < N_SITES; i++)
		sites[i] = (struct site){ .name = sites[i].name };
}

static void child_main(int done_fd)
{
	struct worker *w = &workers[0];
	uint32_t n = w->n_held;
	struct block b[100];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	forget();
	sleep_ns(NSEC_PER_SEC / 2);
	for (uint32_t i = 0; i < n; i += 2) {
		struct block inherited = pool[w->held[i]];

		inherited.site = SITE_NONE;
		do_free(&inherited);
	}
	for (int i = 0; i < 100; i++)
		child_malloc(&b[i], 100 + (size_t)i);
	for (int i = 0; i < 100; i += 3)
		do_free(&b[i]);
	say("child %d", (int)getpid());
	say_truth();
	if (write(done_fd, "x", 1) != 1)
		_exit(74);
	wait_for_ever();
}

static void fork_one(void)
{
	int done[2];
	struct worker *w = &workers[0];
	char c;
	pid_t pid;

	if (pipe(done))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		child_main(done[1]);
	if (read(done[0], &c, 1) != 1)
		die("child");
	/* The child freed its copies of these; ours are live until here. */
	for (int i = 0; i < 10 && w->n_held; i++) {
		do_free(&pool[w->held[0]]);
		release(w, 0);
	}
	say("parent %d", (int)getpid());
	say_truth();
}

static __attribute__((noreturn)) void after_exec(void)
{
	struct block b[50];

	say("after %d", (int)getpid());
	sleep_ns(NSEC_PER_SEC / 2);
	for (int i = 0; i < 50; i++)
		do_malloc(&b[i], 300 + (size_t)i);
	for (int i = 0; i < 50; i += 5)
		do_free(&b[i]);
	say_truth();
	say("end");
	for (;;)
		next_command();
}

static int at_once(const char *path, const char *ops)
{
	out_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out_fd < 0)
		die(path);
	n_threads = 1;
	n_ops = atoi(ops);
	set_up();
	leak();
	do_failures(NULL);
	work(&workers[0]);
	say_truth();
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t;

	other = getenv("ALLOC_TRUTH_OTHER");
	if (argc == 2 && !strcmp(argv[1], "after"))
		after_exec();
	if (argc == 4 && !strcmp(argv[1], "now"))
		return at_once(argv[2], argv[3]);
	if (argc != 3)
		die("usage: alloc_truth THREADS OPS");
	n_threads = atoi(argv[1]);
	n_ops = atoi(argv[2]);
	if (n_threads < 1 || n_threads > MAX_THREADS)
		die("threads");
	set_up();
	for (int i = 0; i < BEFORE; i++) {
		do_malloc(&before[i], 200 + (size_t)i);
		before[i].site = SITE_NONE;
	}
	forget();
	pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
	for (int i = 1; i < n_threads; i++)
		if (pthread_create(&t, NULL, thread_main, &workers[i]))
			die("pthread_create");
	say_ready();
	for (;;) {
		const char *command = next_command();

		if (!strcmp(command, "run")) {
			run();
			say_truth();
		} else if (!strcmp(command, "fork")) {
			fork_one();
		} else if (!strcmp(command, "exec")) {
			say("execing");
			execl("/proc/self/exe", argv[0], "after", (char *)NULL);
			die("exec");
		}
		say("end");
	}
}
