/* What a child names: what its profiles have; and what its parent knows then. */
#include "run_fixture.h"

#include "elf/dwarf.h"
#include "run/name_used.h"
#include "run/output/files.h"

#include <sys/wait.h>
#include <unistd.h>

static uint32_t asked; /* places that had no name yet */

/* Names all that has none, as symbolize() does. */
int output_name(struct run *r, bool lines, struct symbolize_stats *ret_stats, struct err *e)
{
	asked = 0;
	for (uint32_t i = 1; i <= dict_location_count(r->dict); i++) {
		const struct location *l = dict_location_get(r->dict, (location_id){ i });
		struct line line = { .function = dict_string(r->dict, "work"),
				     .system_name = dict_string(r->dict, "work"),
				     .line = i };

		if (l->named && !(l->lines_unread && lines))
			continue;
		asked++;
		dict_location_name(r->dict, (location_id){ i }, &line, 1);
	}
	return 0;
}

/* The last place is left unread, or all are where there is no time. */
int output_name_within(struct run *r, struct dwarf_budget *budget, struct err *e)
{
	uint32_t last = dict_location_count(r->dict);
	bool before[8] = { false };
	int rc;

	for (uint32_t i = 1; i <= last; i++)
		before[i] = dict_location_get(r->dict, (location_id){ i })->named;
	rc = output_name(r, budget->cpu_ns > 0, NULL, e);
	for (uint32_t i = 1; i <= last; i++) {
		const struct location *l = dict_location_get(r->dict, (location_id){ i });

		if (before[i] || (i != last && budget->cpu_ns > 0))
			continue;
		dict_location_name_unread(r->dict, (location_id){ i }, l->lines, l->n_lines);
		budget->ran_out = true;
	}
	return rc;
}

/* A run that knows three places, the second of which a profile has. */
static struct run *run_of_three(location_id ret_places[3])
{
	static const struct run_config cfg = { .all = true };
	static const int64_t values[] = { 1, 100 };
	struct run *r = bare_run(&cfg);
	module_id app =
		dict_module(r->dict, &(struct module){ .kind = MODULE_ELF,
						       .path = dict_string(r->dict, "/app") });
	struct profile *p = profile_new(r->dict, profile_rows[PROFILE_ONCPU].types,
					profile_rows[PROFILE_ONCPU].n_types);

	for (uint64_t i = 0; i < 3; i++)
		ret_places[i] = dict_location(r->dict, app, 0x1000 * (i + 1));
	profile_add(p, dict_stack(r->dict, &ret_places[1], 1), (labels_id){ 0 }, values);
	r->profiles[PROFILE_ONCPU] = p;
	return r;
}

enum { SOME_UNREAD = 50 };

/* In a child of its own; how many places were asked about, and whether it knows that some were left unread. */
static int name_in_child(struct run *r, int64_t lines_ns, int fd)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int rc = name_used(r, r->profiles, N_PROFILE_KINDS, lines_ns, fd, NULL);

		_exit(rc < 0 ? 99 : (int)asked + (rc > 0 ? SOME_UNREAD : 0));
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void a_child_names_what_its_profiles_have_and_the_parent_knows_it_then(void **state)
{
	location_id places[3];
	struct run *r = run_of_three(places);
	int fd = names_back_open(NULL);

	assert_int_equal(name_in_child(r, LINES_ANY_NS, fd), 1);
	names_back_take(fd, r);
	assert_int_equal(r->counts.named_early, 1);
	assert_true(dict_location_get(r->dict, places[1])->named);
	assert_int_equal(dict_location_get(r->dict, places[1])->lines[0].line, places[1].ix);
	assert_false(dict_location_get(r->dict, places[0])->named);
	assert_false(dict_location_get(r->dict, places[2])->named);
	assert_int_equal(name_in_child(r, LINES_ANY_NS, fd), 0);
	close(fd);
	bare_run_free(r);
}

static void a_child_that_gives_nothing_back_leaves_names_for_the_next(void **state)
{
	location_id places[3];
	struct run *r = run_of_three(places);
	int fd = names_back_open(NULL);

	assert_int_equal(name_in_child(r, 0, fd), 1 + SOME_UNREAD);
	names_back_take(fd, r);
	names_back_take(-1, r);
	assert_int_equal(r->counts.named_early, 0);
	assert_int_equal(name_in_child(r, LINES_ANY_NS, -1), 1);
	close(fd);
	bare_run_free(r);
}

static void a_place_whose_debug_info_was_left_unread_is_asked_for_again_where_it_may_be_read(
	void **state)
{
	static const int64_t values[] = { 1, 100 };
	location_id places[3];
	struct run *r = run_of_three(places);
	struct profile *p = r->profiles[PROFILE_ONCPU];
	int fd = names_back_open(NULL);

	profile_add(p, dict_stack(r->dict, &places[2], 1), (labels_id){ 0 }, values);
	assert_int_equal(name_in_child(r, 1000000, fd), 2 + SOME_UNREAD);
	names_back_take(fd, r);
	assert_true(dict_location_get(r->dict, places[1])->named);
	assert_false(dict_location_get(r->dict, places[1])->lines_unread);
	assert_true(dict_location_get(r->dict, places[2])->lines_unread);
	assert_int_equal(r->counts.named_early, 1);
	assert_int_equal(r->counts.unread_early, 1);
	/* One that may not read it either asks nobody, says that it is missing, and gives nothing back. */
	close(fd);
	fd = names_back_open(NULL);
	assert_int_equal(name_in_child(r, 0, fd), SOME_UNREAD);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	/* One that may asks for that alone. */
	close(fd);
	fd = names_back_open(NULL);
	assert_int_equal(name_in_child(r, LINES_ANY_NS, fd), 1);
	names_back_take(fd, r);
	assert_false(dict_location_get(r->dict, places[2])->lines_unread);
	assert_int_equal(r->counts.named_early, 2);
	assert_int_equal(r->counts.unread_early, 0);
	close(fd);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_names_what_its_profiles_have_and_the_parent_knows_it_then),
		cmocka_unit_test(a_child_that_gives_nothing_back_leaves_names_for_the_next),
		cmocka_unit_test(
			a_place_whose_debug_info_was_left_unread_is_asked_for_again_where_it_may_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
