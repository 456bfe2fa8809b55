/*
 * HotSpot in a process made of bytes: its description is read and checked, and frames are named from a sound Method or
 * nmethod, and from nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hotspot_fixture.h"
#include "unwind/host_walk.h"

static struct hotspot_process p;
static struct lang_runtime rt;
static struct lang_frames all;
static uint64_t words[2];

static int find(void)
{
	struct err e = { 0 };

	return lang_runtime_find(&p.at, NULL, &p.memory.mem, &rt, &e);
}

static int fresh(void **state)
{
	(void)state;
	hsf_init(&p);
	assert_int_equal(find(), 0);
	p.memory.reads = 0;
	memset(&all, 'x', sizeof(all));
	return 0;
}

static enum lang_decoded interpreted(uint32_t bci)
{
	hsf_words(hsf_addr(HSF_METHOD), 0, MS_HOTSPOT_INTERPRETED | bci, words);
	return lang_decode_all(&rt, &p.memory.mem, words, &all);
}

static enum lang_decoded compiled(uint32_t off)
{
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, off, words);
	return lang_decode_all(&rt, &p.memory.mem, words, &all);
}

/* --- what it says of itself --- */

static void its_description_is_its_layout(void **state)
{
	const struct ms_hotspot *h = &rt.row.hotspot;

	(void)state;
	assert_string_equal(rt.name, "HotSpot 17.0.15");
	assert_false(rt.untested);
	assert_int_equal(rt.row.n_ranges, 1);
	assert_int_equal(rt.row.range[0].start, hsf_addr(HSF_CODE));
	assert_int_equal(h->segments[0], hsf_addr(HSF_MAP));
	assert_int_equal(h->segment_shift, 7);
	assert_int_equal(h->interpreter_end - h->interpreter, 0x800);
	assert_int_equal(h->entries, hsf_addr(HSF_INTERPRETER + 0x100));
	assert_int_equal(h->entries_end, hsf_addr(HSF_INTERPRETER + 0x200));
	assert_int_equal(h->name.at, 96);
	assert_int_equal(h->compile_id.bytes, 4);
	assert_int_equal(h->deopt.from, MS_FROM_NOTHING);
	assert_int_equal(h->bcp, 64);
}

static void a_description_that_is_not_filled_in_is_waited_for(void **state)
{
	static const uint32_t places[] = { HSF_SYMBOLS,      HSF_SYMBOLS + 8 * HS_STRUCT_STRIDE,
					   HSF_STATICS,      HSF_STATICS + 8,
					   HSF_STATICS + 16, HSF_QUEUE + 28,
					   HSF_HEAPS,        HSF_HEAP + 120 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fresh(state);
		hsf_put(&p, places[i], 0, 8);
		assert_int_equal(find(), -EAGAIN);
	}
}

static void a_layout_that_cannot_be_is_refused(void **state)
{
	fresh(state);
	hsf_put(&p, HSF_STRUCTS, hsf_text(&p, "CodeCash"), 8); /* it has no code heaps */
	assert_int_equal(find(), -EOPNOTSUPP);
	fresh(state);
	hsf_put(&p, HSF_TYPES + 16 * 5 + 8, 8192, 8); /* sizeof(nmethod) */
	assert_int_equal(find(), -EOPNOTSUPP);
	fresh(state);
	hsf_put(&p, HSF_TYPES + 16 * 5 + 8, 256, 8); /* smaller than where its fields are */
	assert_int_equal(find(), -EOPNOTSUPP);
	fresh(state);
	hsf_put(&p, HSF_HEAP + 256, 40, 4); /* segments of 2^40 bytes */
	assert_int_equal(find(), -EOPNOTSUPP);
	fresh(state);
	hsf_put(&p, HSF_INTERPRETER + 8, 8, 4); /* a codelet shorter than its head */
	assert_int_equal(find(), -EOPNOTSUPP);
}

