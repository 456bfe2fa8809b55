/*
 * Allocates in functions by known amounts, on command; prints what each of them allocated and holds.
 * With jemalloc linked in or preloaded it can have that write its own profile.
 *
 *   run N: N rounds; churn N: blocks that are freed at once; early N: N more blocks; drop N: frees the N oldest of these, and half of what
 *   `run` kept; dump PATH: jemalloc's own heap profile
 */
#include "target.h"

#include <dlfcn.h>

static int dump(const char *path)
{
	int (*mallctl)(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen);

	*(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	return mallctl ? mallctl("prof.dump", NULL, NULL, &path, sizeof(path)) : -1;
}

#define KEPT 200000

static void *small[KEPT], *large[KEPT], *early[KEPT], *volatile scratch;
static int n_early, n_small, first_early;

static NOINLINE void keep_small(int n)
{
	for (int i = 0; i < n; i++)
		small[i] = malloc(100 + (size_t)i % 60); /* 112 to 160 bytes, usable */
}

static NOINLINE void keep_large(int n)
{
	for (int i = 0; i < n; i++)
		large[i] = malloc(40000);
}

static NOINLINE void keep_early(int n)
{
	for (int i = 0; i < n && n_early < KEPT; i++)
		early[n_early++] = malloc(1024);
}

static NOINLINE void churn(int n)
{
	for (int i = 0; i < n; i++) {
		scratch = malloc(4096);
		free(scratch);
	}
}

static NOINLINE void grow(int n)
{
	void *p = NULL;

	for (int i = 1; i <= n; i++)
		p = realloc(p, (size_t)i * 64);
	free(p);
}

static void run(int n)
{
	keep_small(n);
	keep_large(n / 50);
	churn(2 * n);
	grow(n / 10);
	n_small = n;
}

static void drop(int n)
{
	for (; n-- && first_early < n_early; first_early++)
		free(early[first_early]);
	for (int i = 0; i < n_small; i += 2) {
		free(small[i]);
		small[i] = NULL;
	}
}

static void say_site(const char *name, long blocks, long bytes, long live)
{
	printf("site %s %ld %ld %ld\n", name, blocks, bytes, live);
}

int main(void)
{
	char line[4096], path[4000];
	int n = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "run %d", &n) == 1 && n <= KEPT) {
			run(n);
			say_site("churn", 2 * n, 2L * n * 4096, 0);
			/* jemalloc's chances go by usable sizes: 40 KiB for 40,000. */
			say_site("keep_large", n / 50, n / 50 * 40960L, n / 50 * 40960L);
		} else if (sscanf(line, "churn %d", &n) == 1) {
			churn(n);
		} else if (sscanf(line, "early %d", &n) == 1) {
			keep_early(n);
		} else if (sscanf(line, "drop %d", &n) == 1) {
			drop(n);
		} else if (sscanf(line, "dump %3999s", path) == 1 && dump(path) != 0) {
			puts("failed");
		}
		puts("end");
	}
	return 0;
}
