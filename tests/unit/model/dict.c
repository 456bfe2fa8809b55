#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "model/dict.h"
#include "model/profile.h"
#include "model/stack_children.h"
#include "model/tables.h"

static int setup(void **state)
{
	*state = dict_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	dict_free(*state);
	return 0;
}

static location_id at(struct dict *d, uint64_t vaddr)
{
	return dict_location(d, (module_id){ 0 }, vaddr);
}

static void equal_strings_have_one_id_and_keep_their_place(void **state)
{
	struct dict *d = *state;
	string_id a = dict_string(d, "main");
	const char *text = dict_str(d, a);

	for (int i = 0; i < 100000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%d", i);
		dict_string(d, name);
	}
	assert_int_equal(dict_string(d, "main").ix, a.ix);
	assert_int_equal(dict_string_n(d, "mainly", 4).ix, a.ix);
	assert_ptr_equal(dict_str(d, a), text);
	assert_string_equal(text, "main");
	assert_int_equal(dict_string_count(d), 100001);
}

static void empty_things_are_id_0_and_can_be_asked_for(void **state)
{
	struct dict *d = *state;
	struct module none = { 0 };
	uint32_t n = 7;

	assert_int_equal(dict_string(d, "").ix, 0);
	assert_int_equal(dict_string_n(d, NULL, 0).ix, 0);
	assert_int_equal(dict_string_n(d, "\0x", 2).ix, 0);
	assert_string_equal(dict_str(d, (string_id){ 0 }), "");
	assert_int_equal(dict_module(d, &none).ix, 0);
	assert_int_equal(dict_module_get(d, (module_id){ 0 })->kind, MODULE_NONE);
	assert_int_equal(dict_location_get(d, (location_id){ 0 })->n_lines, 0);
	assert_int_equal(dict_stack(d, NULL, 0).ix, 0);
	assert_int_equal(dict_stack_depth(d, (stack_id){ 0 }), 0);
	assert_int_equal(dict_labels(d, NULL, 0).ix, 0);
	assert_null(dict_labels_get(d, (labels_id){ 0 }, &n));
	assert_int_equal(n, 0);
	assert_null(dict_label_find(d, (labels_id){ 0 }, "pid"));
	assert_int_equal(dict_module_count(d) + dict_location_count(d) + dict_string_count(d), 0);
}

static void module_identity_is_kind_path_build_id_and_file(void **state)
{
	struct dict *d = *state;
	struct module m = { .kind = MODULE_ELF, .path = dict_string(d, "/bin/a"), .ino = 5 };
	module_id a = dict_module(d, &m);
	struct module other = m;

	assert_int_equal(dict_module(d, &m).ix, a.ix);
	other.ino = 6;
	assert_int_not_equal(dict_module(d, &other).ix, a.ix);
	other = m;
	other.build_id = dict_string(d, "ab");
	assert_int_not_equal(dict_module(d, &other).ix, a.ix);
	other = m;
	other.kind = MODULE_ANON;
	assert_int_not_equal(dict_module(d, &other).ix, a.ix);
	assert_int_equal(dict_module_count(d), 4);
}

static void module_mapped_in_parts_covers_them_all(void **state)
{
	struct dict *d = *state;
	struct module m = { .kind = MODULE_ELF, .path = dict_string(d, "/bin/a") };
	module_id id = dict_module(d, &m);
	const struct module *known = dict_module_get(d, id);

	m.start = 0x3000, m.limit = 0x4000, m.file_off = 0x2000;
	dict_module(d, &m);
	assert_int_equal(known->start, 0x3000);
	m.start = 0x1000, m.limit = 0x2000, m.file_off = 0x500;
	assert_int_equal(dict_module(d, &m).ix, id.ix);
	assert_int_equal(known->start, 0x1000);
	assert_int_equal(known->limit, 0x4000);
	assert_int_equal(known->file_off, 0x500);
}

