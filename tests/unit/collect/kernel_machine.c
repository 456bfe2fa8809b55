#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "collect/session/kernel_machine.h"

static struct kernel_finding of(const char *version, bool types)
{
	struct kernel_finding f = { .state = KERNEL_OK };

	kernel_machine_find(version, types, &f);
	return f;
}

static void a_host_of_which_nothing_is_known_works(void **state)
{
	struct kernel_finding f =
		of("Linux version 6.1.0-40-amd64 (debian-kernel@lists.debian.org) "
		   "(gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0) #1 SMP PREEMPT_DYNAMIC",
		   true);

	(void)state;
	assert_int_equal(f.state, KERNEL_OK);
	assert_string_equal(f.todo, "");
	assert_true(f.why[0]);
}

/* It wants an update where the kernel is an old one. */
static void wsl_2_works_and_wsl_1_does_not(void **state)
{
	static const char two[] =
		"Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)";
	struct kernel_finding f = of(two, true);

	(void)state;
	assert_int_equal(f.state, KERNEL_OK);
	assert_non_null(strstr(f.why, "WSL 2"));
	assert_string_equal(f.todo, "");
	assert_non_null(strstr(of(two, false).todo, "wsl --update"));
	f = of("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0 (GCC) ) #1-Microsoft",
	       false);
	assert_int_equal(f.state, KERNEL_MISSING);
	assert_non_null(strstr(f.why, "WSL 1"));
	assert_non_null(strstr(f.todo, "--set-version"));
}

static void docker_desktop_is_a_machine_of_its_own(void **state)
{
	static const char version[] = "Linux version 6.6.16-linuxkit (root@buildkitsandbox)";

	(void)state;
	assert_int_equal(of(version, true).state, KERNEL_OK);
	assert_string_equal(of(version, true).todo, "");
	assert_non_null(strstr(of(version, false).todo, "4.30"));
}

static void gvisor_has_no_bpf(void **state)
{
	(void)state;
	assert_int_equal(of("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016", false).state,
			 KERNEL_MISSING);
	assert_int_equal(
		of("Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016", false).state,
		KERNEL_MISSING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_of_which_nothing_is_known_works),
		cmocka_unit_test(wsl_2_works_and_wsl_1_does_not),
		cmocka_unit_test(docker_desktop_is_a_machine_of_its_own),
		cmocka_unit_test(gvisor_has_no_bpf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
