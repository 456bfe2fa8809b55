/* Sites and functions of a file, by a cell: nothing that it says is believed. What is found is in event_places.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi.h"
#include "base/cleanup.h"
#include "base/put.h"
#include "cell_fixture.h"
#include "collect/events/event_finds.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static uint32_t n_asked;
static bool kills;

static int no_debug(void *ctx, const char *path, bool host)
{
	(void)ctx;
	(void)path;
	(void)host;
	n_asked++;
	if (kills)
		kill_the_cell();
	return -ENOENT;
}

static struct event_wants one(enum event_kind kind, const char *event)
{
	struct event_wants w = { .n = 1, .cookies = true };

	w.items[0].kind = kind;
	strcpy(w.items[0].group, "*");
	strcpy(w.items[0].event, event);
	return w;
}

/* Functions of several versions have one name. */
static uint32_t n_names(const struct event_finds *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n_functions; i++) {
		bool again = false;

		for (uint32_t k = 0; k < i && !again; k++)
			again = strcmp(f->functions[i].name, f->functions[k].name) == 0;
		n += !again;
	}
	return n;
}

/* The C library exports some two thousand functions. */
static void of_more_names_than_there_are_events_the_rest_is_counted(void **state)
{
	struct alloc_image im = { open(path_of_the_c_library(), O_RDONLY | O_CLOEXEC),
				  "/opt/libc.so.6", no_debug, NULL };
	struct event_wants all = one(EVENT_UPROBE, "*"), some = one(EVENT_UPROBE, "mem*");
	struct event_finds f;
	struct err e;

	(void)state;
	assert_int_equal(event_finds_ask(&im, &all, &f, &e), 0);
	assert_int_equal(n_names(&f), MS_EVENTS_MAX);
	assert_true(f.missed[0].refused > 100);
	assert_int_equal(f.missed[0].too_many, 0);
	event_finds_fini(&f);
	assert_int_equal(event_finds_ask(&im, &some, &f, &e), 0);
	assert_in_range(f.n_functions, 3, 100);
	assert_int_equal(f.missed[0].refused, 0);
	for (uint32_t i = 0; i < f.n_functions; i++)
		assert_int_equal(strncmp(f.functions[i].name, "mem", 3), 0);
	event_finds_fini(&f);
	close(im.fd);
}

/* It asks for debug files of a program without names, and is killed while it waits for one. */
static void a_cell_that_dies_costs_one_file_its_places(void **state)
{
	char path[64];
	struct event_wants w = one(EVENT_UPROBE, "main");
	struct alloc_image im = { -1, path, no_debug, NULL };
	struct event_finds f;
	struct err e;

	(void)state;
	stripped_copy(path);
	im.fd = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	kills = true;
	assert_int_equal(event_finds_ask(&im, &w, &f, &e), -EBADMSG);
	kills = false;
	assert_int_equal(n_asked, 1);
	assert_non_null(strstr(e.msg, "ended early"));
	assert_int_equal(f.n_functions, 0);
	event_finds_fini(&f);
	assert_int_equal(event_finds_ask(&im, &w, &f, &e), 0);
	assert_true(n_asked > 2);
	event_finds_fini(&f);
	close(im.fd);
}

/* --- answers, as a cell that was taken over may give them --- */

enum { FILE_BYTES = 0x1000 };

/* Items: sites, and functions that are timed. */
static struct event_wants two(void)
{
	struct event_wants w = { .n = 2, .cookies = true };

	w.items[0].kind = EVENT_USDT;
	w.items[1].kind = EVENT_UPROBE;
	w.items[1].timed = true;
	return w;
}

/* Where what is bent begins. */
enum {
	AT_GO = 0,
	AT_MISSED = 1,
	AT_CHOOSES = AT_MISSED + 12,
	AT_LAST = AT_CHOOSES + 1,
	AT_SITES = AT_MISSED + 15 + 14,
	AT_SITE = AT_SITES + 4,
	AT_SITE_NAME = AT_SITE + 17,
	AT_FUNCTIONS = AT_SITE_NAME + 4,
	AT_FUNCTION = AT_FUNCTIONS + 4,
	AT_RETURNS = AT_FUNCTION + 15,
	AT_NAME = AT_RETURNS + 4 + 2 * 8,
	BYTES = AT_NAME + 2,
};

static void put_answer(struct strbuf *b)
{
	put_u8(b, 0);
	for (int i = 0; i < 2; i++) {
		put_u32(b, 0);
		put_u32(b, 0);
		put_u32(b, 1);
		put_u8(b, 1);
		strbuf_add(b, "f", i ? 1 : 2);
		if (i)
			b->s[b->len - 1] = '\0'; /* none */
	}
	put_u32(b, 1);
	put_u8(b, 0);
	put_u64(b, FILE_BYTES - 1);
	put_u64(b, FILE_BYTES - 2);
	strbuf_add(b, "p:n", 4);
	put_u32(b, 1);
	put_u8(b, 1);
	put_u64(b, FILE_BYTES - 5);
	put_u32(b, 4);
	put_u8(b, 1);
	put_u8(b, 0);
	put_u32(b, 2);
	put_u64(b, 0);
	put_u64(b, FILE_BYTES - 1);
	strbuf_add(b, "g", 2);
	assert_int_equal(b->len, BYTES);
}

