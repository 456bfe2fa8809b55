#include "analyse/gc_time.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static void what_collectors_do_is_theirs_and_nothing_else(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	int64_t value[N_GC_RUNTIMES] = { 0 };

	fixture_add1(&f, "java;start_thread;GangWorker::loop();G1ParScanThreadState::trim", 1);
	fixture_add1(&f, "node;main;v8::internal::Heap::CollectGarbage(int);mark", 2);
	fixture_add1(
		&f,
		"node;start_thread;v8::internal::MemoryAllocator::Unmapper::UnmapFreeMemoryJob::Run(v8::JobDelegate*)",
		1024);
	fixture_add1(&f, "app;main.work;runtime.mallocgc;runtime.gcAssistAlloc;runtime.scanobject",
		     4);
	fixture_add1(&f, "python3;main;gc_collect_main;visit", 8);
	fixture_add1(&f, "java;start_thread;CompileBroker::compiler_thread_loop();parse", 16);
	fixture_add1(&f, "app;main.work;runtime.mallocgc;runtime.nextFreeFast", 32);
	fixture_add1(&f, "app;main;my_gc_collect_main", 64);
	fixture_add1(&f, "main;real_main;scheduleDoGC;GarbageCollect;scavenge_block", 128);
	fixture_add1(&f, "ruby;main;gc_start;gc_marks", 256);
	fixture_add1(&f, "php;main;zend_gc_collect_cycles", 512);
	assert_int_equal(gc_time(f.p, 0, value), 0);
	assert_int_equal(value[GC_HOTSPOT], 1);
	assert_int_equal(value[GC_V8], 2 + 1024);
	assert_int_equal(value[GC_GO], 4);
	assert_int_equal(value[GC_CPYTHON], 8);
	assert_int_equal(value[GC_GHC], 128);
	assert_int_equal(value[GC_RUBY], 256);
	assert_int_equal(value[GC_PHP], 512);
	for (int i = 0; i < N_GC_RUNTIMES; i++)
		assert_non_null(gc_runtime_name((enum gc_runtime)i));
	fixture_free(&f);
}

static void what_compilers_do_in_a_running_program_is_theirs(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	int64_t value = -1;

	fixture_add1(
		&f,
		"java;start_thread;CompileBroker::compiler_thread_loop();C2Compiler::compile_method;parse",
		1);
	fixture_add1(
		&f, "node;start_thread;v8::internal::OptimizingCompileDispatcher::CompileNext(x);a",
		2);
	fixture_add1(&f, "node;main;v8::internal::compiler::PipelineImpl::SelectInstructions(b)",
		     4);
	fixture_add1(&f, "node;main;v8::internal::Compiler::Compile(b)", 8);
	fixture_add1(&f, "java;main;my_CompileBroker::compiler_thread_loop", 16);
	fixture_add1(&f, "java;start_thread;GangWorker::loop()", 32);
	assert_int_equal(jit_time(f.p, 0, &value), 0);
	assert_int_equal(value, 7);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_collectors_do_is_theirs_and_nothing_else),
		cmocka_unit_test(what_compilers_do_in_a_running_program_is_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
