/* What a cell that names an image may cost: its image's names, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "cell_fixture.h"
#include "symbolize/image_names.h"
#include "symbolize/symbolize.h"
#include "unit/elf/elf_image.h"

static struct image image;
static char asked_path[4096];
static uint32_t n_asked;
static module_id victim; /* whose cell is killed while it waits */

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
	(void)host;
	n_asked++;
	snprintf(asked_path, sizeof(asked_path), "%s", path);
	if (m.ix == victim.ix)
		kill_the_cell();
	return -ENOENT;
}

static void make_image(void)
{
	image_init(&image);
	image_sym(&image, "hot_loop", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x100, 0x40);
	image_finish(&image);
}

static void a_cell_that_dies_costs_one_image_its_names(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct module app = { .kind = MODULE_ELF, .path = dict_string(d, "/opt/app"), .ino = 1 };
	struct module other = { .kind = MODULE_ELF,
				.path = dict_string(d, "/opt/other"),
				.ino = 2 };
	struct symbolize_opts opts = { .open_module = open_module, .open_debug = open_debug };
	struct symbolize_stats st;
	module_id m[2] = { dict_module(d, &app), dict_module(d, &other) };
	location_id l[2];
	const struct line *line;

	(void)state;
	make_image();
	victim = m[0];
	for (int i = 0; i < 2; i++)
		l[i] = dict_location(d, m[i], IMAGE_TEXT + 0x110);
	assert_int_equal(symbolize(d, &opts, &st), 0);
	line = dict_location_get(d, l[0])->lines;
	assert_string_equal(dict_str(d, line->function), "app+0x401110");
	line = dict_location_get(d, l[1])->lines;
	assert_string_equal(dict_str(d, line->function), "hot_loop");
	assert_int_equal(st.named, 1);
	assert_int_equal(st.offset_only, 1);
	assert_int_equal(st.n_worst, 1);
	assert_int_equal(st.worst[0].module.ix, m[0].ix);
	assert_string_equal(st.worst[0].reason, "the process that read its names ended early");
	/* Once by the first, and by the other for each place where its debug file may be. */
	assert_true(n_asked > 2);
	assert_non_null(strstr(asked_path, "/.build-id/de/"));
}

/* --- answers, as a cell that was taken over may give them --- */

static const uint64_t vaddrs[] = { 0x1000, 0x2000, 0x3000 };

struct seen {
	struct dict *d;
	char text[512];
};

static void see(void *ctx, const struct image_place *p)
{
	struct seen *s = ctx;
	size_t len = strlen(s->text);

	snprintf(s->text + len, sizeof(s->text) - len, "%u:%d:%s:%u ", p->ix, p->found,
		 dict_str(s->d, p->lines[p->n_lines - 1].function), p->lines[0].line);
}

static void u32(struct strbuf *b, uint32_t v)
{
	strbuf_add(b, &v, sizeof(v));
}

static void text(struct strbuf *b, const char *s)
{
	u32(b, (uint32_t)strlen(s));
	strbuf_puts(b, s);
}

static void place(struct strbuf *b, uint32_t ix, uint8_t found, uint16_t n, uint32_t function)
{
	u32(b, ix);
	strbuf_add(b, &found, 1);
	strbuf_add(b, "", 1);
	strbuf_add(b, &n, 2);
	for (uint16_t i = 0; i < n; i++) {
		u32(b, function);
		u32(b, 0);
		u32(b, 0);
		u32(b, 7);
		u32(b, 0);
	}
}

static void tail(struct strbuf *b, const char *why)
{
	strbuf_add(b, "", 1);
	text(b, why);
	text(b, "");
}

/* How many had their turn, what was said of each, and why the rest have no name. */
static uint32_t take(struct strbuf *b, size_t len, struct seen *s, const char **ret_why)
{
	struct symbolize_opts opts = { 0 };
	struct module m = { .kind = MODULE_ELF, .path = dict_string(s->d, "/opt/app") };
	struct image_question q = {
		.d = s->d, .module = dict_module(s->d, &m), .opts = &opts, .vaddrs = vaddrs, .n = 3
	};
	struct image_end end = { 0 };
	uint32_t n = image_names_take(&q, bytes_of(b->s, len), see, s, &end);

	if (ret_why)
		*ret_why = end.why_unnamed;
	return n;
}

