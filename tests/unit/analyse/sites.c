#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/messengers.h"
#include "analyse/sites.h"

/* Offsets are only there to tell locations apart. */
struct place {
	const char *function, *module;
};

struct fixture {
	struct dict *d;
	struct profile *p;
};

static int set_up(void **state)
{
	static const struct value_type types[] = { { "count", "count" }, { "value", "bytes" } };
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->p = profile_new(f->d, types, 2);
	*state = f;
	return f->p ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	profile_free(f->p);
	dict_free(f->d);
	free(f);
	return 0;
}

static location_id place(struct fixture *f, const char *function, const char *module)
{
	struct module m = { .kind = strcmp(module, "[kernel]") == 0 ? MODULE_KERNEL
				    : strcmp(module, "[Python]") == 0 ||
						    strcmp(module, "[Java]") == 0 ||
						    strcmp(module, "[JavaScript]") == 0 ||
						    strcmp(module, "[Ruby]") == 0
					    ? MODULE_LANG
					    : MODULE_ELF,
			    .path = dict_string(f->d, module) };
	struct line line = { .function = dict_string(f->d, function) };
	uint64_t vaddr = 1000 + line.function.ix;
	location_id id;

	if (!module[0]) /* an address that no file covers */
		return dict_location(f->d, (module_id){ 0 }, vaddr);
	id = dict_location(f->d, dict_module(f->d, &m), vaddr);
	dict_location_name(f->d, id, &line, 1);
	return id;
}

/* One sample; `places` leaf first, ended by an empty one. */
static void add(struct fixture *f, int64_t count, int64_t value, const struct place *places)
{
	location_id frames[16];
	int64_t values[2] = { count, value };
	uint32_t n = 0;

	for (; places[n].function; n++)
		frames[n] = place(f, places[n].function, places[n].module);
	assert_int_equal(profile_add(f->p, dict_stack(f->d, frames, n), (labels_id){ 0 }, values),
			 0);
}

#define ADD(f, count, value, ...) add(f, count, value, (const struct place[]){ __VA_ARGS__, { 0 } })

#define LIBC "/usr/lib/x86_64-linux-gnu/libc.so.6"
#define APP  "/usr/bin/app"
#define KERN "[kernel]"

static void allocation_belongs_to_who_called_the_allocator(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 100, { "malloc", LIBC }, { "xmalloc", APP }, { "parse", APP }, { "main", APP });
	ADD(f, 2, 50, { "malloc", LIBC }, { "strdup", LIBC }, { "parse", APP }, { "main", APP });
	ADD(f, 5, 10, { "calloc", LIBC }, { "load", APP }, { "main", APP });
	ADD(f, 1, 20, { "_rjem_malloc", APP }, { "parse", APP }, { "main", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, rows, 4), 2);
	assert_string_equal(rows[0].function, "parse");
	assert_string_equal(rows[0].module, "app");
	assert_string_equal(rows[0].leaf, "malloc");
	assert_int_equal(rows[0].value, 170);
	assert_int_equal(rows[0].count, 4);
	assert_string_equal(rows[1].function, "load");
}

static void the_place_of_an_allocation_may_be_an_inlined_call(void **state)
{
	struct fixture *f = *state;
	struct module app = { .kind = MODULE_ELF, .path = dict_string(f->d, APP) };
	struct line lines[] = { { .function = dict_string(f->d, "xmalloc"), .line = 5 },
				{ .function = dict_string(f->d, "make_order"), .line = 88 },
				{ .function = dict_string(f->d, "main"), .line = 9 } };
	location_id frames[2] = { place(f, "malloc", LIBC),
				  dict_location(f->d, dict_module(f->d, &app), 77) },
		    at;
	uint32_t frame;

	dict_location_name(f->d, frames[1], lines, 3);
	assert_int_equal(site_place_of_stack(f->d, dict_stack(f->d, frames, 2), &at, &frame), 0);
	assert_int_equal(at.ix, frames[1].ix);
	assert_int_equal(frame, 1);
	/* Nobody but the library: that is it, then. */
	assert_int_equal(site_place_of_stack(f->d, dict_stack(f->d, frames, 1), &at, &frame), 0);
	assert_int_equal(at.ix, frames[0].ix);
	assert_int_equal(site_place_of_stack(f->d, (stack_id){ 0 }, &at, &frame), -ENOENT);
}

