#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "model/pprof.h"
#include "profile.pb-c.h"

/* A small valid profile whose parts each test bends: two value types, main → read, one label. */
static struct {
	Perftools__Profiles__Profile profile;
	Perftools__Profiles__ValueType types[2], *type_ptrs[2];
	Perftools__Profiles__Mapping mapping, *mapping_ptrs[2];
	Perftools__Profiles__Location locations[2], *location_ptrs[3];
	Perftools__Profiles__Line lines[3], *line_ptrs[3];
	Perftools__Profiles__Function functions[3], *function_ptrs[4];
	Perftools__Profiles__Label label, *label_ptrs[1];
	Perftools__Profiles__Sample sample, *sample_ptrs[2];
	uint64_t frames[2];
	int64_t values[2], comments[2];
	char *strings[16];
} v;

enum { NONE, SAMPLES, COUNT, CPU, NS, FILE_NAME, MAIN, READ, INLINED, PID, SOURCE, N_STRINGS };

static struct dict *d;
static struct err e;

static void init_parts(void)
{
	for (int i = 0; i < 2; i++) {
		perftools__profiles__value_type__init(&v.types[i]);
		perftools__profiles__location__init(&v.locations[i]);
		v.type_ptrs[i] = &v.types[i];
		v.location_ptrs[i] = &v.locations[i];
	}
	for (int i = 0; i < 3; i++) {
		perftools__profiles__line__init(&v.lines[i]);
		perftools__profiles__function__init(&v.functions[i]);
		v.line_ptrs[i] = &v.lines[i];
		v.function_ptrs[i] = &v.functions[i];
	}
	perftools__profiles__profile__init(&v.profile);
	perftools__profiles__mapping__init(&v.mapping);
	perftools__profiles__label__init(&v.label);
	perftools__profiles__sample__init(&v.sample);
	v.mapping_ptrs[0] = &v.mapping;
	v.label_ptrs[0] = &v.label;
	v.sample_ptrs[0] = &v.sample;
}

static int setup(void **state)
{
	static const char *const strings[N_STRINGS] = { "",     "samples",     "count",
							"cpu",  "nanoseconds", "/bin/a",
							"main", "read",        "inlined",
							"pid",  "a.c" };

	memset(&v, 0, sizeof(v));
	memset(&e, 0, sizeof(e));
	init_parts();
	for (int i = 0; i < N_STRINGS; i++)
		v.strings[i] = (char *)strings[i];
	v.types[0].type = SAMPLES, v.types[0].unit = COUNT;
	v.types[1].type = CPU, v.types[1].unit = NS;
	v.mapping.id = 9, v.mapping.filename = FILE_NAME;
	v.mapping.memory_start = 0x1000, v.mapping.memory_limit = 0x2000;
	for (int i = 0; i < 3; i++) {
		v.functions[i].id = 100 + i;
		v.functions[i].name = MAIN + i;
		v.functions[i].filename = SOURCE;
		v.lines[i].function_id = 100 + i;
		v.lines[i].line = 10 + i;
	}
	/* read has inlined in it: the inlined one first. */
	v.locations[0].id = 7, v.locations[0].mapping_id = 9, v.locations[0].address = 0x1234;
	v.line_ptrs[0] = &v.lines[2], v.line_ptrs[1] = &v.lines[1], v.line_ptrs[2] = &v.lines[0];
	v.locations[0].n_line = 2, v.locations[0].line = v.line_ptrs;
	v.locations[1].id = 1ULL << 60, v.locations[1].mapping_id = 9,
	v.locations[1].address = 0x1100;
	v.locations[1].n_line = 1, v.locations[1].line = v.line_ptrs + 2;
	v.frames[0] = 7, v.frames[1] = 1ULL << 60;
	v.values[0] = 3, v.values[1] = 30;
	v.label.key = PID, v.label.num = 77;
	v.sample.n_location_id = 2, v.sample.location_id = v.frames;
	v.sample.n_value = 2, v.sample.value = v.values;
	v.sample.n_label = 1, v.sample.label = v.label_ptrs;
	v.profile.n_sample_type = 2, v.profile.sample_type = v.type_ptrs;
	v.profile.n_sample = 1, v.profile.sample = v.sample_ptrs;
	v.profile.n_mapping = 1, v.profile.mapping = v.mapping_ptrs;
	v.profile.n_location = 2, v.profile.location = v.location_ptrs;
	v.profile.n_function = 3, v.profile.function = v.function_ptrs;
	v.profile.n_string_table = N_STRINGS, v.profile.string_table = v.strings;
	d = dict_new();
	return 0;
}

