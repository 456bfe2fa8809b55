#include "screen/picker.h"
#include "screen/screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct processes p;
	struct screen s;
};

static const char *shown(struct fixture *f, int rows, int columns)
{
	static char buf[1 << 16];
	FILE *to = fmemopen(buf, sizeof(buf), "w");

	assert_int_equal(screen_draw(&f->s, rows, columns), 0);
	for (int y = 0; y < rows; y++)
		canvas_print(&f->s.canvas, y, to);
	fclose(to);
	return buf;
}

/* web (30 %) and db (10 %) in the container shop; job (20 %) in none. */
static void make(struct fixture *f, struct screen_sources *sources)
{
	static const struct {
		int pid;
		const char *comm;
		int ticks, pages;
		bool in;
	} all[] = { { 10, "web", 30, 300, true },
		    { 20, "job", 20, 9000, false },
		    { 30, "db", 10, 200, true } };

	memset(f, 0, sizeof(*f));
	processes_init(&f->p, 100, 4096);
	f->p.containers = calloc(1, sizeof(*f->p.containers));
	f->p.containers[0] =
		(struct process_container){ strdup("0123abcd"), strdup("shop"), strdup("podman") };
	f->p.n_containers = 1;
	for (int reading = 0; reading < 2; reading++) {
		processes_begin(&f->p, (uint64_t)reading * 1000000000 + 1);
		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
			char line[256];
			struct process *row;
			bool bad;

			snprintf(line, sizeof(line),
				 "%d (%s) S 1 1 1 0 -1 0 9 0 0 0 %d 0 0 0 20 0 1 0 5 9 %d 1 1",
				 all[i].pid, all[i].comm, reading * all[i].ticks, all[i].pages);
			row = processes_stat(&f->p, line, &bad);
			row->container = all[i].in ? 0 : UINT32_MAX;
			row->runtime = "native";
			row->heap = "glibc";
		}
		processes_end(&f->p);
	}
	f->s.sources = sources;
	screen_push(&f->s, picker_of(&f->p));
}

static void done(struct fixture *f)
{
	screen_fini(&f->s);
	processes_fini(&f->p);
}

/* Each of `words` is behind the one before it. */
static void in_order(const char *text, const char *const *words)
{
	const char *at = text;

	for (; *words; words++) {
		const char *found = strstr(at, *words);

		if (!found)
			fail_msg("\"%s\" is missing, or before others, in\n%s", *words, text);
		at = found + strlen(*words);
	}
}

static void containers_have_the_sum_and_their_processes_below_them(void **state)
{
	struct fixture f;

	make(&f, NULL);
	in_order(shown(&f, 24, 80),
		 (const char *[]){ "3 processes, 1 container", "40.0", "shop: 2 processes (p",
				   "30.0", "web", "10.0", "db", "20.0", "job", NULL });
	done(&f);
}

static void another_column_sorts_otherwise_and_back(void **state)
{
	struct fixture f;

	make(&f, NULL);
	screen_draw(&f.s, 24, 80);
	screen_key(&f.s, 's'); /* RSS */
	in_order(shown(&f, 24, 80), (const char *[]){ "RSS▼", "job", "shop", "web", "db", NULL });
	screen_key(&f.s, 'r');
	in_order(shown(&f, 24, 80), (const char *[]){ "RSS▲", "shop", "db", "web", "job", NULL });
	done(&f);
}

static void a_filter_keeps_the_container_of_what_it_finds(void **state)
{
	struct fixture f;
	const char *text;

	make(&f, NULL);
	screen_draw(&f.s, 24, 80);
	screen_key(&f.s, 'f');
	screen_key(&f.s, 'D');
	screen_key(&f.s, 'b');
	screen_key(&f.s, KEY_RETURN);
	text = shown(&f, 24, 80);
	in_order(text, (const char *[]){ "with \"Db\"", "shop", "db", NULL });
	assert_null(strstr(text, "job"));
	assert_null(strstr(text, "30.0"));
	screen_key(&f.s, KEY_ESCAPE);
	in_order(shown(&f, 24, 80), (const char *[]){ "shop", "web", "job", NULL });
	done(&f);
}

static void folding_hides_members_and_unfolding_shows_them(void **state)
{
	struct fixture f;

	make(&f, NULL);
	screen_draw(&f.s, 24, 80);
	screen_key(&f.s, KEY_MOVE_DOWN); /* on a member: its container */
	screen_key(&f.s, KEY_MOVE_LEFT);
	assert_null(strstr(shown(&f, 24, 80), "web"));
	assert_int_equal(screen_top(&f.s)->cursor, 0);
	screen_key(&f.s, '+');
	assert_non_null(strstr(shown(&f, 24, 80), "web"));
	done(&f);
}