#define PYTHON "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"
#define LANG   "[Python]"

static void what_native_code_allocates_is_that_of_the_function_that_called_it(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 100, { "malloc", LIBC }, { "list_resize", PYTHON }, { "load (app.py)", LANG },
	    { "<module> (app.py)", LANG }, { "_PyEval_EvalFrameDefault", PYTHON }, { "main", APP });
	/* So is what a library allocates that the interpreter has called. */
	ADD(f, 1, 50, { "malloc", LIBC }, { "inflateInit", "/usr/lib/libz.so.1" },
	    { "zlib_compress", PYTHON }, { "load (app.py)", LANG },
	    { "_PyEval_EvalFrameDefault", PYTHON }, { "main", APP });
	/* Where there is none of its frames, its own functions are all that is known. */
	ADD(f, 1, 25, { "malloc", LIBC }, { "gc_collect", PYTHON }, { "Py_RunMain", PYTHON },
	    { "main", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, rows, 4), 2);
	assert_string_equal(rows[0].function, "load (app.py)");
	assert_string_equal(rows[0].module, "[Python]");
	assert_int_equal(rows[0].value, 150);
	assert_string_equal(rows[1].function, "gc_collect");
}

static void interpreters_own_condition_is_the_gil(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 100, { "futex_wait", KERN }, { "do_futex", KERN },
	    { "pthread_cond_timedwait", LIBC }, { "take_gil", PYTHON }, { "run (app.py)", LANG },
	    { "_PyEval_EvalFrameDefault", PYTHON }, { "main", APP });
	/* threading.Lock; a library's condition; C code without Python. */
	ADD(f, 1, 50, { "futex_wait", KERN }, { "do_futex", KERN }, { "sem_clockwait", LIBC },
	    { "PyThread_acquire_lock_timed", PYTHON }, { "wait (threading.py)", LANG },
	    { "_PyEval_EvalFrameDefault", PYTHON }, { "main", APP });
	ADD(f, 1, 25, { "futex_wait", KERN }, { "do_futex", KERN },
	    { "pthread_cond_timedwait", LIBC }, { "pool_get", "/lib/libpool.so" },
	    { "get (pool.py)", LANG }, { "_PyEval_EvalFrameDefault", PYTHON }, { "main", APP });
	ADD(f, 1, 12, { "futex_wait", KERN }, { "do_futex", KERN },
	    { "pthread_cond_timedwait", LIBC }, { "work", APP }, { "main", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 4), 4);
	assert_int_equal(rows[0].wait, WAIT_GIL);
	assert_string_equal(rows[0].function, "run (app.py)");
	assert_int_equal(rows[1].wait, WAIT_LOCK);
	assert_int_equal(rows[2].wait, WAIT_LOCK);
	assert_int_equal(rows[3].wait, WAIT_LOCK);
}

#define JVM  "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"
#define JAVA "[Java]"

static void classes_of_the_jvm_work_for_the_programs_own(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 100, { "AllocTracer::send_allocation_in_new_tlab(Klass*)", JVM },
	    { "[_new_array_Java]", JAVA }, { "java.util.Arrays.copyOf (Arrays.java)", JAVA },
	    { "app.Shop.list (Shop.java)", JAVA }, { "java.lang.Thread.run (Thread.java)", JAVA },
	    { "JavaThread::run()", JVM });
	/* Nobody else has called them. */
	ADD(f, 1, 50, { "AllocTracer::send_allocation_in_new_tlab(Klass*)", JVM },
	    { "java.util.HashMap.resize (HashMap.java)", JAVA },
	    { "java.lang.Thread.run (Thread.java)", JAVA }, { "JavaThread::run()", JVM });
	assert_int_equal(sites_allocations(f->p, 1, 0, rows, 4), 2);
	assert_string_equal(rows[0].function, "app.Shop.list (Shop.java)");
	assert_string_equal(rows[1].function, "java.util.HashMap.resize (HashMap.java)");
}

