#include "screen/heap.h"
#include "render/tables/answer.h"
#include "screen/screen.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

static char *shown(struct screen *s)
{
	static char buf[1 << 16];
	FILE *to = fmemopen(buf, sizeof(buf), "w");

	assert_int_equal(screen_draw(s, 24, 100), 0);
	for (int y = 0; y < 24; y++)
		canvas_print(&s->canvas, y, to);
	fclose(to);
	return buf;
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
	assert_non_null(strstr(shown(&s), "BYTES     OBJECTS TYPE"));
	assert_non_null(strstr(shown(&s), "4.0 KiB           2   Session"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_a_table_with_its_name_last),
		cmocka_unit_test(chains_unfold_and_back_goes_to_the_answer_before),
		cmocka_unit_test(a_filter_also_finds_what_is_in_chains),
		cmocka_unit_test(trees_are_indented_until_they_are_sorted),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(many_answers_are_kept_and_the_oldest_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
