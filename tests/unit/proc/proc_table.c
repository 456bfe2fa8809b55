#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/proc_table.h"

/*
 * Timelines of records about processes that do not exist: pids above the kernel's largest, so that
 * nothing in /proc interferes. Their files do not exist either: vaddr is the file offset.
 */
enum { SHELL = 5000001, CHILD = 5000002, OTHER = 5000003 };

struct fixture {
	struct dict *d;
	struct proc_table *t;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->t = proc_table_new(f->d);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	proc_table_free(f->t);
	dict_free(f->d);
	free(f);
	return 0;
}

static uint32_t map(struct fixture *f, uint64_t ns, pid_t pid, uint64_t addr, const char *path)
{
	return proc_table_mmap(f->t, ns, pid,
			       &(struct proc_mmap){ .addr = addr,
						    .len = 0x10000,
						    .file_off = 0x1000,
						    .dev = 77,
						    .ino = 1234,
						    .path = path });
}

static struct proc *find(struct fixture *f, pid_t pid, uint64_t start_ns, uint32_t exec_id)
{
	return proc_table_find(f->t, &(struct proc_id){ (uint32_t)pid, exec_id, start_ns });
}

static void assert_resolves(struct fixture *f, struct proc *p, uint32_t gen, uint64_t addr,
			    const char *path)
{
	module_id m = { 99 };
	uint64_t vaddr = 0;

	assert_non_null(p);
	proc_resolve(f->t, p, gen, addr, &m, &vaddr);
	assert_string_equal(dict_str(f->d, dict_module_get(f->d, m)->path), path);
	if (dict_module_get(f->d, m)->kind == MODULE_ELF)
		assert_int_equal(vaddr & 0xfff, addr & 0xfff);
	else
		assert_int_equal(vaddr, addr);
}

/* A process that began with an exec at 1,000 and was named by the kernel. */
static struct proc *began(struct fixture *f, pid_t pid, uint32_t exec_id)
{
	proc_table_comm(f->t, 1000, pid, pid, "sh", true);
	map(f, 1001, pid, 0x400000, "/bin/sh");
	map(f, 1002, pid, 0x7f0000000000, "/lib/libc.so.6");
	return find(f, pid, 900, exec_id);
}

static void an_exec_makes_an_unknown_process_known(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);

	assert_resolves(f, p, 0, 0x400123, "/bin/sh");
	assert_resolves(f, p, 0, 0x7f000000ffff, "/lib/libc.so.6");
	assert_int_equal(proc_pid(p), SHELL);
	assert_string_equal(proc_comm(p), "sh");
	assert_string_equal(proc_exe(p), "/bin/sh");
	assert_ptr_equal(proc_table_live(f->t, SHELL), p);
	assert_false(proc_replaced(p));
	assert_null(proc_parent(p));
}

static void the_vaddr_is_the_file_offset_where_the_file_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);
	module_id m;
	uint64_t vaddr;
	struct err e = { 0 };

	proc_resolve(f->t, p, 0, 0x400123, &m, &vaddr);
	assert_int_equal(vaddr, 0x1123);
	assert_int_equal(dict_module_get(f->d, m)->kind, MODULE_ELF);
	assert_int_equal(proc_table_open_module(f->t, m, &e), -ESTALE);
}

static void an_address_that_changed_hands_is_resolved_in_its_generation(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);

	assert_int_equal(map(f, 2000, SHELL, 0x7f1100000000, "/lib/first.so"), 0);
	/* dlclose is not reported; dlopen of another lands in the same place */
	assert_int_equal(map(f, 3000, SHELL, 0x7f1100000000, "/lib/second.so"), 1);
	assert_int_equal(proc_generation(p), 1);
	assert_resolves(f, p, 0, 0x7f1100000042, "/lib/first.so");
	assert_resolves(f, p, 1, 0x7f1100000042, "/lib/second.so");
	assert_resolves(f, p, 7, 0x7f1100000042, "/lib/second.so");
	assert_resolves(f, p, 0, 0x400000, "/bin/sh");
	assert_resolves(f, p, 1, 0x400000, "/bin/sh");
}