static void java_waits_for_monitors_and_for_timers(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 100, { "futex_wait", KERN }, { "do_futex", KERN }, { "pthread_cond_wait", LIBC },
	    { "ObjectMonitor::enter(JavaThread*)", JVM },
	    { "[_complete_monitor_locking_Java]", JAVA }, { "app.Shop.sell (Shop.java)", JAVA },
	    { "JavaThread::run()", JVM });
	ADD(f, 1, 50, { "futex_wait", KERN }, { "do_futex", KERN },
	    { "pthread_cond_timedwait", LIBC }, { "JavaThread::sleep(long)", JVM },
	    { "JVM_Sleep", JVM }, { "java.lang.Thread.sleep (Thread.java)", JAVA },
	    { "app.Shop.rest (Shop.java)", JAVA }, { "JavaThread::run()", JVM });
	ADD(f, 1, 25, { "futex_wait", KERN }, { "do_futex", KERN }, { "pthread_cond_wait", LIBC },
	    { "Unsafe_Park", JVM }, { "jdk.internal.misc.Unsafe.park (Unsafe.java)", JAVA },
	    { "app.Shop.park (Shop.java)", JAVA }, { "JavaThread::run()", JVM });
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 4), 3);
	assert_int_equal(rows[0].wait, WAIT_MONITOR);
	assert_int_equal(rows[0].role, WAIT_ROLE_MUTEX);
	assert_string_equal(rows[0].function, "app.Shop.sell (Shop.java)");
	assert_int_equal(rows[1].wait, WAIT_TIMER);
	assert_string_equal(rows[1].function, "app.Shop.rest (Shop.java)");
	assert_int_equal(rows[2].wait, WAIT_LOCK);
	assert_string_equal(rows[2].function, "app.Shop.park (Shop.java)");
}

#define RUBY    "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.7"
#define IN_RUBY "[Ruby]"

static void interpreters_own_condition_outside_of_sleepers_is_the_gvl(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	/* After its slice of time, or a read, but not what waits for another thread, nor an extension's own condition. */
	ADD(f, 1, 100, { "futex_wait", KERN }, { "pthread_cond_timedwait", LIBC },
	    { "[libruby+0x1]", RUBY }, { "spin (app.rb)", IN_RUBY }, { "rb_vm_exec", RUBY },
	    { "main", APP });
	ADD(f, 1, 50, { "futex_wait", KERN }, { "pthread_cond_wait", LIBC },
	    { "[libruby+0x1]", RUBY }, { "IO#read", IN_RUBY }, { "serve (app.rb)", IN_RUBY },
	    { "rb_vm_exec", RUBY }, { "main", APP });
	ADD(f, 1, 25, { "futex_wait", KERN }, { "pthread_cond_wait", LIBC },
	    { "[libruby+0x1]", RUBY }, { "Thread::Queue#pop", IN_RUBY },
	    { "work (app.rb)", IN_RUBY }, { "rb_vm_exec", RUBY }, { "main", APP });
	ADD(f, 1, 12, { "futex_wait", KERN }, { "pthread_cond_wait", LIBC },
	    { "take", "/lib/pool.so" }, { "Pool#take", IN_RUBY }, { "run (app.rb)", IN_RUBY },
	    { "rb_vm_exec", RUBY }, { "main", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 4), 4);
	assert_int_equal(rows[0].wait, WAIT_GVL);
	assert_string_equal(rows[0].function, "spin (app.rb)");
	assert_int_equal(rows[1].wait, WAIT_GVL);
	assert_int_equal(rows[2].wait, WAIT_LOCK);
	assert_int_equal(rows[3].wait, WAIT_LOCK);
}

static void methods_of_ruby_itself_work_for_the_programs_own(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 100, { "malloc", LIBC }, { "[libruby+0x1]", RUBY }, { "String#*", IN_RUBY },
	    { "Kernel#then (<internal:kernel>)", IN_RUBY }, { "block in load (app.rb)", IN_RUBY },
	    { "<main> (app.rb)", IN_RUBY }, { "rb_vm_exec", RUBY }, { "main", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, rows, 4), 1);
	assert_string_equal(rows[0].function, "block in load (app.rb)");
}

