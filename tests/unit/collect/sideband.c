/*
 * The kernel's account of address spaces: what a child does is reported completely, in order, with the times
 * at which it happened. Needs perf events of every CPU, which are root's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/stream/sideband.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_RECORDS 256

struct seen {
	struct sideband_record records[MAX_RECORDS];
	char names[MAX_RECORDS][256];
	uint32_t n;
	pid_t pid; /* whose records are wanted, and those of its children */
	uint64_t last_ns;
	bool backwards;
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void take(void *ctx, const struct sideband_record *r)
{
	struct seen *s = ctx;

	s->backwards |= r->ns < s->last_ns;
	s->last_ns = r->ns;
	if ((r->pid != s->pid && r->ppid != s->pid) || s->n == MAX_RECORDS)
		return;
	s->records[s->n] = *r;
	snprintf(s->names[s->n], sizeof(s->names[0]), "%s", r->name ? r->name : "");
	s->n++;
}

static int open_or_skip(void **state)
{
	struct sideband *s = NULL;
	struct err e = { 0 };
	int r = sideband_open(&s, &e);

	*state = s;
	if (r == -EACCES || r == -EPERM) {
		print_message("not permitted: perf events of all CPUs\n");
		return 0;
	}
	return r;
}

static int close_it(void **state)
{
	sideband_close(*state);
	return 0;
}

static struct sideband *have(void **state)
{
	if (!*state) {
		print_message("needs root: perf events of all CPUs\n");
		skip();
	}
	return *state;
}

/* What is reported of the child, which has ended. */
static void read_of(struct sideband *s, struct seen *seen, pid_t pid)
{
	memset(seen, 0, sizeof(*seen));
	seen->pid = pid;
	for (int i = 0; i < 100; i++) {
		sideband_read(s, take, seen);
		if (seen->n && seen->records[seen->n - 1].kind == SIDEBAND_EXIT)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	assert_false(seen->backwards);
}

static pid_t run_child(void (*child)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static const struct sideband_record *find(const struct seen *s, enum sideband_kind kind,
					  const char *name, uint32_t *ret_at)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->records[i].kind == kind && (!name || !strcmp(s->names[i], name))) {
			*ret_at = i;
			return &s->records[i];
		}
	return NULL;
}

static void nothing(void)
{
}

static void a_child_begins_with_its_fork_and_ends_with_its_exit(void **state)
{
	struct sideband *s = have(state);
	uint64_t begin = now(), end;
	pid_t pid = run_child(nothing);
	struct seen seen;

	end = now();
	read_of(s, &seen, pid);
	assert_true(seen.n >= 2);
	assert_int_equal(seen.records[0].kind, SIDEBAND_FORK);
	assert_int_equal(seen.records[0].pid, pid);
	assert_int_equal(seen.records[0].ppid, getpid());
	assert_int_equal(seen.records[seen.n - 1].kind, SIDEBAND_EXIT);
	assert_int_equal(seen.records[seen.n - 1].pid, pid);
	for (uint32_t i = 0; i < seen.n; i++)
		assert_in_range(seen.records[i].ns, begin, end);
	assert_int_equal(sideband_lost(s), 0);
}

static void *mapped; /* both processes have it at one address: fork copies */

static void map_self(void)
{
	FILE *f = fopen("/proc/self/exe", "r");

	if (f)
		mmap(mapped, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fileno(f), 4096);
}

static void a_mapping_is_told_with_its_file_place_and_offset(void **state)
{
	struct sideband *s = have(state);
	struct seen seen;
	struct stat st;
	uint32_t at;
	pid_t pid;

	mapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	pid = run_child(map_self);
	read_of(s, &seen, pid);
	for (at = 0; at < seen.n; at++)
		if (seen.records[at].kind == SIDEBAND_MMAP &&
		    seen.records[at].addr == (uint64_t)(uintptr_t)mapped)
			break;
	assert_true(at < seen.n);
	assert_int_equal(seen.records[at].pid, pid);
	assert_int_equal(seen.records[at].len, 4096);
	assert_int_equal(seen.records[at].off, 4096);
	assert_int_equal(seen.records[at].ino, st.st_ino);
	munmap(mapped, 4096);
}

static void rename_and_exec(void)
{
	prctl(PR_SET_NAME, "by-its-own-wish");
	execl("/bin/true", "true", NULL);
}

static void a_name_by_exec_is_told_apart_from_one_by_prctl(void **state)
{
	struct sideband *s = have(state);
	const struct sideband_record *own, *exec;
	uint32_t at_own, at_exec, at_image;
	struct seen seen;

	read_of(s, &seen, run_child(rename_and_exec));
	own = find(&seen, SIDEBAND_COMM, "by-its-own-wish", &at_own);
	exec = find(&seen, SIDEBAND_COMM, "true", &at_exec);
	assert_non_null(own);
	assert_non_null(exec);
	assert_false(own->exec);
	assert_true(exec->exec);
	assert_true(at_own < at_exec);
	/* The mappings of the new image follow its name. */
	for (at_image = at_exec; at_image < seen.n; at_image++)
		if (seen.records[at_image].kind == SIDEBAND_MMAP)
			break;
	assert_true(at_image < seen.n);
}

static void what_was_told_is_not_told_again(void **state)
{
	struct sideband *s = have(state);
	pid_t pid = run_child(nothing);
	struct seen seen;
	uint32_t at;

	read_of(s, &seen, pid);
	memset(&seen, 0, sizeof(seen));
	seen.pid = pid;
	sideband_read(s, take, &seen);
	assert_null(find(&seen, SIDEBAND_FORK, NULL, &at));
}

/* Each CPU has its ring; forks on two in turn. */
static void records_of_several_cpus_come_in_the_order_of_their_times(void **state)
{
	struct sideband *s = have(state);
	pid_t children[10];
	struct seen seen;
	cpu_set_t all, one;
	uint32_t n = 0;
	int cpus[2], n_cpus = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && n_cpus < 2; cpu++)
		if (CPU_ISSET(cpu, &all))
			cpus[n_cpus++] = cpu;
	if (n_cpus < 2) {
		print_message("one CPU only\n");
		skip();
	}
	for (int i = 0; i < 10; i++) {
		CPU_ZERO(&one);
		CPU_SET(cpus[i % 2], &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		children[i] = run_child(nothing);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	memset(&seen, 0, sizeof(seen));
	seen.pid = getpid();
	sideband_read(s, take, &seen);
	assert_false(seen.backwards);
	for (uint32_t i = 0; i < seen.n; i++)
		if (seen.records[i].kind == SIDEBAND_FORK) {
			assert_true(n < 10);
			assert_int_equal(seen.records[i].pid, children[n++]);
		}
	assert_int_equal(n, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_begins_with_its_fork_and_ends_with_its_exit,
						open_or_skip, close_it),
		cmocka_unit_test_setup_teardown(a_mapping_is_told_with_its_file_place_and_offset,
						open_or_skip, close_it),
		cmocka_unit_test_setup_teardown(a_name_by_exec_is_told_apart_from_one_by_prctl,
						open_or_skip, close_it),
		cmocka_unit_test_setup_teardown(
			records_of_several_cpus_come_in_the_order_of_their_times, open_or_skip,
			close_it),
		cmocka_unit_test_setup_teardown(what_was_told_is_not_told_again, open_or_skip,
						close_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
