#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "render/code_name.h"

static void assert_shortened(const char *name, size_t width, const char *want)
{
	struct strbuf b = { 0 };

	code_name_shorten(&b, name, width);
	assert_string_equal(b.s ? b.s : "", want);
	strbuf_free(&b);
}

static void a_name_that_fits_is_left_alone(void **state)
{
	assert_shortened("f(int)", 6, "f(int)");
	assert_shortened("", 6, "");
	assert_shortened("größe(int)", 10, "größe(int)");
}

static void parameters_go_first_and_template_arguments_next(void **state)
{
	const char *name = "ns::Table<int, 3>::find(std::vector<int> const&, long) const";

	assert_shortened(name, 59, "ns::Table<int, 3>::find(…) const");
	assert_shortened(name, 32, "ns::Table<int, 3>::find(…) const");
	assert_shortened(name, 31, "ns::Table<…>::find(…) const");
	assert_shortened(name, 3, "ns::Table<…>::find(…) const");
}

static void parameters_in_the_path_go_as_well(void **state)
{
	assert_shortened("app::run(int)::{lambda(int)#1}::operator()(int) const", 40,
			 "app::run(…)::{lambda(int)#1}::operator()(…) const");
	assert_shortened("f(std::string) [clone .cold]", 10, "f(…) [clone .cold]");
	assert_shortened("f() const", 3, "f() const");
}

static void an_anonymous_namespace_is_no_parameter(void **state)
{
	assert_shortened("(anonymous namespace)::a::(anonymous namespace)::f(int)", 10,
			 "(anonymous namespace)::a::(anonymous namespace)::f(…)");
}

static void an_operators_sign_is_no_bracket(void **state)
{
	assert_shortened("std::operator<< <char>(std::ostream&)", 5, "std::operator<< <…>(…)");
	assert_shortened("A::operator->(int)", 5, "A::operator->(…)");
	assert_shortened("A::operator()(int)", 5, "A::operator()(…)");
	assert_shortened("A<(operator<)1>::f(int)", 5, "A<…>::f(…)");
}

static void what_a_rust_name_begins_with_stays(void **state)
{
	assert_shortened("<alloc::vec::Vec<u8> as core::fmt::Write>::write_str", 5,
			 "<alloc::vec::Vec<u8> as core::fmt::Write>::write_str");
	assert_shortened("core::ptr::drop_in_place::<alloc::string::String>", 5,
			 "core::ptr::drop_in_place::<…>");
}

static void other_languages_keep_theirs(void **state)
{
	assert_shortened("main.(*Tree).Insert", 5, "main.(*Tree).Insert");
	assert_shortened("JS:*walk /srv/app (copy).js:3:19", 5, "JS:*walk /srv/app (copy).js:3:19");
	assert_shortened("__handle_mm_fault", 5, "__handle_mm_fault");
}

static void a_python_function_keeps_its_file(void **state)
{
	(void)state;
	assert_shortened("Handler.parse.<locals>.<genexpr> (server.py)", 10,
			 "Handler.parse.<locals>.<genexpr> (server.py)");
	assert_shortened("<lambda> (a.b.py)", 3, "<lambda> (a.b.py)");
	assert_shortened("run (Some::Type.x)", 3, "run (…)");
}

static void brackets_that_do_not_add_up_are_left_alone(void **state)
{
	assert_shortened("f(int", 2, "f(int");
	assert_shortened("f<a<b>", 2, "f<a<b>");
	assert_shortened("f)int(", 2, "f)int(");
	assert_shortened("a>b>c", 2, "a>b>c");
}

static void a_name_that_is_cut_begins_where_it_differs_from_others(void **state)
{
	static const struct {
		const char *name;
		size_t width;
		const char *begin;
	} names[] = {
		{ "com.sun.tools.javac.main.JavaCompiler.compile (JavaCompiler.java)", 30,
		  "JavaCompiler.compile (JavaCompiler.java)" },
		{ "com.sun.Main.run (Main.java)", 40, "com.sun.Main.run (Main.java)" },
		{ "Perl::Critic::Policy::Modules::ProhibitEvilModules::violates (ProhibitEvilModules.pm)",
		  20, "ProhibitEvilModules::violates (ProhibitEvilModules.pm)" },
		{ "Perl::Critic::critique (Critic.pm)", 30, "Critic::critique (Critic.pm)" },
		{ "Twig\\Loader\\ArrayLoader::get (a.php)", 30, "ArrayLoader::get (a.php)" },
		{ "Twig\\Loader\\ArrayLoader::get (a.php)", 10, "ArrayLoader::get (a.php)" },
		{ "v8::internal::Scavenger::Process(v8::JobDelegate*)", 10,
		  "Scavenger::Process(v8::JobDelegate*)" },
		{ "finish_task_switch.isra.0", 8, "finish_task_switch.isra.0" },
		{ "github.com/a/b.(*T).Run", 8, "github.com/a/b.(*T).Run" },
		{ "keep.<locals>.wrapper (a.py)", 8, "keep.<locals>.wrapper (a.py)" },
		{ "::", 1, "::" },
		{ "a.", 1, "a." },
		{ "", 0, "" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(code_name_begin(names[i].name, names[i].width), names[i].begin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_that_fits_is_left_alone),
		cmocka_unit_test(parameters_go_first_and_template_arguments_next),
		cmocka_unit_test(parameters_in_the_path_go_as_well),
		cmocka_unit_test(an_anonymous_namespace_is_no_parameter),
		cmocka_unit_test(an_operators_sign_is_no_bracket),
		cmocka_unit_test(what_a_rust_name_begins_with_stays),
		cmocka_unit_test(other_languages_keep_theirs),
		cmocka_unit_test(a_python_function_keeps_its_file),
		cmocka_unit_test(brackets_that_do_not_add_up_are_left_alone),
		cmocka_unit_test(a_name_that_is_cut_begins_where_it_differs_from_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