static void cxx_containers_are_messengers_too(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 100, { "malloc", LIBC }, { "operator new(unsigned long)", "libstdc++.so.6.0.30" },
	    { "std::__new_allocator<int>::allocate(unsigned long, void const*)", APP },
	    { "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(int*)",
	      APP },
	    { "Cache::add(std::string const&)", APP }, { "main", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "Cache::add(std::string const&)");
}

static void function_that_takes_a_std_type_is_not_of_std(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 1, { "malloc", LIBC }, { "std::string make(std::string, int)", APP },
	    { "main", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "std::string make(std::string, int)");
}

static void allocation_by_messengers_alone_is_charged_to_the_first_of_them(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 1, { "malloc", LIBC }, { "getaddrinfo", LIBC });
	assert_int_equal(sites_allocations(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "getaddrinfo");
}

static void frame_without_a_name_is_not_the_site(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[2];

	ADD(f, 1, 2, { "libc.so.6+0x85f16", LIBC }, { "epoll_wait", LIBC }, { "?", "" });
	ADD(f, 1, 1, { "malloc", LIBC }, { "?", "" }, { "serve", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, rows, 2), 2);
	assert_string_equal(rows[0].function, "epoll_wait");
	assert_string_equal(rows[1].function, "serve");
}

static void wait_has_the_kernels_reason_and_is_charged_to_user_code(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 10, 500, { "__schedule", KERN }, { "schedule", KERN }, { "futex_wait_queue", KERN },
	    { "do_syscall_64", KERN }, { "pthread_cond_wait", LIBC }, { "take_job", APP },
	    { "main", APP });
	ADD(f, 1, 900, { "__schedule", KERN }, { "schedule", KERN }, { "io_schedule", KERN },
	    { "folio_wait_bit_common", KERN }, { "filemap_fault", KERN }, { "take_job", APP },
	    { "main", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 4), 2);
	assert_int_equal(rows[0].wait, WAIT_DISK);
	assert_string_equal(rows[0].function, "take_job");
	assert_string_equal(rows[0].leaf, "io_schedule");
	assert_int_equal(rows[1].wait, WAIT_LOCK);
	assert_string_equal(rows[1].leaf, "futex_wait_queue");
	assert_int_equal(rows[1].count, 10);
}

static void lock_of_the_cxx_library_is_its_callers(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 5, { "__schedule", KERN }, { "futex_wait_queue", KERN },
	    { "__lll_lock_wait", LIBC }, { "pthread_mutex_lock", LIBC },
	    { "__gthread_mutex_lock", APP }, { "std::mutex::lock()", APP }, { "add_order", APP },
	    { "main", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "add_order");
	assert_int_equal(row.role, WAIT_ROLE_MUTEX);
}

