#include "screen/heap.h"
#include "render/tables/answer.h"
#include "screen/screen.h"
#include "screen/worker.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* As answer_describe() and answer_write() have it; column kinds are filled in by make(). */
static const char census_form[] =
	"{\"notes\": [\"python3 (7): 30 blocks\", \"2 more rows\"], \"columns\": {\"types\": [[\"bytes\", \"bytes\", %d], "
	"[\"type\", \"type\", %d], [\"objects\", \"objects\", %d]]}, \"types\": [{\"bytes\": 4096, \"type\": \"Session\", \"objects\": 2}, "
	"{\"bytes\": 1024, \"type\": \"str\", \"objects\": 20}]}";
static const char retainers_form[] =
	"{\"notes\": [\"x\", \"2 objects are Session\"], \"columns\": {\"retainers\": [[\"objects\", \"objects\", %d], [\"through\", \"through\", %d], "
	"[\"chain\", \"\", %d]]}, \"retainers\": [{\"objects\": 1, \"through\": \"the module app\", \"chain\": [\"dict\", \"list\"]}, "
	"{\"objects\": 1, \"through\": \"the stack\", \"chain\": [\"frame\"]}]}";
static char census[sizeof(census_form) + 32], retainers[sizeof(retainers_form) + 32];

static char *shown_in(struct screen *s, int columns)
{
	static char buf[1 << 16];
	FILE *to = fmemopen(buf, sizeof(buf), "w");

	assert_int_equal(screen_draw(s, 24, columns), 0);
	for (int y = 0; y < 24; y++)
		canvas_print(&s->canvas, y, to);
	fclose(to);
	return buf;
}

static char *shown(struct screen *s)
{
	return shown_in(s, 100);
}

static struct view *make(struct screen *s)
{
	struct view *v = heap_screen_of("python3 (pid 7)");

	snprintf(census, sizeof(census), census_form, ANSWER_BYTES, ANSWER_NAME, ANSWER_COUNT);
	snprintf(retainers, sizeof(retainers), retainers_form, ANSWER_COUNT, ANSWER_NAME,
		 ANSWER_LINES);
	*s = (struct screen){ 0 };
	assert_true(screen_push(s, v));
	assert_int_equal(heap_screen_take(v, "census type", census, strlen(census)), 0);
	return v;
}

static void an_answer_is_a_table_with_its_name_last(void **state)
{
	struct screen s;

	make(&s);
	assert_non_null(strstr(shown(&s), "heap of python3 (pid 7): census type"));
	assert_non_null(strstr(shown(&s), "  BYTES  OBJECTS TYPE"));
	assert_non_null(strstr(shown(&s), "4.0 KiB        2   Session"));
	assert_true(strstr(shown(&s), "Session") < strstr(shown(&s), "str"));
	screen_key(&s, 's');
	screen_key(&s, 's'); /* by objects */
	assert_true(strstr(shown(&s), "Session") > strstr(shown(&s), "str"));
	screen_fini(&s);
}

static void chains_unfold_and_back_goes_to_the_answer_before(void **state)
{
	struct screen s;
	struct view *v = make(&s);

	screen_draw(&s, 24, 100);
	screen_key(&s, KEY_LAST);
	assert_int_equal(
		heap_screen_take(v, "retainers type:Session", retainers, strlen(retainers)), 0);
	assert_non_null(strstr(shown(&s), "▸ the module app"));
	assert_non_null(strstr(shown(&s), "2 objects are Session"));
	assert_null(strstr(shown(&s), "list"));
	screen_key(&s, KEY_RETURN);
	assert_non_null(strstr(shown(&s), "▾ the module app"));
	assert_non_null(strstr(shown(&s), "list"));
	screen_key(&s, KEY_MOVE_DOWN); /* on the chain: it is folded with its row */
	screen_key(&s, KEY_MOVE_LEFT);
	assert_null(strstr(shown(&s), "list"));
	screen_key(&s, KEY_ESCAPE);
	assert_non_null(strstr(shown(&s), "census type"));
	assert_int_equal(screen_top(&s)->cursor, 1); /* where it was */
	screen_fini(&s);
}