static void a_thread_says_where_it_counts_what_it_allocates(void **state)
{
	struct hotspot_counter counter = { 0 };
	struct lang_image other = { .lang = MS_LANG_PYTHON };
	struct lang_mapped at = { .image = &other };

	(void)state;
	assert_int_equal(hotspot_counter_find(&p.at, &p.memory.mem, &counter, NULL), 0);
	assert_int_equal(counter.allocated, 520);
	assert_int_equal(counter.tlab_start, 400);
	assert_int_equal(counter.tlab_top, 408);
	assert_int_equal(hotspot_counter_find(&at, &p.memory.mem, &counter, NULL), -ENOENT);
	/* Of a JVM whose buffers are something else. */
	for (uint32_t i = p.n_structs - 13; i < p.n_structs - 9; i++) {
		uint32_t at_name = HSF_STRUCTS + 48 * i + 8;
		uint64_t name;

		memcpy(&name, p.bytes + at_name, sizeof(name));
		hsf_put(&p, at_name, hsf_text(&p, "_other"), 8);
		assert_int_equal(hotspot_counter_find(&p.at, &p.memory.mem, &counter, NULL),
				 -EOPNOTSUPP);
		hsf_put(&p, at_name, name, 8);
	}
	hsf_put(&p, HSF_SYMBOLS + 8 * HS_STRUCT_STRIDE, 0, 8);
	assert_int_equal(hotspot_counter_find(&p.at, &p.memory.mem, &counter, NULL), -EAGAIN);
}

static void who_waits_for_a_monitor_and_whose_it_is(void **state)
{
	const uint32_t owner = HSF_THREADS + 448 + 56;
	struct hotspot_waiter seen[4];
	uint32_t threads;

	(void)state;
	assert_int_equal(hotspot_monitors(&rt, &p.memory.mem, seen, 4, &threads), 1);
	assert_int_equal(threads, 3);
	assert_int_equal(seen[0].tid, 102);
	assert_int_equal(seen[0].owner_tid, 101);
	/* An address on the third one's stack. */
	hsf_put(&p, owner, hsf_addr(HSF_LEN + 0x2008), 8);
	assert_int_equal(hotspot_monitors(&rt, &p.memory.mem, seen, 4, &threads), 1);
	assert_int_equal(seen[0].owner_tid, 103);
	/* Nobody's, and of a thread that is not there. */
	hsf_put(&p, owner, 0, 8);
	assert_int_equal(hotspot_monitors(&rt, &p.memory.mem, seen, 4, &threads), 1);
	assert_int_equal(seen[0].owner_tid, 0);
	hsf_put(&p, owner, hsf_addr(HSF_LEN + 0x20000), 8);
	assert_int_equal(hotspot_monitors(&rt, &p.memory.mem, seen, 4, &threads), 1);
	assert_int_equal(seen[0].owner_tid, 0);
	/* A thread's number. */
	rt.hotspot.threads.by_id = true;
	rt.hotspot.threads.id = 32;
	hsf_put(&p, HSF_THREADS + 64 + 128 * 2 + 32, 77, 8);
	hsf_put(&p, owner, 77, 8);
	assert_int_equal(hotspot_monitors(&rt, &p.memory.mem, seen, 4, &threads), 1);
	assert_int_equal(seen[0].owner_tid, 103);
	assert_int_equal(hotspot_monitors(&rt, &p.memory.mem, seen, 0, &threads), 0);
	hsf_put(&p, HSF_THREADS + 16, hsf_addr(HSF_LEN), 8); /* the list is not there any more */
	assert_int_equal(hotspot_monitors(&rt, &p.memory.mem, seen, 4, &threads), 0);
	assert_int_equal(threads, 0);
}

/* --- names --- */

static void an_interpreted_frame_has_class_method_file_and_line(void **state)
{
	(void)state;
	assert_int_equal(interpreted(0), LANG_DECODED);
	assert_int_equal(all.n, 1);
	assert_string_equal(all.frame[0].function, "a.b.C.f");
	assert_string_equal(all.frame[0].file, "C.java");
	assert_int_equal(all.frame[0].line, 40);
	assert_int_equal(interpreted(4), LANG_DECODED);
	assert_int_equal(all.frame[0].line, 40);
	assert_int_equal(interpreted(5), LANG_DECODED);
	assert_int_equal(all.frame[0].line, 42);
	assert_int_equal(interpreted(12), LANG_DECODED);
	assert_int_equal(all.frame[0].line, 41);
	/* Behind its bytecodes, and where it is not known. */
	assert_int_equal(interpreted(HSF_BYTECODES), LANG_DECODED);
	assert_int_equal(all.frame[0].line, 0);
	assert_int_equal(interpreted(MS_HOTSPOT_AT), LANG_DECODED);
	assert_int_equal(all.frame[0].line, 0);
}

static void a_compiled_frame_has_what_is_inlined_into_it(void **state)
{
	(void)state;
	assert_int_equal(compiled(0x20), LANG_DECODED);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.frame[0].line, 42);
	assert_int_equal(compiled(0x30), LANG_DECODED);
	assert_int_equal(all.n, 2);
	assert_int_equal(all.frame[0].line, 41);
	assert_int_equal(all.frame[1].line, 42);
	/* Interrupted between them, and behind the last. */
	assert_int_equal(compiled(0x20 | MS_HOTSPOT_EXACT), LANG_DECODED);
	assert_int_equal(all.n, 2);
	assert_int_equal(compiled(0x40), LANG_DECODED);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.frame[0].line, 0);
	assert_string_equal(all.frame[0].function, "a.b.C.f");
}