static void javas_own_classes_and_stubs_are_messengers(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 5, { "__schedule", KERN }, { "io_schedule", KERN }, { "fsync", LIBC },
	    { "java.io.FileDescriptor.sync0 (FileDescriptor.java)", "[Python]" },
	    { "[a stub]", "[Python]" }, { "Ledger.write (Ledger.java)", "[Python]" },
	    { "java.lang.Thread.run (Thread.java)", "[Python]" });
	assert_int_equal(sites_waits(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "Ledger.write (Ledger.java)");
	/* Where there is nothing else, the one that called. */
	ADD(f, 1, 50, { "mmap", LIBC }, { "[a stub]", "[Python]" },
	    { "java.lang.Thread.run (Thread.java)", "[Python]" });
	assert_int_equal(sites_allocations(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "[a stub]");
}

static void nodes_own_modules_are_messengers(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 5, { "io_schedule", KERN }, { "fsync", LIBC }, { "uv_fs_fsync", APP },
	    { "fsync", "[JavaScript]" }, { "fsyncSync (node:fs)", "[JavaScript]" },
	    { "writeJournal (service.js)", "[JavaScript]" },
	    { "processImmediate (node:internal/timers)", "[JavaScript]" }, { "node::Start", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "writeJournal (service.js)");
}

static void functions_that_a_language_brings_are_messengers(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 5, { "io_schedule", KERN }, { "fsync", LIBC }, { "IO#fsync", "[Python]" },
	    { "IO#sync (<internal:io>)", "[Python]" },
	    { "Object#write_order (service.rb)", "[Python]" }, { "Kernel#loop", "[Python]" });
	assert_int_equal(sites_waits(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "Object#write_order (service.rb)");
}

static void what_a_language_inlines_is_of_it(void **state)
{
	struct fixture *f = *state;
	struct module java = { .kind = MODULE_LANG, .path = dict_string(f->d, "[Java]") };
	struct line lines[2] = { { .function = dict_string(f->d, "Ledger.append (Ledger.java)") },
				 { .function = dict_string(f->d, "Turn.turn (Turn.java)") } };
	location_id at[2] = { place(f, "mmap", LIBC),
			      dict_location(f->d, dict_module(f->d, &java), 77) };
	int64_t values[2] = { 1, 5 };
	struct site_row row;

	dict_location_name(f->d, at[1], lines, 2);
	profile_add(f->p, dict_stack(f->d, at, 2), (labels_id){ 0 }, values);
	assert_int_equal(sites_allocations(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "Ledger.append (Ledger.java)");
}

static void rusts_traits_for_its_own_types_are_messengers(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[2];

	ADD(f, 1, 5, { "malloc", LIBC },
	    { "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", APP },
	    { "keep_ticket", APP }, { "main", APP });
	ADD(f, 1, 3, { "malloc", LIBC },
	    { "<shop::Ticket as alloc::borrow::ToOwned>::to_owned", APP }, { "main", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, rows, 2), 2);
	assert_string_equal(rows[0].function, "keep_ticket");
	assert_string_equal(rows[1].function, "<shop::Ticket as alloc::borrow::ToOwned>::to_owned");
}

static void lock_stands_for_what_it_waits_by(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 5, { "__schedule", KERN }, { "ep_poll", KERN }, { "epoll_wait", LIBC },
	    { "WaitEventSetWait", APP }, { "WaitLatch", APP }, { "ProcSleep", APP },
	    { "LockAcquireExtended", APP }, { "main", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, &row, 1), 1);
	assert_string_equal(row.function, "ProcSleep");
	assert_int_equal(row.role, WAIT_ROLE_MUTEX);
	assert_int_equal(row.wait, WAIT_EVENTS);
}

static void work_is_whose_garbage_is_collected_and_not_the_collectors(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 50, { "runtime.scanobject", APP }, { "runtime.gcDrain", APP },
	    { "runtime.gcBgMarkWorker", APP }, { "runtime.goexit", APP });
	ADD(f, 1, 20, { "runtime.scanobject", APP }, { "runtime.gcAssistAlloc", APP },
	    { "runtime.mallocgc", APP }, { "main.grow", APP }, { "main.main", APP });
	ADD(f, 1, 3, { "main.grow", APP }, { "main.main", APP });
	ADD(f, 1, 30, { "evacuate", APP }, { "GarbageCollect", APP }, { "scheduleDoGC", APP },
	    { "main", APP });
	assert_int_equal(sites_work(f->p, 1, rows, 4), 1);
	assert_string_equal(rows[0].function, "main.grow");
	assert_int_equal(rows[0].value, 23);
	/* Of a program with frames of a language, what its compilers do is not its work. */
	ADD(f, 1, 90, { "parse", APP }, { "compiler_loop", APP });
	ADD(f, 1, 7, { "visit", APP }, { "gc_collect_main", APP }, { "answer", "[Python]" },
	    { "main", APP });
	assert_int_equal(sites_work(f->p, 1, rows, 4), 1);
	assert_string_equal(rows[0].function, "answer");
	assert_int_equal(rows[0].value, 7);
}

static void unknown_wait_shows_its_first_telling_kernel_function(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 5, { "__schedule", KERN }, { "schedule_timeout", KERN },
	    { "wait_for_my_driver", KERN }, { "do_syscall_64", KERN });
	assert_int_equal(sites_waits(f->p, 1, 0, &row, 1), 1);
	assert_int_equal(row.wait, WAIT_OTHER);
	assert_string_equal(row.leaf, "wait_for_my_driver");
	assert_string_equal(row.function, "");
}