static int teardown(void **state)
{
	dict_free(d);
	return 0;
}

static uint8_t packed[4096];

static size_t pack(void)
{
	assert_true(perftools__profiles__profile__get_packed_size(&v.profile) <= sizeof(packed));
	return perftools__profiles__profile__pack(&v.profile, packed);
}

static struct profile *read_good(void)
{
	struct profile *p = NULL;
	int r;

	memset(&e, 0, sizeof(e));
	r = pprof_read(d, packed, pack(), "x.pb", &p, &e);
	assert_string_equal(e.msg, "");
	assert_int_equal(r, 0);
	return p;
}

/* Refused with -EBADMSG and this reason; nothing comes back. */
static void refused(const char *why)
{
	struct profile *p = NULL;

	memset(&e, 0, sizeof(e));
	assert_int_equal(pprof_read(d, packed, pack(), "x.pb", &p, &e), -EBADMSG);
	assert_null(p);
	if (strncmp(e.msg, "x.pb: not a whole pprof profile: ", 33) || !strstr(e.msg, why))
		fail_msg("\"%s\" lacks \"%s\"", e.msg, why);
}

static const char *frame(stack_id s, uint32_t up, uint32_t line)
{
	const struct location *loc;

	while (up--)
		s = dict_stack_parent(d, s);
	loc = dict_location_get(d, dict_stack_leaf(d, s));
	assert_true(line < loc->n_lines);
	return dict_str(d, loc->lines[line].function);
}

static void everything_in_the_file_comes_back(void **state)
{
	const struct location *loc;
	const struct module *m;
	struct profile_sample s;
	struct profile *p;

	v.profile.time_nanos = 5, v.profile.duration_nanos = 6, v.profile.period = 7;
	v.profile.period_type = &v.types[1];
	v.profile.default_sample_type = SAMPLES;
	v.comments[0] = MAIN, v.comments[1] = READ;
	v.profile.n_comment = 2, v.profile.comment = v.comments;
	p = read_good();
	assert_int_equal(profile_n_types(p), 2);
	assert_string_equal(profile_type(p, 1)->unit, "nanoseconds");
	assert_int_equal(profile_get_meta(p)->time_ns, 5);
	assert_int_equal(profile_get_meta(p)->duration_ns, 6);
	assert_int_equal(profile_get_meta(p)->period, 7);
	assert_string_equal(profile_get_meta(p)->period_type.name, "cpu");
	assert_int_equal(profile_get_meta(p)->default_type, 0);
	assert_string_equal(profile_get_meta(p)->comments[1], "read");
	assert_null(profile_get_meta(p)->comments[2]);

	assert_int_equal(profile_n_samples(p), 1);
	s = profile_sample(p, 0);
	assert_int_equal(s.values[0], 3);
	assert_int_equal(s.values[1], 30);
	assert_int_equal(dict_label_find(d, s.labels, "pid")->num, 77);
	assert_int_equal(dict_stack_depth(d, s.stack), 2);
	assert_string_equal(frame(s.stack, 0, 0), "inlined");
	assert_string_equal(frame(s.stack, 0, 1), "read");
	assert_string_equal(frame(s.stack, 1, 0), "main");
	loc = dict_location_get(d, dict_stack_leaf(d, s.stack));
	assert_int_equal(loc->vaddr, 0x1234);
	assert_int_equal(loc->lines[0].line, 12);
	assert_string_equal(dict_str(d, loc->lines[0].file), "a.c");
	m = dict_module_get(d, loc->module);
	assert_int_equal(m->kind, MODULE_ELF);
	assert_int_equal(m->limit, 0x2000);
	profile_free(p);
}

static void default_type_is_the_last_where_none_is_set(void **state)
{
	struct profile *p = read_good();

	assert_int_equal(profile_get_meta(p)->default_type, 1);
	profile_free(p);
}

