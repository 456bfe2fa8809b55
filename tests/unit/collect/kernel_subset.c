#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/btf.h>

#include "base/cache_dir.h"
#include "base/cleanup.h"
#include "collect/session/kernel_subset.h"
#include "collect/session/kernel_types.h"

static char dir[64];
static struct btf *kernel, *programs;
static int number, mm, inner, task, other;

/*
 *   struct mm { int pages; };                 behind a pointer, and nobody's name
 *   struct inner { int depth; };              a part
 *   struct task { struct mm *mm; struct inner in[4]; const int prio; };
 *   struct other { int x; };
 *   typedef void (*btf_trace_sched_switch)(void *, struct task *);
 */
static int begin(void **state)
{
	int array, ptr, prio, proto, back;

	(void)state;
	kernel = btf__new_empty();
	number = btf__add_int(kernel, "int", 4, BTF_INT_SIGNED);
	mm = btf__add_struct(kernel, "mm", 4);
	btf__add_field(kernel, "pages", number, 0, 0);
	inner = btf__add_struct(kernel, "inner", 4);
	btf__add_field(kernel, "depth", number, 0, 0);
	array = btf__add_array(kernel, number, inner, 4);
	ptr = btf__add_ptr(kernel, mm);
	prio = btf__add_const(kernel, number);
	other = btf__add_struct(kernel, "other", 4);
	btf__add_field(kernel, "x", number, 0, 0);
	task = btf__add_struct(kernel, "task", 32);
	btf__add_field(kernel, "mm", ptr, 0, 0);
	btf__add_field(kernel, "in", array, 64, 0);
	btf__add_field(kernel, "prio", prio, 192, 0);
	back = btf__add_ptr(kernel, task);
	proto = btf__add_func_proto(kernel, 0);
	btf__add_func_param(kernel, "data", 0);
	btf__add_func_param(kernel, "task", back);
	btf__add_typedef(kernel, "btf_trace_sched_switch", btf__add_ptr(kernel, proto));
	programs = btf__new_empty();
	btf__add_struct(programs, "task___old", 8);
	strcpy(dir, "/tmp/memscope-types-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return setenv(CACHE_DIR_ENV, dir, 1);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	btf__free(kernel);
	btf__free(programs);
	unsetenv(CACHE_DIR_ENV);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void check(const struct btf *is)
{
	int id = btf__find_by_name_kind(is, "task", BTF_KIND_STRUCT);
	const struct btf_type *t, *of;

	assert_true(id > 0);
	t = btf__type_by_id(is, (uint32_t)id);
	assert_int_equal(btf_vlen(t), 3);
	assert_string_equal(btf__name_by_offset(is, btf_members(t)[1].name_off), "in");
	assert_int_equal(btf_members(t)[1].offset, 64);
	/* What it consists of is there … */
	assert_int_equal(btf__resolve_size(is, btf_members(t)[1].type), 16);
	of = btf__type_by_id(is, btf_array(btf__type_by_id(is, btf_members(t)[1].type))->type);
	assert_string_equal(btf__name_by_offset(is, of->name_off), "inner");
	assert_int_equal(btf__resolve_size(is, btf_members(t)[2].type), 4);
	/* … and a pointer, but nothing behind it, nor anything else. */
	of = btf__type_by_id(is, btf_members(t)[0].type);
	assert_true(btf_is_ptr(of));
	assert_int_equal(of->type, 0);
	assert_int_equal(btf__find_by_name_kind(is, "mm", BTF_KIND_STRUCT), -ENOENT);
	assert_int_equal(btf__find_by_name_kind(is, "other", BTF_KIND_STRUCT), -ENOENT);
	assert_int_equal(btf_tracepoint_args(is, "sched_switch"), 1);
	assert_false(btf_has_tracepoint(is, "sched_wakeup"));
}

static void it_has_what_programs_refer_to_and_what_that_consists_of(void **state)
{
	struct btf *is = kernel_subset_of(kernel, programs);

	(void)state;
	assert_non_null(is);
	check(is);
	assert_int_equal(btf_tracepoint_args(kernel, "sched_switch"), 1);
	btf__free(is);
}

static void it_is_kept_for_these_programs(void **state)
{
	struct kernel_subset made = { 0 }, kept = { 0 };
	struct btf *read;

	(void)state;
	assert_true(kernel_subset_kept(7, &kept) < 0);
	assert_int_equal(kernel_subset_make(7, kernel, programs, &made), 0);
	check(made.btf);
	assert_int_equal(kernel_subset_kept(7, &kept), 0);
	check(kept.btf);
	read = btf__parse(kept.path, NULL); /* as libbpf does */
	assert_non_null(read);
	check(read);
	btf__free(read);
	kernel_subset_close(&kept);
	assert_true(kernel_subset_kept(8, &kept) < 0);
	kernel_subset_close(&made);
	kernel_subset_close(&kept);
}

/* Whatever is asked of the running kernel, the subset says the same. */
static void the_running_kernel_has_the_same_features_by_it(void **state)
{
	struct btf *all = btf__load_vmlinux_btf(), *is;

	(void)state;
	if (!all)
		skip();
	is = kernel_subset_of(all, programs);
	assert_non_null(is);
	assert_int_equal(btf_tracepoint_args(is, "sched_switch"),
			 btf_tracepoint_args(all, "sched_switch"));
	assert_int_equal(btf_has_tracepoint(is, "sys_exit"), btf_has_tracepoint(all, "sys_exit"));
	assert_int_equal(btf_has_cheap_mmap_lock(is), btf_has_cheap_mmap_lock(all));
	assert_int_equal(btf_has_sched_account(is), btf_has_sched_account(all));
	assert_int_equal(btf_has_task_regs(is), btf_has_task_regs(all));
	assert_int_equal(btf__find_by_name_kind(is, "bpf_mem_alloc", BTF_KIND_STRUCT) > 0,
			 btf__find_by_name_kind(all, "bpf_mem_alloc", BTF_KIND_STRUCT) > 0);
	btf__free(is);
	btf__free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			it_has_what_programs_refer_to_and_what_that_consists_of, begin, end),
		cmocka_unit_test_setup_teardown(it_is_kept_for_these_programs, begin, end),
		cmocka_unit_test_setup_teardown(the_running_kernel_has_the_same_features_by_it,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