static void learning_fills_gaps_and_changes_nothing_known(void **state)
{
	struct dict *d = *state;
	struct module m = { .kind = MODULE_ELF, .path = dict_string(d, "/bin/a"), .ino = 5 };
	struct module news = { .path = dict_string(d, "/bin/b"),
			       .build_id = dict_string(d, "cafe"),
			       .ino = 9,
			       .start = 0x10,
			       .limit = 0x20 };
	module_id id = dict_module(d, &m);
	const struct module *known = dict_module_get(d, id);

	dict_module_learn(d, id, &news);
	assert_string_equal(dict_str(d, known->path), "/bin/a");
	assert_string_equal(dict_str(d, known->build_id), "cafe");
	assert_int_equal(known->ino, 5);
	assert_int_equal(known->limit, 0x20);
	news.build_id = dict_string(d, "f00d");
	dict_module_learn(d, id, &news);
	assert_string_equal(dict_str(d, known->build_id), "cafe");
	assert_int_equal(dict_module(d, &m).ix, id.ix);
}

static void million_locations_and_stacks_stay_distinct_and_findable(void **state)
{
	enum { N = 1000000 };
	struct dict *d = *state;
	stack_id s = { 0 };

	for (uint32_t i = 1; i <= N; i++)
		assert_int_equal(at(d, i * 16ULL).ix, i);
	for (uint32_t i = 1; i <= N; i++) {
		location_id frames[2] = { { i }, { N - i + 1 } };

		s = dict_stack(d, frames, 2);
		assert_int_equal(dict_stack_depth(d, s), 2);
		assert_int_equal(dict_stack_leaf(d, s).ix, i);
	}
	assert_int_equal(dict_stack_count(d) - 1, 2 * N);
	for (uint32_t i = 1; i <= N; i += 997) {
		location_id frames[2] = { { i }, { N - i + 1 } };

		assert_int_equal(at(d, i * 16ULL).ix, i);
		assert_int_equal(dict_location_get(d, (location_id){ i })->vaddr, i * 16ULL);
		s = dict_stack(d, frames, 2);
		assert_int_equal(dict_stack_leaf(d, s).ix, i);
	}
	assert_int_equal(dict_stack_count(d) - 1, 2 * N);
	assert_int_equal(dict_location_count(d), N);
	assert_false(dict_oom(d));
}

static void names_stay_with_the_location_and_pointers_stay_good(void **state)
{
	struct dict *d = *state;
	location_id id = at(d, 0x40);
	const struct location *loc = dict_location_get(d, id);
	struct line lines[2] = { { .function = dict_string(d, "inner") },
				 { .function = dict_string(d, "outer"), .line = 7 } };

	assert_false(loc->named);
	dict_location_name(d, id, lines, 2);
	memset(lines, 0xff, sizeof(lines));
	for (uint32_t i = 0; i < 10000; i++)
		at(d, 0x1000 + i);
	assert_ptr_equal(dict_location_get(d, id), loc);
	assert_true(loc->named);
	assert_int_equal(loc->n_lines, 2);
	assert_string_equal(dict_str(d, loc->lines[0].function), "inner");
	assert_int_equal(loc->lines[1].line, 7);
	dict_location_name(d, id, NULL, 0);
	assert_true(loc->named);
	assert_int_equal(loc->n_lines, 0);
}

static void places_at_one_address_with_other_names_are_apart(void **state)
{
	struct dict *d = *state;
	struct line a = { .function = dict_string(d, "a") };
	struct line b = { .function = dict_string(d, "b") };
	location_id la = dict_location_lines(d, (module_id){ 0 }, 0, &a, 1);
	location_id lb = dict_location_lines(d, (module_id){ 0 }, 0, &b, 1);

	assert_int_not_equal(la.ix, lb.ix);
	assert_int_equal(dict_location_lines(d, (module_id){ 0 }, 0, &a, 1).ix, la.ix);
	assert_int_not_equal(at(d, 0).ix, la.ix);
	assert_true(dict_location_get(d, la)->named);
	assert_false(dict_location_get(d, at(d, 0))->named);
}

