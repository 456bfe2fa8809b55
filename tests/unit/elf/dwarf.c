#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/dwarf.h"
#include "elf/dwarf_read.h"

#define SEED "tests/fuzz/corpus/dwarf/gcc5"

/* --- this very program as the file that is read --- */

static uintptr_t here, inner_line, outer_line;

static __attribute__((noinline)) void note_caller(void)
{
	here = (uintptr_t)__builtin_return_address(0);
}

static inline __attribute__((always_inline)) void inlined_callee(void)
{
	inner_line = __LINE__ + 1;
	note_caller();
	__asm__ volatile("");
}

static __attribute__((noinline)) void real_caller(void)
{
	outer_line = __LINE__ + 1;
	inlined_callee();
	__asm__ volatile("");
}

static uint64_t vaddr_of(uintptr_t addr)
{
	struct link_map *map = NULL;
	Dl_info info;

	assert_true(dladdr1((void *)addr, &info, (void **)&map, RTLD_DL_LINKMAP));
	return addr - map->l_addr;
}

static struct elf_file *open_self(int *ret_fd)
{
	struct elf_file *elf;

	*ret_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open(*ret_fd, "self", &elf, NULL), 0);
	return elf;
}

static void inlined_call_is_found_with_the_line_of_each_frame(void **state)
{
	const struct dwarf_frame *f;
	struct dwarf_lines *lines;
	uint64_t vaddr;
	int fd;
	struct elf_file *elf = open_self(&fd);

	real_caller();
	vaddr = vaddr_of(here) - 1;
	if (!dwarf_present(elf)) {
		print_message("this test was built without -g\n");
		skip();
	}
	assert_int_equal(dwarf_lines_read(elf, NULL, &vaddr, 1, 30000, &lines, NULL), 0);
	assert_null(dwarf_lines_cut_short(lines));
	assert_int_equal(dwarf_lines_find(lines, vaddr, &f), 2);
	assert_string_equal(f[0].function, "inlined_callee");
	assert_int_equal(f[0].line, inner_line);
	assert_string_equal(f[1].function, "real_caller");
	assert_int_equal(f[1].line, outer_line);
	assert_true(f[1].start_line < outer_line && outer_line - f[1].start_line <= 3);
	assert_non_null(strstr(f[0].file, "tests/unit/elf/dwarf.c"));
	assert_int_equal(f[0].file[0], '/');
	dwarf_lines_free(lines);
	elf_file_close(elf);
	close(fd);
}

/* Not even the first unit is read to its end in a thousandth of a millisecond; in a minute all are. */
static void debug_info_is_left_unread_when_its_time_is_over(void **state)
{
	struct dwarf_budget budget = { .cpu_ns = 2000 };
	struct dwarf_lines *lines;
	const struct dwarf_frame *f;
	struct err e = { 0 };
	uint64_t vaddr;
	int fd;
	struct elf_file *elf = open_self(&fd);

	real_caller();
	vaddr = vaddr_of(here) - 1;
	if (!dwarf_present(elf))
		skip();
	assert_true(dwarf_lines_read_within(elf, NULL, &vaddr, 1, 30000, &budget, &lines, &e) < 0);
	assert_non_null(strstr(e.msg, "debug info takes too long to read"));
	assert_true(budget.ran_out);
	assert_true(budget.cpu_ns < 2000);

	budget = (struct dwarf_budget){ .cpu_ns = 60000000000 };
	assert_int_equal(
		dwarf_lines_read_within(elf, NULL, &vaddr, 1, 30000, &budget, &lines, NULL), 0);
	assert_int_equal(dwarf_lines_find(lines, vaddr, &f), 2);
	assert_false(budget.ran_out);
	assert_in_range(budget.cpu_ns, 1, 59999999999);
	dwarf_lines_free(lines);
	elf_file_close(elf);
	close(fd);
}

static void an_address_outside_all_code_has_no_frames(void **state)
{
	const uint64_t vaddrs[] = { 0, 1, UINT64_MAX };
	struct dwarf_lines *lines;
	int fd;
	struct elf_file *elf = open_self(&fd);

	assert_true(dwarf_lines_read(elf, NULL, vaddrs, 3, 30000, &lines, NULL) < 0);
	elf_file_close(elf);
	close(fd);
}

static void no_child_and_no_descriptor_is_left_behind(void **state)
{
	uint64_t vaddr = vaddr_of((uintptr_t)real_caller) + 4;
	struct dwarf_lines *lines;
	int fd, before, after;
	struct elf_file *elf = open_self(&fd);

	before = dup(0);
	close(before);
	for (int i = 0; i < 5; i++)
		if (dwarf_lines_read(elf, NULL, &vaddr, 1, 30000, &lines, NULL) == 0)
			dwarf_lines_free(lines);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
	elf_file_close(elf);
	close(fd);
}

static void no_time_is_no_answer_and_a_reason(void **state)
{
	uint64_t vaddr = vaddr_of((uintptr_t)real_caller) + 4;
	struct dwarf_lines *lines;
	struct err e = { 0 };
	int fd;
	struct elf_file *elf = open_self(&fd);

	if (dwarf_present(elf)) {
		assert_int_equal(dwarf_lines_read(elf, NULL, &vaddr, 1, 0, &lines, &e), -EBADMSG);
		assert_non_null(strstr(e.msg, "too long"));
	}
	elf_file_close(elf);
	close(fd);
}

/* --- damaged files --- */

