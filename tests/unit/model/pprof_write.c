#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "model/pprof.h"
#include "profile.pb-c.h"

typedef Perftools__Profiles__Profile pb_profile;

static struct dict *d;
static struct profile *p;
static stack_id in_main, in_libc, in_kernel, nowhere;
static module_id redis, libc, kernel;

static string_id S(const char *s)
{
	return dict_string(d, s);
}

static stack_id stack2(location_id leaf, location_id root)
{
	return dict_stack(d, (location_id[]){ leaf, root }, 2);
}

/* redis → libc (no names) → kernel, and an address without a mapping. */
static int setup(void **state)
{
	static const struct value_type types[] = { { "samples", "count" },
						   { "cpu", "nanoseconds" } };
	static const char *const comments[] = { "made by a test", NULL };
	struct profile_meta meta = { .time_ns = 1700000000000000000,
				     .duration_ns = 5000000000,
				     .period_type = types[1],
				     .period = 10101010,
				     .default_type = 1,
				     .comments = comments };
	struct module m = { .kind = MODULE_ELF };
	location_id main_at, read_at;
	struct line lines[2];

	d = dict_new();
	p = profile_new(d, types, 2);
	profile_set_meta(p, &meta);
	m.path = S("/lib/libc.so.6");
	m.start = 0x26000, m.limit = 0x180000, m.file_off = 0x26000;
	libc = dict_module(d, &m);
	m.path = S("/usr/bin/redis-server"), m.build_id = S("0123abcd");
	m.start = 0x41000, m.limit = 0x50000, m.file_off = 0x40000;
	redis = dict_module(d, &m);
	kernel = dict_module(d, &(struct module){ .kind = MODULE_KERNEL, .path = S("[kernel]") });

	main_at = dict_location(d, redis, 0x41234);
	lines[0] = (struct line){ S("inlined(int)"), S("_Z7inlinedi"), S("/src/a.c"), 7, 5 };
	lines[1] = (struct line){ S("main"), S("main"), S("/src/a.c"), 42, 40 };
	dict_location_name(d, main_at, lines, 2);
	read_at = dict_location(d, kernel, 0xffffffff81234567);
	lines[0] = (struct line){ .function = S("ksys_read") };
	dict_location_name(d, read_at, lines, 1);
	in_main = dict_stack(d, &main_at, 1);
	in_libc = stack2(dict_location(d, libc, 0x30000), main_at);
	in_kernel = stack2(read_at, main_at);
	nowhere = stack2(dict_location(d, (module_id){ 0 }, 0x7fff0000), main_at);
	return 0;
}

static int teardown(void **state)
{
	profile_free(p);
	dict_free(d);
	return 0;
}

static void add(stack_id s, int64_t count, int64_t ns)
{
	assert_int_equal(profile_add(p, s, (labels_id){ 0 }, (int64_t[]){ count, ns }), 0);
}

