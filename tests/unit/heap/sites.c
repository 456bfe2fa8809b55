/* Who allocated the objects of a small heap: names, conditions, groups. */
#include "heap/snapshot/sites.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "heap/snapshot/groups.h"
#include "select_fixture.h"

static const struct site_place frames[] = {
	{ .function = "malloc", .module = "libc.so.6" },
	{ .function = "web::make_session(int)",
	  .file = "/src/web/server.cc",
	  .module = "server",
	  .line = 88 },
	{ .function = "load", .file = "/src/load.c", .module = "server", .line = 7 },
};

/* The sessions 2 and 3 by make_session, 2 s and 10 ms ago; 4 by load, from a stack without it; the others are older. */
static void heap_with_sites(struct heap *h)
{
	struct sites *s = sites_new(N);
	uint32_t made, loaded;

	heap_init(h);
	assert_non_null(s);
	h->s.sites = s;
	made = sites_add(s, &frames[1], frames, 3);
	loaded = sites_add(s, &frames[2], &frames[2], 1);
	assert_int_equal(made, 1);
	assert_int_equal(loaded, 2);
	sites_set(&h->s, 2, made, 2000000000);
	sites_set(&h->s, 3, made, 10000000);
	sites_set(&h->s, 4, loaded, 0);
}

static void heap_with_sites_fini(struct heap *h)
{
	sites_free(h->s.sites);
	heap_fini(h);
}

static void assert_meant(const char *what, const char *want)
{
	_cleanup_(heap_with_sites_fini) struct heap h;

	heap_with_sites(&h);
	assert_selected(&h, what, want);
}

static int refused(const char *what, bool with_sites)
{
	struct heap h;
	uint32_t *objects = NULL;
	struct err e = { 0 };
	uint64_t n;
	int r;

	if (with_sites)
		heap_with_sites(&h);
	else
		heap_init(&h);
	r = select_objects(&h.s, what, &objects, &n, &e);
	assert_null(objects);
	assert_true(*e.msg);
	if (with_sites)
		heap_with_sites_fini(&h);
	else
		heap_fini(&h);
	return r;
}

static void a_site_is_named_by_its_function_file_or_line(void **state)
{
	(void)state;
	assert_meant("site:make_session", "23");
	assert_meant("site:web::make_session", "23");
	assert_meant("site = 'web::make_session(int)'", "23");
	assert_meant("site:session", "");
	assert_meant("site:server.cc", "23");
	assert_meant("site:server.cc:88", "23");
	assert_meant("site:server.cc:8", "");
	assert_meant("site ~ '^load .load'", "4");
	assert_meant("site != load", "23");
	assert_meant("site:malloc", "");
}

static void a_stack_is_met_by_any_of_its_frames(void **state)
{
	(void)state;
	assert_meant("stack:malloc", "23");
	assert_meant("stack:load", "234");
	assert_meant("stack ~ libc", "23");
	assert_meant("stack:load and not site:make_session", "4");
}

static void an_age_is_a_time_and_what_was_there_before_is_older_than_any(void **state)
{
	(void)state;
	assert_meant("age < 1s", "34");
	assert_meant("age >= 2s and age < 3h", "2");
	assert_meant("age = 10ms", "3");
	assert_meant("age > 600h", "0156");
	assert_int_equal(refused("age > 5", true), -EINVAL);
	assert_int_equal(refused("age > 5 s", true), -EINVAL);
	assert_int_equal(refused("age ~ 5s", true), -EINVAL);
	assert_int_equal(refused("site > 5", true), -EINVAL);
	assert_int_equal(refused("site ~ '('", true), -EINVAL);
}

static void without_sites_conditions_on_them_say_so(void **state)
{
	(void)state;
	assert_int_equal(refused("site:make_session", false), -ENODATA);
	assert_int_equal(refused("stack:make_session", false), -ENODATA);
	assert_int_equal(refused("age < 5s", false), -ENODATA);
}

static void by_site_what_is_not_known_is_one_row(void **state)
{
	static const struct group_row want[] = {
		{ "(not known)", 4, 64 + 200 + 48 + 32 },
		{ "web::make_session(int) (server.cc:88)", 2, 104 },
		{ "load (load.c:7)", 1, 32 },
	};
	_cleanup_(heap_with_sites_fini) struct heap h;
	_cleanup_(groups_fini) struct groups got = { 0 };

	(void)state;
	heap_with_sites(&h);
	assert_int_equal(groups_find(&h.s, GROUPS_SITE, &got), 0);
	assert_int_equal(got.n, 3);
	for (uint32_t i = 0; i < got.n; i++) {
		assert_string_equal(got.rows[i].name, want[i].name);
		assert_int_equal(got.rows[i].objects, want[i].objects);
		assert_int_equal(got.rows[i].bytes, want[i].bytes);
		assert_false(got.rows[i].has_length);
	}
}

static void a_function_of_a_language_has_its_file_once(void **state)
{
	static const struct site_place python = { .function = "Session.__init__ (app.py)",
						  .file = "/srv/app.py",
						  .line = 3 };
	_cleanup_(heap_with_sites_fini) struct heap h;
	char name[SITE_NAME_MAX];

	(void)state;
	heap_with_sites(&h);
	sites_name(h.s.sites, h.s.sites->stack[sites_add(h.s.sites, &python, &python, 1)].site,
		   name);
	assert_string_equal(name, "Session.__init__ (app.py:3)");
	assert_true(site_is_named(h.s.sites, &h.s.sites->site[3], "__init__"));
}

