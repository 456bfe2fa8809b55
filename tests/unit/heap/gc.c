/* Runtimes' counters of collections, where they are in this process itself: as CPython 3.11 and GHC lay them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/gc/gc.h"
#include "heap/ghc/ghc.h"

/* The names that are looked for. */
__attribute__((visibility("default"))) uint64_t _PyRuntime[64];
uint8_t stats[512];
uint64_t mblocks_allocated;

static uint8_t interpreter[1024], second[1024];
static _Alignas(64) uint8_t generations[2 * GHC_GEN_BYTES];

static void put(void *at, size_t off, uint64_t value)
{
	memcpy((uint8_t *)at + off, &value, 8);
}

static void put32(void *at, size_t off, uint32_t value)
{
	memcpy((uint8_t *)at + off, &value, 4);
}

static void put_interpreter(uint8_t *at, uint64_t a, uint64_t b, uint64_t c)
{
	memset(at, 0, sizeof(interpreter));
	put(at, 648 + 96, (uintptr_t)at + 648 + 24);
	put(at, 648 + 128, a);
	put(at, 648 + 152, b);
	put(at, 648 + 176, c);
}

static void begin_python(void)
{
	put_interpreter(interpreter, 70, 6, 1);
	memset(_PyRuntime, 0, sizeof(_PyRuntime));
	_PyRuntime[5] = (uintptr_t)interpreter;
}

static void a_process_without_a_runtime_has_no_counters(void **state)
{
	struct gc_reader *r;

	(void)state;
	memset(_PyRuntime, 0, sizeof(_PyRuntime));
	assert_int_equal(gc_reader_open(getpid(), &r), -ENOENT);
}

static void collections_of_all_interpreters_are_added_by_generation(void **state)
{
	_cleanup_(gc_reader_closep) struct gc_reader *r = NULL;
	struct gc_counters c;

	(void)state;
	begin_python();
	put_interpreter(second, 10, 2, 0);
	put(interpreter, 0, (uintptr_t)second);
	assert_int_equal(gc_reader_open(getpid(), &r), 0);
	assert_string_equal(gc_reader_runtime(r), "CPython");
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_int_equal(c.count, 89);
	assert_int_equal(c.kinds[0].count, 80);
	assert_int_equal(c.major, 1);
	assert_int_equal(c.time_ns, GC_UNKNOWN);
	assert_true(c.looks);
	assert_false(c.collecting);
	put32(second, 648 + 200, 1);
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_true(c.collecting);
}

static void an_interpreter_that_is_no_such_struct_any_more_gives_no_counters(void **state)
{
	_cleanup_(gc_reader_closep) struct gc_reader *r = NULL;
	struct gc_counters c;

	(void)state;
	begin_python();
	assert_int_equal(gc_reader_open(getpid(), &r), 0);
	put(interpreter, 648 + 96, 0);
	assert_int_equal(gc_reader_read(r, &c), -ESRCH);
	put(_PyRuntime, 40, 8); /* an address of nothing */
	assert_true(gc_reader_read(r, &c) < 0);
}