static void an_address_that_no_mapping_covers_is_counted(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);
	module_id m = { 9 };
	uint64_t vaddr;

	proc_resolve(f->t, p, 0, 0xdead0000, &m, &vaddr);
	assert_int_equal(m.ix, 0);
	assert_int_equal(vaddr, 0xdead0000);
	assert_int_equal(proc_table_stats(f->t).unresolved, 1);
}

static void a_forked_child_has_its_parents_mappings_and_its_own_after(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7), *c;

	proc_table_fork(f->t, 2000, CHILD, SHELL, CHILD);
	c = find(f, CHILD, 1999, 7);
	assert_resolves(f, c, 0, 0x400123, "/bin/sh");
	assert_string_equal(proc_comm(c), "sh");
	assert_string_equal(proc_exe(c), "/bin/sh");
	assert_ptr_equal(proc_parent(c), p);

	map(f, 2100, CHILD, 0x7f2200000000, "/lib/of_child.so");
	map(f, 2200, SHELL, 0x7f3300000000, "/lib/of_parent.so");
	assert_resolves(f, c, 0, 0x7f2200000000, "/lib/of_child.so");
	assert_resolves(f, c, 0, 0x7f3300000000, "");
	assert_resolves(f, p, 0, 0x7f2200000000, "");
	assert_resolves(f, p, 0, 0x7f3300000000, "/lib/of_parent.so");
}

static void a_child_is_in_its_parents_generation(void **state)
{
	struct fixture *f = *state;
	struct proc *c;

	began(f, SHELL, 7);
	map(f, 1100, SHELL, 0x400000, "/bin/other");
	proc_table_fork(f->t, 2000, CHILD, SHELL, CHILD);
	c = find(f, CHILD, 1999, 7);
	assert_int_equal(proc_generation(c), 1);
	assert_resolves(f, c, 1, 0x400000, "/bin/other");
	assert_resolves(f, c, 0, 0x400000, "/bin/sh");
	assert_int_equal(map(f, 2100, CHILD, 0x400000, "/bin/third"), 2);
	assert_int_equal(proc_generation(proc_table_live(f->t, SHELL)), 1);
}

static void an_exec_replaces_the_image_and_the_old_one_still_resolves(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7), *q;

	assert_int_equal(map(f, 1100, SHELL, 0x400000, "/bin/covers"), 1);
	proc_table_comm(f->t, 2000, SHELL, SHELL, "python3", true);
	assert_int_equal(map(f, 2001, SHELL, 0x400000, "/usr/bin/python3"), 0);
	q = find(f, SHELL, 900, 8);
	assert_ptr_not_equal(p, q);
	assert_ptr_equal(find(f, SHELL, 900, 7), p);
	assert_ptr_equal(proc_table_live(f->t, SHELL), q);
	assert_true(proc_replaced(p));
	assert_false(proc_exited(p));
	assert_false(proc_replaced(q));
	assert_string_equal(proc_comm(p), "sh");
	assert_string_equal(proc_comm(q), "python3");
	assert_string_equal(proc_exe(q), "/usr/bin/python3");
	assert_resolves(f, p, 1, 0x400000, "/bin/covers");
	assert_resolves(f, q, 0, 0x400000, "/usr/bin/python3");
	assert_resolves(f, q, 0, 0x7f0000000000, "");
}

static void exec_ids_of_children_count_on_from_their_parents(void **state)
{
	struct fixture *f = *state;
	struct proc *c, *g;

	began(f, SHELL, 7);
	proc_table_fork(f->t, 2000, CHILD, SHELL, CHILD);
	proc_table_comm(f->t, 2100, CHILD, CHILD, "make", true);
	map(f, 2101, CHILD, 0x400000, "/usr/bin/make");
	proc_table_fork(f->t, 2200, OTHER, CHILD, OTHER);
	proc_table_comm(f->t, 2300, OTHER, OTHER, "cc1", true);
	map(f, 2301, OTHER, 0x400000, "/usr/bin/cc1");

	c = find(f, CHILD, 1990, 8);
	assert_string_equal(proc_comm(c), "make");
	assert_string_equal(proc_comm(find(f, CHILD, 1990, 7)), "sh");
	g = find(f, OTHER, 2190, 9);
	assert_string_equal(proc_comm(g), "cc1");
	assert_string_equal(proc_comm(find(f, OTHER, 2190, 8)), "make");
	assert_ptr_equal(proc_parent(g), c);
	assert_null(find(f, OTHER, 2190, 10));
	assert_null(find(f, OTHER, 2190, 7));
}