static void a_filter_also_finds_what_is_in_chains(void **state)
{
	struct screen s;
	struct view *v = make(&s);

	assert_int_equal(
		heap_screen_take(v, "retainers type:Session", retainers, strlen(retainers)), 0);
	screen_draw(&s, 24, 100);
	screen_key(&s, 'f');
	for (const char *c = "frame"; *c; c++)
		screen_key(&s, (uint32_t)*c);
	screen_key(&s, KEY_RETURN);
	assert_non_null(strstr(shown(&s), "the stack"));
	assert_null(strstr(shown(&s), "the module app"));
	screen_fini(&s);
}

static void trees_are_indented_until_they_are_sorted(void **state)
{
	static const char form[] =
		"{\"columns\": {\"objects\": [[\"retained\", \"retained\", %d], [\"type\", \"type\", %d]]}, "
		"\"objects\": [{\"retained\": 9, \"depth\": 0, \"type\": \"dict\"}, {\"retained\": 8, \"depth\": 3, \"type\": \"list\"}]}";
	struct screen s;
	struct view *v = make(&s);
	char tree[400];

	snprintf(tree, sizeof(tree), form, ANSWER_BYTES, ANSWER_TREE);
	assert_int_equal(heap_screen_take(v, "dominators", tree, strlen(tree)), 0);
	assert_non_null(strstr(shown(&s), "8 B      list")); /* three levels */
	screen_key(&s, 's');
	assert_non_null(strstr(shown(&s), "8 B   list"));
	screen_fini(&s);
}

static void what_is_no_answer_is_refused(void **state)
{
	static const char *const damaged[] = {
		"",
		"[]",
		"{",
		"7",
		"{\"columns\": 3}",
		"{\"columns\": {\"x\": [[1]]}}",
		"{\"columns\": {\"x\": [[\"a\", \"b\", 0]]}, \"x\": [1, null, {}]}"
	};
	struct screen s;
	struct view *v = make(&s);

	for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		int r = heap_screen_take(v, "census type", damaged[i], strlen(damaged[i]));

		assert_true(r == 0 || r == -EBADMSG);
		shown(&s);
		screen_key(&s, 's');
		shown(&s);
	}
	screen_fini(&s);
}

static void many_answers_are_kept_and_the_oldest_forgotten(void **state)
{
	struct screen s;
	struct view *v = make(&s);

	for (int i = 0; i < 100; i++)
		assert_int_equal(heap_screen_take(v, "census type", census, strlen(census)), 0);
	for (int i = 0; i < 100; i++)
		screen_key(&s, KEY_ESCAPE);
	assert_non_null(strstr(shown(&s), "Session"));
	screen_fini(&s);
}

/* Answers a line by an empty table of its words. */
static int echo(void *ctx, int in, int out)
{
	FILE *lines = fdopen(in, "r");
	char line[600] = "census type", json[700];

	do {
		line[strcspn(line, "\n")] = '\0';
		for (char *quote = line; (quote = strchr(quote, '"'));)
			*quote = '\''; /* nothing is to be escaped */
		snprintf(json, sizeof(json), "{\"notes\": [\"was asked <%s>\"]}", line);
		if (strstr(line, "wrong"))
			worker_say(out, WORKER_FAILED,
				   "there is no field \"%s\", among %0150d and %0100d", line, 1, 2);
		else
			worker_send(out, WORKER_ANSWER, json, strlen(json));
	} while (fgets(line, sizeof(line), lines));
	fclose(lines);
	return 0;
}

static void type(struct screen *s, const char *text)
{
	while (*text)
		screen_key(s, (unsigned char)*text++);
}

static void wait_for_answer(struct screen *s, const char *text)
{
	struct view *v = screen_top(s);
	struct pollfd fd = { .fd = v->ops->fd(v), .events = POLLIN };

	while (!strstr(shown(s), text)) {
		assert_int_equal(poll(&fd, 1, 60000), 1);
		v->ops->tick(v, s);
	}
}

