/*
 * What programs do with an allocator, and round about it, and what it must do then: each manner is
 * a function that counts the promises which were not kept.
 *
 *   alloc_manners once      each of them, `manner NAME BROKEN` for each, and how it ended
 *   alloc_manners THREADS   at command
 *
 * go         (no answer) THREADS threads go through them, round after round
 * known N    known_block() is called N times, and every second block is freed  → bytes B; live B; end
 * stop       → rounds N; broken N; end     what the threads have done since go
 */
#include "target.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>

#define BROKEN(holds) broken += !(holds)
/* The compiler knows malloc, and leaves out what it thinks nobody will miss. */
#define OPAQUE(p) __asm__ volatile("" : "+r"(p) : : "memory")

static char library[4200];
static uint64_t rounds, all_broken;
static int stopping;

static uint8_t pattern_at(size_t i)
{
	return (uint8_t)(i * 31 + 7);
}

static void pattern_fill(void *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		((uint8_t *)p)[i] = pattern_at(i);
}

static int pattern_differs(const void *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((const uint8_t *)p)[i] != pattern_at(i))
			return 1;
	return 0;
}

/* --- the manners ------------------------------------------------------------------------------ */

static int nothing_and_too_much(void)
{
	volatile size_t huge = PTRDIFF_MAX, all = SIZE_MAX;
	void *p = malloc(0), *q = calloc(0, 9), *out = p;
	void *volatile same; /* gcc thinks that what cannot be is done */
	void *const was = out;
	int broken = 0;

	BROKEN(p && q && p != q);
	free(q);
	p = realloc(p, 100);
	BROKEN(p);
	BROKEN(!realloc(p, 0)); /* frees it */
	p = same = realloc(NULL, 100);
	BROKEN(p);
	pattern_fill(p, 0, 100);
	errno = 0;
	BROKEN(!realloc(p, huge + 1) && errno == ENOMEM);
	errno = 0;
	BROKEN(!reallocarray(same, all, 2) && errno == ENOMEM);
	BROKEN(!pattern_differs(same, 100));
	free(same);
	errno = 0;
	BROKEN(!malloc(huge) && errno == ENOMEM);
	errno = 0;
	BROKEN(!calloc(all, all) && errno == ENOMEM);
	BROKEN(!calloc(all / 2, 3));
	BROKEN(!aligned_alloc(64, huge));
	BROKEN(posix_memalign(&out, 64, huge) == ENOMEM && out == was);
	BROKEN(posix_memalign(&out, 3, 64) == EINVAL && out == was);
	BROKEN(posix_memalign(&out, sizeof(void *) / 2, 64) == EINVAL);
	free(NULL);
	return broken;
}

static int errno_is_kept(void)
{
	void *blocks[64];
	int broken = 0;

	for (int i = 0; i < 64; i++) {
		errno = EILSEQ;
		blocks[i] = i % 3 ? malloc((size_t)i * 700) : calloc(7, (size_t)i * 100);
		OPAQUE(blocks[i]);
		BROKEN(errno == EILSEQ);
	}
	for (int i = 0; i < 64; i++) {
		errno = EILSEQ;
		blocks[i] = realloc(blocks[i], 5000);
		free(blocks[i]);
		BROKEN(errno == EILSEQ);
	}
	return broken;
}

static int aligned(void)
{
	int broken = 0;

	for (size_t align = sizeof(void *); align <= 1 << 20; align *= 2) {
		void *p[3] = { memalign(align, 3 * align + 5), aligned_alloc(align, 2 * align),
			       NULL };

		BROKEN(!posix_memalign(&p[2], align, 100));
		for (int i = 0; i < 3; i++) {
			size_t usable = malloc_usable_size(p[i]);

			BROKEN(p[i] && (uintptr_t)p[i] % align == 0);
			BROKEN(usable >= (i == 0 ? 3 * align + 5 : i == 1 ? 2 * align : 100));
			if (usable < 100000)
				memset(p[i], 1, usable);
			p[i] = i == 2 ? realloc(p[i], 300) : p[i];
			free(p[i]);
		}
	}
	for (size_t size = 1; size < 20000; size += 1999) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		void *v = valloc(size), *w = pvalloc(size);

		BROKEN(v && (uintptr_t)v % page == 0 && malloc_usable_size(v) >= size);
		BROKEN(w && (uintptr_t)w % page == 0 && malloc_usable_size(w) >= page);
		free(v);
		free(w);
	}
	BROKEN(malloc_usable_size(NULL) == 0);
	return broken;
}