static void an_exec_id_not_known_before_is_learned_from_the_newest_image(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 42);

	assert_resolves(f, p, 0, 0x400123, "/bin/sh");
	proc_table_comm(f->t, 2000, SHELL, SHELL, "ls", true);
	assert_string_equal(proc_comm(find(f, SHELL, 900, 43)), "ls");
	assert_ptr_equal(find(f, SHELL, 900, 42), p);
}

static void a_first_guess_that_was_one_exec_too_low_is_corrected(void **state)
{
	struct fixture *f = *state;

	proc_table_comm(f->t, 1000, SHELL, SHELL, "sh", true);
	map(f, 1001, SHELL, 0x400000, "/bin/sh");
	/* The first total seen is from before that exec; the next one is not. */
	assert_non_null(find(f, SHELL, 900, 6));
	assert_string_equal(proc_comm(find(f, SHELL, 900, 7)), "sh");
	assert_string_equal(proc_comm(find(f, SHELL, 900, 6)), "");
	assert_resolves(f, find(f, SHELL, 900, 7), 0, 0x400123, "/bin/sh");
	/* But no further. */
	assert_null(find(f, SHELL, 900, 8));
}

static void an_image_is_named_as_the_kernel_would(void **state)
{
	struct fixture *f = *state;
	struct proc_id id;

	proc_table_comm(f->t, 1000, SHELL, SHELL, "sh", true);
	assert_false(proc_id_of(proc_table_live(f->t, SHELL), &id));
	find(f, SHELL, 900, 7);
	proc_table_comm(f->t, 3000, SHELL, SHELL, "ls", true);
	assert_true(proc_id_of(proc_table_live(f->t, SHELL), &id));
	assert_int_equal(id.pid, SHELL);
	assert_int_equal(id.exec_id, 8);
	assert_int_equal(id.start_ns, 900);
	proc_table_fork(f->t, 4000, CHILD, SHELL, CHILD);
	assert_false(proc_id_of(proc_table_live(f->t, CHILD), &id));
	find(f, CHILD, 3900, 8);
	assert_true(proc_id_of(proc_table_live(f->t, CHILD), &id));
	assert_int_equal(id.exec_id, 8);
}

static void exec_ids_wrap(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, UINT32_MAX);

	proc_table_comm(f->t, 2000, SHELL, SHELL, "ls", true);
	assert_string_equal(proc_comm(find(f, SHELL, 900, 0)), "ls");
	assert_ptr_equal(find(f, SHELL, 900, UINT32_MAX), p);
}

static void a_pid_used_again_is_another_process(void **state)
{
	struct fixture *f = *state;
	struct proc *first, *second, *third;

	began(f, SHELL, 7);
	proc_table_fork(f->t, 2000, CHILD, SHELL, CHILD);
	proc_table_comm(f->t, 2001, CHILD, CHILD, "one", true);
	map(f, 2002, CHILD, 0x400000, "/bin/one");
	proc_table_exit(f->t, 2500, CHILD, CHILD);
	proc_table_fork(f->t, 3000, CHILD, SHELL, CHILD);
	proc_table_comm(f->t, 3001, CHILD, CHILD, "two", true);
	map(f, 3002, CHILD, 0x400000, "/bin/two");
	proc_table_exit(f->t, 3500, CHILD, CHILD);
	proc_table_fork(f->t, 4000, CHILD, SHELL, CHILD);

	third = find(f, CHILD, 3995, 7);
	second = find(f, CHILD, 2995, 8);
	first = find(f, CHILD, 1995, 8);
	assert_resolves(f, first, 0, 0x400000, "/bin/one");
	assert_resolves(f, second, 0, 0x400000, "/bin/two");
	assert_resolves(f, third, 0, 0x400000, "/bin/sh");
	assert_true(proc_exited(first) && proc_exited(second) && !proc_exited(third));
	assert_ptr_equal(proc_table_live(f->t, CHILD), third);
	assert_ptr_equal(proc_table_first(f->t, CHILD), first);
	assert_null(proc_table_first(f->t, CHILD + 1));
	assert_ptr_equal(find(f, CHILD, 1995, 8), first);
	/* Another start is another process still. */
	assert_null(find(f, CHILD, 2400, 8));
	assert_int_equal(proc_table_stats(f->t).unknown_procs, 1);
}