/* What came out, whole, through protobuf-c. */
static pb_profile *decoded(module_id main)
{
	struct sink *out;
	const char *data;
	pb_profile *pb;
	size_t len;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(pprof_write(p, main, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	data = sink_memory(out, &len);
	pb = perftools__profiles__profile__unpack(NULL, len, (const uint8_t *)data);
	assert_non_null(pb);
	sink_close(out);
	return pb;
}

static void done(pb_profile *pb)
{
	perftools__profiles__profile__free_unpacked(pb, NULL);
}

static const char *text(const pb_profile *pb, int64_t ix)
{
	assert_in_range(ix, 0, pb->n_string_table - 1);
	return pb->string_table[ix];
}

static void head_says_types_period_time_and_comment(void **state)
{
	pb_profile *pb = decoded((module_id){ 0 });

	assert_string_equal(pb->string_table[0], "");
	assert_int_equal(pb->n_sample_type, 2);
	assert_string_equal(text(pb, pb->sample_type[1]->type), "cpu");
	assert_string_equal(text(pb, pb->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(text(pb, pb->default_sample_type), "cpu");
	assert_string_equal(text(pb, pb->period_type->type), "cpu");
	assert_int_equal(pb->period, 10101010);
	assert_int_equal(pb->time_nanos, 1700000000000000000);
	assert_int_equal(pb->duration_nanos, 5000000000);
	assert_int_equal(pb->n_comment, 1);
	assert_string_equal(text(pb, pb->comment[0]), "made by a test");
	done(pb);
}

static void main_binary_is_mapping_1_used_or_not(void **state)
{
	pb_profile *pb;

	add(in_libc, 1, 1);
	add(in_kernel, 1, 1);
	pb = decoded((module_id){ 0 }); /* all samples begin in it */
	assert_int_equal(pb->n_mapping, 3);
	assert_string_equal(text(pb, pb->mapping[0]->filename), "/usr/bin/redis-server");
	assert_string_equal(text(pb, pb->mapping[0]->build_id), "0123abcd");
	for (uint64_t i = 0; i < pb->n_mapping; i++)
		assert_int_equal(pb->mapping[i]->id, i + 1);
	done(pb);
	pb = decoded(libc);
	assert_string_equal(text(pb, pb->mapping[0]->filename), "/lib/libc.so.6");
	assert_int_equal(pb->n_mapping, 3);
	done(pb);
	pb = decoded(
		dict_module(d, &(struct module){ .kind = MODULE_ELF, .path = S("/bin/idle") }));
	assert_string_equal(text(pb, pb->mapping[0]->filename), "/bin/idle");
	assert_int_equal(pb->n_mapping, 4);
	done(pb);
}

static void the_image_that_the_process_is_named_after_is_mapping_1(void **state)
{
	struct label comm = { .key = S("comm"), .str = S("redis-server") };
	pb_profile *pb;

	/* Rooted in libc, as every dynamic program's samples are. */
	assert_int_equal(profile_add(p, in_libc, dict_labels(d, &comm, 1), (int64_t[]){ 5, 5 }), 0);
	pb = decoded((module_id){ 0 });
	assert_string_equal(text(pb, pb->mapping[0]->filename), "/usr/bin/redis-server");
	done(pb);
}

static void mapping_has_its_range_and_what_is_named(void **state)
{
	pb_profile *pb;

	add(in_libc, 1, 1);
	pb = decoded(redis);
	assert_int_equal(pb->mapping[0]->memory_start, 0x41000);
	assert_int_equal(pb->mapping[0]->memory_limit, 0x50000);
	assert_int_equal(pb->mapping[0]->file_offset, 0x40000);
	assert_true(pb->mapping[0]->has_functions && pb->mapping[0]->has_filenames &&
		    pb->mapping[0]->has_line_numbers && pb->mapping[0]->has_inline_frames);
	assert_false(pb->mapping[1]->has_functions || pb->mapping[1]->has_filenames);
	done(pb);
}

static void range_is_widened_around_its_addresses(void **state)
{
	location_id below = dict_location(d, redis, 0x40800),
		    above = dict_location(d, redis, 0x50000);
	pb_profile *pb;

	add(stack2(below, above), 1, 1);
	add(in_kernel, 1, 1);
	pb = decoded(redis);
	assert_int_equal(pb->mapping[0]->memory_start, 0x40800);
	assert_int_equal(pb->mapping[0]->memory_limit, 0x50001);
	assert_int_equal(pb->mapping[0]->file_offset, 0x3f800);
	/* The kernel's range is not known and is not made up. */
	assert_int_equal(pb->mapping[1]->memory_limit, 0);
	done(pb);
}

static void locations_keep_inlined_lines_innermost_first(void **state)
{
	pb_profile *pb;

	add(in_main, 3, 30);
	pb = decoded(redis);
	assert_int_equal(pb->n_location, 1);
	assert_int_equal(pb->location[0]->mapping_id, 1);
	assert_int_equal(pb->location[0]->address, 0x41234);
	assert_int_equal(pb->location[0]->n_line, 2);
	assert_int_equal(pb->location[0]->line[0]->line, 7);
	assert_int_equal(pb->n_function, 2);
	assert_int_equal(pb->location[0]->line[0]->function_id, pb->function[0]->id);
	assert_string_equal(text(pb, pb->function[0]->name), "inlined(int)");
	assert_string_equal(text(pb, pb->function[0]->system_name), "_Z7inlinedi");
	assert_string_equal(text(pb, pb->function[0]->filename), "/src/a.c");
	assert_int_equal(pb->function[0]->start_line, 5);
	done(pb);
}

static void address_without_a_mapping_or_name_is_kept_as_one(void **state)
{
	pb_profile *pb;

	add(nowhere, 1, 1);
	pb = decoded(redis);
	assert_int_equal(pb->n_location, 2);
	assert_int_equal(pb->location[0]->address, 0x7fff0000);
	assert_int_equal(pb->location[0]->mapping_id, 0);
	assert_int_equal(pb->location[0]->n_line, 0);
	done(pb);
}

static void sample_has_leaf_first_values_and_labels(void **state)
{
	struct label labels[] = { { .key = S("pid"), .num = 77 },
				  { .key = S("comm"), .str = S("redis-server") },
				  { .key = S("bytes"), .num = 16, .unit = S("bytes") } };
	pb_profile *pb;

	profile_add(p, in_libc, dict_labels(d, labels, 3), (int64_t[]){ 2, -20 });
	pb = decoded(redis);
	assert_int_equal(pb->n_sample, 1);
	assert_int_equal(pb->sample[0]->n_location_id, 2);
	assert_int_equal(pb->location[pb->sample[0]->location_id[0] - 1]->address, 0x30000);
	assert_int_equal(pb->sample[0]->n_value, 2);
	assert_int_equal(pb->sample[0]->value[1], -20);
	assert_int_equal(pb->sample[0]->n_label, 3);
	for (size_t i = 0; i < 3; i++) {
		Perftools__Profiles__Label *l = pb->sample[0]->label[i];
		const char *key = text(pb, l->key);

		if (!strcmp(key, "pid"))
			assert_true(l->num == 77 && !l->str && !l->num_unit);
		else if (!strcmp(key, "comm"))
			assert_string_equal(text(pb, l->str), "redis-server");
		else
			assert_string_equal(text(pb, l->num_unit), "bytes");
	}
	done(pb);
}

static void names_become_clean_utf8(void **state)
{
	location_id at = dict_location(d, redis, 0x42000);
	struct line line = { .function = S("bad\xff\033[31m\n"), .file = S("\xc0\x80.c") };
	pb_profile *pb;

	dict_location_name(d, at, &line, 1);
	add(dict_stack(d, &at, 1), 1, 1);
	pb = decoded(redis);
	assert_string_equal(text(pb, pb->function[0]->name),
			    "bad\xef\xbf\xbd\xef\xbf\xbd[31m\xef\xbf\xbd");
	assert_string_equal(text(pb, pb->function[0]->filename), "\xef\xbf\xbd\xef\xbf\xbd.c");
	done(pb);
}

static void equal_profiles_give_equal_bytes(void **state)
{
	struct sink *a, *b;
	size_t len_a, len_b;
	const char *text_a, *text_b;

	add(in_libc, 1, 1);
	add(in_kernel, 2, 2);
	sink_open_memory(&a, NULL);
	sink_open_memory(&b, NULL);
	sink_gzip(a, NULL);
	sink_gzip(b, NULL);
	pprof_write(p, redis, a, NULL);
	pprof_write(p, redis, b, NULL);
	text_a = sink_memory(a, &len_a);
	text_b = sink_memory(b, &len_b);
	assert_int_equal(len_a, len_b);
	assert_memory_equal(text_a, text_b, len_a);
	sink_close(a);
	sink_close(b);
}

static void protoc_decodes_what_was_written(void **state)
{
	char path[] = "/tmp/memscope-pprof-XXXXXX", cmd[256], got[8192];
	int fd = mkstemp(path), status;
	struct sink *out;
	size_t n;
	FILE *f;

	if (system("command -v protoc >/dev/null") || access("user/model/profile.proto", R_OK)) {
		unlink(path);
		print_message("protoc and the source tree are needed\n");
		skip();
	}
	add(in_main, 3, 30);
	sink_open_file(path, &out, NULL);
	pprof_write(p, redis, out, NULL);
	assert_int_equal(sink_commit(out, NULL), 0);
	sink_close(out);
	snprintf(cmd, sizeof(cmd),
		 "protoc --decode=perftools.profiles.Profile -I user/model profile.proto <%s 2>&1",
		 path);
	f = popen(cmd, "r");
	n = fread(got, 1, sizeof(got) - 1, f);
	got[n] = '\0';
	status = pclose(f);
	close(fd);
	unlink(path);
	assert_int_equal(status, 0);
	assert_non_null(strstr(got, "address: 266804\n"));
	assert_non_null(strstr(got, "string_table: \"inlined(int)\"\n"));
	assert_non_null(strstr(got, "  value: 3\n  value: 30\n"));
}

#define test(fact) cmocka_unit_test_setup_teardown(fact, setup, teardown)

/* Viewers that know no such labels see one sample of the right value; other labels stay as they are. */
static void errors_are_numeric_labels_of_the_one_sample_of_a_stack(void **state)
{
	struct value_error error = {
		.samples = 3, .unseen = 100, .v = 400, .vc = 4000, .group = { -7, 9 }
	};
	struct label pid = { .key = S("pid"), .num = 42 };
	labels_id labels = dict_labels(d, &pid, 1);
	struct profile_sample sample;
	struct profile *again;
	const char *data;
	struct sink *out;
	pb_profile *pb;
	size_t len;

	assert_int_equal(profile_add(p, in_main, labels, (int64_t[]){ 5, 500 }), 0);
	assert_int_equal(profile_add_error(p, in_main, labels, 1, &error), 0);
	assert_int_equal(profile_add_error(p, in_libc, labels, 1, &error), -ENOENT);
	pb = decoded((module_id){ 0 });
	assert_int_equal(pb->n_sample, 1);
	assert_int_equal(pb->sample[0]->value[1], 500);
	assert_int_equal(pb->sample[0]->n_label, 1 + 4 + 2);
	for (size_t i = 0; i < pb->sample[0]->n_label; i++)
		assert_int_equal(pb->sample[0]->label[i]->str, 0);
	done(pb);

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	assert_int_equal(pprof_write(p, (module_id){ 0 }, out, NULL), 0);
	assert_int_equal(sink_commit(out, NULL), 0);
	data = sink_memory(out, &len);
	assert_int_equal(pprof_read(d, data, len, "again", &again, NULL), 0);
	sink_close(out);
	assert_int_equal(profile_n_samples(again), 1);
	sample = profile_sample(again, 0);
	assert_int_equal(sample.labels.ix, labels.ix);
	error = (struct value_error){ 0 };
	assert_true(profile_error(&sample, 1, &error));
	assert_true(error.v == 400 && error.vc == 4000 && error.unseen == 100);
	assert_true(error.group[0] == -7 && error.group[1] == 9 && error.samples == 3);
	assert_false(profile_error(&sample, 0, &error));
	profile_free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(head_says_types_period_time_and_comment),
		test(main_binary_is_mapping_1_used_or_not),
		test(the_image_that_the_process_is_named_after_is_mapping_1),
		test(mapping_has_its_range_and_what_is_named),
		test(range_is_widened_around_its_addresses),
		test(locations_keep_inlined_lines_innermost_first),
		test(address_without_a_mapping_or_name_is_kept_as_one),
		test(sample_has_leaf_first_values_and_labels),
		test(names_become_clean_utf8),
		test(equal_profiles_give_equal_bytes),
		test(protoc_decodes_what_was_written),
		test(errors_are_numeric_labels_of_the_one_sample_of_a_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