static void how_much_is_known_is_counted_once_a_block(void **state)
{
	_cleanup_(heap_with_sites_fini) struct heap h;

	(void)state;
	heap_with_sites(&h);
	sites_set(&h.s, 2, 1, 0);
	assert_int_equal(h.s.sites->known, 3);
	assert_int_equal(h.s.sites->known_bytes, 48 + 56 + 32);
	/* Equal places are one site, of however many stacks. */
	assert_int_equal(sites_add(h.s.sites, &frames[1], frames, 2), 3);
	assert_int_equal(h.s.sites->stack[3].site, h.s.sites->stack[1].site);
	assert_int_equal(h.s.sites->n_sites, 3);
}

static int set(struct heap *h, uint32_t node, const char *name, uint64_t each, uint64_t bytes,
	       bool guess)
{
	struct allocated_type type = { .name = name, .each = each, .is_guess = guess };
	int r = types_set_allocated(&h->s, node, &type, bytes);

	/* Once more, by the number that it has now. */
	return r < 0 ? r : types_set_allocated(&h->s, node, &type, bytes);
}

static const struct type *type_of(const struct heap *h, uint32_t node)
{
	return &h->s.types.type[h->s.types.of[node]];
}

/* A heap that owns its types, all unknown but for node 0. */
static void heap_of_unknown(struct heap *h)
{
	heap_init(h);
	assert_int_equal(types_init(&h->s.types), 0);
	h->s.types.of = calloc(N, sizeof(*h->s.types.of));
	h->s.types.object = calloc(N, 1);
	assert_true(h->s.types.of && h->s.types.object);
	h->s.types.of[0] = types_add(&h->s.types, TYPE_RTTI, "Known", 0);
	h->s.types.of[6] = types_add(&h->s.types, TYPE_TEXT, "C string", 0);
}

static void heap_of_unknown_fini(struct heap *h)
{
	types_fini(&h->s.types);
	heap_fini(h);
}

static void a_type_of_debug_info_is_believed_where_the_size_agrees(void **state)
{
	_cleanup_(heap_of_unknown_fini) struct heap h;

	(void)state;
	heap_of_unknown(&h);
	assert_int_equal(set(&h, 1, "session", 72, 72, false), 0);
	assert_string_equal(type_of(&h, 1)->name, "session");
	assert_int_equal(type_of(&h, 1)->by, TYPE_DEBUG);
	assert_string_equal(type_by_name(TYPE_DEBUG), "debug info");
	assert_int_equal(set(&h, 2, "session", 72, 3 * 72, false), 0);
	assert_string_equal(type_of(&h, 2)->name, "session[]");
	/* With something behind it: as a flexible array member is. */
	assert_int_equal(set(&h, 3, "session", 72, 100, false), 0);
	assert_int_equal(h.s.types.of[3], h.s.types.of[1]);
	assert_int_equal(set(&h, 4, "session", 72, 71, false), 0);
	assert_int_equal(h.s.types.of[4], 0);
	/* What is known better stays; what is text may be a struct that begins with one. */
	assert_int_equal(set(&h, 0, "session", 64, 64, false), 0);
	assert_string_equal(type_of(&h, 0)->name, "Known");
	assert_int_equal(set(&h, 6, "user", 32, 32, false), 0);
	assert_string_equal(type_of(&h, 6)->name, "user");
}

static void a_guess_is_believed_by_its_size_alone(void **state)
{
	_cleanup_(heap_of_unknown_fini) struct heap h;

	(void)state;
	heap_of_unknown(&h);
	assert_int_equal(set(&h, 1, "session", 72, 72, true), 0);
	assert_int_equal(type_of(&h, 1)->by, TYPE_DEBUG_SIZE);
	assert_string_equal(type_by_name(TYPE_DEBUG_SIZE), "debug info, by size");
	assert_int_equal(set(&h, 2, "session", 72, 144, true), 0);
	assert_string_equal(type_of(&h, 2)->name, "session[]");
	assert_int_equal(set(&h, 3, "session", 72, 100, true), 0);
	assert_int_equal(h.s.types.of[3], 0);
	/* Each size is a multiple of a char's. */
	assert_int_equal(set(&h, 4, "char", 1, 20, true), 0);
	assert_int_equal(h.s.types.of[4], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_site_is_named_by_its_function_file_or_line),
		cmocka_unit_test(a_stack_is_met_by_any_of_its_frames),
		cmocka_unit_test(an_age_is_a_time_and_what_was_there_before_is_older_than_any),
		cmocka_unit_test(without_sites_conditions_on_them_say_so),
		cmocka_unit_test(by_site_what_is_not_known_is_one_row),
		cmocka_unit_test(a_function_of_a_language_has_its_file_once),
		cmocka_unit_test(how_much_is_known_is_counted_once_a_block),
		cmocka_unit_test(a_type_of_debug_info_is_believed_where_the_size_agrees),
		cmocka_unit_test(a_guess_is_believed_by_its_size_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
