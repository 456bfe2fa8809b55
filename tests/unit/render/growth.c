#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "summary_text_fixture.h"

static void growth_has_its_kinds_and_is_set_against_rss(void **state)
{
	static const struct site_row site = { .function = "fill_cache",
					      .module = "server",
					      .leaf = "",
					      .comm = "",
					      .value = 60 << 20 };
	static const struct site_row kernels = { .function = "",
						 .module = "",
						 .leaf = "shrink_folio_list",
						 .comm = "",
						 .value = 2 << 20 };
	struct run_summary s = fixture_summary();

	assert_has_not(text_of(&s), "Growth");
	s.growth.known = true;
	assert_has_not(text_of(&s), "Growth"); /* nothing came, nothing went */
	s.growth.resident_bytes[MEMORY_ANON] = 64 << 20;
	s.growth.resident_bytes[MEMORY_FILE] = 16 << 20;
	s.growth.returned_bytes[MEMORY_ANON] = 20 << 20;
	s.growth.on_stacks = 80 << 20;
	s.growth.returned_on_stacks = 20 << 20;
	s.growth.sites = &site;
	s.growth.n_sites = 1;
	s.growth.returned_sites = &kernels;
	s.growth.n_returned_sites = 1;
	assert_has(text_of(&s),
		   "Growth       80.0 MiB first touched, 20.0 MiB released (+60.0 MiB)\n");
	assert_has(text_of(&s), "  anonymous     +64.0 MiB     -20.0 MiB\n");
	assert_has_not(text_of(&s), "shared  ");
	assert_has_not(text_of(&s), "RSS changed");
	assert_has(text_of(&s), "60.0 MiB  75.0%  fill_cache ");
	/* No user function: the kernel's own. */
	assert_has(text_of(&s), " 2.0 MiB  10.0%  shrink_folio_list\n");
	s.growth.check.processes = 1;
	s.growth.check.reported_bytes = s.growth.check.rss_bytes = 60 << 20;
	assert_has(text_of(&s), "RSS changed by +60.0 MiB, as the kernel's events report\n");
	s.growth.check.rss_bytes = -(4 << 20);
	assert_has(text_of(&s),
		   "RSS changed by -4.0 MiB, 64.0 MiB less than the kernel's events report\n");
	s.growth.made_bytes = 8 << 20;
	s.growth.ended_bytes = 24 << 20;
	assert_has(text_of(&s), "20.0 MiB released\n"); /* what is left is not known */
	assert_has(text_of(&s),
		   "forks and execs made 8.0 MiB; 24.0 MiB ended with their process\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_has_its_kinds_and_is_set_against_rss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
