/* What all cells that look for places of probes have: files by the rules, an end, and nothing that they ask for otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collect/probes/places_cell.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static uint32_t n_opened;

static int open_nothing(void *ctx, const char *path, bool host)
{
	(void)ctx;
	(void)host;
	assert_int_equal(strncmp(path, "/opt/", 5), 0);
	n_opened++;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* --- readers that a file has taken over --- */

static int loop(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	static volatile uint64_t turns = 1;

	(void)im;
	(void)question;
	(void)answer;
	while (turns)
		turns |= 2;
	return 0;
}

static int crash(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	(void)im;
	(void)question;
	strbuf_add(answer, "x", 1);
	__builtin_trap();
	return 0;
}

/* The question is a path; the answer, for which of the two roots it is opened. */
static int ask_for(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	char path[256];

	if (places_take_text(&question, path, sizeof(path)) < 0)
		return -EBADMSG;
	for (int host = 0; host < 2; host++) {
		_cleanup_(closep) int fd = im->open_debug(im->ctx, path, host);

		put_u8(answer, fd >= 0);
	}
	return 0;
}

static int ask_on_and_on(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	(void)question;
	(void)answer;
	for (;;) {
		int fd = im->open_debug(im->ctx, "/etc/none", false);

		if (fd == -EPIPE)
			return -EPIPE;
	}
}

static int say_much(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	(void)im;
	(void)question;
	for (int i = 0; i < 65; i++)
		put_u8(answer, 0);
	return 0;
}

#define KIND(kind, reader, seconds)                                                                \
	static void kind##_work(const struct cell_given *given)                                    \
	{                                                                                          \
		places_cell_work(given, reader);                                                   \
	}                                                                                          \
	static const struct cell_kind kind = { .name = #kind,                                      \
					       .work = kind##_work,                                \
					       .data_bytes = 1 << 24,                              \
					       .cpu_s = (seconds),                                 \
					       .files = PLACES_FILES_MAX + 8 };                    \
	CELL_KIND(kind)

KIND(loops, loop, 1);
KIND(loops_longer, loop, 4);
KIND(crashes, crash, 2);
KIND(asks, ask_for, 2);
KIND(asks_more, ask_on_and_on, 2);
KIND(says_much, say_much, 2);

static int ask(const struct cell_kind *kind, const char *path, struct talk *ret, struct err *e)
{
	_cleanup_(closep) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	struct alloc_image im = { fd, "/opt/app", open_nothing, NULL };

	put_text(&q, path, 256);
	return places_cell_ask(kind, &im, &q, 64, ret, e);
}

static void files_are_opened_where_debug_info_is(void **state)
{
	static const struct {
		const char *path;
		bool may;
	} cases[] = {
		{ "/opt/app.debug", true },
		{ "/opt/.debug/app.debug", true },
		{ "/etc/shadow", false },
		{ "/opt/../etc/shadow", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
		struct err e;

		n_opened = 0;
		assert_int_equal(ask(&asks, cases[i].path, &t, &e), 0);
		assert_int_equal(t.len, 2);
		assert_int_equal(t.data[0], cases[i].may);
		assert_int_equal(t.data[1], cases[i].may);
		assert_int_equal(n_opened, cases[i].may ? 2 : 0);
	}
}

static void a_cell_that_breaks_or_lies_costs_its_answer(void **state)
{
	static const struct cell_kind *const kinds[] = { &crashes, &asks_more, &says_much };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
		struct err e;

		assert_int_equal(ask(kinds[i], "", &t, &e), -EBADMSG);
		assert_non_null(strstr(e.msg, "/opt/app: "));
		assert_non_null(strstr(e.msg, "ended early"));
		assert_int_equal(t.len, 0);
	}
}

/* The first for as long as its kind may run; after some there is a second for each, and those that answer have one. */
static void cells_that_loop_are_waited_for_less_and_less(void **state)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	uint64_t began_ns = now_ns();
	struct err e;

	(void)state;
	assert_int_equal(ask(&loops, "", &t, &e), -EBADMSG);
	assert_true(now_ns() - began_ns > 900000000);
	for (int i = 0; i < 3; i++)
		assert_true(ask(&loops, "", &t, &e) < 0);
	began_ns = now_ns();
	assert_int_equal(ask(&loops_longer, "", &t, &e), -ETIMEDOUT);
	assert_true(now_ns() - began_ns < 3900000000);
	assert_non_null(strstr(e.msg, "takes too long"));
	assert_int_equal(ask(&asks, "/opt/app.debug", &t, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_opened_where_debug_info_is),
		cmocka_unit_test(a_cell_that_breaks_or_lies_costs_its_answer),
		cmocka_unit_test(cells_that_loop_are_waited_for_less_and_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