static void questions_are_typed_and_the_last_one_comes_again(void **state)
{
	static const char condition[] =
		"type = dict and size > 4K and retained_by(type = Session) and not lost";
	struct screen s = { 0 };
	struct view *v;
	struct err e = { 0 };

	assert_int_equal(heap_screen_new(echo, NULL, "x", &v, &e), 0);
	assert_true(screen_push(&s, v));
	wait_for_answer(&s, "was asked <census type>");
	screen_key(&s, ':');
	assert_non_null(strstr(shown(&s), "ask: _ a condition"));
	type(&s, condition);
	screen_key(&s, KEY_RETURN);
	wait_for_answer(
		&s,
		"was asked <type = dict and size > 4K and retained_by(type = Session) and not lost>");
	/* A mistake says so, in as many lines as it needs, and can be mended. */
	screen_key(&s, ':');
	screen_key(&s, KEY_MOVE_UP);
	assert_non_null(strstr(shown(&s), condition));
	type(&s, " wrong");
	screen_key(&s, KEY_RETURN);
	wait_for_answer(&s, "there is no field");
	assert_non_null(strstr(shown(&s), "0002"));
	assert_non_null(strstr(shown(&s), "was asked <type = dict"));
	/* Escape asks nothing. */
	screen_key(&s, ':');
	type(&s, "dups");
	screen_key(&s, KEY_ESCAPE);
	screen_key(&s, 'D');
	wait_for_answer(&s, "was asked <dups>");
	screen_fini(&s);
	workers_wait(5000);
}

static void every_question_has_a_key(void **state)
{
	static const struct {
		uint32_t key;
		const char *question;
	} keys[] = {
		{ 'c', "census type" },     { 'b', "census module" }, { 'b', "census two-level" },
		{ 'b', "census referrer" }, { 'b', "census arena" },  { 'd', "dominators" },
		{ 'L', "leaks" },           { 'a', "allocator" },     { 'g', "fragmentation" },
		{ 'C', "caches" },          { 'D', "dups" },          { 'x', "refcounts" },
		{ 't', "thunks" },
	};
	struct screen s = { 0 };
	struct view *v;
	struct err e = { 0 };
	char text[64];

	assert_int_equal(heap_screen_new(echo, NULL, "x", &v, &e), 0);
	assert_true(screen_push(&s, v));
	wait_for_answer(&s, "was asked");
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		snprintf(text, sizeof(text), "was asked <%s>", keys[i].question);
		screen_key(&s, keys[i].key);
		wait_for_answer(&s, text);
	}
	screen_fini(&s);
	workers_wait(5000);
}

static void what_has_a_container_is_asked_for(void **state)
{
	static const char form[] =
		"{\"columns\": {\"caches\": [[\"elements\", \"largest\", %d], [\"container\", \"\", %d], [\"in\", \"\", %d], [\"through\", \"\", %d]]}, "
		"\"caches\": [{\"elements\": 9, \"container\": \"std::vector\", \"in\": \"web::Session+8\", \"through\": \"the variable all\"}, "
		"{\"elements\": 8, \"container\": \"std::map\", \"in\": \"\", \"through\": \"the variable jobs\"}]}";
	struct screen s = { 0 };
	struct view *v;
	struct err e = { 0 };
	char json[600];

	snprintf(json, sizeof(json), form, ANSWER_COUNT, ANSWER_NAME, ANSWER_NAME, ANSWER_NAME);
	assert_int_equal(heap_screen_new(echo, NULL, "x", &v, &e), 0);
	assert_true(screen_push(&s, v));
	wait_for_answer(&s, "was asked");
	assert_int_equal(heap_screen_take(v, "caches", json, strlen(json)), 0);
	shown(&s);
	screen_key(&s, KEY_MOVE_DOWN);
	screen_key(&s, KEY_RETURN);
	assert_non_null(strstr(shown(&s), "the variable jobs keeps it"));
	screen_key(&s, KEY_MOVE_UP);
	screen_key(&s, KEY_RETURN);
	wait_for_answer(&s, "was asked <retainers type:web::Session>");
	snprintf(json, sizeof(json),
		 "{\"columns\": {\"sites\": [[\"bytes\", \"\", %d], [\"site\", \"\", %d]]}, "
		 "\"sites\": [{\"bytes\": 9, \"site\": \"make_session (web.c:12)\"}]}",
		 ANSWER_BYTES, ANSWER_NAME);
	assert_int_equal(heap_screen_take(v, "census site", json, strlen(json)), 0);
	shown(&s);
	screen_key(&s, KEY_RETURN);
	wait_for_answer(&s, "was asked <retainers site = 'make_session'>");
	screen_fini(&s);
	workers_wait(5000);
}