static void user_function_with_a_kernel_name_is_no_wait(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 5, { "do_nanosleep", APP }, { "main", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, &row, 1), 1);
	assert_int_equal(row.wait, WAIT_OTHER);
	assert_string_equal(row.function, "do_nanosleep");
}

static void rows_are_the_largest_in_order(void **state)
{
	static const char *const names[] = { "e", "b", "d", "a", "c" };
	struct fixture *f = *state;
	struct site_row rows[3];

	for (int i = 0; i < 5; i++)
		ADD(f, 1, i == 3 ? 20 : 10 + i, { "malloc", LIBC }, { names[i], APP });
	assert_int_equal(sites_allocations(f->p, 1, -1, rows, 3), 3);
	assert_string_equal(rows[0].function, "a");
	assert_string_equal(rows[1].function, "c");
	assert_string_equal(rows[2].function, "d");
	assert_int_equal(rows[0].count, 0);
	assert_int_equal(sites_allocations(f->p, 1, -1, rows, 0), 0);
}

static void samples_without_value_are_left_out(void **state)
{
	struct fixture *f = *state;
	struct site_row row;

	ADD(f, 1, 0, { "malloc", LIBC }, { "f", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, &row, 1), 0);
}

static void counts_are_of_all_samples_of_a_site_but_a_site_without_value_is_no_row(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[2];

	ADD(f, 3, 10, { "malloc", LIBC }, { "load", APP });
	ADD(f, 4, 0, { "malloc", LIBC }, { "load", APP }, { "main", APP });
	ADD(f, 5, 0, { "malloc", LIBC }, { "save", APP });
	assert_int_equal(sites_allocations(f->p, 1, 0, rows, 2), 1);
	assert_string_equal(rows[0].function, "load");
	assert_int_equal(rows[0].count, 7);
}