static size_t read_seed(uint8_t *buf, size_t cap)
{
	FILE *f = fopen(SEED, "re");
	size_t n;

	if (!f) {
		print_message("%s is not here: run from the top of the tree\n", SEED);
		skip();
	}
	n = fread(buf, 1, cap, f);
	fclose(f);
	return n;
}

/* Whatever comes out, it comes out: the answers are checked where they are found. */
static void read_damaged(const uint8_t *bytes, size_t len)
{
	const uint64_t vaddrs[] = { 0x2c0, 0x2c8, 0x2d4, 0x300, 0x306 };
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	const struct dwarf_frame *frames;
	struct dwarf_lines *lines;
	struct elf_file *elf;
	struct err e = { 0 };

	assert_int_equal(write(fd, bytes, len), len);
	if (elf_file_open_debug(fd, "damaged", &elf, &e) == 0) {
		if (dwarf_lines_read(elf, NULL, vaddrs, 5, 10000, &lines, &e) == 0) {
			for (int i = 0; i < 5; i++)
				assert_true(dwarf_lines_find(lines, vaddrs[i], &frames) <= 4);
			dwarf_lines_free(lines);
		} else {
			assert_true(e.msg[0] != '\0');
		}
		elf_file_close(elf);
	} else {
		assert_true(e.msg[0] != '\0');
	}
	close(fd);
}

static void a_file_cut_off_anywhere_gives_a_reason(void **state)
{
	uint8_t bytes[8192];
	size_t len = read_seed(bytes, sizeof(bytes));

	for (size_t cut = 0; cut < len; cut += 23)
		read_damaged(bytes, cut);
}

static void a_file_that_lies_at_any_byte_gives_a_reason(void **state)
{
	uint8_t bytes[8192];
	size_t len = read_seed(bytes, sizeof(bytes));

	for (size_t at = 64; at < len; at += 19) {
		uint8_t old = bytes[at];

		bytes[at] = old ^ 0xff;
		read_damaged(bytes, len);
		bytes[at] = old;
	}
}

/* --- what comes over the pipe --- */

static struct dwarf_lines *parse(const char *text, size_t len, int32_t *ret_code)
{
	struct dwarf_lines *lines = NULL;
	char *copy = malloc(len + 1);

	memcpy(copy, text, len);
	assert_int_equal(dwarf_answers_parse(copy, len, &lines, ret_code), 0);
	return lines;
}

#define STRING_MAIN "S\4\0\0\0main"
#define ANSWER_8                                                                                   \
	"A\10\0\0\0\0\0\0\0\1\0\0\0"                                                               \
	"\1\0\0\0\0\0\0\0\7\0\0\0\3\0\0\0"

static void answers_end_with_their_code(void **state)
{
	static const char text[] = STRING_MAIN ANSWER_8 "E\2\0\0\0";
	const struct dwarf_frame *f;
	int32_t code;
	struct dwarf_lines *lines = parse(text, sizeof(text) - 1, &code);

	assert_int_equal(code, 2);
	assert_null(dwarf_lines_cut_short(lines));
	assert_int_equal(dwarf_lines_find(lines, 8, &f), 1);
	assert_string_equal(f[0].function, "main");
	assert_null(f[0].file);
	assert_int_equal(f[0].line, 7);
	assert_int_equal(f[0].start_line, 3);
	assert_int_equal(dwarf_lines_find(lines, 9, &f), 0);
	dwarf_lines_free(lines);
}

static void answers_cut_off_are_good_up_to_there(void **state)
{
	static const char text[] = STRING_MAIN ANSWER_8;
	const struct dwarf_frame *f;

	for (size_t len = 0; len < sizeof(text); len++) {
		int32_t code;
		struct dwarf_lines *lines = parse(text, len, &code);

		assert_non_null(dwarf_lines_cut_short(lines));
		assert_int_equal(dwarf_lines_find(lines, 8, &f), len == sizeof(text) - 1);
		dwarf_lines_free(lines);
	}
}

static void nonsense_ends_the_answers(void **state)
{
	static const char no_such_string[] = ANSWER_8 "E\0\0\0\0";
	static const char too_many[] = STRING_MAIN "A\10\0\0\0\0\0\0\0\0\0\1\0";
	const struct dwarf_frame *f;
	struct dwarf_lines *lines;
	int32_t code;

	lines = parse(no_such_string, sizeof(no_such_string) - 1, &code);
	assert_non_null(dwarf_lines_cut_short(lines));
	assert_int_equal(dwarf_lines_find(lines, 8, &f), 0);
	dwarf_lines_free(lines);
	lines = parse(too_many, sizeof(too_many) - 1, &code);
	assert_non_null(dwarf_lines_cut_short(lines));
	dwarf_lines_free(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_call_is_found_with_the_line_of_each_frame),
		cmocka_unit_test(debug_info_is_left_unread_when_its_time_is_over),
		cmocka_unit_test(an_address_outside_all_code_has_no_frames),
		cmocka_unit_test(no_child_and_no_descriptor_is_left_behind),
		cmocka_unit_test(no_time_is_no_answer_and_a_reason),
		cmocka_unit_test(a_file_cut_off_anywhere_gives_a_reason),
		cmocka_unit_test(a_file_that_lies_at_any_byte_gives_a_reason),
		cmocka_unit_test(answers_end_with_their_code),
		cmocka_unit_test(answers_cut_off_are_good_up_to_there),
		cmocka_unit_test(nonsense_ends_the_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