static int take(const void *data, size_t len, struct event_finds *ret)
{
	struct event_wants w = two();
	int r = event_finds_take(bytes_of(data, len), FILE_BYTES, &w, ret);

	if (r < 0) {
		assert_null(ret->sites);
		assert_null(ret->functions);
		assert_int_equal(ret->n_sites + ret->n_functions, 0);
		assert_int_equal(ret->missed[0].unplaced, 0);
	}
	return r;
}

static int take_part(const void *data, size_t len)
{
	struct event_finds x;

	return take(data, len, &x);
}

static void an_answer_that_holds_together_is_taken(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct event_finds f;

	(void)state;
	put_answer(&b);
	assert_int_equal(take(b.s, b.len, &f), 0);
	assert_string_equal(f.missed[0].last, "f");
	assert_string_equal(f.missed[1].last, "");
	assert_int_equal(f.n_sites, 1);
	assert_string_equal(f.sites[0].name, "p:n");
	assert_int_equal(f.sites[0].semaphore_off, FILE_BYTES - 2);
	assert_int_equal(f.n_functions, 1);
	assert_string_equal(f.functions[0].name, "g");
	assert_int_equal(f.functions[0].n_returns, 2);
	assert_int_equal(event_function_return(&f.functions[0], 1), FILE_BYTES - 1);
	event_finds_fini(&f);
}

static void an_answer_that_is_cut_is_none(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct event_finds f;

	(void)state;
	put_answer(&b);
	assert_no_part_is_taken(b.s, b.len, take_part);
	put_u8(&b, 0);
	assert_int_equal(take(b.s, b.len, &f), -EBADMSG);
}

static void an_answer_that_lies_is_none(void **state)
{
	static const struct {
		size_t at, len;
		uint64_t value;
	} lies[] = {
		{ AT_GO, 1, 2 },
		{ AT_CHOOSES, 1, 2 },
		{ AT_SITES, 4, 2 }, /* more than there are       */
		{ AT_SITES, 4, UINT32_MAX },
		{ AT_SITE, 1, 2 },              /* of no item                */
		{ AT_SITE, 1, 1 },              /* of one of functions       */
		{ AT_SITE + 1, 8, FILE_BYTES }, /* behind the file's end     */
		{ AT_SITE + 9, 8, FILE_BYTES },
		{ AT_SITE_NAME, 1, 0 }, /* no name                   */
		{ AT_FUNCTIONS, 4, UINT32_MAX },
		{ AT_FUNCTION, 1, 0 }, /* of an item of sites       */
		{ AT_FUNCTION + 1, 8, FILE_BYTES },
		{ AT_FUNCTION + 1, 8, UINT64_MAX - 3 }, /* its probe would be at 0   */
		{ AT_FUNCTION + 9, 4, 5 },              /* … behind the end          */
		{ AT_FUNCTION + 9, 4, 513 },
		{ AT_FUNCTION + 13, 1, 2 },
		{ AT_FUNCTION + 14, 1, 2 },
		{ AT_RETURNS, 4, 65 },
		{ AT_RETURNS, 4, INT32_MAX },
		{ AT_RETURNS, 4, (uint32_t)-1 },
		{ AT_RETURNS + 4, 8, FILE_BYTES },
		{ AT_NAME, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		_cleanup_(strbuf_free) struct strbuf b = { 0 };
		struct event_finds f;

		put_answer(&b);
		memcpy(b.s + lies[i].at, &lies[i].value, lies[i].len);
		assert_int_equal(take(b.s, b.len, &f), -EBADMSG);
	}
}

/* Of an item that wants no returns there are none. */
static void returns_that_nobody_asked_for_are_a_lie(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct event_wants w = two();
	struct event_finds f;

	(void)state;
	put_answer(&b);
	w.items[1].timed = false;
	assert_int_equal(event_finds_take(bytes_of(b.s, b.len), FILE_BYTES, &w, &f), -EBADMSG);
	w.items[1].at_return = true;
	assert_int_equal(event_finds_take(bytes_of(b.s, b.len), FILE_BYTES, &w, &f), 0);
	event_finds_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_more_names_than_there_are_events_the_rest_is_counted),
		cmocka_unit_test(a_cell_that_dies_costs_one_file_its_places),
		cmocka_unit_test(an_answer_that_holds_together_is_taken),
		cmocka_unit_test(an_answer_that_is_cut_is_none),
		cmocka_unit_test(an_answer_that_lies_is_none),
		cmocka_unit_test(returns_that_nobody_asked_for_are_a_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
