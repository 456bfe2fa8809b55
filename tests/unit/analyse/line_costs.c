/* Self and total by line, and self by address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/line_costs.h"
#include "unit/profile_fixture.h"

static const struct value_type cpu = { "cpu", "nanoseconds" }, space = { "alloc_space", "bytes" };

/* A place of prog: innermost inlined call first. */
static location_id place(struct fixture *f, uint64_t vaddr, const char *function, uint32_t line,
			 const char *inlined, uint32_t inlined_line)
{
	location_id loc =
		dict_location(f->d, fixture_module(f, MODULE_ELF, "/usr/bin/prog"), vaddr);
	struct line lines[2] = { { .function = dict_string(f->d, inlined ? inlined : function),
				   .file = dict_string(f->d, "/src/prog.c"),
				   .line = inlined ? inlined_line : line },
				 { .function = dict_string(f->d, function),
				   .file = dict_string(f->d, "/src/prog.c"),
				   .line = line } };

	dict_location_name(f->d, loc, lines, inlined ? 2 : 1);
	return loc;
}

static void add(struct fixture *f, const location_id *leaf_first, uint32_t n, int64_t value)
{
	profile_add(f->p, dict_stack(f->d, leaf_first, n), (labels_id){ 0 }, &value);
}

static const struct line_cost *line(const struct fixture *f, const struct line_costs *c,
				    const char *function, uint32_t number)
{
	for (uint32_t i = 0; i < c->n_lines; i++)
		if (strcmp(dict_str(f->d, c->lines[i].key.function), function) == 0 &&
		    c->lines[i].key.line == number)
			return &c->lines[i];
	fail_msg("no line %s:%u", function, number);
	return NULL;
}

static void self_is_of_the_inlined_line_and_total_of_its_callers(void **state)
{
	struct fixture f = fixture_new(&cpu, 1);
	struct line_costs c;
	location_id main = place(&f, 0x100, "main", 30, NULL, 0);

	add(&f, (location_id[]){ place(&f, 0x200, "mix", 20, "step", 5), main }, 2, 7);
	add(&f, (location_id[]){ place(&f, 0x204, "mix", 21, NULL, 0), main }, 2, 2);
	assert_int_equal(line_costs_make(f.p, 0, &c), 0);
	assert_int_equal(c.all, 9);
	assert_int_equal(line(&f, &c, "step", 5)->self, 7);
	assert_int_equal(line(&f, &c, "step", 5)->total, 7);
	assert_int_equal(line(&f, &c, "mix", 20)->self, 0);
	assert_int_equal(line(&f, &c, "mix", 20)->total, 7);
	assert_int_equal(line(&f, &c, "mix", 21)->self, 2);
	assert_int_equal(line(&f, &c, "main", 30)->total, 9);
	/* Functions by self; addresses are not merged, whatever their lines. */
	assert_int_equal(c.n_functions, 3);
	assert_string_equal(dict_str(f.d, c.functions[0].function), "step");
	assert_int_equal(c.functions[0].self, 7);
	assert_int_equal(c.functions[1].total, 9);
	assert_int_equal(c.n_places, 2);
	assert_int_equal(c.places[0].vaddr, 0x200);
	assert_int_equal(c.places[0].self, 7);
	assert_int_equal(c.places[1].self, 2);
	line_costs_fini(&c);
	fixture_free(&f);
}

static void a_recursive_line_counts_once_a_sample(void **state)
{
	struct fixture f = fixture_new(&cpu, 1);
	struct line_costs c;
	location_id again = place(&f, 0x300, "fib", 8, NULL, 0);

	add(&f, (location_id[]){ place(&f, 0x304, "fib", 7, NULL, 0), again, again, again }, 4, 5);
	add(&f, (location_id[]){ again, again }, 2, 1);
	assert_int_equal(line_costs_make(f.p, 0, &c), 0);
	assert_int_equal(line(&f, &c, "fib", 8)->total, 6);
	assert_int_equal(line(&f, &c, "fib", 8)->self, 1);
	assert_int_equal(c.functions[0].total, 6);
	assert_int_equal(c.functions[0].self, 6);
	line_costs_fini(&c);
	fixture_free(&f);
}

static void what_is_allocated_belongs_to_the_call_that_asked(void **state)
{
	struct fixture f = fixture_new(&space, 1);
	struct line_costs c;
	location_id asked = place(&f, 0x410, "load", 12, NULL, 0), got;
	uint32_t from_leaf;
	stack_id stack;

	stack = dict_stack(f.d,
			   (location_id[]){ place(&f, 0x900, "malloc", 1, NULL, 0), asked,
					    place(&f, 0x100, "main", 30, NULL, 0) },
			   3);
	profile_add(f.p, stack, (labels_id){ 0 }, &(int64_t){ 64 });
	assert_int_equal(line_costs_make(f.p, 0, &c), 0);
	assert_int_equal(line(&f, &c, "load", 12)->self, 64);
	assert_int_equal(line(&f, &c, "malloc", 1)->self, 0);
	assert_int_equal(c.n_places, 1);
	assert_int_equal(c.places[0].vaddr, 0x410);
	assert_int_equal(line_costs_place(f.p, 0, stack, &got, &from_leaf), 0);
	assert_int_equal(got.ix, asked.ix);
	assert_int_equal(from_leaf, 1);
	line_costs_fini(&c);
	fixture_free(&f);
}

static void kernel_code_and_negative_values_are_no_lines(void **state)
{
	struct fixture f = fixture_new(&cpu, 1);
	struct line_costs c;

	fixture_add1(&f, "prog;main;do_work_[k]", 3);
	fixture_add1(&f, "prog;main", -4);
	assert_int_equal(line_costs_make(f.p, 0, &c), 0);
	assert_int_equal(c.all, 3);
	assert_int_equal(c.n_lines, 1);
	assert_int_equal(line(&f, &c, "main", 0)->self, 0);
	assert_int_equal(line(&f, &c, "main", 0)->total, 3);
	assert_int_equal(c.n_places, 0);
	line_costs_fini(&c);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(self_is_of_the_inlined_line_and_total_of_its_callers),
		cmocka_unit_test(a_recursive_line_counts_once_a_sample),
		cmocka_unit_test(what_is_allocated_belongs_to_the_call_that_asked),
		cmocka_unit_test(kernel_code_and_negative_values_are_no_lines),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