static void tab_goes_through_the_tables_of_an_answer(void **state)
{
	static const char form[] =
		"{\"columns\": {\"arenas\": [[\"bytes\", \"bytes\", %d], [\"arena\", \"arena\", %d]], "
		"\"classes\": [[\"blocks\", \"blocks\", %d], [\"class\", \"class\", %d]]}, "
		"\"arenas\": [{\"bytes\": 4096, \"arena\": \"glibc arena 0\"}], \"classes\": [{\"blocks\": 7, \"class\": \"48 bytes\"}, "
		"{\"blocks\": 5, \"class\": \"64 bytes\"}]}";
	struct screen s;
	struct view *v = make(&s);
	char json[600];

	snprintf(json, sizeof(json), form, ANSWER_BYTES, ANSWER_NAME, ANSWER_COUNT, ANSWER_NAME);
	assert_int_equal(heap_screen_take(v, "allocator", json, strlen(json)), 0);
	assert_non_null(strstr(shown(&s), "allocator, table 1 of 2 (Tab)"));
	assert_non_null(strstr(shown(&s), "glibc arena 0"));
	screen_key(&s, '\t');
	assert_non_null(strstr(shown(&s), "allocator, table 2 of 2"));
	assert_non_null(strstr(shown(&s), "BLOCKS CLASS"));
	assert_non_null(strstr(shown(&s), "64 bytes"));
	assert_null(strstr(shown(&s), "glibc"));
	screen_key(&s, '\t');
	assert_non_null(strstr(shown(&s), "glibc arena 0"));
	screen_fini(&s);
}

/* The name stays on a narrow screen, and figures that are 0 everywhere go first. */
static void narrow_screens_leave_out_figures_and_not_names(void **state)
{
	char json[2000];
	struct screen s;
	struct view *v = make(&s);
	int n = 0;

	n += snprintf(json + n, sizeof(json) - (size_t)n, "{\"columns\": {\"arenas\": [");
	for (int i = 0; i < 8; i++)
		n += snprintf(json + n, sizeof(json) - (size_t)n, "[\"figure_%d\", \"\", %d], ", i,
			      ANSWER_COUNT);
	n += snprintf(json + n, sizeof(json) - (size_t)n,
		      "[\"arena\", \"arena\", %d]]}, \"arenas\": [{", ANSWER_NAME);
	for (int i = 0; i < 8; i++)
		n += snprintf(json + n, sizeof(json) - (size_t)n, "\"figure_%d\": %d, ", i,
			      i == 2 ? 0 : 1000 + i);
	snprintf(json + n, sizeof(json) - (size_t)n, "\"arena\": \"glibc arena 0\"}]}");
	assert_int_equal(heap_screen_take(v, "allocator", json, strlen(json)), 0);
	assert_non_null(strstr(shown_in(&s, 120), "FIGURE 2"));
	assert_non_null(strstr(shown_in(&s, 120), "1,007   glibc arena 0"));
	assert_null(strstr(shown_in(&s, 94), "FIGURE 2"));
	assert_non_null(strstr(shown_in(&s, 94), "FIGURE 7"));
	assert_null(strstr(shown_in(&s, 39), "FIGURE 1"));
	assert_non_null(strstr(shown_in(&s, 39), "1,000   glibc arena 0"));
	screen_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_a_table_with_its_name_last),
		cmocka_unit_test(chains_unfold_and_back_goes_to_the_answer_before),
		cmocka_unit_test(a_filter_also_finds_what_is_in_chains),
		cmocka_unit_test(trees_are_indented_until_they_are_sorted),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(questions_are_typed_and_the_last_one_comes_again),
		cmocka_unit_test(every_question_has_a_key),
		cmocka_unit_test(what_has_a_container_is_asked_for),
		cmocka_unit_test(tab_goes_through_the_tables_of_an_answer),
		cmocka_unit_test(narrow_screens_leave_out_figures_and_not_names),
		cmocka_unit_test(many_answers_are_kept_and_the_oldest_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