static void equal_prefixes_from_the_root_are_stored_once(void **state)
{
	struct dict *d = *state;
	location_id root = at(d, 1), mid = at(d, 2), x = at(d, 3), y = at(d, 4);
	location_id first[3] = { x, mid, root }, second[3] = { y, mid, root };
	stack_id sx = dict_stack(d, first, 3), sy = dict_stack(d, second, 3);

	assert_int_not_equal(sx.ix, sy.ix);
	assert_int_equal(dict_stack_parent(d, sx).ix, dict_stack_parent(d, sy).ix);
	assert_int_equal(dict_stack_count(d) - 1, 4);
	assert_int_equal(dict_stack(d, first, 3).ix, sx.ix);
	assert_int_equal(dict_stack(d, second + 1, 2).ix, dict_stack_parent(d, sx).ix);
	assert_int_equal(dict_stack_push(d, dict_stack_parent(d, sx), y).ix, sy.ix);
	assert_int_equal(dict_stack_leaf(d, dict_stack_parent(d, sx)).ix, mid.ix);
}

/* Each stack that is one frame longer, of a million in the order in which a program would be sampled. */
static void children_of_stacks_are_all_there_once(void **state)
{
	enum { N = 20000, DEPTH = 12 };
	struct dict *d = *state;
	uint32_t seed = 1, n = 0;
	_cleanup_(stack_children_freep) struct stack_children *c = NULL;

	for (uint32_t i = 0; i < N; i++) {
		location_id frames[DEPTH];

		for (int k = 0; k < DEPTH; k++)
			frames[k] = at(d, (seed = seed * 48271u % 2147483647u) % 5);
		dict_stack(d, frames, 1 + seed % DEPTH);
	}
	c = stack_children_new(d);
	assert_non_null(c);
	for (uint32_t s = 0; s < dict_stack_count(d); s++) {
		const stack_id *others;
		stack_id next;
		uint32_t others_n = stack_children_of(c, (stack_id){ s }, &next, &others);

		if (next.ix) {
			assert_int_equal(dict_stack_parent(d, next).ix, s);
			n++;
		}
		for (uint32_t i = 0; i < others_n; i++) {
			assert_int_equal(dict_stack_parent(d, others[i]).ix, s);
			assert_int_not_equal(others[i].ix, next.ix);
			assert_true(!i || others[i].ix > others[i - 1].ix);
			assert_int_equal(dict_stack_depth(d, others[i]),
					 dict_stack_depth(d, (stack_id){ s }) + 1);
		}
		n += others_n;
	}
	assert_int_equal(n, dict_stack_count(d) - 1);
}

static void stack_gives_back_its_frames(void **state)
{
	enum { DEPTH = 5000 };
	struct dict *d = *state;
	location_id frames[DEPTH];
	stack_id s;

	for (uint32_t i = 0; i < DEPTH; i++)
		frames[i] =
			at(d, i % 3); /* recursion: equal frames in a row are frames of their own */
	s = dict_stack(d, frames, DEPTH);
	assert_int_equal(dict_stack_depth(d, s), DEPTH);
	for (uint32_t i = 0; i < DEPTH; i++, s = dict_stack_parent(d, s))
		assert_int_equal(dict_stack_leaf(d, s).ix, frames[i].ix);
	assert_int_equal(s.ix, 0);
}

static void label_order_and_repetition_do_not_matter(void **state)
{
	struct dict *d = *state;
	struct label pid = { .key = dict_string(d, "pid"), .num = -5 };
	struct label comm = { .key = dict_string(d, "comm"), .str = dict_string(d, "redis") };
	struct label size = { .key = dict_string(d, "bytes"),
			      .num = 16,
			      .unit = dict_string(d, "bytes") };
	labels_id a = dict_labels(d, (struct label[]){ pid, comm, size }, 3);
	labels_id b = dict_labels(d, (struct label[]){ size, pid, comm, pid }, 4);
	uint32_t n;

	assert_int_equal(a.ix, b.ix);
	dict_labels_get(d, a, &n);
	assert_int_equal(n, 3);
	assert_int_equal(dict_label_find(d, a, "pid")->num, -5);
	assert_string_equal(dict_str(d, dict_label_find(d, a, "comm")->str), "redis");
	assert_string_equal(dict_str(d, dict_label_find(d, a, "bytes")->unit), "bytes");
	assert_null(dict_label_find(d, a, "tid"));
	pid.num = -6;
	assert_int_not_equal(dict_labels(d, (struct label[]){ pid, comm, size }, 3).ix, a.ix);
	assert_int_not_equal(dict_labels(d, &comm, 1).ix, a.ix);
}

