/*
 * What the unwind table of a file costs: time to make it, to keep it and to read it back, memory
 * for that, and its size. One line for each file, as tables.py reads it; each is done in a process of
 * its own, so that the largest resident set is this file's.
 *
 *   tables CACHE-DIRECTORY RUNS FILE…
 */
#include "elf/cfi.h"
#include "unwind/row_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { RUNS_MAX = 99 };

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int compare(const void *pa, const void *pb)
{
	const double *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

static double median(double *of, int n)
{
	qsort(of, (size_t)n, sizeof(*of), compare);
	return of[n / 2];
}

/* Opened anew each time: that is part of what a run pays. */
static int once(struct row_cache *cache, const char *path, bool build,
		struct unwind_table **ret_table, double *ret_ms, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	double began = now_ms();
	int r = fd < 0 ? err_set(e, -errno, "%s: %s", path, strerror(errno))
		       : elf_file_open(fd, path, &elf, e);

	if (r == 0)
		r = build ? unwind_table_build(elf, ret_table, e)
			  : row_cache_load(cache, elf, ret_table);
	*ret_ms = now_ms() - began;
	if (r == 0 && build)
		row_cache_store(cache, elf, *ret_table, NULL);
	return r;
}

static uint64_t section_bytes(const char *path, const char *name)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct elf_section *sec;

	if (fd < 0 || elf_file_open(fd, path, &elf, NULL) < 0 ||
	    elf_file_find_section(elf, name, &sec, NULL) < 0)
		return 0;
	return sec->size;
}

static int measure(struct row_cache *cache, const char *path, int runs)
{
	double build_ms[RUNS_MAX], load_ms[RUNS_MAX];
	struct unwind_table *t = NULL;
	struct rusage before, after;
	struct err e = {};
	struct stat st;
	bool kept = true;

	if (stat(path, &st) < 0)
		return -errno;
	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < runs; i++) {
		unwind_table_free(TAKE_PTR(t));
		if (once(cache, path, true, &t, &build_ms[i], &e) < 0) {
			fprintf(stderr, "%s\n", e.msg);
			return -1;
		}
	}
	getrusage(RUSAGE_SELF, &after);
	for (int i = 0; i < runs && kept; i++) {
		unwind_table_free(TAKE_PTR(t));
		kept = once(cache, path, false, &t, &load_ms[i], &e) == 0;
	}
	if (!t && once(NULL, path, true, &t, &build_ms[0], &e) < 0)
		return -1;
	printf("%s\t%llu\t%llu\t%u\t%u\t%u\t%llu\t%.2f\t%.2f\t%ld\n", path,
	       (unsigned long long)st.st_size, (unsigned long long)section_bytes(path, ".eh_frame"),
	       t->counts.functions, t->n_rows, t->n_rules,
	       (unsigned long long)(unwind_table_words(t) * 4), median(build_ms, runs),
	       kept ? median(load_ms, runs) : -1.0, after.ru_maxrss - before.ru_maxrss);
	unwind_table_free(t);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(row_cache_closep) struct row_cache *cache = NULL;
	int runs = argc > 3 ? atoi(argv[2]) : 0, status, failed = 0;
	struct err e = {};

	if (runs < 1 || runs > RUNS_MAX) {
		fputs("usage: tables CACHE-DIRECTORY RUNS FILE…\n", stderr);
		return 2;
	}
	if (row_cache_open(argv[1], ROW_CACHE_BYTES_MAX, &cache, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	for (int i = 3; i < argc; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			int r = measure(cache, argv[i], runs);

			fflush(stdout);
			_exit(r < 0);
		}
		failed |= pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
	}
	return failed;
}