static void time_in_the_allocator_includes_its_page_faults(void **state)
{
	struct fixture *f = *state;
	int64_t value = 0;

	ADD(f, 1, 3, { "clear_page_erms", KERN }, { "_int_malloc", LIBC }, { "malloc", LIBC },
	    { "f", APP });
	ADD(f, 1, 4, { "free", LIBC }, { "f", APP });
	ADD(f, 1, 100, { "memcpy", LIBC }, { "f", APP });
	ADD(f, 1, 200, { "clear_page_erms", KERN }, { "f", APP });
	assert_int_equal(sites_allocator_value(f->p, 1, &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(sites_kernel_value(f->p, 1, &value), 0);
	assert_int_equal(value, 203);
}

static void traps_of_probes_are_not_the_allocators_time(void **state)
{
	struct fixture *f = *state;
	int64_t value = 0;

	ADD(f, 1, 3, { "irqentry_exit_to_user_mode", KERN }, { "asm_exc_int3", KERN },
	    { "malloc", LIBC }, { "f", APP });
	ADD(f, 1, 4, { "[anon]", "[uprobes]" }, { "malloc", LIBC }, { "f", APP });
	ADD(f, 1, 5, { "malloc", LIBC }, { "f", APP });
	ADD(f, 1, 6, { "read", LIBC }, { "asm_exc_int3", APP });
	assert_int_equal(sites_probe_value(f->p, 1, false, &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(sites_allocator_value(f->p, 1, &value), 0);
	assert_int_equal(value, 5);
}

static void way_to_a_probe_at_a_return_is_not_taken_for_a_system_call(void **state)
{
	struct fixture *f = *state;
	int64_t value = 0;

	ADD(f, 1, 3, { "do_syscall_64", KERN }, { "entry_SYSCALL_64_after_hwframe", KERN },
	    { "f", APP });
	ADD(f, 1, 4, { "bpf_prog_1_on_sys_enter", KERN }, { "do_syscall_64", KERN },
	    { "entry_SYSCALL_64_after_hwframe", KERN }, { "f", APP });
	ADD(f, 1, 10, { "do_syscall_64", KERN }, { "entry_SYSCALL_64_after_hwframe", KERN },
	    { "read", LIBC }, { "f", APP });
	ADD(f, 1, 20, { "ksys_read", KERN }, { "__x64_sys_read", KERN }, { "do_syscall_64", KERN },
	    { "entry_SYSCALL_64_after_hwframe", KERN }, { "f", APP });
	ADD(f, 1, 40, { "clear_page_erms", KERN }, { "asm_exc_page_fault", KERN }, { "f", APP });
	assert_int_equal(sites_probe_value(f->p, 1, true, &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(sites_probe_value(f->p, 1, false, &value), 0);
	assert_int_equal(value, 0);
}

static void add_of(struct fixture *f, const char *comm, int64_t value, const char *function)
{
	struct label label = { .key = dict_string(f->d, "comm"), .str = dict_string(f->d, comm) };
	location_id frames[] = { place(f, "schedule", KERN), place(f, function, KERN),
				 place(f, "kthread", KERN) };
	int64_t values[2] = { 1, value };

	assert_int_equal(profile_add(f->p, dict_stack(f->d, frames, 3),
				     dict_labels(f->d, &label, 1), values),
			 0);
}

static void waits_of_kernel_threads_are_distinguished(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[8];

	add_of(f, "rcu_preempt", 50, "rcu_gp_fqs_loop");
	add_of(f, "kworker/0:1", 20, "worker_thread");
	add_of(f, "kworker/1:3-ev", 10, "worker_thread");
	add_of(f, "ksoftirqd/0", 15, "smpboot_thread_fn");
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 8), 3);
	assert_string_equal(rows[0].comm, "rcu_preempt");
	assert_string_equal(rows[0].leaf, "rcu_gp_fqs_loop");
	assert_string_equal(rows[1].comm, "kworker");
	assert_int_equal(rows[1].value, 30);
	assert_int_equal(rows[1].count, 2);
	assert_string_equal(rows[2].comm, "ksoftirqd");
}

static void a_wait_in_a_function_without_a_name_has_the_caller_that_has_one(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 100, { "io_schedule", KERN }, { "fdatasync", LIBC }, { "app+0x1e84f0", APP },
	    { "XLogFlush", APP }, { "main", APP });
	ADD(f, 1, 50, { "io_schedule", KERN }, { "fsync", LIBC }, { "checkpoint", APP },
	    { "main", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 4), 2);
	assert_string_equal(rows[0].function, "app+0x1e84f0");
	assert_string_equal(rows[0].caller, "XLogFlush");
	assert_string_equal(rows[1].function, "checkpoint");
	assert_string_equal(rows[1].caller, "");
}

/* As by collect/stacks/langs.c: the path is the location's. */
static location_id source(struct fixture *f, const char *function, const char *path)
{
	struct module m = { .kind = MODULE_LANG, .path = dict_string(f->d, "[Python]") };
	struct line line = { .function = dict_string(f->d, function),
			     .file = dict_string(f->d, path) };

	return dict_location_lines(f->d, dict_module(f->d, &m), 0, &line, 1);
}

static void what_comes_with_a_language_works_for_the_program(void **state)
{
	static const struct {
		const char *path;
		bool library;
	} files[] = {
		{ "/usr/lib/python3.11/socket.py", true },
		{ "<frozen importlib._bootstrap>", true },
		{ "/usr/lib/python3/dist-packages/gunicorn/sync.py", false },
		{ "/root/.pyenv/versions/3.12.1/lib/python3.12/site-packages/flask/app.py", false },
		{ "/usr/lib/ruby/3.1.0/net/protocol.rb", true },
		{ "/var/lib/ruby/gems/3.1.0/gems/puma-5/puma.rb", false },
		{ "/usr/share/perl/5.36.0/IO/Socket.pm", true },
		{ "/usr/share/perl5/Perl/Critic.pm", false },
		{ "/srv/app.py", false },
	};
	struct fixture *f = *state;
	struct site_row rows[2];
	const location_id frames[] = { place(f, "sk_wait_data", KERN), place(f, "recv", LIBC),
				       source(f, "SocketIO.readinto (socket.py)", files[0].path),
				       source(f, "ask_stock (app.py)", "/srv/app.py"),
				       source(f, "SyncWorker.run (sync.py)", files[2].path) };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_int_equal(messenger_file(files[i].path), files[i].library);
	profile_add(f->p, dict_stack(f->d, frames, 5), (labels_id){ 0 },
		    (const int64_t[]){ 1, 100 });
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 2), 1);
	assert_string_equal(rows[0].function, "ask_stock (app.py)");
}

static void who_never_blocks_where_it_waits_for_a_cpu_was_pushed_off_it(void **state)
{
	struct fixture *f = *state;

	/* The first column: times blocked; the second: time runnable. */
	ADD(f, 0, 100, { "irqentry_exit", KERN }, { "work", APP }, { "main", APP });
	ADD(f, 7, 50, { "ep_poll", KERN }, { "loop", APP }, { "main", APP });
	ADD(f, 0, 20, { "asm_sysvec_apic_timer_interrupt", KERN }, { "parse", APP });
	assert_int_equal(sites_preempted_value(f->p, 0, 1), 120);
}

static void what_comes_with_go_works_for_the_program(void **state)
{
	struct fixture *f = *state;
	struct site_row rows[4];

	ADD(f, 1, 50, { "fsync", "[kernel]" }, { "syscall.Syscall", APP },
	    { "internal/poll.(*FD).Fsync", APP }, { "os.(*File).Sync", APP },
	    { "main.writeLedger", APP }, { "runtime.goexit", APP });
	ADD(f, 1, 20, { "fsync", "[kernel]" }, { "syscall.Syscall", APP },
	    { "net/http.(*conn).serve", APP }, { "runtime.goexit", APP });
	assert_int_equal(sites_waits(f->p, 1, 0, rows, 4), 2);
	assert_string_equal(rows[0].function, "main.writeLedger");
	assert_string_equal(rows[1].function, "net/http.(*conn).serve");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
		TEST(a_wait_in_a_function_without_a_name_has_the_caller_that_has_one),
		TEST(what_comes_with_a_language_works_for_the_program),
		TEST(who_never_blocks_where_it_waits_for_a_cpu_was_pushed_off_it),
		TEST(waits_of_kernel_threads_are_distinguished),
		TEST(the_place_of_an_allocation_may_be_an_inlined_call),
		TEST(allocation_belongs_to_who_called_the_allocator),
		TEST(what_native_code_allocates_is_that_of_the_function_that_called_it),
		TEST(interpreters_own_condition_is_the_gil),
		TEST(interpreters_own_condition_outside_of_sleepers_is_the_gvl),
		TEST(methods_of_ruby_itself_work_for_the_programs_own),
		TEST(classes_of_the_jvm_work_for_the_programs_own),
		TEST(java_waits_for_monitors_and_for_timers),
		TEST(cxx_containers_are_messengers_too),
		TEST(function_that_takes_a_std_type_is_not_of_std),
		TEST(allocation_by_messengers_alone_is_charged_to_the_first_of_them),
		TEST(frame_without_a_name_is_not_the_site),
		TEST(wait_has_the_kernels_reason_and_is_charged_to_user_code),
		TEST(lock_of_the_cxx_library_is_its_callers),
		TEST(javas_own_classes_and_stubs_are_messengers),
		TEST(nodes_own_modules_are_messengers),
		TEST(functions_that_a_language_brings_are_messengers),
		TEST(what_a_language_inlines_is_of_it),
		TEST(rusts_traits_for_its_own_types_are_messengers),
		TEST(lock_stands_for_what_it_waits_by),
		TEST(work_is_whose_garbage_is_collected_and_not_the_collectors),
		TEST(unknown_wait_shows_its_first_telling_kernel_function),
		TEST(user_function_with_a_kernel_name_is_no_wait),
		TEST(rows_are_the_largest_in_order),
		TEST(samples_without_value_are_left_out),
		TEST(counts_are_of_all_samples_of_a_site_but_a_site_without_value_is_no_row),
		TEST(traps_of_probes_are_not_the_allocators_time),
		TEST(way_to_a_probe_at_a_return_is_not_taken_for_a_system_call),
		TEST(time_in_the_allocator_includes_its_page_faults),
		TEST(what_comes_with_go_works_for_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