static void a_lost_exit_does_not_keep_a_pid_from_being_used_again(void **state)
{
	struct fixture *f = *state;
	struct proc *first, *second;

	began(f, SHELL, 7);
	proc_table_fork(f->t, 2000, CHILD, SHELL, CHILD);
	proc_table_fork(f->t, 3000, CHILD, SHELL, CHILD);
	first = find(f, CHILD, 1995, 7);
	second = find(f, CHILD, 2995, 7);
	assert_ptr_not_equal(first, second);
	assert_true(proc_exited(first));
	assert_false(proc_exited(second));
}

static void a_process_far_older_than_a_fork_record_is_not_that_forks(void **state)
{
	struct fixture *f = *state;

	began(f, SHELL, 7);
	proc_table_fork(f->t, 9000000000, CHILD, SHELL, CHILD);
	assert_null(find(f, CHILD, 1000000000, 7));
	assert_non_null(find(f, CHILD, 8999990000, 7));
}

static void records_of_unknown_processes_are_ignored(void **state)
{
	struct fixture *f = *state;

	proc_table_fork(f->t, 1000, CHILD, SHELL, CHILD);
	proc_table_comm(f->t, 1001, CHILD, CHILD, "x", false);
	assert_int_equal(map(f, 1002, CHILD, 0x400000, "/bin/x"), 0);
	proc_table_exit(f->t, 1003, CHILD, CHILD);
	assert_null(proc_table_live(f->t, CHILD));
	assert_null(find(f, CHILD, 999, 1));
	assert_int_equal(proc_table_stats(f->t).unknown_procs, 1);
}

static void threads_have_their_own_names(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);

	proc_table_fork(f->t, 1100, SHELL, SHELL, OTHER);
	assert_null(proc_thread_comm(p, OTHER));
	proc_table_comm(f->t, 1200, SHELL, OTHER, "io-worker", false);
	assert_string_equal(proc_thread_comm(p, OTHER), "io-worker");
	assert_string_equal(proc_comm(p), "sh");
	proc_table_comm(f->t, 1300, SHELL, OTHER, "sh", false);
	assert_null(proc_thread_comm(p, OTHER));
	proc_table_comm(f->t, 1400, SHELL, SHELL, "a name longer than 15 bytes", false);
	assert_string_equal(proc_comm(p), "a name longer t");
	/* A thread's name does not outlive its image. */
	proc_table_comm(f->t, 1500, SHELL, OTHER, "io-worker", false);
	proc_table_comm(f->t, 1600, SHELL, SHELL, "ls", true);
	assert_null(proc_thread_comm(proc_table_live(f->t, SHELL), OTHER));
	assert_string_equal(proc_thread_comm(p, OTHER), "io-worker");
}

