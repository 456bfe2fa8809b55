/* What is put into the spools: labels, names, value types, parts; each sample once. */
#include "run/push.h"
#include "run/push/labels.h"
#include "run/push/parts.h"
#include "run_fixture.h"

#include <unistd.h>

static const char *const asked[] = { "env=prod", "k8s.pod/x=1", "__name__=evil" };
static struct run_config cfg = { .labels = asked, .n_labels = 3 };
static struct run *r;

static int made(void **state)
{
	cfg.dir = "/x/shop.service";
	cfg.labels = asked;
	cfg.n_labels = 3;
	r = bare_run(&cfg);
	return 0;
}

static int gone(void **state)
{
	bare_run_free(r);
	return 0;
}

/* A profile of that kind, to which add() adds. */
static struct profile *profile_of(enum profile_kind kind)
{
	const struct profile_row *row = &profile_rows[kind];
	struct profile *p = profile_new(r->dict, row->types, row->n_types);

	profile_set_meta(p, &(struct profile_meta){ .time_ns = 1000000,
						    .period_type = row->period,
						    .default_type = row->default_type });
	return p;
}

static void add(struct profile *p, const char *comm, const char *container, int64_t pid,
		int64_t value)
{
	struct label labels[3] = { { dict_string(r->dict, "pid"), .num = pid } };
	int64_t values[4] = { value, 2 * value, 3 * value, 4 * value };
	uint32_t n = 1;

	if (comm)
		labels[n++] =
			(struct label){ dict_string(r->dict, "comm"), dict_string(r->dict, comm) };
	if (container)
		labels[n++] = (struct label){ dict_string(r->dict, "container"),
					      dict_string(r->dict, container) };
	assert_int_equal(profile_add(p, (stack_id){ 0 }, dict_labels(r->dict, labels, n), values),
			 0);
}

static void labels_say_whose_a_profile_is(void **state)
{
	struct profile *p = profile_of(PROFILE_ONCPU);
	struct push_labels labels;

	add(p, "a", NULL, 1, 1);
	assert_int_equal(push_labels_of(&cfg, p, NULL, &labels), 0);
	assert_string_equal(push_label(&labels, "service.name"), "shop.service");
	assert_string_equal(push_label(&labels, "env"), "prod");
	assert_non_null(push_label(&labels, "host.name"));
	assert_null(push_label(&labels, "container.name"));
	assert_null(push_label(&labels, "__name__"));
	push_labels_fini(&labels);
	/* What is in no container, and one container. */
	assert_int_equal(push_labels_of(&cfg, p, "host", &labels), 0);
	assert_string_equal(push_label(&labels, "service.name"), "host");
	push_labels_fini(&labels);
	profile_free(p);
	p = profile_of(PROFILE_ONCPU);
	add(p, "a", "team/web", 1, 1);
	add(p, "b", "team/web", 2, 1);
	assert_int_equal(push_labels_of(&cfg, p, "team_web", &labels), 0);
	assert_string_equal(push_label(&labels, "service.name"), "team/web");
	assert_string_equal(push_label(&labels, "container.name"), "team/web");
	push_labels_fini(&labels);
	profile_free(p);
}

static void a_label_that_names_the_service_goes_before(void **state)
{
	static const char *const names[] = { "service_name=checkout", "host.name=n1" };
	struct profile *p = profile_of(PROFILE_ONCPU);
	struct push_labels labels;

	cfg.labels = names;
	cfg.n_labels = 2;
	assert_int_equal(push_labels_of(&cfg, p, NULL, &labels), 0);
	assert_string_equal(push_label(&labels, "service.name"), "checkout");
	assert_string_equal(push_label(&labels, "host.name"), "n1");
	push_labels_fini(&labels);
	profile_free(p);
}

static void names_are_fit_for_prometheus(void **state)
{
	static const char *const rows[][2] = {
		{ "service.name", "service_name" }, { "container.name", "container" },
		{ "container.id", "container_id" }, { "host.name", "hostname" },
		{ "k8s.pod/x-y", "k8s_pod_x_y" },   { "1st", "_1st" },
	};
	char out[32], small[4];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		push_label_name(rows[i][0], out, sizeof(out));
		assert_string_equal(out, rows[i][1]);
	}
	push_label_name("a.b.c.d", small, sizeof(small));
	assert_string_equal(small, "a_b");
}

static void no_wait_is_called_cpu(void **state)
{
	const struct profile_row faults = { .name = "page-faults",
					    .types = { { "page_faults", "count" } },
					    .n_types = 1 };
	int event = profile_kind_add(&faults);

	for (int i = 0; i < profile_kinds(); i++) {
		assert_non_null(parts_name((enum profile_kind)i));
		assert_true(i == PROFILE_ONCPU ||
			    !strstr(parts_name((enum profile_kind)i), "cpu") ||
			    i == PROFILE_OFFCPU);
	}
	assert_string_equal(parts_name((enum profile_kind)event), "page_faults");
	assert_string_equal(parts_name(PROFILE_ONCPU), "process_cpu");
	assert_string_equal(parts_name(PROFILE_OFFCPU), "offcpu");
}