static void a_stub_has_its_name(void **state)
{
	(void)state;
	hsf_words(hsf_addr(HSF_STUB), 0, 4, words);
	assert_int_equal(lang_decode_all(&rt, &p.memory.mem, words, &all), LANG_DECODED);
	assert_string_equal(all.frame[0].function, "[StubRoutines (1)]");
	assert_true(all.frame[0].stub);
	assert_int_equal(compiled(0x20), LANG_DECODED);
	assert_false(all.frame[0].stub);
	hsf_words(hsf_addr(HSF_STUB), 0, 4, words);
	/* What was compiled there is gone. */
	hsf_words(hsf_addr(HSF_STUB), HSF_ID, 4, words);
	assert_int_equal(lang_decode_all(&rt, &p.memory.mem, words, &all), LANG_GONE);
}

static void other_code_at_its_address_is_not_taken_for_it(void **state)
{
	(void)state;
	hsf_put(&p, HSF_NMETHOD + 304, HSF_ID + 1, 4);
	assert_int_equal(compiled(0x20), LANG_GONE);
	assert_int_equal(all.frame[0].function[0], 'x');
	/* A Method whose class has other constants. */
	hsf_put(&p, HSF_KLASS + 232, hsf_addr(HSF_POOL) + 8, 8);
	assert_int_equal(interpreted(0), LANG_GONE);
	/* A frame of another language. */
	fresh(state);
	compiled(0x20);
	words[1] ^= (uint64_t)(MS_LANG_HOTSPOT ^ MS_LANG_PYTHON) << MS_LANG_SHIFT;
	assert_int_equal(lang_decode_all(&rt, &p.memory.mem, words, &all), LANG_DAMAGED);
}

static void damaged_scopes_have_no_names(void **state)
{
	fresh(state);
	hsf_put(&p, HSF_NMETHOD + 0x300 + 4, 4, 1); /* it is inlined into itself */
	assert_int_equal(compiled(0x30), LANG_DAMAGED);
	fresh(state);
	hsf_put(&p, HSF_NMETHOD + 0x300 + 5, 0, 1); /* no method */
	assert_int_equal(compiled(0x30), LANG_DAMAGED);
	fresh(state);
	hsf_put(&p, HSF_NMETHOD + 0x340 + 16 + 4, 0x7000, 4); /* behind the end */
	assert_int_equal(compiled(0x20), LANG_DAMAGED);
	fresh(state);
	hsf_put(&p, HSF_CONST + 34, 100, 2); /* not one of the constants */
	assert_int_equal(interpreted(0), LANG_DAMAGED);
}

static void what_cannot_be_read_is_gone(void **state)
{
	static const uint32_t holes[] = { HSF_METHOD + 8,   HSF_CONST + 8,      HSF_POOL + 24,
					  HSF_KLASS + 24,   HSF_CLASS_NAME + 6, HSF_METHOD_NAME + 6,
					  HSF_FILE_NAME + 4 };

	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		fresh(state);
		p.memory.hole = holes[i];
		p.memory.hole_len = 1;
		assert_int_equal(interpreted(0), LANG_GONE);
		assert_int_equal(compiled(0x30), LANG_GONE);
	}
}

static void names_are_text(void **state)
{
	(void)state;
	hsf_put(&p, HSF_METHOD_NAME + 4, 4, 2);
	memcpy(p.bytes + HSF_METHOD_NAME + 6, "\x1b\xc3\xa4\xff", 4);
	assert_int_equal(interpreted(0), LANG_DECODED);
	assert_string_equal(all.frame[0].function, "a.b.C.\\x1b\xc3\xa4\\xff");
}

/* --- numbers --- */

static uint32_t number_of(const uint8_t *bytes, size_t n, bool no_zeros)
{
	struct hotspot_stream s;
	uint32_t number;

	memcpy(p.bytes + 64, bytes, n);
	hotspot_stream_open(&s, &p.memory.mem, hsf_addr(64), hsf_addr(64) + n, no_zeros);
	number = hotspot_stream_number(&s);
	return s.lost ? 0xffffffff : number;
}

