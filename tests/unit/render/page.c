#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/sample_times.h"
#include "render/html/packed.h"
#include "render/html/page.h"
#include "unit/profile_fixture.h"

static const struct value_type samples = { "samples", "count" };

static char *write_page(const struct page_run *run)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct err e = { 0 };
	size_t len;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(page_write(run, out, &e), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	return strdup(sink_memory(out, &len));
}

/* What is between `open` and `close`, from `*at` on; `*at` is then behind it. NULL: there is none. */
static char *between(const char **at, const char *open, const char *close)
{
	const char *from = strstr(*at, open), *to;

	if (!from)
		return NULL;
	from += strlen(open);
	to = strstr(from, close);
	assert_non_null(to);
	*at = to;
	return strndup(from, (size_t)(to - from));
}

static cJSON *run_of(const char *page)
{
	char *text = between(&page, "<script type=\"application/json\" id=\"run\">", "</script>");
	cJSON *run;

	assert_non_null(text);
	assert_null(strchr(text, '<'));
	run = cJSON_Parse(text);
	assert_non_null(run);
	free(text);
	return run;
}

static const cJSON *get(const cJSON *in, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(in, key);

	assert_non_null(item);
	return item;
}

/* 'sha256-…' as a policy names the text: by Python, the build uses another program. */
static void add_hash(const char *text, struct strbuf *out)
{
	char path[] = "/tmp/memscope-page-XXXXXX", line[128];
	_cleanup_(strbuf_free) struct strbuf command = { 0 };
	int fd = mkstemp(path);
	FILE *file;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	strbuf_printf(
		&command,
		"python3 -c 'import base64, hashlib; "
		"print(base64.b64encode(hashlib.sha256(open(\"%s\", \"rb\").read()).digest()).decode())'",
		path);
	file = popen(command.s, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_int_equal(pclose(file), 0);
	unlink(path);
	strbuf_printf(out, "'sha256-%.*s'", (int)strcspn(line, "\n"), line);
}

static void the_policy_allows_its_own_scripts_and_style_alone(void **state)
{
	char *page = write_page(&(struct page_run){ 0 });
	const char *at = page;
	char *policy = between(&at, "Content-Security-Policy\" content=\"", "\">"), *text;
	int found = 0;

	(void)state;
	assert_non_null(strstr(policy, "default-src 'none'"));
	assert_null(strstr(policy, "unsafe"));
	for (int i = 0; i < 3; i++) {
		static const char *const tags[][2] = { { "<style>", "</style>" },
						       { "<script>", "</script>" },
						       { "<script>", "</script>" } };
		_cleanup_(strbuf_free) struct strbuf hash = { 0 };

		text = between(&at, tags[i][0], tags[i][1]);
		assert_non_null(text);
		add_hash(text, &hash);
		found += strstr(policy, hash.s) != NULL;
		free(text);
	}
	assert_int_equal(found, 3);
	assert_null(strstr(at, "<script>"));
	free(policy);
	free(page);
}

static void nothing_is_loaded_from_anywhere(void **state)
{
	char *page = write_page(&(struct page_run){ 0 });

	(void)state;
	assert_null(strstr(page, " src="));
	assert_null(strstr(page, "<link"));
	assert_null(strstr(page, "@import"));
	assert_null(strstr(page, "url(h"));
	free(page);
}

static void hostile_names_are_only_text(void **state)
{
	static const char evil[] = "</script><script>alert(1)</script>\"'&\xe2\x80\xae";
	static const char summary[] =
		"{\"verdict\":{\"sentence\":\"</script><img src=x>\xe2\x80\xae &\\u001b\\\\u0007\\n\\\"\"}}";
	struct time_column column = { (char *)evil, (double[]){ 1 } };
	struct time_table table = { (double[]){ 5 }, &column, 1, 1 };
	struct fixture f = fixture_new(&samples, 1);
	char stack[256], *page;
	cJSON *run;

	(void)state;
	snprintf(stack, sizeof(stack), "%s;%s", evil, evil);
	for (char *c = stack + strlen(evil) + 1; *c; c++)
		*c = *c == ';' ? ':' : *c;
	fixture_add1(&f, stack, 1);
	page = write_page(&(struct page_run){ .title = evil,
					      .profiles = { { "oncpu", f.p, NULL } },
					      .n_profiles = 1,
					      .series = { { "workload", "Work", &table } },
					      .n_series = 1,
					      .summary = bytes_of(summary, strlen(summary)) });
	assert_null(strstr(page, "alert(1)</script>\"'"));
	assert_null(strstr(page, "<script>alert(1)"));
	assert_null(strstr(page, "<img"));
	assert_null(strstr(page, "\xe2\x80\xae"));
	run = run_of(page);
	assert_string_equal(get(run, "title")->valuestring,
			    "</script><script>alert(1)</script>\"'&\xef\xbf\xbd");
	assert_string_equal(get(get(get(run, "summary"), "verdict"), "sentence")->valuestring,
			    "</script><img src=x>\xef\xbf\xbd &\xef\xbf\xbd\\u0007\n\"");
	cJSON_Delete(run);
	free(page);
	fixture_free(&f);
}

static void what_is_no_summary_is_left_out(void **state)
{
	static const char *const texts[] = { "", "{\"a\":1", "[1]", "nothing" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		char *page = write_page(
			&(struct page_run){ .summary = bytes_of(texts[i], strlen(texts[i])) });
		cJSON *run = run_of(page);

		assert_true(cJSON_IsNull(get(run, "summary")));
		cJSON_Delete(run);
		free(page);
	}
}

static void series_are_seconds_since_the_run_began(void **state)
{
	double values[] = { 1, NAN, 3 };
	struct time_column column = { "rss_kb", values };
	struct time_table table = { (double[]){ 100, 101, 102.5 }, &column, 3, 1 };
	char *page = write_page(&(struct page_run){
		.started_s = 99.5, .series = { { "trend", "Memory", &table } }, .n_series = 1 });
	cJSON *run = run_of(page);
	const cJSON *s = cJSON_GetArrayItem(get(run, "series"), 0);
	const cJSON *c = cJSON_GetArrayItem(get(s, "columns"), 0);

	(void)state;
	assert_true(cJSON_GetArrayItem(get(s, "times"), 0)->valuedouble == .5);
	assert_true(cJSON_GetArrayItem(get(s, "times"), 2)->valuedouble == 3);
	assert_string_equal(get(c, "unit")->valuestring, "KiB");
	assert_true(cJSON_IsNull(cJSON_GetArrayItem(get(c, "values"), 1)));
	assert_true(cJSON_GetArrayItem(get(c, "values"), 2)->valuedouble == 3);
	assert_true(get(s, "rows_per_point")->valuedouble == 1);
	cJSON_Delete(run);
	free(page);
}

static void of_long_series_no_peak_is_lost(void **state)
{
	enum { ROWS = 100000 };
	double *times = malloc(ROWS * sizeof(*times)), *values = malloc(ROWS * sizeof(*values));
	struct time_column column = { "rss_kb", values };
	struct time_table table = { times, &column, ROWS, 1 };
	double high = 0, low = 1e9, last = -1;
	char *page;
	cJSON *run;
	const cJSON *s, *v;

	(void)state;
	for (int i = 0; i < ROWS; i++) {
		times[i] = i;
		values[i] = i == 54321 ? 1e6 : i == 54322 ? 1 : 500 + i % 10;
	}
	page = write_page(
		&(struct page_run){ .series = { { "trend", "Memory", &table } }, .n_series = 1 });
	run = run_of(page);
	s = cJSON_GetArrayItem(get(run, "series"), 0);
	assert_true(cJSON_GetArraySize(get(s, "times")) <= 4000);
	assert_true(get(s, "rows_per_point")->valuedouble > 1);
	cJSON_ArrayForEach(v, get(s, "times"))
	{
		assert_true(v->valuedouble >= last);
		last = v->valuedouble;
	}
	cJSON_ArrayForEach(v, get(cJSON_GetArrayItem(get(s, "columns"), 0), "values"))
	{
		high = fmax(high, v->valuedouble);
		low = fmin(low, v->valuedouble);
	}
	assert_true(high == 1e6);
	assert_true(low == 1);
	cJSON_Delete(run);
	free(page);
	free(times);
	free(values);
}

static void profiles_say_what_they_are(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	char *page;
	cJSON *run;
	const cJSON *p;

	(void)state;
	fixture_add1(&f, "redis;main", 3);
	page = write_page(
		&(struct page_run){ .profiles = { { "oncpu", f.p, NULL } }, .n_profiles = 1 });
	run = run_of(page);
	assert_string_equal(get(run, "title")->valuestring, "redis");
	p = cJSON_GetArrayItem(get(run, "profiles"), 0);
	assert_string_equal(get(p, "source")->valuestring, "on-CPU");
	assert_string_equal(get(p, "data")->valuestring, "profile-oncpu");
	assert_string_equal(get(cJSON_GetArrayItem(get(p, "types"), 0), "unit")->valuestring,
			    "count");
	assert_non_null(
		strstr(page, "<script type=\"application/octet-stream\" id=\"profile-oncpu\">"));
	cJSON_Delete(run);
	free(page);
	fixture_free(&f);
}

static void times_finer_than_the_page_s_are_kept(void **state)
{
	struct fixture f = fixture_new(&samples, 1);
	struct sample_times *fine = sample_times_new((uint32_t[]){ 0 }, 1, 7812500, 1 << 16);
	struct sample_times *whole = sample_times_new((uint32_t[]){ 0 }, 1, 1000000000, 1 << 16);
	const cJSON *profiles;
	char *page;
	cJSON *run;

	(void)state;
	fixture_add(&f, ";main", (int64_t[]){ 3 });
	sample_times_add(fine, 0, 2507812500, (int64_t[]){ 3 });
	sample_times_add(whole, 0, 2500000000, (int64_t[]){ 3 });
	page = write_page(&(struct page_run){ .profiles = { { "oncpu", f.p, fine },
							    { "offcpu", f.p, whole },
							    { "heap", f.p, NULL } },
					      .n_profiles = 3 });
	run = run_of(page);
	assert_true(get(run, "bin_seconds")->valuedouble == 1);
	assert_int_equal(get(run, "n_bins")->valueint, 3);
	profiles = get(run, "profiles");
	assert_int_equal(get(cJSON_GetArrayItem(profiles, 0), "fineness")->valueint, 128);
	assert_int_equal(get(cJSON_GetArrayItem(profiles, 1), "fineness")->valueint, 1);
	assert_int_equal(get(cJSON_GetArrayItem(profiles, 2), "fineness")->valueint, 1);
	cJSON_Delete(run);
	free(page);
	sample_times_free(fine);
	sample_times_free(whole);
	fixture_free(&f);
}

/* --- two sides --- */

static struct sample_times *times_until(int64_t seconds)
{
	struct sample_times *t =
		sample_times_new((uint32_t[]){ 0 }, 1, SAMPLE_TIMES_BIN_NS, 1 << 16);

	assert_non_null(t);
	for (int64_t i = 0; i < seconds; i++)
		assert_int_equal(
			sample_times_add(t, 0, (uint64_t)i * 1000000000ull, (int64_t[]){ 1 }), 0);
	return t;
}

/* Runs of 10 s and 7,000 s before, one of 20 s after. */
static void both_sides_are_whole_runs_on_one_axis_with_elements_of_their_own(void **state)
{
	static const char evil[] = "</script><script>alert(1)</script>";
	static const char figures[] = "{\"scaled\":\"absolute\",\"x\":\"</script>\"}";
	static const char rows[] = "{\"rows\":[]}";
	static const char *const ids[] = { "profile-a1-oncpu", "profile-a2-oncpu",
					   "profile-b1-oncpu", "detail-a1-oncpu", "rows-oncpu-0" };
	static const int64_t seconds[] = { 10, 7000, 20 };
	struct sample_times *times[3];
	struct fixture f[3];
	struct page_run runs[3];
	struct page_rows element = { "oncpu-0", { (const uint8_t *)rows, sizeof(rows) - 1 } };
	struct page_comparison both = {
		.sides = { { evil, runs, 2 }, { "after", runs + 2, 1 } },
		.figures = { (const uint8_t *)figures, sizeof(figures) - 1 },
		.rows = &element,
		.n_rows = 1,
	};
	_cleanup_(sink_closep) struct sink *out = NULL;
	const char *page;
	const cJSON *one;
	cJSON *run;
	size_t len;

	(void)state;
	for (int i = 0; i < 3; i++) {
		f[i] = fixture_new(&samples, 1);
		times[i] = times_until(seconds[i]);
		fixture_add(&f[i], ";main", (int64_t[]){ seconds[i] });
		runs[i] = (struct page_run){ .title = evil,
					     .seconds = (double)seconds[i],
					     .profiles = { { "oncpu", f[i].p, times[i] } },
					     .n_profiles = 1 };
	}
	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(page_write_comparison(&both, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	page = sink_memory(out, &len);
	assert_null(strstr(page, evil));
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		char id[64];

		snprintf(id, sizeof(id), "id=\"%s\"", ids[i]);
		assert_non_null(strstr(page, id));
	}
	run = run_of(page);
	assert_string_equal(get(get(run, "comparison"), "x")->valuestring, "</script>");
	for (int k = 0; k < 2; k++) {
		const cJSON *side = cJSON_GetArrayItem(get(run, "sides"), k);

		assert_string_equal(get(side, "name")->valuestring, k ? "after" : evil);
		assert_int_equal(cJSON_GetArraySize(get(side, "runs")), k ? 1 : 2);
		/* 7,000 seconds do not fit side by side: all bins are 2 s wide. */
		cJSON_ArrayForEach(one, get(side, "runs"))
		{
			assert_true(get(one, "bin_seconds")->valuedouble == 2);
			assert_int_equal(get(one, "n_bins")->valueint,
					 (get(one, "seconds")->valueint + 1) / 2);
		}
	}
	cJSON_Delete(run);
	for (int i = 0; i < 3; i++) {
		sample_times_free(times[i]);
		fixture_free(&f[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_policy_allows_its_own_scripts_and_style_alone),
		cmocka_unit_test(nothing_is_loaded_from_anywhere),
		cmocka_unit_test(hostile_names_are_only_text),
		cmocka_unit_test(what_is_no_summary_is_left_out),
		cmocka_unit_test(series_are_seconds_since_the_run_began),
		cmocka_unit_test(of_long_series_no_peak_is_lost),
		cmocka_unit_test(profiles_say_what_they_are),
		cmocka_unit_test(times_finer_than_the_page_s_are_kept),
		cmocka_unit_test(both_sides_are_whole_runs_on_one_axis_with_elements_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