static void begin_answer(struct strbuf *b, uint32_t n_places)
{
	strbuf_reset(b);
	u32(b, 2);
	text(b, "main");
	text(b, "run");
	u32(b, n_places);
}

static void an_answer_names_what_it_names(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct seen s = { .d = d };
	const char *why;

	(void)state;
	begin_answer(&b, 2);
	place(&b, 0, FOUND_NAME, 1, 1);
	place(&b, 2, FOUND_RANGE, 2, 2);
	tail(&b, "no symbol table");
	assert_int_equal(take(&b, b.len, &s, &why), 3);
	assert_string_equal(s.text, "0:0:main:7 1:2:app+0x2000:0 2:1:run:7 ");
	assert_string_equal(why, "no symbol table");
}

static void answers_that_cannot_be_end_there(void **state)
{
	static const struct {
		uint32_t ix;
		uint8_t found;
		uint16_t n;
		uint32_t function;
	} wrong[] = {
		{ 3, FOUND_NAME, 1, 1 },        /* no such address    */
		{ 0, FOUND_NAME, 1, 1 },        /* had its turn       */
		{ 1, FOUND_NOTHING + 1, 1, 1 }, /* no such kind       */
		{ 1, FOUND_NAME, 0, 1 },        /* no line            */
		{ 1, FOUND_NAME, 129, 1 },      /* too many of them   */
		{ 1, FOUND_NAME, 1, 3 },        /* no such string     */
		{ 1, FOUND_NAME, 1, 0 },        /* a line without one */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		_cleanup_(dict_freep) struct dict *d = dict_new();
		_cleanup_(strbuf_free) struct strbuf b = { 0 };
		struct seen s = { .d = d };

		begin_answer(&b, 2);
		place(&b, 0, FOUND_NAME, 1, 1);
		place(&b, wrong[i].ix, wrong[i].found, wrong[i].n, wrong[i].function);
		tail(&b, "");
		assert_int_equal(take(&b, b.len, &s, NULL), 1);
		assert_string_equal(s.text, "0:0:main:7 ");
	}
}

/* Wherever it is cut: never more than was asked for, and each address once. */
static void an_answer_may_be_cut_anywhere(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	(void)state;
	begin_answer(&b, 3);
	for (uint32_t i = 0; i < 3; i++)
		place(&b, i, FOUND_NAME, 3, 1);
	tail(&b, "why");
	for (size_t len = 0; len < b.len; len++) {
		_cleanup_(dict_freep) struct dict *d = dict_new();
		struct seen s = { .d = d };
		uint32_t n = take(&b, len, &s, NULL);
		int places = 0;

		for (const char *at = s.text; (at = strstr(at, "main")); at++)
			places++;
		assert_int_equal(places, n);
		assert_true(n <= 3);
	}
}

static void more_strings_than_bytes_are_none(void **state)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct seen s = { .d = d };

	(void)state;
	u32(&b, UINT32_MAX);
	text(&b, "main");
	assert_int_equal(take(&b, b.len, &s, NULL), 0);
}

/* Reasons go to the terminal. */
static void a_reason_is_plain_words(void **state)
{
	static const char *const odd[] = { "\033]0;owned\a", "tab\there", "\xc3\xa4", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		_cleanup_(dict_freep) struct dict *d = dict_new();
		_cleanup_(strbuf_free) struct strbuf b = { 0 };
		struct seen s = { .d = d };
		const char *why = "unset";

		begin_answer(&b, 1);
		place(&b, 0, FOUND_NAME, 1, 1);
		tail(&b, odd[i]);
		assert_int_equal(take(&b, b.len, &s, &why), 3);
		assert_null(why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_that_dies_costs_one_image_its_names),
		cmocka_unit_test(an_answer_names_what_it_names),
		cmocka_unit_test(answers_that_cannot_be_end_there),
		cmocka_unit_test(an_answer_may_be_cut_anywhere),
		cmocka_unit_test(more_strings_than_bytes_are_none),
		cmocka_unit_test(a_reason_is_plain_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