static void numbers_are_as_either_encoding_has_them(void **state)
{
	(void)state;
	assert_int_equal(number_of((uint8_t[]){ 0 }, 1, false), 0);
	assert_int_equal(number_of((uint8_t[]){ 191 }, 1, false), 191);
	assert_int_equal(number_of((uint8_t[]){ 192, 0 }, 2, false), 192);
	assert_int_equal(number_of((uint8_t[]){ 193, 3 }, 2, false), 193 + 3 * 64);
	assert_int_equal(number_of((uint8_t[]){ 255, 255, 255, 255, 252 }, 5, false), 798911);
	assert_int_equal(number_of((uint8_t[]){ 1 }, 1, true), 0);
	assert_int_equal(number_of((uint8_t[]){ 191 }, 1, true), 190);
	assert_int_equal(number_of((uint8_t[]){ 192, 1 }, 2, true), 191);
	assert_int_equal(number_of((uint8_t[]){ 0 }, 1, true), 0xffffffff);
	assert_int_equal(number_of((uint8_t[]){ 192 }, 1, false), 0xffffffff);
}

/* --- the walk --- */

/* The walk of compiled code is that of x86-64. */
#if defined(__x86_64__)

static uint64_t frames[MS_MAX_FRAMES];

static bool read_memory(void *ctx, void *dst, size_t size, uint64_t addr)
{
	return fake_process_read(ctx, addr, dst, size);
}

/* Of a thread at `pc`, whose stack is at HSF_STACK. */
static uint32_t walk(uint64_t pc, uint64_t rbp)
{
	static const struct ms_space space;
	static const struct publish_mem none;
	uint64_t regs[MS_N_REGS] = { 0 }, missing;
	struct host_stack stack = { .pc = pc,
				    .regs = regs,
				    .addr = hsf_addr(HSF_STACK),
				    .bytes = p.bytes + HSF_STACK,
				    .len = 0x1000,
				    .space = &space,
				    .read = read_memory,
				    .ctx = &p.memory,
				    .lang = &rt.row };
	uint32_t n;

	regs[MS_X86_RSP] = hsf_addr(HSF_STACK);
	regs[MS_X86_RBP] = rbp;
	host_walk(&none, &stack, frames, &n, &missing);
	return n;
}

/*
 * At `words` of the stack: the return address into compiled code, whose frame follows, and the one of that into native
 * code that has no table.
 */
static void stack_of(uint32_t slot)
{
	memset(p.bytes + HSF_STACK, 0, 0x1000);
	hsf_put(&p, HSF_STACK + 8 * slot, hsf_addr(HSF_NMETHOD_CODE + 0x30), 8);
	hsf_put(&p, HSF_STACK + 8 * (slot + HSF_FRAME_WORDS), hsf_addr(HSF_NMETHOD_CODE + 0x20), 8);
	hsf_put(&p, HSF_STACK + 8 * (slot + 2 * HSF_FRAME_WORDS), 0x1000, 8);
}

static void is_walked(uint64_t pc, uint32_t slot, uint32_t at)
{
	stack_of(slot);
	assert_in_range(walk(pc, 0), 6, 7);
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, at | MS_HOTSPOT_EXACT, words);
	assert_int_equal(frames[0], words[0]);
	assert_int_equal(frames[1], words[1]);
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, 0x30, words);
	assert_int_equal(frames[2], words[0]);
	assert_int_equal(frames[3], words[1]);
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, 0x20, words);
	assert_int_equal(frames[5], words[1]);
}

static void compiled_code_is_walked_at_every_instruction(void **state)
{
	uint64_t code = hsf_addr(HSF_NMETHOD_CODE);
	static const uint8_t leave[] = { 0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0x40, 3,
					 0,    0,    0x0f, 0x87, 1,    0,    0,    0,    0xc3 };

	(void)state;
	memcpy(p.bytes + HSF_NMETHOD_CODE + 0x40, leave, sizeof(leave));
	is_walked(code, 0, 0);                         /* mov %eax,-n(%rsp) */
	is_walked(code + 7, 0, 7);                     /* push %rbp         */
	is_walked(code + 8, 1, 8);                     /* sub $0x20,%rsp    */
	is_walked(code + 12, HSF_FRAME_WORDS - 1, 12); /* the body        */
	is_walked(code + 0x40, HSF_FRAME_WORDS - 1, 0x40);
	is_walked(code + 0x44, 1, 0x44); /* pop %rbp  */
	is_walked(code + 0x45, 0, 0x45); /* the poll  */
	is_walked(code + 0x4c, 0, 0x4c);
	is_walked(code + 0x52, 0, 0x52); /* ret       */
}