/* A thread that began after the last proc_table_drained() has not stayed yet. */
static void a_thread_stays_from_the_next_drain_to_its_end(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);

	assert_true(proc_thread_stays(f->t, p, SHELL));
	assert_false(proc_thread_stays(f->t, p, OTHER));
	proc_table_fork(f->t, 1100, SHELL, SHELL, OTHER);
	assert_false(proc_thread_stays(f->t, p, OTHER));
	proc_table_drained(f->t);
	assert_true(proc_thread_stays(f->t, p, OTHER));
	proc_table_exit(f->t, 1200, SHELL, OTHER);
	assert_false(proc_thread_stays(f->t, p, OTHER));
	/* Its number is another's. */
	proc_table_fork(f->t, 1300, SHELL, SHELL, OTHER);
	proc_table_drained(f->t);
	proc_table_drained(f->t);
	assert_true(proc_thread_stays(f->t, p, OTHER));
}

/* Names of the last threads of 100,000 are there, and the first ones' of a process are not lost to them. */
static void what_is_kept_of_ended_threads_is_bounded(void **state)
{
	enum { N = 100000, TID = 6000000 };
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);
	uint32_t named = 0;

	proc_table_fork(f->t, 1050, SHELL, SHELL, OTHER);
	proc_table_comm(f->t, 1050, SHELL, OTHER, "that stays", false);
	for (int i = 0; i < N; i++) {
		proc_table_fork(f->t, 1100 + (uint64_t)i, SHELL, SHELL, TID + i);
		proc_table_comm(f->t, 1100 + (uint64_t)i, SHELL, TID + i, "request", false);
		proc_table_exit(f->t, 1100 + (uint64_t)i, SHELL, TID + i);
		if (i % 1000 == 999)
			proc_table_drained(f->t);
	}
	assert_string_equal(proc_thread_comm(p, TID + N - 1), "request");
	assert_string_equal(proc_thread_comm(p, OTHER), "that stays");
	for (int i = 0; i < N; i++)
		named += proc_thread_comm(p, TID + i) != NULL;
	/* ENDED_NAMES_MAX, and those of two drains. */
	assert_in_range(named, 2000, 4096 + 2 * 1000);
}

static void a_process_ends_with_its_last_thread(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);

	proc_table_fork(f->t, 1100, SHELL, SHELL, OTHER);
	proc_table_exit(f->t, 1200, SHELL, SHELL);
	assert_false(proc_exited(p));
	assert_int_equal(map(f, 1250, SHELL, 0x7f5500000000, "/lib/late.so"), 0);
	assert_resolves(f, p, 0, 0x7f5500000000, "/lib/late.so");
	proc_table_exit(f->t, 1300, SHELL, OTHER);
	assert_true(proc_exited(p));
	assert_null(proc_table_live(f->t, SHELL));
	assert_resolves(f, p, 0, 0x400000, "/bin/sh");
}

static void pseudo_mappings_have_their_own_kinds(void **state)
{
	static const struct {
		const char *path, *want;
		enum module_kind kind;
	} cases[] = {
		{ "[vdso]", "[vdso]", MODULE_VDSO },
		{ "//anon", "//anon", MODULE_ANON },
		{ "", "//anon", MODULE_ANON },
		{ "[heap]", "[heap]", MODULE_ANON },
		{ "/", "/[detached mount]", MODULE_ELF },
		{ "/dev/zero (deleted)", "/dev/zero", MODULE_ANON },
		{ "anon_inode:[perf_event]", "anon_inode:[perf_event]", MODULE_ANON },
		{ "/memfd:jit (deleted)", "/memfd:jit", MODULE_ELF },
		{ "/tmp/gone.so (deleted)", "/tmp/gone.so", MODULE_ELF },
	};
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t addr = 0x7f8000000000 + i * 0x100000, vaddr;
		module_id m;

		map(f, 2000 + i, SHELL, addr, cases[i].path);
		proc_resolve(f->t, p, 0, addr + 0x123, &m, &vaddr);
		assert_string_equal(dict_str(f->d, dict_module_get(f->d, m)->path), cases[i].want);
		assert_int_equal(dict_module_get(f->d, m)->kind, cases[i].kind);
		if (cases[i].kind == MODULE_ANON)
			assert_int_equal(vaddr, addr + 0x123);
		else
			assert_int_equal(vaddr, cases[i].kind == MODULE_VDSO ? 0x123 : 0x1123);
	}
}

