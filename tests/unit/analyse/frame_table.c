#include "analyse/frame_table.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

/* The outermost first, whatever the order in which they are asked for, and also of locations that came later. */
static void frames_of_a_location_are_those_of_frame_get(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct frame_table t = { .d = f.d };

	fixture_add1(&f, ";main;a_[i];b_[i];read_[k];lib+0x12;?", 1);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = dict_location_count(f.d); i > 0; i--) {
			location_id loc = { i };
			uint32_t n;
			const struct frame *frames = frame_table_get(&t, loc, &n);

			assert_non_null(frames);
			assert_int_equal(n, frame_count(f.d, loc));
			for (uint32_t k = 0; k < n; k++) {
				struct frame one = frame_get(f.d, loc, n - 1 - k);

				assert_int_equal(frames[k].name.ix, one.name.ix);
				assert_int_equal(frames[k].kind, one.kind);
				assert_string_equal(frames[k].module, one.module);
				assert_int_equal(frames[k].line, one.line);
			}
		}
		if (round == 0)
			for (int i = 0; i < 1000; i++) {
				char text[64];

				snprintf(text, sizeof(text), ";main;f%d;in%d_[i]", i, i);
				fixture_add1(&f, text, 1);
			}
	}
	frame_table_fini(&t);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_a_location_are_those_of_frame_get),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
