#include "render/finding.h"
#include "unit/profile_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type samples = { "samples", "count" };

static char *finding_of(const char *summary, const struct profile *p, const char *of)
{
	struct top_row rows[FINDING_ROWS];
	struct finding f = { .p = p, .of = of, .rows = rows };
	struct sink *out;
	struct err e = { 0 };
	size_t len;
	char *copy;

	if (p) {
		f.shown = shown_pick(p, -1);
		f.n_rows =
			(uint32_t)top_functions(p, f.shown.type, TOP_BY_SELF, rows, FINDING_ROWS);
	}
	if (summary)
		f.summary = bytes_of(summary, strlen(summary));
	assert_int_equal(sink_open_memory(&out, &e), 0);
	if (finding_write(&f, out, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(sink_commit(out, &e), 0);
	copy = strdup(sink_memory(out, &len));
	sink_close(out);
	return copy;
}

static void has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("no \"%s\" in\n%s", what, text);
}

static const char run[] =
	"{\"version\":\"1\",\"command_line\":\"memscope -p 7 -d 10\",\"start\":\"2026-11-24T03:29:57+00:00\",\"duration_ns\":10e9,"
	"\"target\":{\"processes\":[{\"pid\":7,\"comm\":\"web\",\"cmdline\":\"web --port 80\"}]},"
	"\"verdict\":{\"kind\":\"growing\",\"sentence\":\"web grows.\",\"next\":\"Open report.html.\"},"
	"\"diagnoses\":[{\"kind\":\"leak\",\"evidence\":\"fill keeps 9 MiB\"}],"
	"\"oncpu\":{\"samples\":200,\"hz\":99,\"event\":\"cpu-clock\",\"top_self\":[{\"function\":\"parse\",\"module\":\"web\",\"self\":50}]},"
	"\"alloc\":{\"tier\":\"bursts\",\"bytes\":4096,\"bytes_interval\":{\"low\":1024,\"high\":8192},\"bursts\":{\"bursts\":3,\"seen_calls\":12},"
	"\"sites\":[{\"function\":\"fill\",\"module\":\"web\",\"bytes\":1024}]},"
	"\"drops\":[{\"name\":\"a\",\"count\":0,\"help\":\"none\"},{\"name\":\"b\",\"count\":3,\"help\":\"stacks lost\"}],"
	"\"stacks\":[{\"source\":\"oncpu\",\"complete\":190,\"truncated\":10}],"
	"\"sources\":{\"offcpu\":{\"state\":\"unavailable\",\"why\":\"no BTF\"}},"
	"\"cost\":{\"profiled_percent\":1.5,\"limit_percent\":5}}";

static void what_a_run_knows_is_filled_in_and_the_rest_is_asked_for(void **state)
{
	static const char *const headings[] = { "\n## Date\n",          "\n## Symptom\n",
						"\n## Investigation\n", "\n## Root cause\n",
						"\n## Fix\n",           "\n## Result\n" };
	char *text = finding_of(run, NULL, "my run"), *at = text;

	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++) {
		at = strstr(at, headings[i]);
		assert_non_null(at);
	}
	has(text, "# Finding: web (pid 7)\n");
	has(text, "Recorded 2026-11-24T03:29:57+00:00, for 10.0 s, by memscope 1.\n");
	has(text, "The run's verdict: web grows.\n");
	has(text, "\n$ memscope -p 7 -d 10\n$ memscope report 'my run' --markdown\n");
	has(text,
	    "On-CPU: 200 samples at 99 Hz (cpu-clock). By self:\n\n```\n          50   25.0%  parse  [web]\n```\n");
	has(text,
	    "Allocations: 4.0 KiB (95 % interval 1.0 KiB to 8.0 KiB), estimated from 12 calls seen in 3 bursts.");
	has(text, "- 3: stacks lost\n");
	has(text, "- stacks, oncpu: 190 of 200 complete\n");
	has(text, "- not available: offcpu: no BTF\n");
	has(text, "cost the target 1.5 % of one CPU (limit 5 %).");
	has(text, "Diagnosis, leak: fill keeps 9 MiB.\n");
	has(text, "$ memscope diff 'my run' AFTER\n");
	assert_null(strstr(text, "none"));
	assert_null(strstr(text, "does not say"));
	free(text);
}

static void nothing_of_others_becomes_markup(void **state)
{
	static const char hostile[] =
		"{\"command_line\":\"```\\n# no\",\"title\":\"# <b>[x](http:y)**z** &amp; `q` \\u001b[31m #\","
		"\"target\":{\"processes\":[{\"pid\":1,\"comm\":\"_a_\",\"cmdline\":\"<script>\"}]},"
		"\"verdict\":{\"sentence\":\"\\n\\n# h\\n- i\",\"next\":\"![x](y)\"},\"notes\":[\"- a\\n\\n1. b\", 7],"
		"\"oncpu\":{\"samples\":1e300,\"hz\":-5,\"top_self\":[{\"function\":\"```\\n# x\",\"module\":\"~~~\",\"self\":-1e300},3]}}";
	char *text = finding_of(hostile, NULL, "```\nx"), *line, *save = NULL;
	uint32_t headings = 0, fences = 0;

	has(text, "# Finding: \\# \\<b\\>\\[x\\](http:y)\\*\\*z\\*\\* \\&amp; \\`q\\` ");
	assert_null(strchr(text, '\033'));
	assert_null(strstr(text, " <script>"));
	assert_null(strstr(text, "![x]"));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		headings += *line == '#';
		fences += strncmp(line + strspn(line, " "), "```", 3) == 0;
	}
	assert_int_equal(headings, 7);
	assert_int_equal(fences, 6); /* commands, one table, the comparison: each two */
	free(text);
}

static void a_profile_alone_has_its_functions(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	char *text;

	fixture_add1(&f, "web;main;parse", 3);
	fixture_add1(&f, "web;main", 1);
	text = finding_of(NULL, f.p, "a.pb.gz");
	has(text, "# Finding: a.pb.gz\n");
	has(text, "           3   75.0%  parse  [prog]\n");
	has(text, "Recorded at a time that is not known.\n");
	free(text);
	fixture_free(&f);
}

static void what_is_no_summary_is_refused(void **state)
{
	static const char *const bad[] = { "{", "[]", "{}", "7", "{\"verdict\":3}" };
	struct err e = { 0 };
	struct sink *out;

	assert_int_equal(sink_open_memory(&out, &e), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct finding f = { .summary = bytes_of(bad[i], strlen(bad[i])), .of = "x" };

		assert_int_equal(finding_write(&f, out, &e), -EBADMSG);
	}
	sink_close(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_run_knows_is_filled_in_and_the_rest_is_asked_for),
		cmocka_unit_test(nothing_of_others_becomes_markup),
		cmocka_unit_test(a_profile_alone_has_its_functions),
		cmocka_unit_test(what_is_no_summary_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
