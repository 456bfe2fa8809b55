/* What a cell that reads code may cost: its image's code, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/put.h"
#include "cell_fixture.h"
#include "symbolize/code_read.h"
#include "unit/elf/elf_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { AT = 0x1010 };

static const struct code_wanted wanted[] = { { AT, "app::spin()" } };
static const uint64_t vaddrs[] = { AT };
static struct symbolize_opts opts;
static struct image_question question = { .opts = &opts, .vaddrs = vaddrs, .n = 1 };

static int setup(void **state)
{
	(void)state;
	question.d = dict_new();
	question.module = dict_module(
		question.d, &(struct module){ .kind = MODULE_ELF,
					      .path = dict_string(question.d, "/opt/app") });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dict_free(question.d);
	return 0;
}

/* An answer of one function with two instructions of 4 bytes each, the second with the lines of the first. */
struct made {
	uint8_t is_read;
	uint32_t n, wanted;
	uint64_t start, end;
	uint8_t cut;
	uint32_t n_instructions;
	uint64_t second;
	uint32_t size, jump;
	const char *text;
	uint8_t first_how, second_how;
	uint16_t n_origins;
};

static const struct made good = {
	.is_read = 1,
	.n = 1,
	.start = 0x1000,
	.end = 0x1020,
	.cut = 1,
	.n_instructions = 2,
	.second = 0x1004,
	.size = 4,
	.jump = 1,
	.text = "inc %eax",
	.first_how = 1,
	.n_origins = 1,
};

static void put_words(struct strbuf *b, const char *text)
{
	put_text(b, text, strlen(text));
}

static void put_instruction(struct strbuf *b, const struct made *m, uint64_t vaddr, uint8_t how)
{
	put_u64(b, vaddr);
	put_u32(b, m->size);
	put_u32(b, m->jump);
	put_words(b, m->text);
	put_words(b, "other");
	put_u8(b, how);
	if (how != 1)
		return;
	put_u16(b, m->n_origins);
	for (uint32_t i = 0; i < m->n_origins; i++) {
		put_words(b, "inlined");
		put_words(b, "/src/a.c");
		put_u32(b, 7);
	}
}

static void put_answer(struct strbuf *b, const struct made *m)
{
	put_u8(b, m->is_read);
	put_words(b, "few words");
	put_u32(b, m->n);
	put_u32(b, m->wanted);
	put_u64(b, m->start);
	put_u64(b, m->end);
	put_u8(b, m->cut);
	put_words(b, "");
	put_u32(b, m->n_instructions);
	put_instruction(b, m, m->start, m->first_how);
	put_instruction(b, m, m->second, m->second_how);
}

static struct code_answer *taken;

static int take(const void *data, size_t len)
{
	code_answer_fini(taken);
	return code_take(&question, wanted, bytes_of(data, len), taken);
}

static int take_made(const struct made *m)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	put_answer(&b, m);
	return take(b.s, b.len);
}

static void an_answer_is_taken_as_it_is(void **state)
{
	const struct code_text *c = &taken->functions[0];

	(void)state;
	assert_int_equal(take_made(&good), 0);
	assert_true(taken->is_read);
	assert_string_equal(taken->problem, "few words");
	assert_int_equal(taken->n, 1);
	assert_string_equal(c->name, "app::spin()");
	assert_null(c->no_lines);
	assert_int_equal(c->n, 2);
	assert_string_equal(c->instructions[1].text, "inc %eax");
	assert_string_equal(c->instructions[1].target_name, "other");
	assert_ptr_equal(c->instructions[0].origins, c->instructions[1].origins);
	assert_string_equal(c->instructions[1].origins->file, "/src/a.c");
	assert_int_equal(c->instructions[1].origins->line, 7);
}

static void answers_that_do_not_add_up_are_refused(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	(void)state;
#define BEND(...)                                                                                  \
	do {                                                                                       \
		struct made m = good;                                                              \
		__VA_ARGS__;                                                                       \
		assert_int_equal(take_made(&m), -EBADMSG);                                         \
		assert_int_equal(taken->n, 0);                                                     \
	} while (0)
	BEND(m.is_read = 2);
	BEND(m.is_read = 0); /* and yet it has code */
	BEND(m.n = 2);
	BEND(m.n = CODE_FUNCTIONS_MAX + 1);
	BEND(m.n = 0); /* and more follows */
	BEND(m.wanted = 1);
	BEND(m.start = AT + 1);
	BEND(m.end = AT);
	BEND(m.cut = 2);
	BEND(m.n_instructions = 3);
	BEND(m.n_instructions = CODE_INSTRUCTIONS_MAX + 1);
	BEND(m.second = m.start);
	BEND(m.second = m.start + 5);
	BEND(m.size = 0);
	BEND(m.size = 0x21);
	BEND(m.size = UINT32_MAX);
	BEND(m.jump = 3);
	BEND(m.text = "");
	BEND(m.text = "\033[2J");
	BEND(m.first_how = 0); /* those of the one before */
	BEND(m.second_how = 2);
	BEND(m.n_origins = CODE_ORIGINS_MAX + 1);
	put_answer(&b, &good);
	assert_no_part_is_taken(b.s, b.len, take);
}

static void each_function_is_behind_the_one_before(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct made two = good;

	(void)state;
	two.n = 2;
	put_answer(&b, &two);
	put_u32(&b, 0);
	put_u64(&b, 0x1008);
	put_u64(&b, 0x1020);
	assert_int_equal(take(b.s, b.len), -EBADMSG);
}

static struct image image;
static bool kills;

static int open_module(void *ctx, module_id m, struct err *e)
{
	(void)ctx;
	(void)m;
	(void)e;
	return image_memfd(&image);
}

static int open_debug(void *ctx, module_id m, const char *path, bool host)
{
	(void)ctx;
	(void)m;
	(void)path;
	(void)host;
	if (kills)
		kill_the_cell();
	return -ENOENT;
}

static void a_cell_that_dies_costs_one_image_its_code(void **state)
{
	static struct symbolize_opts files = { .open_module = open_module,
					       .open_debug = open_debug };
	const struct code_wanted w = { IMAGE_TEXT + 0x104, "spin" };

	(void)state;
	image_init(&image);
	image_sym(&image, "spin", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x100, 0x40);
	image_finish(&image);
	code_answer_fini(taken);
	assert_int_equal(
		code_read(question.d, &files, question.module, &w, 1, SYNTAX_ATT, 20000, taken), 0);
	assert_true(taken->is_read);
	kills = true;
	code_answer_fini(taken);
	assert_int_equal(
		code_read(question.d, &files, question.module, &w, 1, SYNTAX_ATT, 20000, taken), 0);
	assert_false(taken->is_read);
	assert_int_equal(taken->n, 0);
	assert_string_equal(taken->problem, "the process that read its code ended early");
	assert_int_equal(taken->mtime_s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_answer_is_taken_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_that_do_not_add_up_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(each_function_is_behind_the_one_before, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_cell_that_dies_costs_one_image_its_code, setup,
						teardown),
	};
	int r;

	taken = calloc(1, sizeof(*taken));
	cmocka_set_message_output(CM_OUTPUT_TAP);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	code_answer_fini(taken);
	free(taken);
	return r;
}
