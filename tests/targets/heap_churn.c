/*
 * heap_churn: keeps small and large blocks, and frees others, so that heap dumps of the allocator that
 * it runs with have something to say. Prints nothing.
 */
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20 };

static void *kept[ROUNDS * 2300];
static size_t n_kept;

__attribute__((noinline)) static void *take(size_t n)
{
	void *p = malloc(n);

	if (p)
		memset(p, 1, n);
	return p;
}

__attribute__((noinline)) static void keep_small(void)
{
	for (size_t i = 0; i < 2000; i++)
		kept[n_kept++] = take(40 + i % 200);
}

__attribute__((noinline)) static void keep_large(void)
{
	for (size_t i = 0; i < 300; i++)
		kept[n_kept++] = take(9000 + i % 5000);
}

__attribute__((noinline)) static void churn(void)
{
	for (size_t i = 0; i < 5000; i++)
		free(take(100 + i % 1000));
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		keep_small();
		keep_large();
		churn();
	}
	return 0;
}
