#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolize/probe_functions.h"
#include "unit/elf/code_image.h"

/* Functions of 0x40 bytes, with filling between them. */
enum { SIZE = 0x40, N = 5 };
#define F(i) (CODE_TEXT + 0x100 + (i) * (uint64_t)(SIZE + 16))

/* Frames and notes of one code, each in an image of its own: an image here has one such section. */
static struct code_image with_frames, with_notes;
static struct elf_file *elf;
static struct cfi *cfi;

static int setup(void **state)
{
	(void)state;
	code_init(&with_frames);
	put_usual_cie(&with_frames);
	for (int i = 0; i < N; i++)
		put_fde(&with_frames, F(i), SIZE, INSNS(DW_CFA_nop));
	code_init(&with_notes);
	with_notes.frames_name = ".note.stapsdt";
	with_notes.frames_flags = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cfi_free(cfi);
	elf_file_close(elf);
	cfi = NULL;
	elf = NULL;
	return 0;
}

static void put_note(const char *provider, const char *name, uint64_t place)
{
	struct code_image *im = &with_notes;

	put32(im, sizeof("stapsdt"));
	put32(im, (uint32_t)(24 + strlen(provider) + strlen(name) + 3));
	put32(im, 3);
	put(im, "stapsdt", sizeof("stapsdt"));
	put64(im, place);
	put64(im, 0);
	put64(im, 0);
	put(im, provider, strlen(provider) + 1);
	put(im, name, strlen(name) + 1);
	put8(im, 0);
	while (im->frames_len % 4)
		put8(im, 0);
}

/* A jump of five bytes. */
static void jump(int from, int at, uint64_t to)
{
	uint64_t vaddr = F(from) + (uint64_t)at;
	int32_t by = (int32_t)((int64_t)to - (int64_t)(vaddr + 5));

	*code_text(&with_notes, vaddr) = 0xe9;
	memcpy(code_text(&with_notes, vaddr + 1), &by, sizeof(by));
}

static uint32_t find(struct probe_function found[PROBE_FUNCTIONS_MAX])
{
	struct elf_file *frames;

	code_finish(&with_frames);
	code_finish(&with_notes);
	assert_int_equal(
		elf_file_open_memory(with_frames.bytes, with_frames.len, "frames", &frames, NULL),
		0);
	assert_int_equal(cfi_open(frames, CFI_EH_FRAME, &cfi, NULL), 0);
	elf_file_close(frames);
	assert_int_equal(
		elf_file_open_memory(with_notes.bytes, with_notes.len, "notes", &elf, NULL), 0);
	return probe_functions_find(elf, cfi, found);
}

static void function_with_a_known_probe_has_a_name(void **state)
{
	struct probe_function found[PROBE_FUNCTIONS_MAX];

	put_note("python", "line", F(0) + 4);
	put_note("ruby", "gc__mark__begin", F(2) + 8);
	put_note("other", "gc__start", F(3) + 8);
	put_note("python", "gc__start", F(N) + 8); /* in no function */
	assert_int_equal(find(found), 1);
	assert_int_equal(found[0].fde, 2);
	assert_true(strncmp(found[0].name, "gc_marks", 8) == 0);
}

static void part_that_rarely_runs_is_of_the_function_that_jumps_into_it(void **state)
{
	struct probe_function found[PROBE_FUNCTIONS_MAX];

	put_note("python", "gc__start", F(4) + 0x20);
	jump(1, 3, F(4) + 0x10);
	jump(1, 9, F(4) + 0x20);
	jump(3, 3, F(4)); /* who goes to its first instruction may call it */
	assert_int_equal(find(found), 2);
	assert_int_equal(found[0].fde, 4);
	assert_int_equal(found[1].fde, 1);
	assert_ptr_equal(found[0].name, found[1].name);
}

static void file_without_probes_has_none(void **state)
{
	struct probe_function found[PROBE_FUNCTIONS_MAX];

	assert_int_equal(find(found), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(function_with_a_known_probe_has_a_name, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			part_that_rarely_runs_is_of_the_function_that_jumps_into_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(file_without_probes_has_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
