/*
 * The walker over this very process: its own tables, registers and stack, against what libgcc's
 * unwinder says of the same place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/elf_file.h"
#include "unwind/host_walk.h"
#include "unwind/publish.h"
#include "unwind/rows.h"

#define NOINLINE __attribute__((noinline, noclone))

enum { POOL_WORDS = 4 << 20, TABLES = 64, RULES = 1 << 16, STACK_MAX = 1 << 20, FRAMES_MAX = 2100 };

static struct ms_space the_space;

static int put_space(void *ctx, uint32_t pid, const struct ms_space *space)
{
	(void)ctx, (void)pid;
	the_space = *space;
	return 0;
}

static void drop_space(void *ctx, uint32_t pid)
{
	(void)ctx, (void)pid;
}

static struct publish *publish;

/* One executable mapping of ours becomes a span. */
static uint32_t add_span(const char *line, struct ms_span *ret_span)
{
	unsigned long start, end, off;
	char perms[8], path[256] = "";
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	const struct elf_segment *segs;
	struct publish_key key = { 0 };
	uint32_t n_segs, number;
	uint64_t vaddr;
	int fd;

	if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, perms, &off, path) < 4 ||
	    perms[2] != 'x' || path[0] != '/')
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, path, &elf, NULL), 0);
	assert_int_equal(unwind_table_build(elf, &table, NULL), 0);
	key.len = (uint32_t)strnlen(path, sizeof(key.bytes));
	memcpy(key.bytes, path, key.len);
	assert_int_equal(publish_table(publish, &key, 1, &number), 0);
	assert_int_equal(publish_table_put(publish, number, table, true, 1, NULL), 0);
	segs = elf_file_segments(elf, &n_segs);
	assert_true(elf_segments_off_to_vaddr(segs, n_segs, off, &vaddr));
	*ret_span = (struct ms_span){ .start = start,
				      .end = end,
				      .bias = start - vaddr,
				      .table = number,
				      .kind = MS_SPAN_TABLE };
	close(fd);
	return 1;
}

static int setup(void **state)
{
	struct publish_mem mem = {
		.pool = calloc(POOL_WORDS, sizeof(uint32_t)),
		.n_words = POOL_WORDS,
		.tables = calloc(TABLES, sizeof(struct ms_table)),
		.n_tables = TABLES,
		.rules = calloc(RULES, sizeof(struct ms_rule)),
		.n_rules = RULES,
		.rule_stride = sizeof(struct ms_rule),
	};
	struct space_sink sink = { put_space, drop_space, NULL };
	struct ms_proc proc = { .tgid = (uint32_t)getpid() };
	struct ms_span spans[TABLES];
	char line[512];
	uint32_t n = 0;
	FILE *f;

	(void)state;
	assert_int_equal(publish_new(&mem, &sink, &publish, NULL), 0);
	f = fopen("/proc/self/maps", "re");
	assert_non_null(f);
	while (n < TABLES && fgets(line, sizeof(line), f))
		n += add_span(line, &spans[n]);
	fclose(f);
	assert_int_equal(publish_space_put(publish, &proc, 0, spans, n, false, 1), 0);
	return 0;
}

/* What is compared: both unwinders, called in one frame. */
static struct {
	uint64_t walked[MS_MAX_FRAMES];
	void *expected[FRAMES_MAX];
	uint32_t n_walked;
	int n_expected;
	enum ms_verdict verdict;
} here;

static void from_context(const ucontext_t *uc, uint64_t *pc, uint64_t *regs)
{
#if defined(__x86_64__)
	static const int order[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				       REG_R12, REG_R13, REG_R14, REG_R15 };

	for (int i = 0; i < 16; i++)
		regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	*pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
#else
	for (int i = 0; i < 31; i++)
		regs[i] = uc->uc_mcontext.regs[i];
	regs[MS_A64_SP] = uc->uc_mcontext.sp;
	*pc = uc->uc_mcontext.pc;
#endif
}

static char *stack_end(void)
{
	unsigned long start, end = 0;
	char line[512], here_too;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		    (unsigned long)&here_too >= start && (unsigned long)&here_too < end)
			break;
	fclose(f);
	return (char *)end;
}

