/*
 * Puts the library into a process and takes it away again, many times.
 *
 *   inject PID LIBRARY CYCLES [RATE|exact [HOLD_US]]
 *   inject calls                  numbers of the system calls that filters are asked about
 *
 * `exact`: every call is recorded meanwhile, without its stack, and read.
 * Says at the end, or at the first cycle that fails: cycles, words exchanged and put back in the last
 * one, and how long the thread that was asked was away (us: median, 99th percentile, largest), and a whole
 * cycle took (us: median).
 */
#include "inject/inject.h"
#include "collect/stream/inprocess.h"
#include "inject/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int cycle(pid_t pid, const char *library, uint64_t rate, useconds_t hold_us,
		 struct inject_counts *hooked, struct inject_counts *undone, struct err *e)
{
	_cleanup_(inject_freep) struct injected *in = NULL;
	int r = inject_begin(pid, library, &(struct inject_how){ .rate = rate }, &in, e);

	if (r == 0)
		r = inject_hook(in, hooked, e);
	if (r == 0 && hold_us)
		usleep(hold_us);
	return r < 0 ? r : inject_end(in, undone, e);
}

/* --- every call --- */

static int on_site(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values,
		   int64_t untracked, int64_t untracked_bytes, bool lost)
{
	*(uint64_t *)ctx += (uint64_t)values[SITE_OBJECTS];
	return 0;
}

static int on_end(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values)
{
	return 0;
}

static void on_image(void *ctx, const struct table_image *image)
{
}

static bool is_gone(void *ctx, const struct proc_id *proc)
{
	return false;
}

static int on_block(void *ctx, const struct site_key *site, uint64_t size, uint64_t born_ns)
{
	return 0;
}

static int cycle_exact(pid_t pid, const char *library, useconds_t hold_us, uint64_t *calls,
		       struct inject_counts *hooked, struct inject_counts *undone, struct err *e)
{
	const struct alloc_table_fns fns = { on_site, on_end, on_image, is_gone, calls };
	_cleanup_(inject_freep) struct injected *in = NULL;
	_cleanup_(inprocess_freep) struct inprocess *ip = NULL;
	_cleanup_(closep) int area_fd = -1;
	struct profile *none = NULL;
	struct dict *dict = dict_new();
	struct proc_table *procs = proc_table_new(dict);
	struct ingest *ingest =
		ingest_new(dict, procs, &(struct ingest_profiles){ .alloc = none }, 0);
	int r = inject_begin(pid, library, &(struct inject_how){ .exact = true }, &in, e);

	if (r == 0)
		area_fd = inject_area(in);
	if (r == 0)
		r = inprocess_new(NULL, ingest, pid, area_fd, 4 << 20, &fns, &ip, e);
	if (r == 0)
		r = inject_map(in, e);
	if (r == 0)
		inprocess_gate(ip, true);
	if (r == 0)
		r = inject_hook(in, hooked, e);
	if (r == 0)
		usleep(hold_us);
	if (r == 0)
		r = inprocess_read(ip);
	if (r == 0)
		r = inject_end(in, undone, e);
	if (r == 0)
		r = inprocess_finish(ip, on_block, NULL);
	ingest_free(ingest);
	proc_table_free(procs);
	dict_free(dict);
	return r;
}

int main(int argc, char **argv)
{
	bool exact = argc > 4 && strcmp(argv[4], "exact") == 0;
	uint64_t calls = 0;
	int n = argc > 3 ? atoi(argv[3]) : 0, done = 0, r = 0;
	uint64_t rate = argc > 4 ? strtoull(argv[4], NULL, 10) : 512 << 10;
	useconds_t hold_us = argc > 5 ? (useconds_t)atoi(argv[5]) : 1000;
	struct inject_counts hooked = { 0 }, undone = { 0 };
	uint64_t *away, *whole;
	struct err e = { 0 };

	if (argc == 2 && strcmp(argv[1], "calls") == 0) {
		uint32_t numbers[256], n_numbers = filter_calls(true, true, numbers, 256);

		for (uint32_t i = 0; i < n_numbers; i++)
			printf("%u\n", numbers[i]);
		return 0;
	}
	if (n < 1)
		return 2;
	away = calloc((size_t)n, sizeof(*away));
	whole = calloc((size_t)n, sizeof(*whole));
	if (!away || !whole)
		return 1;
	for (; done < n; done++) {
		uint64_t from_us = now_us();

		r = exact ? cycle_exact(atoi(argv[1]), argv[2], hold_us, &calls, &hooked, &undone,
					&e)
			  : cycle(atoi(argv[1]), argv[2], rate, hold_us, &hooked, &undone, &e);
		if (r < 0)
			break;
		away[done] = hooked.stopped_us;
		whole[done] = now_us() - from_us;
	}
	if (exact)
		fprintf(stderr, "%llu allocations\n", (unsigned long long)calls);
	if (r < 0)
		fprintf(stderr, "%s\n", e.msg);
	qsort(away, (size_t)done, sizeof(*away), by_value);
	qsort(whole, (size_t)done, sizeof(*whole), by_value);
	if (done)
		printf("%d %u %u %u %llu %llu %llu %llu\n", done, hooked.places, undone.places,
		       hooked.left + undone.left, (unsigned long long)away[done / 2],
		       (unsigned long long)away[done * 99 / 100],
		       (unsigned long long)away[done - 1], (unsigned long long)whole[done / 2]);
	free(away);
	free(whole);
	return r < 0 ? 1 : 0;
}
