/*
 * No memory, at any moment: a scenario runs again and again while its first, second, third … allocation fails, that one alone and
 * then with all that follow, until none is left to fail. Each time it must return -ENOMEM with a sentence, or 0 with the result
 * that it has where memory is there, and release what it took.
 *
 * malloc() and its kin below go before libc's, so that what libraries allocate (zlib, protobuf-c, yajl) fails as well. Scenarios run
 * in a child: one that crashes is a failure that names the allocation, and the next one follows.
 *
 *   PROGRAM [-l | NAME…]     TAP, of all or of those
 *   PROGRAM NAME N [on]      that one alone, in this process, with that allocation failing: for a debugger (break in no_memory())
 */
#ifndef MEMSCOPE_TESTS_NO_MEMORY_H
#define MEMSCOPE_TESTS_NO_MEMORY_H

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct scenario {
	const char *name;
	/* 0, or -errno with a sentence; *ret_digest: of the whole result. Anything above 0: something is wrong. */
	int (*run)(const void *arg, uint64_t *ret_digest, struct err *e);
	const void *arg;
	bool silent; /* what it calls has no sentences */
};

/* --- an allocator that fails --- */

#ifdef __SANITIZE_ADDRESS__
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *old, size_t size);
void *REAL(memalign)(size_t align, size_t size);
void REAL(free)(void *block);

/* One thread: scenarios have no others. Volatile: libc's headers say that its functions call nothing of ours. */
static volatile struct {
	bool armed, and_all_that_follow;
	uint64_t n, at;      /* allocations so far; the one that fails, from 1 on */
	uint64_t failed;
	int64_t blocks;      /* that are allocated now */
} memory;

static __attribute__((noinline)) void *no_memory(void)
{
	memory.failed++;
	errno = ENOMEM;
	return NULL;
}

static bool memory_is_out(void)
{
	if (!memory.armed)
		return false;
	memory.n++;
	return memory.n == memory.at || (memory.and_all_that_follow && memory.n > memory.at);
}

static inline void *counted(void *block)
{
	memory.blocks += block != NULL;
	return block;
}

void *malloc(size_t size)
{
	return memory_is_out() ? no_memory() : counted(REAL(malloc)(size));
}

void *calloc(size_t n, size_t size)
{
	return memory_is_out() ? no_memory() : counted(REAL(calloc)(n, size));
}

void *realloc(void *old, size_t size)
{
	void *block;

	if (memory_is_out())
		return no_memory();
	block = REAL(realloc)(old, size);
	/* Of no bytes, an old block is freed. */
	memory.blocks += old ? -(!block && !size) : block != NULL;
	return block;
}

void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size)
{
	return memory_is_out() ? no_memory() : counted(REAL(memalign)(align, size));
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	void *block = memalign(align, size);

	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}

void free(void *block)
{
	memory.blocks -= block != NULL;
	REAL(free)(block);
}

/* What a scenario prepares and looks at by itself: between the two nothing fails. */
static inline bool memory_pause(void)
{
	bool armed = memory.armed;

	memory.armed = false;
	return armed;
}

static inline void memory_resume(bool armed)
{
	memory.armed = armed;
}

/* --- results --- */

/* FNV-1a; begin with 0. */
static inline uint64_t digest_add(uint64_t digest, const void *data, size_t len)
{
	const uint8_t *p = data;

	digest ^= 0xcbf29ce484222325;
	for (size_t i = 0; i < len; i++)
		digest = (digest ^ p[i]) * 0x100000001b3;
	return digest;
}

static inline uint64_t digest_text(uint64_t digest, const char *text)
{
	return digest_add(digest, text, strlen(text) + 1);
}

static inline uint64_t digest_number(uint64_t digest, uint64_t number)
{
	return digest_add(digest, &number, sizeof(number));
}

/* --- all of it --- */

enum { NO_MEMORY_REASONS = 8, NO_MEMORY_CRASHES = 8, NO_MEMORY_SEC = 120 };

/* What a child has come to, in memory that both have. */
struct no_memory_state {
	uint32_t follows;     /* 0: one allocation fails; 1: all that follow, too */
	uint64_t at;          /* the allocation                                   */
	uint64_t allocations; /* of the scenario where none fails                 */
	uint64_t errors, full;
	uint32_t n_wrong;
	char wrong[NO_MEMORY_REASONS][200];
	bool done;
};