static void default_among_types_of_one_name_is_the_later(void **state)
{
	struct profile *p;

	v.types[0].type = CPU;
	v.profile.default_sample_type = CPU;
	p = read_good();
	assert_int_equal(profile_get_meta(p)->default_type, 1);
	profile_free(p);
}

static void kinds_are_known_by_the_names_of_mappings(void **state)
{
	static const struct {
		char *name;
		enum module_kind kind;
	} rows[] = {
		{ "[kernel.kallsyms]", MODULE_KERNEL },
		{ "[kernel]", MODULE_KERNEL },
		{ "[vdso]", MODULE_VDSO },
		{ "//anon", MODULE_ANON },
		{ "[Python]", MODULE_LANG },
		{ "", MODULE_ANON },
		{ "/usr/lib/[kernel]", MODULE_ELF },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct profile *p;
		location_id leaf;

		v.strings[FILE_NAME] = rows[i].name;
		p = read_good();
		leaf = dict_stack_leaf(d, profile_sample(p, 0).stack);
		assert_int_equal(dict_module_get(d, dict_location_get(d, leaf)->module)->kind,
				 rows[i].kind);
		profile_free(p);
	}
}

static void interpreted_frames_at_address_0_stay_apart(void **state)
{
	struct profile *p;

	v.locations[0].address = v.locations[1].address = 0;
	v.locations[0].mapping_id = v.locations[1].mapping_id = 0;
	p = read_good();
	assert_string_equal(frame(profile_sample(p, 0).stack, 0, 1), "read");
	assert_string_equal(frame(profile_sample(p, 0).stack, 1, 0), "main");
	profile_free(p);
}

static void every_reference_that_leads_nowhere_is_refused(void **state)
{
	struct {
		uint64_t *ref;
		const char *why;
	} refs[] = {
		{ (uint64_t *)&v.types[0].type, "there is no string" },
		{ (uint64_t *)&v.types[1].unit, "there is no string" },
		{ (uint64_t *)&v.mapping.filename, "there is no string" },
		{ (uint64_t *)&v.mapping.build_id, "there is no string" },
		{ (uint64_t *)&v.functions[1].name, "there is no string" },
		{ (uint64_t *)&v.functions[1].system_name, "there is no string" },
		{ (uint64_t *)&v.functions[1].filename, "there is no string" },
		{ (uint64_t *)&v.label.key, "there is no string" },
		{ (uint64_t *)&v.label.str, "there is no string" },
		{ (uint64_t *)&v.label.num_unit, "there is no string" },
		{ (uint64_t *)&v.profile.default_sample_type, "there is no string" },
		{ &v.lines[2].function_id, "there is no function" },
		{ &v.locations[1].mapping_id, "there is no mapping" },
		{ &v.frames[1], "there is no location" },
	};

	for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
		uint64_t good = *refs[i].ref;

		*refs[i].ref = N_STRINGS;
		refused(refs[i].why);
		*refs[i].ref = UINT64_MAX;
		refused(refs[i].why);
		*refs[i].ref = good;
	}
	v.comments[0] = N_STRINGS;
	v.profile.n_comment = 1, v.profile.comment = v.comments;
	refused("there is no string");
	v.profile.n_comment = 0;
	profile_free(read_good());
}

static void ids_must_be_given_once_and_not_be_0(void **state)
{
	v.functions[1].id = 100;
	refused("function id 100 is there twice");
	v.functions[1].id = 101;
	v.locations[1].id = 7;
	refused("location id 7 is there twice");
	v.locations[1].id = 0;
	refused("location id 0 is reserved");
	v.locations[1].id = 1ULL << 60;
	v.mapping_ptrs[1] = &v.mapping, v.profile.n_mapping = 2;
	refused("mapping id 9 is there twice");
}

static void number_of_values_must_match_the_types(void **state)
{
	v.sample.n_value = 1;
	refused("sample 1 has 1 values for 2 value types");
	v.sample.n_value = 0;
	refused("sample 1 has 0 values for 2 value types");
	v.sample.n_value = 2;
	v.profile.n_sample_type = 0;
	refused("it has no value types");
}

static void first_string_must_be_the_empty_one(void **state)
{
	v.strings[0] = "x";
	refused("its first string is not the empty one");
	v.profile.n_string_table = 0;
	refused("there is no string");
}