static void the_vdso_of_a_32_bit_process_is_another(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);
	module_id m;
	uint64_t vaddr;

	map(f, 2000, SHELL, 0xf7f00000, "[vdso]");
	proc_resolve(f->t, p, 0, 0xf7f00010, &m, &vaddr);
	assert_string_equal(dict_str(f->d, dict_module_get(f->d, m)->path), "[vdso32]");
}

static void memory_without_a_file_is_each_processes_own(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7), *q = began(f, OTHER, 7);
	module_id mp, mq;
	uint64_t vaddr;

	map(f, 2000, SHELL, 0x7f9900000000, "//anon");
	map(f, 2000, OTHER, 0x7f9900000000, "//anon");
	proc_resolve(f->t, p, 0, 0x7f9900000000, &mp, &vaddr);
	proc_resolve(f->t, q, 0, 0x7f9900000000, &mq, &vaddr);
	assert_int_not_equal(mp.ix, mq.ix);
}

/* Generated code that was made writable and is executable again: the kernel reports it as it did at first. */
static void memory_without_a_file_that_is_reported_again_is_known(void **state)
{
	static const struct {
		uint64_t addr, len;
		const char *path;
		bool known;
	} again[] = {
		{ 0x7f9900000000, 0x10000, "//anon", true },
		{ 0x7f9900004000, 0x1000, "//anon", true },
		{ 0x7f9900004000, 0x1c000, "", true },
		{ 0x7f9900018000, 0x10000, "//anon", false },
		{ 0x7f98ffff0000, 0x20000, "//anon", false },
		{ 0x7f9900000000, 0x1000, "/lib/x.so", false },
		{ 0x7f9900040000, 0x10000, "/lib/x.so", false },
		{ 0x7f9900000000, UINT64_MAX, "//anon", false },
	};
	struct fixture *f = *state;

	began(f, SHELL, 7);
	map(f, 2000, SHELL, 0x7f9900000000, "//anon");
	map(f, 2000, SHELL, 0x7f9900010000, "//anon");
	map(f, 2000, SHELL, 0x7f9900040000, "/lib/x.so");
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
		assert_int_equal(proc_table_knows(f->t, SHELL,
						  &(struct proc_mmap){ .addr = again[i].addr,
								       .len = again[i].len,
								       .path = again[i].path }),
				 again[i].known);
	assert_false(proc_table_knows(
		f->t, OTHER,
		&(struct proc_mmap){ .addr = 0x7f9900000000, .len = 1, .path = "//anon" }));
	assert_true(proc_table_is_anon("[anon:v8]") && !proc_table_is_anon("/lib/x.so"));
}

static void one_file_is_one_module_for_all(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7), *q = began(f, OTHER, 7);
	module_id mp, mq;
	uint64_t vaddr;

	proc_resolve(f->t, p, 0, 0x7f0000000000, &mp, &vaddr);
	proc_resolve(f->t, q, 0, 0x7f0000000000, &mq, &vaddr);
	assert_int_equal(mp.ix, mq.ix);
	assert_int_equal(dict_module_get(f->d, mp)->dev, 77);
	assert_int_equal(dict_module_get(f->d, mp)->ino, 1234);
}

static void images_come_main_binary_first_and_once_each(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);
	struct proc_image im[8];

	map(f, 1100, SHELL, 0x100000, "/lib/low.so");
	map(f, 1101, SHELL, 0x200000, "//anon");
	map(f, 1102, SHELL, 0x7f0000100000, "/lib/libc.so.6");
	assert_int_equal(proc_images(f->t, p, im, 8), 3);
	assert_string_equal(dict_str(f->d, dict_module_get(f->d, im[0].module)->path), "/bin/sh");
	assert_string_equal(dict_str(f->d, dict_module_get(f->d, im[1].module)->path),
			    "/lib/low.so");
	assert_int_equal(im[2].addr, 0x7f0000000000);
	assert_int_equal(im[2].file_off, 0x1000);
	assert_int_equal(proc_images(f->t, p, im, 1), 3);
}

