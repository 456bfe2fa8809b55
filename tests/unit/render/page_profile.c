#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "render/html/page_data.h"
#include "render/html/page_profile.h"
#include "unit/profile_fixture.h"

/* What a reader of the columns gets, by the specification in page_data.h alone. */
struct decoded {
	struct bytes strings[64];
	uint64_t n_strings, frame[5][64], n_frames, parent[64], frame_of[64], n_nodes, set[5][64],
		n_sets;
	uint64_t n_samples, node[64], set_of[64], n_timed, timed[4];
	int64_t values[4][64];
	struct {
		uint64_t n, bin[16];
		int64_t value[16];
	} times[4][64];
};

static struct decoded got;

static uint64_t number(struct bytes *in)
{
	uint64_t n;

	assert_int_equal(bytes_uleb(in, &n), 0);
	return n;
}

static int64_t folded(struct bytes *in)
{
	uint64_t n = number(in);

	return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

static void columns(struct bytes *in, uint64_t *ret_n, uint64_t (*columns)[64], int n)
{
	*ret_n = number(in);
	assert_true(*ret_n < 64);
	for (int c = 0; c < n; c++)
		for (uint64_t i = 0; i < *ret_n; i++)
			columns[c][i] = number(in);
}

static void decode_times(struct bytes *in)
{
	got.n_timed = number(in);
	for (uint64_t t = 0; t < got.n_timed; t++) {
		got.timed[t] = number(in);
		for (uint64_t i = 0; i < got.n_samples; i++) {
			uint64_t bin = 0;

			got.times[t][i].n = number(in);
			for (uint64_t k = 0; k < got.times[t][i].n; k++) {
				bin += number(in);
				got.times[t][i].bin[k] = bin;
				got.times[t][i].value[k] = folded(in);
			}
		}
	}
}

static void decode(const struct profile *p, const struct page_times *at)
{
	_cleanup_(strbuf_free) struct strbuf out = { 0 };
	struct bytes in;
	int64_t node = 0;

	assert_int_equal(page_profile_encode(p, at, &out, NULL), 0);
	in = bytes_of(out.s, out.len);
	memset(&got, 0, sizeof(got));
	assert_int_equal(number(&in), 1);
	got.n_strings = number(&in);
	assert_true(got.n_strings < 64);
	/* Their bytes go with `out`: they are copied, once, to where they stay. */
	for (uint64_t i = 0; i < got.n_strings; i++) {
		size_t len = number(&in);

		assert_int_equal(bytes_take(&in, len, &got.strings[i]), 0);
		got.strings[i].data = memcpy(test_malloc(len + 1), got.strings[i].data, len);
	}
	columns(&in, &got.n_frames, got.frame, 5);
	got.n_nodes = number(&in) + 1;
	for (uint64_t i = 1; i < got.n_nodes; i++)
		got.parent[i] = i - number(&in);
	for (uint64_t i = 1; i < got.n_nodes; i++)
		got.frame_of[i] = number(&in);
	columns(&in, &got.n_sets, got.set, 5);
	got.n_samples = number(&in);
	for (uint64_t i = 0; i < got.n_samples; i++)
		got.node[i] = (uint64_t)(node += folded(&in));
	for (uint64_t i = 0; i < got.n_samples; i++)
		got.set_of[i] = number(&in);
	for (uint32_t t = 0; t < profile_n_types(p); t++)
		for (uint64_t i = 0; i < got.n_samples; i++)
			got.values[t][i] = folded(&in);
	decode_times(&in);
	assert_int_equal(in.len, 0);
}

static void done(struct fixture *f)
{
	for (uint64_t i = 0; i < got.n_strings; i++)
		test_free((void *)got.strings[i].data);
	fixture_free(f);
}

static void assert_text(uint64_t string, const char *text)
{
	assert_true(string < got.n_strings);
	assert_int_equal(got.strings[string].len, strlen(text));
	assert_memory_equal(got.strings[string].data, text, strlen(text));
}

/* "main;loop": a sample's frames, root first. */
static void assert_stack(uint64_t sample, const char *want)
{
	char text[512] = "";

	for (uint64_t n = got.node[sample]; n; n = got.parent[n]) {
		struct bytes name = got.strings[got.frame[0][got.frame_of[n]]];
		size_t len = strlen(text), before = name.len + (len > 0);

		assert_true(got.parent[n] < n && len + before < sizeof(text));
		memmove(text + before, text, len + 1);
		memcpy(text, name.data, name.len);
		if (len)
			text[name.len] = ';';
	}
	assert_string_equal(text, want);
}

static const struct value_type two[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };

static void samples_come_back_with_stacks_values_and_labels(void **state)
{
	struct fixture f = fixture_new(two, 2);

	(void)state;
	fixture_add(&f, "redis;main;loop;read_[k]", (int64_t[]){ 3, 30 });
	fixture_add(&f, "bio;main;loop", (int64_t[]){ 2, -20 });
	fixture_add(&f, "redis;main;loop", (int64_t[]){ 1, 10 });
	decode(f.p, NULL);
	assert_int_equal(got.n_samples, 3);
	assert_int_equal(got.n_nodes, 4);
	assert_text(0, "");
	assert_stack(0, "main;loop");
	assert_stack(1, "main;loop");
	assert_stack(2, "main;loop;read");
	assert_text(got.set[2][got.set_of[0]], "redis");
	assert_text(got.set[2][got.set_of[1]], "bio");
	assert_text(got.set[2][got.set_of[2]], "redis");
	assert_int_equal(got.values[0][0], 1);
	assert_int_equal(got.values[1][0], 10);
	assert_int_equal(got.values[1][1], -20);
	assert_int_equal(got.values[0][2], 3);
	assert_int_equal(got.n_timed, 0);
	done(&f);
}

static uint64_t kind_of(const char *name)
{
	for (uint64_t i = 0; i < got.n_frames; i++) {
		struct bytes s = got.strings[got.frame[0][i]];

		if (s.len == strlen(name) && memcmp(s.data, name, s.len) == 0)
			return got.frame[4][i];
	}
	fail_msg("no frame %s", name);
	return 0;
}

static void frames_have_their_kinds_and_modules(void **state)
{
	struct fixture f = fixture_new(two, 1);

	(void)state;
	fixture_add1(&f, ";main;outer;inner_[i];get_[p];sys_read_[k]", 1);
	fixture_add1(&f, ";main;?", 1);
	fixture_add1(&f, ";main;//anon", 1);
	fixture_add1(&f, ";main;x.so+0x12", 1);
	decode(f.p, NULL);
	assert_int_equal(kind_of("main"), PAGE_FRAME_NATIVE);
	assert_int_equal(kind_of("outer"), PAGE_FRAME_NATIVE);
	assert_int_equal(kind_of("inner"), PAGE_FRAME_INLINED);
	assert_int_equal(kind_of("get"), PAGE_FRAME_INTERPRETED);
	assert_int_equal(kind_of("sys_read"), PAGE_FRAME_KERNEL);
	assert_int_equal(kind_of("[unknown]"), PAGE_FRAME_MARKER);
	assert_int_equal(kind_of("[anon]"), PAGE_FRAME_MARKER);
	assert_int_equal(kind_of("x.so+0x12"), PAGE_FRAME_NATIVE);
	done(&f);
}

static void a_stack_without_frames_is_at_the_root(void **state)
{
	struct fixture f = fixture_new(two, 1);

	(void)state;
	fixture_add1(&f, "idle", 7);
	decode(f.p, NULL);
	assert_int_equal(got.n_nodes, 1);
	assert_int_equal(got.node[0], 0);
	assert_int_equal(got.values[0][0], 7);
	done(&f);
}

static void an_empty_profile_has_no_samples(void **state)
{
	struct fixture f = fixture_new(two, 2);

	(void)state;
	decode(f.p, NULL);
	assert_int_equal(got.n_samples, 0);
	assert_int_equal(got.n_strings, 1);
	done(&f);
}

static void names_are_clean(void **state)
{
	struct fixture f = fixture_new(two, 1);

	(void)state;
	fixture_add1(&f, "a\x1b[2J\xff;<script>alert(1)</script>", 1);
	decode(f.p, NULL);
	assert_text(got.set[2][0], "a\xef\xbf\xbd[2J\xef\xbf\xbd");
	assert_stack(0, "<script>alert(1)</script>"); /* the page's own element is base64 */
	done(&f);
}

static void times_are_in_bins_of_the_page(void **state)
{
	struct fixture f = fixture_new(two, 2);
	struct sample_times *t = sample_times_new((uint32_t[]){ 1 }, 1, 1000000000, 1 << 16);
	const struct page_times at = { t, 2000000000 };

	(void)state;
	fixture_add(&f, ";main;b", (int64_t[]){ 3, 30 });
	fixture_add(&f, ";main", (int64_t[]){ 1, 7 });
	/* main is node 1, b is below it: the second sample comes first. */
	sample_times_add(t, 0, 500000000, (int64_t[]){ 10 });
	sample_times_add(t, 0, 1500000000, (int64_t[]){ 5 });
	sample_times_add(t, 0, 7500000000, (int64_t[]){ 15 });
	sample_times_add(t, 1, 4000000000, (int64_t[]){ 7 });
	decode(f.p, &at);
	assert_int_equal(got.n_timed, 1);
	assert_int_equal(got.timed[0], 1);
	assert_int_equal(got.times[0][0].n, 1);
	assert_int_equal(got.times[0][0].bin[0], 2);
	assert_int_equal(got.times[0][0].value[0], 7);
	assert_int_equal(got.times[0][1].n, 2);
	assert_int_equal(got.times[0][1].bin[0], 0);
	assert_int_equal(got.times[0][1].value[0], 15);
	assert_int_equal(got.times[0][1].bin[1], 3);
	assert_int_equal(got.times[0][1].value[1], 15);
	sample_times_free(t);
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_come_back_with_stacks_values_and_labels),
		cmocka_unit_test(frames_have_their_kinds_and_modules),
		cmocka_unit_test(a_stack_without_frames_is_at_the_root),
		cmocka_unit_test(an_empty_profile_has_no_samples),
		cmocka_unit_test(names_are_clean),
		cmocka_unit_test(times_are_in_bins_of_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
