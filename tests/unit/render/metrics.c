/* Families of metrics, byte by byte, in both formats. */
#include "render/formats/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct metric_family gauge = { "memscope_a_bytes", "Of a \\ and\na \"b\"." };
static const struct metric_family counter = { "memscope_b", "Some.", true };

static char *written(enum metrics_format format)
{
	const struct metric_label hostile[] = { { "container", "a\"\\\n{}\x1b[31m" },
						{ "part", "\xff" } };
	struct strbuf out = { 0 };

	metrics_family(&out, format, &gauge);
	metrics_series(&out, format, &gauge, NULL, 0, 1.5, 0);
	metrics_series(&out, format, &gauge, hostile, 2, 9007199254740993.0, 0);
	metrics_series(&out, format, &gauge, NULL, 0, NAN, 0);
	metrics_family(&out, format, &counter);
	metrics_series(&out, format, &counter, NULL, 0, 3, 1.25);
	metrics_end(&out, format);
	return strbuf_take(&out);
}

static void text_has_counters_by_the_name_of_their_series_and_labels_escaped(void **state)
{
	char *text = written(METRICS_TEXT);

	assert_string_equal(
		text,
		"# HELP memscope_a_bytes Of a \\\\ and\\na \"b\".\n"
		"# TYPE memscope_a_bytes gauge\n"
		"memscope_a_bytes 1.5\n"
		"memscope_a_bytes{container=\"a\\\"\\\\\xef\xbf\xbd{}\xef\xbf\xbd[31m\",part=\"\xef\xbf\xbd\"} 9007199254740992\n"
		"# HELP memscope_b_total Some.\n"
		"# TYPE memscope_b_total counter\n"
		"memscope_b_total 3\n");
	free(text);
}

static void openmetrics_has_created_and_its_end(void **state)
{
	char *text = written(METRICS_OPENMETRICS);

	assert_non_null(strstr(text, "# HELP memscope_a_bytes Of a \\\\ and\\na \\\"b\\\".\n"));
	assert_non_null(strstr(text, "# TYPE memscope_b counter\nmemscope_b_total 3\n"
				     "memscope_b_created 1.250\n# EOF\n"));
	free(text);
}

static void since_when_it_counts_is_left_out_where_nobody_knows(void **state)
{
	const struct metric_family family = { "memscope_b", "Some.", true };
	struct strbuf out = { 0 };

	(void)state;
	metrics_series(&out, METRICS_OPENMETRICS, &family, NULL, 0, 3, NAN);
	assert_string_equal(out.s, "memscope_b_total 3\n");
	strbuf_free(&out);
}

static void what_a_client_accepts_is_chosen_by_weight(void **state)
{
	static const struct {
		const char *accept;
		enum metrics_format format;
	} rows[] = {
		{ NULL, METRICS_TEXT },
		{ "", METRICS_TEXT },
		{ "*/*", METRICS_TEXT },
		{ "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", METRICS_TEXT },
		/* Prometheus 2.42 */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
		  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  METRICS_OPENMETRICS },
		{ "application/openmetrics-text; version=1.0.0; q=0.2, text/plain; q=0.9",
		  METRICS_TEXT },
		{ "application/openmetrics-text;q=0", METRICS_TEXT },
		{ "application/openmetrics-text;q=0.9,application/openmetrics-text;q=0.1,text/plain;q=0.5",
		  METRICS_OPENMETRICS },
		{ "text/plain;q=0.9,text/plain;q=0.1,application/openmetrics-text;q=0.5",
		  METRICS_TEXT },
		{ "Application/OpenMetrics-Text", METRICS_OPENMETRICS },
		{ "application/openmetrics-textual", METRICS_TEXT },
		{ "application/openmetrics-text;q=nonsense,text/plain;q=0.1", METRICS_TEXT },
		{ ",,, ;;;q=,", METRICS_TEXT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (metrics_accepted(rows[i].accept) != rows[i].format)
			fail_msg("%s", rows[i].accept ? rows[i].accept : "(none)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_counters_by_the_name_of_their_series_and_labels_escaped),
		cmocka_unit_test(openmetrics_has_created_and_its_end),
		cmocka_unit_test(since_when_it_counts_is_left_out_where_nobody_knows),
		cmocka_unit_test(what_a_client_accepts_is_chosen_by_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