static int grown_and_shrunk(void)
{
	size_t size = 1;
	char *p = malloc(size);
	int broken = 0;

	pattern_fill(p, 0, size);
	while (size < 3 << 20) { /* past where blocks become mappings, and move */
		size_t more = size + size / 2 + 16;

		p = realloc(p, more);
		BROKEN(p && !pattern_differs(p, size));
		pattern_fill(p, size, more);
		size = more;
	}
	while (size > 64) {
		size /= 3;
		p = reallocarray(p, size, 1);
		BROKEN(p && !pattern_differs(p, size));
	}
	free(p);
	p = calloc(5000, 300);
	for (size_t i = 0; p && i < 5000 * 300; i += 61)
		BROKEN(!p[i]);
	free(p);
	return broken;
}

/* What a forked child does with what it has of its parent, and with memory of its own. */
static int child_of_fork(void *theirs, size_t size)
{
	int broken = pattern_differs(theirs, size);

	for (int i = 0; i < 200; i++) {
		void *p = malloc((size_t)i * 97);

		OPAQUE(p);
		BROKEN(p);
		if (i % 3)
			free(p);
	}
	theirs = realloc(theirs, 2 * size);
	BROKEN(theirs && !pattern_differs(theirs, size));
	free(theirs);
	return broken;
}

static int ended_well(pid_t pid)
{
	int status;

	if (pid < 0)
		return 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int forks(void)
{
	size_t size = 70000;
	void *p = malloc(size);
	int broken = 0;
	pid_t pid;

	pattern_fill(p, 0, size);
	pid = fork();
	if (pid == 0)
		_exit(child_of_fork(p, size));
	BROKEN(ended_well(pid));
	BROKEN(!pattern_differs(p, size));
	free(p);
	return broken;
}

extern char **environ;

static int starts_programs(void)
{
	static char name[] = "true";
	char *argv[] = { name, NULL };
	int broken = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		execv("/bin/true", argv);
		_exit(1);
	}
	BROKEN(ended_well(pid));
	BROKEN(!posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
	BROKEN(ended_well(pid));
	return broken;
}

static int child_of_clone(void *arg)
{
	void *p = malloc(100000);

	OPAQUE(p);
	*(void **)arg = p;
	return p ? 0 : 1;
}

/* A child in the same memory, on a stack of its own, while its parent waits: as posix_spawn() has it. */
static int clones(void)
{
	size_t size = 256 << 10;
	char *stack = malloc(size);
	void *p = NULL;
	int broken = 0;
	pid_t pid = clone(child_of_clone, stack + size, CLONE_VM | CLONE_VFORK | SIGCHLD, &p);

	BROKEN(ended_well(pid));
	BROKEN(p && malloc_usable_size(p) >= 100000);
	free(p);
	free(stack);
	return broken;
}

static __thread volatile int handled; /* gcc: pthread_kill() does not come back here */

static void on_signal(int number)
{
	void *p = malloc(40000), *q = calloc(3, 100);

	(void)number;
	OPAQUE(p);
	OPAQUE(q);
	handled = handled + (p && q);
	free(p);
	free(q);
}

/* While no call of the allocator's is under way: inside one, the C library's own does not allow it. */
static int in_handlers(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char *stack = malloc(64 << 10);
	stack_t own = { .ss_sp = stack, .ss_size = 64 << 10 }, off = { .ss_flags = SS_DISABLE };
	int broken = 0;

	sigaction(SIGUSR2, &sa, NULL);
	BROKEN(!sigaltstack(&own, NULL));
	handled = 0;
	for (int i = 0; i < 20; i++) {
		errno = EILSEQ;
		pthread_kill(pthread_self(), SIGUSR2);
		BROKEN(errno == EILSEQ);
	}
	BROKEN(handled == 20);
	sigaltstack(&off, NULL);
	free(stack);
	return broken;
}

static pthread_key_t at_end;
static __thread int ends;

/* Allocates while its thread ends, and asks to be called again as often as it may be. */
static void thread_ends(void *p)
{
	void *next = malloc(9000);

	free(p);
	if (++ends < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(at_end, next);
	else
		free(next);
}

static void *short_life(void *arg)
{
	void **ret = arg;

	*ret = malloc(30000);
	pattern_fill(*ret, 0, 30000);
	pthread_setspecific(at_end, malloc(20000));
	return malloc(50); /* freed by who joins it */
}

static void *canceled(void *arg)
{
	pthread_cleanup_push(free, malloc(7000));
	for (;;) {
		void *p = malloc(700);

		OPAQUE(p);
		free(p);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return arg;
}

static int short_threads(void)
{
	int broken = 0;

	for (int i = 0; i < 8; i++) {
		pthread_t t, u;
		void *left = NULL, *returned = NULL;

		BROKEN(!pthread_create(&t, NULL, short_life, &left));
		BROKEN(!pthread_create(&u, NULL, canceled, NULL));
		pthread_join(t, &returned);
		pthread_cancel(u);
		pthread_join(u, NULL);
		BROKEN(left && !pattern_differs(left, 30000));
		free(left);
		free(returned);
	}
	return broken;
}

static int loads_libraries(void)
{
	int broken = 0;

	for (int i = 0; i < 3; i++) {
		void *(*block)(size_t);
		void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL), *p = NULL;

		BROKEN(lib);
		*(void **)&block = lib ? dlsym(lib, "library_block") : NULL;
		if (block)
			p = block(60000);
		BROKEN(p);
		if (lib)
			BROKEN(!dlclose(lib));
		p = realloc(p, 120000); /* its allocator's caller is gone */
		BROKEN(p);
		free(p);
		BROKEN(!dlopen("/nonexistent/library.so", RTLD_NOW) && dlerror());
	}
	return broken;
}

static const struct manner {
	const char *name;
	int (*play)(void);
} manners[] = {
	{ "nothing_and_too_much", nothing_and_too_much },
	{ "errno_is_kept", errno_is_kept },
	{ "aligned", aligned },
	{ "grown_and_shrunk", grown_and_shrunk },
	{ "forks", forks },
	{ "starts_programs", starts_programs },
	{ "clones", clones },
	{ "in_handlers", in_handlers },
	{ "short_threads", short_threads },
	{ "loads_libraries", loads_libraries },
};
#define N_MANNERS (sizeof(manners) / sizeof(*manners))

/* --- commands --------------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	size_t i = (size_t)arg;

	while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED)) {
		int broken = manners[i++ % N_MANNERS].play();

		__atomic_add_fetch(&all_broken, (uint64_t)broken, __ATOMIC_RELAXED);
		__atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
		sleep_ns(5 * NSEC_PER_MSEC); /* or samples come by the 100,000 a second */
	}
	return NULL;
}

