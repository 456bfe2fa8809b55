#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "collect/overhead/counter.h"

enum { MAP = 77 };

static int cpus, status;
static uint32_t asked;

int session_map_fd(const struct session *s, enum session_map m)
{
	return m == SESSION_STATS ? MAP : -1;
}

int libbpf_num_possible_cpus(void)
{
	return cpus;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint64_t *slots = value;

	assert_int_equal(fd, MAP);
	asked = *(const uint32_t *)key;
	for (int i = 0; i < cpus; i++)
		slots[i] = 1000 + (uint64_t)i;
	return status;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_counter_is_the_sum_over_cpus_of_its_own_slot),
		cmocka_unit_test(what_cannot_be_read_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