static void threads_and_processes_are_no_series_and_sums_stay(void **state)
{
	struct profile *p = profile_of(PROFILE_ONCPU), *all, *sum;
	char comm[32];
	uint32_t n;

	for (int i = 0; i < 100; i++) {
		snprintf(comm, sizeof(comm), "c%d", i);
		add(p, comm, NULL, i, i + 1);
		add(p, comm, NULL, 1000 + i, 1);
	}
	add(p, "kworker/0:1-events", NULL, 7, 100000);
	add(p, "kworker/u8:2", NULL, 8, 1);
	add(p, NULL, NULL, 9, 5000);
	assert_int_equal(parts_reduce(p, PROFILE_ONCPU, &all), 0);
	assert_int_equal(profile_n_samples(all), PARTS_COMMS + 1);
	assert_int_equal(profile_total(all, 0), profile_total(p, 0));
	assert_int_equal(profile_total(all, 1), profile_total(p, 1));
	for (uint32_t i = 0; i < profile_n_samples(all); i++) {
		const struct label *l = dict_labels_get(r->dict, profile_sample(all, i).labels, &n);

		assert_true(n <= 1);
		assert_true(!n || strcmp(dict_str(r->dict, l->key), "comm") == 0);
		assert_true(!n || !strchr(dict_str(r->dict, l->str), '/'));
	}
	/* Parts add up to it, and none has the time of another. */
	int64_t total = 0;
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(parts_take(all, i, 4, &sum), 0);
		total += profile_total(sum, 1);
		assert_int_equal(profile_get_meta(sum)->time_ns, 1000000 + i * 1000000);
		profile_free(sum);
	}
	assert_int_equal(total, profile_total(p, 1));
	profile_free(all);
	profile_free(p);
}

static void allocations_are_pushed_once(void **state)
{
	struct profile *p = profile_of(PROFILE_HEAP), *all;

	add(p, "a", NULL, 1, 10);
	assert_int_equal(parts_reduce(p, PROFILE_HEAP, &all), 0);
	assert_int_equal(profile_n_types(all), 2);
	assert_string_equal(profile_type(all, 0)->name, "inuse_objects");
	assert_string_equal(profile_type(all, 1)->name, "inuse_space");
	assert_int_equal(profile_total(all, 1), 40);
	assert_int_equal(profile_get_meta(all)->default_type, 1);
	profile_free(all);
	profile_free(p);
	p = profile_of(PROFILE_HEAP);
	assert_int_equal(
		profile_add(p, (stack_id){ 0 }, (labels_id){ 0 }, (int64_t[]){ 5, 5, 0, 0 }), 0);
	assert_int_equal(parts_reduce(p, PROFILE_HEAP, &all), 0);
	assert_null(all);
	profile_free(p);
}

static void the_whole_is_not_pushed_where_its_folders_are(void **state)
{
	static const char *const stores[] = { "pyroscope=http://127.0.0.1:1",
					      "otlp=http://127.0.0.1:1/" };
	struct push_config push = { .stores = stores, .n_stores = 2, .spool_bytes = 1 << 20 };
	char dir[] = "/tmp/memscope-push-XXXXXX", command[100];
	struct profile *p = profile_of(PROFILE_ONCPU);

	assert_non_null(mkdtemp(dir));
	add(p, "a", "web", 1, 10);
	assert_int_equal(push_open(&push, dir, &r->serving.push, NULL), 0);
	cfg.all = true;
	push_profile(r, p, PROFILE_ONCPU, "");
	assert_int_equal(r->serving.push->stores[0].stats->spooled, 0);
	push_profile(r, p, PROFILE_ONCPU, "web/");
	cfg.all = false;
	push_profile(r, p, PROFILE_ONCPU, "");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(r->serving.push->stores[i].stats->spooled, 2);
		assert_int_equal(r->serving.push->stores[i].stats->waiting.entries, 2);
		assert_int_equal(push_dropped(r->serving.push->stores[i].stats), 0);
	}
	assert_string_equal(r->serving.push->stores[0].shown, "pyroscope at http://127.0.0.1:1");
	push_close(r->serving.push);
	r->serving.push = NULL;
	profile_free(p);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

static void sizes_are_bytes_or_a_sentence(void **state)
{
	struct err e = { 0 };
	uint64_t n;

	assert_int_equal(push_spool_size("1M", &n, NULL), 0);
	assert_int_equal(n, 1 << 20);
	assert_int_equal(push_spool_size("1.5G", &n, NULL), 0);
	assert_int_equal(n, 3ull << 29);
	assert_int_equal(push_spool_size("1048575", &n, &e), -EINVAL);
	assert_int_equal(push_spool_size("-1G", &n, &e), -EINVAL);
	assert_int_equal(push_spool_size("1GB", &n, &e), -EINVAL);
	assert_int_equal(push_spool_size("", &n, &e), -EINVAL);
	assert_int_equal(push_spool_size("9e99T", &n, &e), -EINVAL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, made, gone)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(labels_say_whose_a_profile_is),
		TEST(a_label_that_names_the_service_goes_before),
		TEST(names_are_fit_for_prometheus),
		TEST(no_wait_is_called_cpu),
		TEST(threads_and_processes_are_no_series_and_sums_stay),
		TEST(allocations_are_pushed_once),
		TEST(the_whole_is_not_pushed_where_its_folders_are),
		TEST(sizes_are_bytes_or_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