static NOINLINE void *known_block(size_t size)
{
	void *p = malloc(size);

	OPAQUE(p);
	return p;
}

static void known(uint64_t n)
{
	uint64_t bytes = 0, live = 0, state = n;

	for (uint64_t i = 0; i < n; i++) {
		size_t size = 1 + random_next(&state) % 3000;
		void *p = known_block(size);

		bytes += size;
		if (i % 2)
			free(p);
		else
			live += size;
	}
	say("bytes %llu", (unsigned long long)bytes);
	say("live %llu", (unsigned long long)live);
	say("end");
}

static void *kept_to_the_end;

static void last_words(void)
{
	void *p = realloc(kept_to_the_end, 50000);

	OPAQUE(p);
	say("at exit %d", p != NULL && !pattern_differs(p, 1000));
	free(p);
}

static int once(void)
{
	int broken = 0;

	kept_to_the_end = malloc(1000);
	pattern_fill(kept_to_the_end, 0, 1000);
	atexit(last_words);
	for (size_t i = 0; i < N_MANNERS; i++) {
		int of_this = manners[i].play();

		say("manner %s %d", manners[i].name, of_this);
		broken += of_this;
	}
	return broken != 0;
}

int main(int argc, char **argv)
{
	static pthread_t threads[64];
	static char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int n_threads = argc > 1 ? atoi(argv[1]) : 0;

	if (n < 0)
		die("/proc/self/exe");
	snprintf(library, sizeof(library), "%s/lib_blocks.so", dirname(self));
	if (pthread_key_create(&at_end, thread_ends))
		die("pthread_key_create");
	if (argc > 1 && !strcmp(argv[1], "once"))
		return once();
	if (n_threads < 1 || n_threads > 64)
		die("usage: alloc_manners once | THREADS (at most 64)");
	say_ready();
	for (;;) {
		const char *command = next_command();

		if (*command == 'g') {
			for (int i = 0; i < n_threads; i++)
				if (pthread_create(&threads[i], NULL, thread_main,
						   (void *)(size_t)i))
					die("pthread_create");
		} else if (*command == 'k') {
			known(strtoull(command + strcspn(command, " "), NULL, 10));
		} else {
			__atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
			for (int i = 0; i < n_threads; i++)
				pthread_join(threads[i], NULL);
			say("rounds %llu", (unsigned long long)rounds);
			say("broken %llu", (unsigned long long)all_broken);
			say("end");
		}
	}
}
