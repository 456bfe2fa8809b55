/* Which functions are read, of which files, and with whose rights: of a profile of this program itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <cmocka.h>

#include "run/output/sources.h"
#include "symbolize/source_read.h"
#include "unit/profile_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

static const struct value_type cpu = { "samples", "count" };
static const char *opened; /* by a process's path */
static uint32_t asked_of;  /* whose rights */

static int open_module(void *ctx, module_id m, struct err *e)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static int open_debug(void *ctx, module_id m, const char *path, bool host)
{
	int fd = host ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	return fd < 0 ? -ENOENT : fd;
}

static int open_in(void *ctx, pid_t pid, const char *path)
{
	assert_int_equal(pid, 77);
	opened = path;
	return open("/proc/self/status", O_RDONLY | O_CLOEXEC); /* any text */
}

static uid_t user_of(void *ctx, pid_t pid)
{
	asked_of = (uint32_t)pid;
	return 0;
}

static const struct symbolize_opts files = { .open_module = open_module, .open_debug = open_debug };

__attribute__((noinline)) static int first(int n)
{
	__asm__ volatile("");
	return n + 1;
}
__attribute__((noinline)) static int second(int n)
{
	__asm__ volatile("");
	return n + 2;
}

static int own_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	*(uint64_t *)bias = info->dlpi_addr;
	return 1;
}

static void add(struct fixture *f, int (*function)(int), const char *name, int64_t value)
{
	struct line line = { .function = dict_string(f->d, name),
			     .file = dict_string(f->d, __FILE__),
			     .line = 55 };
	uint64_t bias = 0;
	location_id loc;

	dl_iterate_phdr(own_bias, &bias);
	loc = dict_location(f->d, fixture_module(f, MODULE_ELF, "/opt/prog"),
			    (uint64_t)(uintptr_t)function - bias);
	dict_location_name(f->d, loc, &line, 1);
	profile_add(f->p, dict_stack(f->d, &loc, 1), (labels_id){ 0 }, &value);
}

static struct code_sources read_of(const struct fixture *f, struct sources_opts o)
{
	struct line_costs costs;
	struct code_sources got;

	o.files = &files;
	o.max_ms = 20000;
	o.functions = o.functions ?: SOURCES_FUNCTIONS;
	assert_int_equal(line_costs_make(f->p, 0, &costs), 0);
	assert_int_equal(sources_read(&(struct sources_profile){ f->p, &costs }, 1, &o, &got), 0);
	line_costs_fini(&costs);
	return got;
}

static void the_functions_with_most_are_read_and_others_counted(void **state)
{
	struct fixture f = fixture_new(&cpu, 1);
	struct code_sources got;

	add(&f, first, "first", 2);
	add(&f, second, "second", 9);
	got = read_of(&f, (struct sources_opts){ .functions = 1 });
	assert_int_equal(got.n_codes, 1);
	assert_string_equal(got.codes[0].name, "second");
	assert_int_equal(got.left_out, 1);
	code_sources_fini(&got);
	got = read_of(&f, (struct sources_opts){ .function = "first", .no_source = true });
	assert_int_equal(got.n_codes, 1);
	assert_string_equal(got.codes[0].name, "first");
	assert_int_equal(got.n_texts, 0);
	code_sources_fini(&got);
	fixture_free(&f);
}

static void a_file_without_build_id_that_was_changed_since_is_not_shown(void **state)
{
	struct fixture f = fixture_new(&cpu, 1);
	struct code_sources got;

	add(&f, first, "first", 2);
	got = read_of(&f, (struct sources_opts){ .taken_s = 1000 });
	assert_int_equal(got.n_codes, 0);
	assert_int_equal(got.n_problems, 1);
	assert_non_null(strstr(got.problems[0].why, "changed after the profile was taken"));
	code_sources_fini(&got);
	fixture_free(&f);
}

static bool nowhere(void *ctx, module_id m, pid_t pid)
{
	return false;
}

/* Its debug info names a file that this machine has, and its own root has not. */
static void a_program_of_another_root_has_no_file_of_this_machine(void **state)
{
	struct fixture f = fixture_new(&cpu, 1);
	struct code_sources got;
	bool here = false;

	add(&f, first, "first", 2);
	got = read_of(&f, (struct sources_opts){ 0 });
	assert_true(got.n_texts > 0);
	for (uint32_t i = 0; i < got.n_texts; i++)
		if (strstr(got.texts[i].path, "unit/run/sources.c"))
			here |= !got.texts[i].problem;
	assert_true(here);
	code_sources_fini(&got);
	got = read_of(&f, (struct sources_opts){ .in_own_root = nowhere });
	assert_true(got.n_texts > 0);
	for (uint32_t i = 0; i < got.n_texts; i++)
		assert_non_null(got.texts[i].problem);
	code_sources_fini(&got);
	fixture_free(&f);
}

static void a_script_is_read_as_its_process_sees_it_and_may(void **state)
{
	struct fixture f = fixture_new(&cpu, 1);
	struct label pid = { .key = dict_string(f.d, "pid"), .num = 77 };
	struct line line = { .function = dict_string(f.d, "work"),
			     .file = dict_string(f.d, "/app/w.py"),
			     .line = 1 };
	module_id python = fixture_module(&f, MODULE_LANG, "[Python]");
	location_id loc = dict_location_lines(f.d, python, 0, &line, 1);
	struct code_sources got;

	profile_add(f.p, dict_stack(f.d, &loc, 1), dict_labels(f.d, &pid, 1), &(int64_t){ 3 });
	got = read_of(&f, (struct sources_opts){ .open_in = open_in,
						 .user_of = user_of,
						 .reader = SOURCE_READER_NOBODY });
	assert_int_equal(got.n_texts, 1);
	assert_string_equal(got.texts[0].path, "/app/w.py");
	assert_string_equal(opened, "/app/w.py");
	assert_int_equal(asked_of, 77);
	assert_int_equal(got.n_codes, 0);
	code_sources_fini(&got);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_functions_with_most_are_read_and_others_counted),
		cmocka_unit_test(a_file_without_build_id_that_was_changed_since_is_not_shown),
		cmocka_unit_test(a_program_of_another_root_has_no_file_of_this_machine),
		cmocka_unit_test(a_script_is_read_as_its_process_sees_it_and_may),
	};

	if (first(1) + second(1) != 5)
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