static void every_cut_is_refused_or_a_smaller_profile(void **state)
{
	size_t len = pack();

	for (size_t n = 0; n < len; n++) {
		/* A copy of its own, so that a read past the end is seen by the sanitizer. */
		uint8_t *cut = malloc(n + 1);
		struct profile *p = NULL;
		int r;

		memcpy(cut, packed, n);
		cut = realloc(cut, n ? n : 1);
		r = pprof_read(d, cut, n, "x.pb", &p, &e);
		assert_true(r == 0 || r == -EBADMSG);
		assert_true((r == 0) == (p != NULL));
		profile_free(p);
		free(cut);
	}
}

static void text_and_noise_are_not_recognised(void **state)
{
	const char *text = "\nmain;read 3\nmain 4\n";
	size_t len = pack();

	assert_true(pprof_recognise(bytes_of(packed, len)));
	assert_false(pprof_recognise(bytes_of(packed, len - 1)));
	assert_false(pprof_recognise(bytes_of(text, strlen(text))));
	assert_false(pprof_recognise(bytes_of("", 0)));
	assert_false(pprof_recognise(bytes_of("PERFILE2........", 16)));
}

static void gzip_is_read_through_and_damage_in_it_is_named(void **state)
{
	size_t len = pack(), zlen;
	struct profile *p = NULL;
	struct sink *s;
	char *z;

	sink_open_memory(&s, NULL);
	sink_gzip(s, NULL);
	sink_write(s, packed, len);
	z = (char *)sink_memory(s, &zlen);
	assert_int_equal(pprof_read(d, z, zlen, "x.pb.gz", &p, &e), 0);
	assert_int_equal(profile_total(p, 1), 30);
	profile_free(p);
	p = NULL;
	assert_int_equal(pprof_read(d, z, zlen - 9, "x.pb.gz", &p, &e), -EBADMSG);
	assert_string_equal(e.msg, "x.pb.gz: damaged gzip data");
	z[zlen / 2] ^= 0x55;
	assert_int_equal(pprof_read(d, z, zlen, "x.pb.gz", &p, &e), -EBADMSG);
	assert_null(p);
	sink_close(s);
}

static void blown_up_gzip_is_refused(void **state)
{
	static char zeros[1 << 20];
	struct profile *p = NULL;
	struct sink *s;
	const char *z;
	size_t zlen;

	sink_open_memory(&s, NULL);
	sink_gzip(s, NULL);
	for (int i = 0; i < 64; i++)
		sink_write(s, zeros, sizeof(zeros));
	z = sink_memory(s, &zlen);
	assert_true(zlen < 100000);
	assert_int_equal(pprof_read(d, z, zlen, "x.pb.gz", &p, &e), -EFBIG);
	assert_non_null(strstr(e.msg, "x.pb.gz: unpacks to more than"));
	sink_close(s);
}

/* Values and, from the leaf on, all names of sample `i` as text. */
static void describe(const struct profile *p, uint32_t i, struct strbuf *out)
{
	struct profile_sample s = profile_sample(p, i);
	const struct dict *of = profile_dict(p);
	const struct label *labels;
	uint32_t n;

	for (; s.stack.ix; s.stack = dict_stack_parent(of, s.stack)) {
		const struct location *loc = dict_location_get(of, dict_stack_leaf(of, s.stack));
		const struct module *m = dict_module_get(of, loc->module);

		strbuf_printf(out, "%d %s %s %llx-%llx+%llx %llx:", m->kind, dict_str(of, m->path),
			      dict_str(of, m->build_id), (unsigned long long)m->start,
			      (unsigned long long)m->limit, (unsigned long long)m->file_off,
			      (unsigned long long)loc->vaddr);
		for (uint32_t l = 0; l < loc->n_lines; l++)
			strbuf_printf(out, " %s(%s) %s:%u/%u", dict_str(of, loc->lines[l].function),
				      dict_str(of, loc->lines[l].system_name),
				      dict_str(of, loc->lines[l].file), loc->lines[l].line,
				      loc->lines[l].start_line);
		strbuf_putc(out, '\n');
	}
	labels = dict_labels_get(of, s.labels, &n);
	for (uint32_t l = 0; l < n; l++)
		strbuf_printf(out, "%s=%s%lld%s ", dict_str(of, labels[l].key),
			      dict_str(of, labels[l].str), (long long)labels[l].num,
			      dict_str(of, labels[l].unit));
	for (uint32_t t = 0; t < profile_n_types(p); t++)
		strbuf_printf(out, "%lld ", (long long)s.values[t]);
}