static void running_out_of_memory_is_remembered_not_fatal(void **state)
{
#if defined(__SANITIZE_ADDRESS__)
	print_message("the address sanitizer needs the address space that this takes away\n");
	skip();
#endif
	struct rlimit old, limit = { 256 << 20, 256 << 20 };
	struct dict *d;
	location_id id;
	uint32_t n = 0;

	(void)state;
	if (getenv("MEMSCOPE_VALGRIND")) {
		print_message("valgrind needs the address space that this takes away\n");
		skip();
	}
	d = dict_new();
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	limit.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	do
		id = at(d, ++n);
	while (id.ix && n < 100000000);
	setrlimit(RLIMIT_AS, &old);
	assert_int_equal(id.ix, 0);
	assert_true(dict_oom(d));
	assert_true(n > 100000);
	assert_int_equal(dict_location_count(d), n - 1);
	assert_int_equal(at(d, 1).ix, 1);
	dict_free(d);
}

#define test(fact) cmocka_unit_test_setup_teardown(fact, setup, teardown)

/* What a profile has stays as it is, whatever else goes and comes. */
static void label_sets_that_no_profile_has_are_used_again(void **state)
{
	static const struct value_type type = { "samples", "count" };
	struct dict *d = dict_new();
	struct profile *p = profile_new(d, &type, 1), *other = profile_new(d, &type, 1);
	struct label l[2] = { { .key = dict_string(d, "pid") }, { .key = dict_string(d, "tid") } };
	uint32_t highest = 0, n;
	const int64_t one = 1;

	for (int64_t round = 0; round < 50; round++) {
		for (int64_t i = 0; i < 100; i++) {
			labels_id id;

			l[0].num = l[1].num = 100 * round + i;
			id = dict_labels(d, l, 1 + i % 2);
			if (i < 2)
				assert_int_equal(
					profile_add(i ? p : other, (stack_id){ 0 }, id, &one), 0);
			highest = id.ix > highest ? id.ix : highest;
		}
		assert_int_equal(dict_labels_count(d), 1 + 100 + 2 * round);
		assert_int_equal(dict_labels_sweep(d), 98);
		assert_int_equal(dict_labels_count(d), 1 + 2 + 2 * round);
		assert_int_equal(dict_labels_swept(d), round + 1);
		assert_int_equal(dict_labels_sweep(d), 0);
		assert_int_equal(dict_labels_swept(d), round + 1);
	}
	assert_true(highest < 220);
	for (int64_t round = 0; round < 50; round++)
		for (int64_t i = 0; i < 2; i++) {
			labels_id id = profile_sample(i ? p : other, (uint32_t)round).labels;

			assert_int_equal(dict_labels_get(d, id, &n)->num, 100 * round + i);
			assert_int_equal(n, 1 + i);
			l[0].num = l[1].num = 100 * round + i;
			assert_int_equal(dict_labels(d, l, 1 + i).ix, id.ix);
		}
	/* Of a profile that is gone nobody asks. */
	profile_free(p);
	assert_int_equal(dict_labels_sweep(d), 50);
	dict_free(d);
	profile_free(other); /* after its dict */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(equal_strings_have_one_id_and_keep_their_place),
		test(empty_things_are_id_0_and_can_be_asked_for),
		test(module_identity_is_kind_path_build_id_and_file),
		test(module_mapped_in_parts_covers_them_all),
		test(learning_fills_gaps_and_changes_nothing_known),
		test(million_locations_and_stacks_stay_distinct_and_findable),
		test(names_stay_with_the_location_and_pointers_stay_good),
		test(places_at_one_address_with_other_names_are_apart),
		test(equal_prefixes_from_the_root_are_stored_once),
		test(children_of_stacks_are_all_there_once),
		test(stack_gives_back_its_frames),
		test(label_order_and_repetition_do_not_matter),
		cmocka_unit_test(label_sets_that_no_profile_has_are_used_again),
		cmocka_unit_test(running_out_of_memory_is_remembered_not_fatal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
