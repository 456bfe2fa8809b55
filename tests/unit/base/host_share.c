#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host_share.h"

enum { HOSTS = 100000, SECONDS = 120 };

/* Hosts whose names differ in a digit alone. */
static void hosts_that_start_together_are_apart(void **state)
{
	static unsigned in[SECONDS];
	double chi2 = 0, mean = (double)HOSTS / SECONDS;
	char name[64];

	(void)state;
	for (unsigned i = 0; i < HOSTS; i++) {
		double share;

		snprintf(name, sizeof(name), "7d0c2a3e-6b1f-4d0e-9a55-0a1b2c3d4e5fnode-%u", i);
		share = host_share_of(name);
		assert_true(share >= 0 && share < 1);
		in[(int)(share * SECONDS)]++;
	}
	for (int i = 0; i < SECONDS; i++)
		chi2 += (in[i] - mean) * (in[i] - mean) / mean;
	/* 119 degrees of freedom: mean 119, variance 238; five sigma. */
	assert_true(fabs(chi2 - (SECONDS - 1)) < 5 * sqrt(2 * (SECONDS - 1)));
}

static void it_is_the_same_in_every_process(void **state)
{
	double here = host_share(), there = -1;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	if (fork() == 0) {
		double share = host_share();

		_exit(write(ends[1], &share, sizeof(share)) < 0);
	}
	assert_int_equal(read(ends[0], &there, sizeof(there)), sizeof(there));
	wait(NULL);
	assert_true(here == there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_that_start_together_are_apart),
		cmocka_unit_test(it_is_the_same_in_every_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
