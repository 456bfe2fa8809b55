#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "elf/demangle.h"

static void assert_demangled(const char *name, const char *want)
{
	char out[DEMANGLE_OUT_MAX];

	if (!demangle(name, strlen(name), out))
		fail_msg("%s was not demangled", name);
	assert_string_equal(out, want);
}

static void assert_left_alone(const char *name)
{
	char out[DEMANGLE_OUT_MAX];

	assert_false(demangle(name, strlen(name), out));
}

static void cpp_names_have_parameters_and_no_return_type(void **state)
{
	assert_demangled("_Znwm", "operator new(unsigned long)");
	assert_demangled("_ZNSt6vectorIiSaIiEE9push_backERKi",
			 "std::vector<int, std::allocator<int> >::push_back(int const&)");
	assert_demangled("_Z3fooIiEvT_", "foo<int>(int)");
	assert_demangled("_ZN3hot3runEv.cold", "hot::run() [clone .cold]");
}

static void rust_names_of_both_forms_lose_their_hash(void **state)
{
	assert_demangled("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
			 "core::fmt::Formatter::pad");
	assert_demangled("_RNvCs4fqI2P2rA04_11rust_string4main", "rust_string::main");
}

/* Its bytes are NULL, which memcpy() must not get, however many it copies. */
static void an_empty_identifier_of_rust_has_no_bytes(void **state)
{
	assert_demangled("_RNvC01a", "::a");
}

static void d_names_have_parameters(void **state)
{
	assert_demangled("_D3app3fibFiZi", "app.fib(int)");
	assert_demangled("_D3std5stdio7writelnFAyaZv", "std.stdio.writeln(immutable(char)[])");
	assert_demangled("_Dmain", "D main");
	assert_left_alone("_D");
	assert_left_alone("_Data");
}

static void ghc_names_are_z_decoded(void **state)
{
	assert_demangled("ghczmprim_GHCziTypes_False_closure", "ghc-prim_GHC.Types.False_closure");
	assert_demangled("base_GHCziBase_zpzp_info", "base_GHC.Base.++");
	assert_demangled("base_GHCziBase_ZC_con_info", "base_GHC.Base.:_con_info");
	assert_demangled("ghczmprim_GHCziTuple_Z3T_con_info", "ghc-prim_GHC.Tuple.(,,)_con_info");
	assert_demangled("AppziMain_gozqzh_info", "App.Main.go'#");
	assert_demangled("Main_zdwzdsgo8_info", "Main.$w$sgo8");
	assert_demangled("main_AppziMain_snakezucase_entry", "main_App.Main.snake_case_entry");
}

static void go_names_lose_their_calling_convention(void **state)
{
	assert_demangled("runtime.goexit.abi0", "runtime.goexit");
	assert_demangled("runtime.memmove.abiinternal", "runtime.memmove");
	assert_left_alone("runtime.abi0handler");
	assert_left_alone(".abi0");
}

static void what_only_looks_like_ghc_is_left_alone(void **state)
{
	assert_left_alone("Parse_main_info"); /* nothing to decode: a C name may look like that */
	assert_left_alone("Main_Widget_info");
	assert_left_alone("gtk_Widget_size_info");
	assert_left_alone("lz_Zone_zz9_info");
	assert_left_alone("gtk_Resizing_size_info");
	assert_left_alone("base_GHCzX_map_info");
	assert_left_alone("base_GHCziBase_zX_info");
	assert_left_alone("base_lower_zi_info");
	assert_left_alone("base_GHCziBase_map");
	assert_left_alone("_info");
	assert_left_alone("__zz_info");
	assert_left_alone("Zz_");
}

static void a_d_name_that_repeats_itself_is_left_alone(void **state)
{
	char name[256] = "_D3app3fooF";

	for (int i = 0; i < 20; i++)
		strcat(name, "Qb");
	assert_left_alone(name);
}

static void other_names_are_left_alone(void **state)
{
	assert_left_alone("malloc");
	assert_left_alone("_start");
	assert_left_alone("_Z");
	assert_left_alone("_R");
	assert_left_alone("_ZQQQ");
	assert_left_alone("");
}

static void the_length_given_is_the_length_used(void **state)
{
	char out[DEMANGLE_OUT_MAX];

	assert_true(demangle("_Znwm@@GLIBCXX_3.4", 5, out));
	assert_string_equal(out, "operator new(unsigned long)");
}

static void a_name_that_expands_without_end_is_given_up_quickly(void **state)
{
	/* f(A<int, int>, A<first, first>, A<second, second>, …): each parameter is twice the
	 * last. */
	char bomb[1024] = "_Z1f1AIiiE", out[DEMANGLE_OUT_MAX];
	struct timespec a, b;
	size_t len = strlen(bomb);

	for (int i = 0; i < 36; i++) {
		int digit = i < 10 ? '0' + i : 'A' + i - 10;

		len += (size_t)snprintf(bomb + len, sizeof(bomb) - len, "S_IS%c_S%c_E", digit,
					digit);
	}
	assert_demangled("_Z1f1AIiiES_IS0_S0_E", "f(A<int, int>, A<A<int, int>, A<int, int> >)");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	assert_false(demangle(bomb, len, out));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	assert_true(b.tv_sec - a.tv_sec < 2);
}

static void a_long_name_is_left_alone(void **state)
{
	_cleanup_(freep) char *name = malloc(1 << 20);

	memset(name, 'P', 1 << 20);
	memcpy(name, "_Z1f", 4);
	name[(1 << 20) - 1] = '\0';
	assert_left_alone(name);
	name[DEMANGLE_IN_MAX - 1] = '\0';
	assert_left_alone(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpp_names_have_parameters_and_no_return_type),
		cmocka_unit_test(rust_names_of_both_forms_lose_their_hash),
		cmocka_unit_test(an_empty_identifier_of_rust_has_no_bytes),
		cmocka_unit_test(d_names_have_parameters),
		cmocka_unit_test(ghc_names_are_z_decoded),
		cmocka_unit_test(go_names_lose_their_calling_convention),
		cmocka_unit_test(what_only_looks_like_ghc_is_left_alone),
		cmocka_unit_test(a_d_name_that_repeats_itself_is_left_alone),
		cmocka_unit_test(other_names_are_left_alone),
		cmocka_unit_test(the_length_given_is_the_length_used),
		cmocka_unit_test(a_name_that_expands_without_end_is_given_up_quickly),
		cmocka_unit_test(a_long_name_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