static module_id add_module(struct dict *to, enum module_kind kind, const char *path,
			    uint64_t start)
{
	struct module m = { .kind = kind, .path = dict_string(to, path) };

	if (start) {
		m.start = start, m.limit = start + 0x100000, m.file_off = start & 0xfff000;
		m.build_id = dict_string(to, "00ff");
	}
	return dict_module(to, &m);
}

/* 420 different samples over every kind of module, named or not, up to 60 frames deep. */
static struct profile *build_varied(struct dict *to)
{
	static const struct value_type types[] = { { "blocked", "count" },
						   { "blocked", "nanoseconds" } };
	struct profile *p = profile_new(to, types, 2);
	module_id modules[] = {
		{ 0 },
		add_module(to, MODULE_ELF, "/bin/a", 0x400000),
		add_module(to, MODULE_ELF, "/lib/libb.so", 0x10000),
		add_module(to, MODULE_KERNEL, "[kernel]", 0),
		add_module(to, MODULE_VDSO, "[vdso]", 0),
		add_module(to, MODULE_ANON, "//anon", 0),
	};

	for (uint32_t i = 0; i < 2000; i++) {
		location_id frames[60];
		struct label labels[2] = { { .key = dict_string(to, "tid"), .num = i % 7 },
					   { .key = dict_string(to, "comm"),
					     .str = dict_string(to, i % 2 ? "even" : "odd") } };
		uint32_t depth = 1 + i % 60;

		for (uint32_t f = 0; f < depth; f++) {
			module_id m = modules[(f + i) % 6];
			uint64_t vaddr = dict_module_get(to, m)->start + 1 + f * 7 + i % 5;
			struct line line = { .line = f, .start_line = i % 3 };
			char name[32];

			frames[f] = dict_location(to, m, vaddr);
			snprintf(name, sizeof(name), "f%llx", (unsigned long long)vaddr);
			line.function = dict_string(to, name);
			if (f % 3 && !dict_location_get(to, frames[f])->named)
				dict_location_name(to, frames[f], &line, 1);
		}
		profile_add(p, dict_stack(to, frames, depth), dict_labels(to, labels, 2),
			    (int64_t[]){ 1, (int64_t)i << 33 });
	}
	return p;
}

static void what_was_written_is_read_back_the_same(void **state)
{
	struct profile *p = build_varied(d), *back = NULL;
	struct dict *fresh = dict_new();
	struct sink *s;
	const char *z;
	size_t len;

	sink_open_memory(&s, NULL);
	sink_gzip(s, NULL);
	assert_int_equal(pprof_write(p, (module_id){ 0 }, s, NULL), 0);
	z = sink_memory(s, &len);
	assert_int_equal(pprof_read(fresh, z, len, "x.pb.gz", &back, &e), 0);
	assert_true(profile_n_samples(p) == 420);
	assert_int_equal(profile_n_samples(back), profile_n_samples(p));
	assert_true(profile_total(back, 1) == profile_total(p, 1));
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct strbuf a = { 0 }, b = { 0 };

		describe(p, i, &a);
		describe(back, i, &b);
		assert_string_equal(a.s, b.s);
		strbuf_free(&a);
		strbuf_free(&b);
	}
	sink_close(s);
	profile_free(back);
	dict_free(fresh);
	profile_free(p);
}

#define test(fact) cmocka_unit_test_setup_teardown(fact, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(everything_in_the_file_comes_back),
		test(default_type_is_the_last_where_none_is_set),
		test(default_among_types_of_one_name_is_the_later),
		test(kinds_are_known_by_the_names_of_mappings),
		test(interpreted_frames_at_address_0_stay_apart),
		test(every_reference_that_leads_nowhere_is_refused),
		test(ids_must_be_given_once_and_not_be_0),
		test(number_of_values_must_match_the_types),
		test(first_string_must_be_the_empty_one),
		test(every_cut_is_refused_or_a_smaller_profile),
		test(text_and_noise_are_not_recognised),
		test(gzip_is_read_through_and_damage_in_it_is_named),
		test(blown_up_gzip_is_refused),
		test(what_was_written_is_read_back_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