static NOINLINE void look(void)
{
	uint64_t regs[MS_N_REGS] = { 0 }, pc, sp, missing;
	static uint8_t copy[STACK_MAX];
	struct host_stack stack = { .regs = regs, .bytes = copy, .space = &the_space };
	ucontext_t uc;

	here.n_expected = backtrace(here.expected, FRAMES_MAX);
	getcontext(&uc);
	from_context(&uc, &pc, regs);
	sp = regs[sizeof(void *) == 8 && MS_X86_RSP == 7 ?
#if defined(__x86_64__)
							 MS_X86_RSP
#else
							 MS_A64_SP
#endif
							 : 0];
	stack.pc = pc;
	stack.addr = sp & ~7ULL;
	stack.len = (size_t)(stack_end() - (char *)stack.addr);
	if (stack.len > sizeof(copy))
		stack.len = sizeof(copy);
	memcpy(copy, (void *)stack.addr, stack.len);
	here.verdict =
		host_walk(publish_memory(publish), &stack, here.walked, &here.n_walked, &missing);
	if (here.verdict != MS_COMPLETE)
		print_message("missing at %llx\n", (unsigned long long)missing);
}

/* The leaf is where each of the two was called; from there on the frames are the same. */
static void check_same(void)
{
	assert_int_equal(here.verdict, MS_COMPLETE);
	assert_int_equal(here.n_walked, here.n_expected);
	for (int i = 1; i < here.n_expected; i++)
		assert_int_equal(here.walked[i], (uint64_t)here.expected[i]);
}

static void own_stack_is_whole_and_as_libgcc_says(void **state)
{
	(void)state;
	look();
	check_same();
}

static void first_guess_is_the_first_frame_that_no_row_covers(void **state)
{
	uint64_t frames[MS_MAX_FRAMES];

	(void)state;
	look();
	check_same();
	assert_true(here.n_walked > 2);
	memcpy(frames, here.walked, sizeof(frames));
	assert_int_equal(
		host_first_guess(publish_memory(publish), &the_space, frames, here.n_walked),
		here.n_walked);
	frames[2] = (uint64_t)frames; /* no code is there */
	assert_int_equal(
		host_first_guess(publish_memory(publish), &the_space, frames, here.n_walked), 2);
}

static NOINLINE int down(int n)
{
	volatile char room[24];
	int r;

	room[0] = (char)n;
	if (n)
		r = down(n - 1) + room[0];
	else
		look(), r = 0;
	return r + 1;
}

static void deep_recursion_is_whole(void **state)
{
	(void)state;
	down(1500);
	check_same();
}

static void deeper_than_we_go_is_truncated(void **state)
{
	(void)state;
	down(MS_MAX_FRAMES);
	assert_int_equal(here.verdict, MS_TRUNCATED);
	assert_int_equal(here.n_walked, MS_MAX_FRAMES);
	for (int i = 1; i < MS_MAX_FRAMES; i++)
		assert_int_equal(here.walked[i], (uint64_t)here.expected[i]);
}

static int compare(const void *a, const void *b)
{
	look();
	return *(const int *)a - *(const int *)b;
}

static void libc_calling_back_is_whole(void **state)
{
	int v[2] = { 2, 1 };

	(void)state;
	qsort(v, 2, sizeof(v[0]), compare);
	check_same();
	assert_int_equal(v[0], 1);
}

static NOINLINE void with_room(size_t n)
{
	char *room = __builtin_alloca(n);

	memset(room, (int)n, n);
	look();
	__asm__ volatile("" : : "r"(room) : "memory");
}

static void frames_of_unknown_size_are_walked(void **state)
{
	(void)state;
	for (size_t n = 16; n < 40000; n = n * 3 + 8) {
		with_room(n);
		check_same();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_stack_is_whole_and_as_libgcc_says),
		cmocka_unit_test(first_guess_is_the_first_frame_that_no_row_covers),
		cmocka_unit_test(deep_recursion_is_whole),
		cmocka_unit_test(deeper_than_we_go_is_truncated),
		cmocka_unit_test(libc_calling_back_is_whole),
		cmocka_unit_test(frames_of_unknown_size_are_walked),
	};

#if defined(__SANITIZE_ADDRESS__)
	puts("1..0 # SKIP AddressSanitizer lets nobody read a stack as it is");
	return 0;
#endif
	return cmocka_run_group_tests(tests, setup, NULL);
}