/* A megablock whose blocks are one group of the youngest generation. */
static void *begin_ghc(void)
{
	uint8_t *room = mmap(NULL, 3 * GHC_MBLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *mblock =
		(uint8_t *)(((uintptr_t)room + GHC_MBLOCK) & ~(uintptr_t)(GHC_MBLOCK - 1));
	uint8_t *bd = mblock + GHC_FIRST_BLOCK * GHC_BD_BYTES;

	assert_ptr_not_equal(room, MAP_FAILED);
	assert_int_equal(mprotect(mblock, GHC_MBLOCK, PROT_READ | PROT_WRITE), 0);
	put(bd, GHC_BD_START, (uintptr_t)mblock + GHC_FIRST_BLOCK * GHC_BLOCK);
	put(bd, GHC_BD_GEN, (uintptr_t)generations);
	put32(bd, GHC_BD_BLOCKS, GHC_MBLOCK_BLOCKS);
	memset(generations, 0, sizeof(generations));
	memset(stats, 0, sizeof(stats));
	for (uint32_t i = 0; i < 2; i++) {
		uint8_t *gen = generations + i * GHC_GEN_BYTES;

		put32(gen, GHC_GEN_NO, i);
		put(gen, 24, 100 * (i + 1));                           /* n_words */
		put(gen, 40, 1000);                                    /* n_large_words */
		put(gen, 72, 3 * i);                                   /* n_compact_blocks */
		put(gen, 120, (uintptr_t)generations + GHC_GEN_BYTES); /* to */
	}
	put32(generations, GHC_GEN_COLLECTIONS, 40);
	put32(generations, GHC_GEN_BYTES + GHC_GEN_COLLECTIONS, 2);
	return room;
}

static void generations_are_counted_without_symbols_of_more(void **state)
{
	_cleanup_(gc_reader_closep) struct gc_reader *r = NULL;
	struct gc_counters c;
	void *room = begin_ghc();

	(void)state;
	mblocks_allocated = 5;
	assert_int_equal(gc_reader_open(getpid(), &r), 0);
	assert_string_equal(gc_reader_runtime(r), "GHC");
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_int_equal(c.count, 42);
	assert_int_equal(c.major, 2);
	/* stats has other counts: it is another variable of that name. */
	assert_int_equal(c.live_bytes, 8 * (100 + 200 + 2000) + 3 * GHC_BLOCK);
	assert_int_equal(c.time_ns, GC_UNKNOWN);
	assert_int_equal(c.heap_bytes, 5 * GHC_MBLOCK);
	assert_non_null(strstr(gc_reader_missing(r), "no symbol"));
	put(generations, GHC_GEN_OLD_BLOCKS, 1);
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_true(c.looks && c.collecting);
	assert_int_equal(c.live_bytes, GC_UNKNOWN);
	munmap(room, 3 * GHC_MBLOCK);
}

static void statistics_that_count_as_the_generations_do_are_believed(void **state)
{
	_cleanup_(gc_reader_closep) struct gc_reader *r = NULL;
	struct gc_counters c;
	void *room = begin_ghc();

	(void)state;
	put32(stats, 0, 42);
	put32(stats, 4, 2);
	put(stats, 176, 7777);
	assert_int_equal(gc_reader_open(getpid(), &r), 0);
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_int_equal(c.live_bytes, 7777);
	assert_int_equal(c.time_ns, GC_UNKNOWN); /* it takes none */
	assert_non_null(strstr(gc_reader_missing(r), "+RTS -T"));
	put(stats, 136, 12345);
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_int_equal(c.time_ns, 12345);
	assert_string_equal(gc_reader_missing(r), "");
	munmap(room, 3 * GHC_MBLOCK);
}

static void what_no_runtime_can_have_counted_is_not_known(void **state)
{
	_cleanup_(gc_reader_closep) struct gc_reader *r = NULL;
	struct gc_counters c;
	void *room = begin_ghc();

	(void)state;
	put32(stats, 0, 42);
	put32(stats, 4, 2);
	put(stats, 136, (uint64_t)INT64_MIN);
	put(stats, 176, INT64_MAX);
	assert_int_equal(gc_reader_open(getpid(), &r), 0);
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_int_equal(c.time_ns, GC_UNKNOWN);
	assert_int_equal(c.live_bytes, GC_UNKNOWN);
	put(stats, 136, (uint64_t)GC_COUNTED_MAX);
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_int_equal(c.time_ns, GC_COUNTED_MAX);
	munmap(room, 3 * GHC_MBLOCK);
}

static void counts_of_an_interpreter_have_a_bound(void **state)
{
	_cleanup_(gc_reader_closep) struct gc_reader *r = NULL;
	struct gc_counters c;

	(void)state;
	begin_python();
	put_interpreter(interpreter, UINT64_MAX / 2, 0, UINT64_MAX);
	assert_int_equal(gc_reader_open(getpid(), &r), 0);
	assert_int_equal(gc_reader_read(r, &c), 0);
	assert_true(c.count <= GC_COUNTED_MAX && c.kinds[0].count <= GC_COUNTED_MAX);
	assert_true(c.major <= GC_COUNTED_MAX && c.kinds[2].count <= GC_COUNTED_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_without_a_runtime_has_no_counters),
		cmocka_unit_test(collections_of_all_interpreters_are_added_by_generation),
		cmocka_unit_test(an_interpreter_that_is_no_such_struct_any_more_gives_no_counters),
		cmocka_unit_test(generations_are_counted_without_symbols_of_more),
		cmocka_unit_test(statistics_that_count_as_the_generations_do_are_believed),
		cmocka_unit_test(what_no_runtime_can_have_counted_is_not_known),
		cmocka_unit_test(counts_of_an_interpreter_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
