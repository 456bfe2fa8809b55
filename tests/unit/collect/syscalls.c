#include "collect/stream/syscalls.h"
#include "abi.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GONE 0x3fffffff /* no process has that number */

/* Two rows of each table: of this process, and of one that has ended. */
struct table {
	struct ms_syscall_key keys[2];
	uint64_t tasks[2];
	bool gone[2];
};
static struct table totals, errors, now;

static struct table *table_of(int fd)
{
	return fd == SESSION_SYSCALL_TOTALS   ? &totals
	       : fd == SESSION_SYSCALL_ERRORS ? &errors
					      : &now;
}

static const void *key_at(int fd, int i)
{
	struct table *t = table_of(fd);

	return fd == SESSION_SYSCALLS_NOW ? (void *)&t->tasks[i] : (void *)&t->keys[i];
}

static size_t key_size(int fd)
{
	return fd == SESSION_SYSCALLS_NOW ? 8 : sizeof(struct ms_syscall_key);
}

int session_map_fd(const struct session *s, enum session_map m)
{
	return (int)m;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	int from = 0;

	if (key)
		from = memcmp(key, key_at(fd, 0), key_size(fd)) == 0 ? 1 : 2;
	for (; from < 2; from++)
		if (!table_of(fd)->gone[from]) {
			memcpy(next, key_at(fd, from), key_size(fd));
			return 0;
		}
	errno = ENOENT;
	return -ENOENT;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	bool second = memcmp(key, key_at(fd, 1), key_size(fd)) == 0;

	if (fd == SESSION_SYSCALL_TOTALS)
		*(struct ms_syscall_total *)value =
			(struct ms_syscall_total){ .count = 7, .ns = 70, .parts = { [5] = 7 } };
	else if (fd == SESSION_SYSCALL_ERRORS)
		*(uint64_t *)value = 3;
	else
		*(struct ms_syscall_now *)value = (struct ms_syscall_now){
			.begin_ns = 9,
			.nr = 1,
			.weight = 2,
			.tid = second ? GONE : (uint32_t)getpid(),
			.proc = { .tgid = second ? GONE : (uint32_t)getpid() },
		};
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	table_of(fd)->gone[memcmp(key, key_at(fd, 1), key_size(fd)) == 0] = true;
	return 0;
}

static struct {
	int totals, errors, ended, open;
	uint32_t error;
	bool compat;
	uint64_t part;
} seen;

static void on_total(void *ctx, const struct syscall_total *t)
{
	seen.totals++;
	seen.compat |= t->compat;
	assert_int_equal(t->nr, 1);
	seen.part = t->parts[5];
}

static void on_error(void *ctx, const struct syscall_error *e)
{
	seen.errors++;
	seen.error = e->error;
}

static void on_ended(void *ctx, const struct syscall_open *c)
{
	seen.ended++;
	assert_int_equal(c->weight, 2);
}

static void on_open(void *ctx, const struct syscall_open *c)
{
	seen.open++;
	assert_int_equal(c->tid, getpid());
}

static const struct syscall_fns fns = { on_total, on_error, on_ended, on_open };

static void fill(struct table *t)
{
	*t = (struct table){ .tasks = { 11, 12 } };
	t->keys[0] = (struct ms_syscall_key){ .proc = { .tgid = (uint32_t)getpid() },
					      .nr = 1,
					      .error = EAGAIN };
	t->keys[1] = (struct ms_syscall_key){ .proc = { .tgid = GONE },
					      .nr = 1 | MS_SYSCALL_COMPAT,
					      .error = EAGAIN };
}

static void rows_of_ended_processes_are_taken_once_and_all_in_the_end(void **state)
{
	(void)state;
	fill(&totals);
	fill(&errors);
	fill(&now);
	assert_int_equal(syscalls_take(NULL, false, &fns, NULL), 0);
	assert_int_equal(seen.totals, 1);
	assert_true(seen.compat);
	assert_int_equal(seen.part, 7);
	assert_int_equal(seen.errors, 1);
	assert_int_equal(seen.error, EAGAIN);
	assert_int_equal(seen.ended, 1);
	assert_int_equal(seen.open, 0);
	assert_int_equal(syscalls_take(NULL, true, &fns, NULL), 0);
	assert_int_equal(seen.totals, 2);
	assert_int_equal(seen.errors, 2);
	assert_int_equal(seen.ended, 1);
	assert_int_equal(seen.open, 1);
	assert_int_equal(syscalls_take(NULL, true, &fns, NULL), 0);
	assert_int_equal(seen.totals, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_ended_processes_are_taken_once_and_all_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