static void retired_processes_are_forgotten_and_their_children_are_not(void **state)
{
	struct fixture *f = *state;
	struct proc *c;

	began(f, SHELL, 7);
	proc_table_comm(f->t, 1500, SHELL, SHELL, "bash", true);
	map(f, 1501, SHELL, 0x400000, "/bin/bash");
	proc_table_fork(f->t, 2000, CHILD, SHELL, CHILD);
	proc_table_exit(f->t, 3000, SHELL, SHELL);
	c = find(f, CHILD, 1999, 8);

	proc_table_retire(f->t, 2500);
	assert_null(find(f, SHELL, 900, 7));
	assert_non_null(find(f, SHELL, 900, 8));
	proc_table_retire(f->t, 3001);
	assert_null(find(f, SHELL, 900, 8));
	assert_null(proc_parent(c));
	assert_resolves(f, c, 0, 0x400000, "/bin/bash");
	proc_table_exit(f->t, 4000, CHILD, CHILD);
	proc_table_retire(f->t, 5000);
	assert_null(find(f, CHILD, 1999, 8));
}

static void a_long_line_of_descent_is_freed(void **state)
{
	struct fixture *f = *state;

	began(f, SHELL, 7);
	for (int i = 0; i < 20000; i++) {
		proc_table_fork(f->t, 2000 + 2 * (uint64_t)i, SHELL + i + 1, SHELL + i,
				SHELL + i + 1);
		proc_table_exit(f->t, 2001 + 2 * (uint64_t)i, SHELL + i, SHELL + i);
	}
	proc_table_retire(f->t, UINT64_MAX);
	assert_null(proc_parent(proc_table_live(f->t, SHELL + 20000)));
	assert_null(proc_table_live(f->t, SHELL + 19999));
}

static void a_mapping_whose_end_overflows_is_ignored(void **state)
{
	struct fixture *f = *state;
	struct proc *p = began(f, SHELL, 7);

	proc_table_mmap(
		f->t, 2000, SHELL,
		&(struct proc_mmap){ .addr = UINT64_MAX - 0xfff, .len = 0x10000, .path = "/x" });
	assert_resolves(f, p, 0, UINT64_MAX - 1, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_exec_makes_an_unknown_process_known),
		TEST(the_vaddr_is_the_file_offset_where_the_file_cannot_be_read),
		TEST(an_address_that_changed_hands_is_resolved_in_its_generation),
		TEST(an_address_that_no_mapping_covers_is_counted),
		TEST(a_forked_child_has_its_parents_mappings_and_its_own_after),
		TEST(a_child_is_in_its_parents_generation),
		TEST(an_exec_replaces_the_image_and_the_old_one_still_resolves),
		TEST(exec_ids_of_children_count_on_from_their_parents),
		TEST(an_exec_id_not_known_before_is_learned_from_the_newest_image),
		TEST(a_first_guess_that_was_one_exec_too_low_is_corrected),
		TEST(an_image_is_named_as_the_kernel_would),
		TEST(exec_ids_wrap),
		TEST(a_pid_used_again_is_another_process),
		TEST(a_lost_exit_does_not_keep_a_pid_from_being_used_again),
		TEST(a_process_far_older_than_a_fork_record_is_not_that_forks),
		TEST(records_of_unknown_processes_are_ignored),
		TEST(threads_have_their_own_names),
		TEST(a_thread_stays_from_the_next_drain_to_its_end),
		TEST(what_is_kept_of_ended_threads_is_bounded),
		TEST(a_process_ends_with_its_last_thread),
		TEST(pseudo_mappings_have_their_own_kinds),
		TEST(the_vdso_of_a_32_bit_process_is_another),
		TEST(memory_without_a_file_is_each_processes_own),
		TEST(memory_without_a_file_that_is_reported_again_is_known),
		TEST(one_file_is_one_module_for_all),
		TEST(images_come_main_binary_first_and_once_each),
		TEST(retired_processes_are_forgotten_and_their_children_are_not),
		TEST(a_long_line_of_descent_is_freed),
		TEST(a_mapping_whose_end_overflows_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
