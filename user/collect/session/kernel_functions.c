#include "collect/session/kernel_functions.h"

#include "base/cleanup.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void find(const char *const *names, struct kernel_function *ret, uint32_t n)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/kallsyms", "re");
	struct kernel_function *open = NULL;
	char line[512], *type;

	memset(ret, 0, n * sizeof(*ret));
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t addr = strtoull(line, &type, 16);
		size_t len = strlen(type) > 3 ? strcspn(type + 3, "\t\n") : 0;

		/* They are in order. Some have several names. */
		if (open && addr > open->addr) {
			open->size = addr - open->addr;
			open = NULL;
		}
		for (uint32_t i = 0; i < n && len; i++)
			if (!ret[i].addr && strlen(names[i]) == len &&
			    memcmp(type + 3, names[i], len) == 0) {
				ret[i].addr = addr;
				open = &ret[i];
			}
	}
}

struct kernel_functions {
	pthread_t thread;
	bool running;
	const char *const *names;
	uint32_t n;
	struct kernel_function found[];
};

static void *work(void *arg)
{
	struct kernel_functions *k = arg;

	find(k->names, k->found, k->n);
	return NULL;
}

struct kernel_functions *kernel_functions_begin(const char *const *names, uint32_t n)
{
	struct kernel_functions *k = calloc(1, sizeof(*k) + n * sizeof(*k->found));

	if (!k)
		return NULL;
	k->names = names;
	k->n = n;
	k->running = pthread_create(&k->thread, NULL, work, k) == 0;
	if (!k->running)
		work(k);
	return k;
}

const struct kernel_function *kernel_functions_found(struct kernel_functions *k)
{
	if (k->running)
		pthread_join(k->thread, NULL);
	k->running = false;
	return k->found;
}

void kernel_functions_free(struct kernel_functions *k)
{
	if (k)
		kernel_functions_found(k);
	free(k);
}