static void __attribute__((format(printf, 2, 3))) wrong(struct no_memory_state *st, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (st->n_wrong < NO_MEMORY_REASONS)
		snprintf(st->wrong[st->n_wrong], sizeof(st->wrong[0]), "allocation %llu%s: %s",
			 (unsigned long long)st->at, st->follows ? " and all that follow" : "", what);
	st->n_wrong++;
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* `at` 0: none fails. */
static int attempt(const struct scenario *s, struct no_memory_state *st, uint64_t at, uint64_t *ret_digest)
{
	int64_t before = memory.blocks;
	int files_before = open_files();
	struct err e = { 0 };
	int r;

	memory.n = memory.failed = 0;
	memory.at = at;
	memory.and_all_that_follow = at && st->follows;
	memory.armed = true;
	r = s->run(s->arg, ret_digest, &e);
	memory.armed = false;
	if (r != 0 && r != -ENOMEM)
		wrong(st, "it returned %d: %s", r, e.msg);
	else if (r != 0 && !memory.failed)
		wrong(st, "-ENOMEM, and nothing failed: %s", e.msg);
	else if (r != 0 && !s->silent && !e.msg[0])
		wrong(st, "-ENOMEM without a sentence");
	if (memory.blocks > before)
		wrong(st, "%lld blocks are not released (%s)", (long long)(memory.blocks - before),
		      r ? e.msg : "full result");
	if (open_files() > files_before)
		wrong(st, "%d files are not closed (%s)", open_files() - files_before, r ? e.msg : "full result");
	return r;
}

static void try_all(const struct scenario *s, struct no_memory_state *st)
{
	uint64_t want = 0, got, at = st->at;
	uint32_t before = st->n_wrong;

	st->at = 0;
	/* Once for what is made once and kept. */
	s->run(s->arg, &want, &(struct err){ 0 });
	if (attempt(s, st, 0, &want) != 0 || st->n_wrong > before)
		wrong(st, "it fails where there is memory");
	st->allocations = memory.n;
	if (st->n_wrong > before)
		st->follows = 2;
	for (; st->follows < 2; st->follows++, at = 1) {
		for (;; at++) {
			st->at = at;
			got = 0;
			if (attempt(s, st, at, &got) == 0) {
				st->full++;
				if (got != want)
					wrong(st, "another result than where there is memory");
			} else {
				st->errors++;
			}
			if (!memory.failed || st->n_wrong > 100)
				break;
		}
	}
	st->done = true;
}

static void run_scenario(const struct scenario *s, struct no_memory_state *st)
{
	*st = (struct no_memory_state){ .at = 1 };
	for (int crashes = 0; !st->done; st->at++) {
		int status = 0;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			alarm(NO_MEMORY_SEC);
			try_all(s, st);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || (!st->done && ++crashes > NO_MEMORY_CRASHES)) {
			wrong(st, "no more children are tried");
			break;
		}
		if (WIFSIGNALED(status))
			wrong(st, "it was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
		else if (!st->done)
			wrong(st, "it exited with %d", WEXITSTATUS(status));
		if (!st->at || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM))
			break;
	}
}

static int run_one(const struct scenario *s, uint64_t at, bool follows)
{
	struct err e = { 0 };
	uint64_t digest = 0;
	int r;

	s->run(s->arg, &digest, &e);
	memory.at = at;
	memory.and_all_that_follow = follows;
	memory.armed = true;
	r = s->run(s->arg, &digest, &e);
	memory.armed = false;
	printf("%d \"%s\" digest %llx; %llu allocations, %llu failed\n", r, e.msg, (unsigned long long)digest,
	       (unsigned long long)memory.n, (unsigned long long)memory.failed);
	return r == 0 ? 0 : 1;
}

static bool is_asked_for(const struct scenario *s, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], s->name) == 0)
			return true;
	return argc < 2;
}

/* `scenarios` end with one without a name. */
static int no_memory_main(const struct scenario *scenarios, int argc, char **argv)
{
	struct no_memory_state *st = mmap(NULL, sizeof(*st), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int number = 0, failed = 0;

	if (st == MAP_FAILED)
		return 2;
	/* Where it is not set, libc reads the zone's file at each call, and keeps it. */
	setenv("TZ", "UTC", 1);
	tzset();
	for (const struct scenario *s = scenarios; s->name; s++) {
		if (argc > 2 && strcmp(argv[1], s->name) == 0 && strspn(argv[2], "0123456789"))
			return run_one(s, strtoull(argv[2], NULL, 10), argc > 3);
		if (argc == 2 && strcmp(argv[1], "-l") == 0)
			puts(s->name);
		else
			number += is_asked_for(s, argc, argv);
	}
	if (argc == 2 && strcmp(argv[1], "-l") == 0)
		return 0;
	printf("1..%d\n", number);
	number = 0;
	for (const struct scenario *s = scenarios; s->name; s++) {
		if (!is_asked_for(s, argc, argv))
			continue;
		run_scenario(s, st);
		printf("%sok %d - without memory: %s\n", st->n_wrong ? "not " : "", ++number, s->name);
		for (uint32_t i = 0; i < st->n_wrong && i < NO_MEMORY_REASONS; i++)
			printf("# %s\n", st->wrong[i]);
		if (st->n_wrong > NO_MEMORY_REASONS)
			printf("# and %u more\n", st->n_wrong - NO_MEMORY_REASONS);
		printf("# %llu allocations; failed in turn: %llu errors, %llu full results\n",
		       (unsigned long long)st->allocations, (unsigned long long)st->errors,
		       (unsigned long long)st->full);
		failed += st->n_wrong > 0;
	}
	munmap(st, sizeof(*st));
	return failed ? 1 : 0;
}

#endif