static void an_interpreted_frame_is_walked_by_rbp(void **state)
{
	uint64_t fp = hsf_addr(HSF_STACK + 0x80), n;

	(void)state;
	stack_of(18);
	hsf_put(&p, HSF_STACK + 0x80 - 64, hsf_addr(HSF_CONST) + 48 + 5, 8);
	hsf_put(&p, HSF_STACK + 0x80 - 24, hsf_addr(HSF_METHOD), 8);
	hsf_put(&p, HSF_STACK + 0x80 - 8, hsf_addr(HSF_STACK + 8 * 19), 8);
	hsf_put(&p, HSF_STACK + 0x80, 0, 8);
	hsf_put(&p, HSF_STACK + 0x88, hsf_addr(HSF_NMETHOD_CODE + 0x30), 8);
	n = walk(hsf_addr(HSF_INTERPRETER + 0x250), fp);
	assert_in_range(n, 6, 7);
	hsf_words(hsf_addr(HSF_METHOD), 0, MS_HOTSPOT_INTERPRETED | MS_HOTSPOT_EXACT | 5, words);
	assert_int_equal(frames[0], words[0]);
	assert_int_equal(frames[1], words[1]);
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, 0x30, words);
	assert_int_equal(frames[3], words[1]);
}

static void a_frame_to_be_deoptimized_has_its_true_place(void **state)
{
	(void)state;
	stack_of(0);
	hsf_put(&p, HSF_STACK, hsf_addr(HSF_NMETHOD_CODE + 0x70), 8);
	hsf_put(&p, HSF_STACK + 8 + 8, hsf_addr(HSF_NMETHOD_CODE + 0x20), 8);
	walk(hsf_addr(HSF_NMETHOD_CODE + 7), 0);
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, 0x20, words);
	assert_int_equal(frames[3], words[1]);
}

/* What it has called returns into it. */
static void the_barrier_at_an_entry_has_a_word_more(void **state)
{
	uint64_t rbp = hsf_addr(HSF_STACK + 8 * 6);

	(void)state;
	hsf_put(&p, HSF_STUB + 96, hsf_text(&p, "barriers"), 8);
	stack_of(8);
	hsf_put(&p, HSF_STACK, hsf_addr(HSF_STUB + 0x840), 8); /* who called it returns there */
	hsf_put(&p, HSF_STACK + 8 * 2, hsf_addr(HSF_NMETHOD_CODE + 0x20), 8); /* a saved register */
	hsf_put(&p, HSF_STACK + 8 * 7, UINT64_MAX, 8);
	assert_in_range(walk(hsf_addr(HSF_STUB + 0x800), rbp), 8, 9);
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, 0x30, words);
	assert_int_equal(frames[5], words[1]);
}

static void a_free_segment_is_no_code(void **state)
{
	(void)state;
	stack_of(2);
	walk(hsf_addr(HSF_CODE + 0x4000), 0);
	/* Its pc is what is known; the first word that can be a return address is the guess. */
	assert_int_equal(frames[0], hsf_addr(HSF_CODE + 0x4000));
	hsf_words(hsf_addr(HSF_NMETHOD), HSF_ID, 0x30, words);
	assert_int_equal(frames[2], words[1]);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(its_description_is_its_layout, fresh),
		cmocka_unit_test_setup(a_description_that_is_not_filled_in_is_waited_for, fresh),
		cmocka_unit_test_setup(a_layout_that_cannot_be_is_refused, fresh),
		cmocka_unit_test_setup(a_thread_says_where_it_counts_what_it_allocates, fresh),
		cmocka_unit_test_setup(who_waits_for_a_monitor_and_whose_it_is, fresh),
		cmocka_unit_test_setup(an_interpreted_frame_has_class_method_file_and_line, fresh),
		cmocka_unit_test_setup(a_compiled_frame_has_what_is_inlined_into_it, fresh),
		cmocka_unit_test_setup(a_stub_has_its_name, fresh),
		cmocka_unit_test_setup(other_code_at_its_address_is_not_taken_for_it, fresh),
		cmocka_unit_test_setup(damaged_scopes_have_no_names, fresh),
		cmocka_unit_test_setup(what_cannot_be_read_is_gone, fresh),
		cmocka_unit_test_setup(names_are_text, fresh),
		cmocka_unit_test_setup(numbers_are_as_either_encoding_has_them, fresh),
#if defined(__x86_64__)
		cmocka_unit_test_setup(compiled_code_is_walked_at_every_instruction, fresh),
		cmocka_unit_test_setup(an_interpreted_frame_is_walked_by_rbp, fresh),
		cmocka_unit_test_setup(a_frame_to_be_deoptimized_has_its_true_place, fresh),
		cmocka_unit_test_setup(the_barrier_at_an_entry_has_a_word_more, fresh),
		cmocka_unit_test_setup(a_free_segment_is_no_code, fresh),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
