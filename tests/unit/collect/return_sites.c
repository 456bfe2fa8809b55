#include "collect/probes/return_sites.h"

#include "unit/elf/code_image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#if defined(__x86_64__)

#define NEW       (CODE_TEXT + 0x100) /* the function that is looked into, 0x40 bytes */
#define OTHER     (CODE_TEXT + 0x200) /* one that it may end in, 0x40 bytes           */
#define BODY(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* Returns of NEW, whose code is this; OTHER's is `nop; ret`. */
static int return_sites_of(const uint8_t *code, size_t len, uint64_t *ret_sites)
{
	static struct code_image im;
	uint64_t offs[RETURN_SITES_MAX];
	struct return_sites_image image;
	struct elf_file *elf;
	int n;

	code_init(&im);
	memcpy(code_text(&im, NEW), code, len);
	memcpy(code_text(&im, OTHER), "\x90\xc3", 2);
	code_sym(&im, "new", NEW, 0x40);
	code_sym(&im, "other", OTHER, 0x40);
	put_usual_cie(&im);
	put_fde(&im, NEW, 0x40, "", 0);
	put_fde(&im, OTHER, 0x40, "", 0);
	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(return_sites_image_open(elf, &image), 0);
	n = return_sites_find(&image, NEW, ret_sites);
	assert_int_equal(return_sites_offs(&image, NEW, offs), n);
	for (int i = 0; i < n; i++) /* the image's code is where it says */
		assert_memory_equal(im.bytes + offs[i], code_text(&im, ret_sites[i]), 1);
	assert_int_equal(return_sites_offs(NULL, NEW, offs), -EOPNOTSUPP);
	return_sites_image_close(&image);
	elf_file_close(elf);
	return n;
}

static void both_sides_of_a_branch_have_their_return(void **state)
{
	uint64_t exits[RETURN_SITES_MAX];

	/* je +1; ret; nop; ret */
	assert_int_equal(return_sites_of(BODY(0x74, 0x01, 0xc3, 0x90, 0xc3), exits), 2);
	assert_int_equal(exits[0], NEW + 2);
	assert_int_equal(exits[1], NEW + 4);
}

static void a_loop_is_followed_once(void **state)
{
	uint64_t exits[RETURN_SITES_MAX];

	/* nop; jne -3; ret */
	assert_int_equal(return_sites_of(BODY(0x90, 0x75, 0xfd, 0xc3), exits), 1);
	assert_int_equal(exits[0], NEW + 3);
}

static void a_jump_to_another_function_leads_to_its_return(void **state)
{
	uint64_t exits[RETURN_SITES_MAX];

	/* jmp OTHER */
	assert_int_equal(return_sites_of(BODY(0xe9, 0xfb, 0x00, 0x00, 0x00), exits), 1);
	assert_int_equal(exits[0], OTHER + 1);
}

static void a_call_goes_on_behind_it_and_not_into_the_next_function(void **state)
{
	uint64_t exits[RETURN_SITES_MAX];
	uint8_t code[0x40];

	/* call OTHER; ret */
	assert_int_equal(return_sites_of(BODY(0xe8, 0xfb, 0x00, 0x00, 0x00, 0xc3), exits), 1);
	assert_int_equal(exits[0], NEW + 5);
	/* je +1; ret; nops; a call that does not return, as the last of the function */
	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x74\x01\xc3", 3);
	memcpy(code + sizeof(code) - 5, "\xe8\x00\x00\x00\x00", 5);
	assert_int_equal(return_sites_of(code, sizeof(code), exits), 1);
	assert_int_equal(exits[0], NEW + 2);
}

static void a_computed_jump_makes_it_unknown(void **state)
{
	uint64_t exits[RETURN_SITES_MAX];

	/* je +1; ret; jmp *%rax */
	assert_int_equal(return_sites_of(BODY(0x74, 0x01, 0xc3, 0xff, 0xe0), exits), -EOPNOTSUPP);
	/* jmp to where no function is */
	assert_int_equal(return_sites_of(BODY(0xe9, 0xfb, 0x05, 0x00, 0x00), exits), -EOPNOTSUPP);
	/* what is no instruction */
	assert_int_equal(return_sites_of(BODY(0x06), exits), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_of_a_branch_have_their_return),
		cmocka_unit_test(a_loop_is_followed_once),
		cmocka_unit_test(a_jump_to_another_function_leads_to_its_return),
		cmocka_unit_test(a_call_goes_on_behind_it_and_not_into_the_next_function),
		cmocka_unit_test(a_computed_jump_makes_it_unknown),
	};

	return cmocka_run_group_tests_name("collect/exits", tests, NULL, NULL);
}

#else

int main(void)
{
	print_message("1..0 # SKIP returns are looked for in x86-64 code only\n");
	return 0;
}

#endif
