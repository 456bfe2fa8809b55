#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "collect/overhead/counter.h"

enum { MAP = 77, VERDICTS = 78 };

static int cpus, status, batch_errno, batches;
static uint32_t asked;

int session_map_fd(const struct session *s, enum session_map m)
{
	return m == SESSION_STATS ? MAP : m == SESSION_VERDICTS ? VERDICTS : -1;
}

int libbpf_num_possible_cpus(void)
{
	return cpus;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint64_t *slots = value;

	if (fd == VERDICTS) {
		if (*(const uint32_t *)key == 2) { /* that one cannot be read */
			slots[0] = 99;
			return -ENOENT;
		}
		for (int i = 0; i < cpus; i++)
			slots[i] = 10 * *(const uint32_t *)key + (uint64_t)i;
		return 0;
	}
	assert_int_equal(fd, MAP);
	asked = *(const uint32_t *)key;
	for (int i = 0; i < cpus; i++)
		slots[i] = 1000 + (uint64_t)i;
	return status;
}

/* A kernel's answer: all, in any order. */
int bpf_map_lookup_batch(int fd, void *in_batch, void *out_batch, void *keys, void *values,
			 uint32_t *count, const struct bpf_map_batch_opts *opts)
{
	(void)opts;
	(void)out_batch;
	batches++;
	assert_int_equal(fd, VERDICTS);
	assert_null(in_batch);
	if (batch_errno && batch_errno != ENOENT) {
		*count = 0;
		errno = batch_errno;
		return -batch_errno;
	}
	for (uint32_t i = 0; i < *count; i++) {
		((uint32_t *)keys)[i] = *count - 1 - i;
		for (int cpu = 0; cpu < cpus; cpu++)
			((uint64_t *)values)[(int)i * cpus + cpu] =
				10 * (*count - 1 - i) + (uint64_t)cpu;
	}
	errno = batch_errno;
	return -batch_errno;
}

static void a_counter_is_the_sum_over_cpus_of_its_own_slot(void **state)
{
	(void)state;
	cpus = 3;
	status = 0;
	assert_int_equal(counter_read(NULL, STAT_PROBE_HITS), 1000 + 1001 + 1002);
	assert_int_equal(asked, STAT_PROBE_HITS);
	cpus = 1024;
	assert_int_equal(counter_read(NULL, 0), 1024 * 1000 + 1023 * 1024 / 2);
	assert_int_equal(asked, 0);
}

static void what_cannot_be_read_is_nothing(void **state)
{
	(void)state;
	cpus = 3;
	status = -ENOENT;
	assert_int_equal(counter_read(NULL, STAT_PROBE_HITS), 0);
	cpus = 1025; /* there would be no room for them */
	status = 0;
	assert_int_equal(counter_read(NULL, STAT_PROBE_HITS), 0);
}

static void all_counters_are_read_at_once(void **state)
{
	uint64_t sums[4];

	(void)state;
	cpus = 2;
	for (batch_errno = 0; batch_errno <= ENOENT;
	     batch_errno += ENOENT) { /* the end of the map is no error */
		batches = 0;
		memset(sums, 0xff, sizeof(sums));
		counters_read(NULL, SESSION_VERDICTS, 4, sums);
		assert_int_equal(batches, 1);
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(sums[i], 20 * i + 1);
	}
}

static void counters_are_read_one_by_one_where_there_are_no_batches(void **state)
{
	uint64_t sums[4];

	(void)state;
	cpus = 2;
	batch_errno = 524; /* ENOTSUPP */
	counters_read(NULL, SESSION_VERDICTS, 4, sums);
	assert_int_equal(sums[0], 1);
	assert_int_equal(sums[1], 21);
	assert_int_equal(sums[2], 0);
	assert_int_equal(sums[3], 61);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_counter_is_the_sum_over_cpus_of_its_own_slot),
		cmocka_unit_test(what_cannot_be_read_is_nothing),
		cmocka_unit_test(all_counters_are_read_at_once),
		cmocka_unit_test(counters_are_read_one_by_one_where_there_are_no_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
