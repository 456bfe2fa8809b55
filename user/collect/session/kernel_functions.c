#include "collect/session/kernel_functions.h"

#include "base/boot_file.h"
#include "base/cleanup.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_FILE "kernel-functions"

/* A line each: name, address, size. One that is not there has zeros. */
static bool find_kept(const char *const *names, struct kernel_function *ret, uint32_t n)
{
	struct boot_file file;
	bool found = boot_file_open(KEPT_FILE, &file) == 0 && file.len;
	char *at = file.data, *end = at + file.len;

	if (found)
		end[-1] = '\0';
	for (uint32_t i = 0; found && i < n; i++) {
		char *line = at, *newline = memchr(line, '\n', (size_t)(end - line));
		size_t len = strlen(names[i]);
		int used = 0;

		if (newline)
			*newline = '\0';
		found = newline && strncmp(line, names[i], len) == 0 &&
			sscanf(line + len, " %" SCNx64 " %" SCNx64 "%n", &ret[i].addr, &ret[i].size,
			       &used) == 2 &&
			line + len + used == newline;
		at = newline ? newline + 1 : end;
	}
	boot_file_close(&file);
	return found;
}

static void keep(const char *const *names, const struct kernel_function *found, uint32_t n)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		any |= found[i].addr != 0; /* else addresses are hidden */
		strbuf_printf(&text, "%s %" PRIx64 " %" PRIx64 "\n", names[i], found[i].addr,
			      found[i].size);
	}
	strbuf_putc(&text, '\n');
	if (any && !strbuf_oom(&text))
		boot_file_write(KEPT_FILE, &(struct boot_part){ text.s, text.len }, 1);
}

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
	keep(k->names, k->found, k->n);
	return NULL;
}

struct kernel_functions *kernel_functions_begin(const char *const *names, uint32_t n)
{
	struct kernel_functions *k = calloc(1, sizeof(*k) + n * sizeof(*k->found));

	if (!k)
		return NULL;
	k->names = names;
	k->n = n;
	if (find_kept(names, k->found, n))
		return k;
	memset(k->found, 0, n * sizeof(*k->found));
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