static struct screen_target chosen;

static void choose(struct screen *s, const struct screen_target *t)
{
	chosen = *t;
}

static void enter_chooses_the_row_under_the_cursor(void **state)
{
	struct screen_sources sources = { .profile = choose, .heap = choose };
	struct fixture f;

	make(&f, &sources);
	screen_draw(&f.s, 24, 80);
	screen_key(&f.s, KEY_RETURN);
	assert_string_equal(chosen.container, "0123abcd");
	screen_key(&f.s, KEY_LAST);
	screen_key(&f.s, KEY_RETURN);
	assert_int_equal(chosen.pid, 20);
	assert_null(chosen.container);
	screen_mouse(&f.s, KEY_CLICK, 4, 10); /* title, status, headings, shop, web */
	screen_key(&f.s, 'h');
	assert_int_equal(chosen.pid, 10);
	done(&f);
}

static void the_cursor_stays_on_its_process_when_the_order_changes(void **state)
{
	struct fixture f;

	make(&f, NULL);
	screen_draw(&f.s, 24, 80);
	screen_key(&f.s, KEY_LAST); /* job */
	processes_find(&f.p, 20)->cpu_percent = 99;
	screen_top(&f.s)->stale = true;
	in_order(shown(&f, 24, 80), (const char *[]){ "job", "shop", NULL });
	assert_int_equal(screen_top(&f.s)->cursor, 0);
	done(&f);
}

static void every_size_is_drawn(void **state)
{
	struct fixture f;

	make(&f, NULL);
	for (int rows = 1; rows < 30; rows++)
		for (int columns = 1; columns < 100; columns += 7)
			assert_int_equal(screen_draw(&f.s, rows, columns), 0);
	done(&f);
}

static void search_goes_from_row_to_row(void **state)
{
	struct fixture f;

	make(&f, NULL);
	screen_draw(&f.s, 24, 80);
	screen_key(&f.s, '/');
	screen_key(&f.s, '3');
	screen_key(&f.s, '0');
	screen_key(&f.s, KEY_RETURN);
	assert_int_equal(screen_top(&f.s)->cursor, 1); /* web, by its CPU% */
	screen_key(&f.s, 'n');
	assert_int_equal(screen_top(&f.s)->cursor, 2); /* db, by its pid */
	screen_key(&f.s, 'n');
	assert_int_equal(screen_top(&f.s)->cursor, 1);
	screen_key(&f.s, '/');
	screen_key(&f.s, 'x');
	screen_key(&f.s, KEY_RETURN);
	assert_non_null(strstr(shown(&f, 24, 80), "\"x\" is in no row"));
	done(&f);
}

static void help_lists_the_keys_of_the_view_and_goes_away(void **state)
{
	struct fixture f;

	make(&f, NULL);
	screen_draw(&f.s, 60, 80);
	screen_key(&f.s, '?');
	in_order(shown(&f, 60, 80), (const char *[]){ "keys: Processes", "Enter",
						      "profiles the process", "RSS/MIN", NULL });
	screen_key(&f.s, 'q');
	assert_false(f.s.end);
	in_order(shown(&f, 24, 80), (const char *[]){ "shop", NULL });
	screen_key(&f.s, 'q');
	assert_true(f.s.end);
	done(&f);
}

static void a_narrow_screen_has_room_for_commands(void **state)
{
	struct fixture f;
	const char *heading;

	make(&f, NULL);
	for (int columns = 36; columns <= 120; columns += 4) {
		heading = strstr(shown(&f, 24, columns), "COMMAND");
		assert_non_null(heading);
	}
	assert_non_null(strstr(shown(&f, 24, 80), "RUNTIME"));
	assert_non_null(strstr(shown(&f, 24, 80), "RSS/MIN"));
	assert_null(strstr(shown(&f, 24, 60), "HEAP"));
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_narrow_screen_has_room_for_commands),
		cmocka_unit_test(containers_have_the_sum_and_their_processes_below_them),
		cmocka_unit_test(another_column_sorts_otherwise_and_back),
		cmocka_unit_test(a_filter_keeps_the_container_of_what_it_finds),
		cmocka_unit_test(folding_hides_members_and_unfolding_shows_them),
		cmocka_unit_test(enter_chooses_the_row_under_the_cursor),
		cmocka_unit_test(the_cursor_stays_on_its_process_when_the_order_changes),
		cmocka_unit_test(every_size_is_drawn),
		cmocka_unit_test(search_goes_from_row_to_row),
		cmocka_unit_test(help_lists_the_keys_of_the_view_and_goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
