/* /metrics of a run without a kernel: what containers have of profiles, names that are hostile, and how many there may be. */
#include "run_fixture.h"

#include "run/serve/metrics_groups.h"

static uint32_t n_containers;

int members_new(const struct run_config *cfg, struct members **ret_members, struct err *e)
{
	*ret_members = (struct members *)&n_containers;
	return 0;
}

void members_free(struct members *m)
{
}

const struct cgroup_mounts *members_mounts(const struct members *m)
{
	static const struct cgroup_mounts none;

	return &none;
}

static struct member_about about = { .pod = "shop-1", .namespace = "prod" };

const struct member_about *members_about(const struct members *m)
{
	return &about;
}

static const char *comes_first; /* a container that is reported before the others; NULL */
static int n_alike;       /* pods of two namespaces that are called alike: so many are there … */
static bool alike_turned; /* … and reported in reverse order */

void members_each(struct members *m, members_fn fn, void *ctx)
{
	static const struct {
		const char *id, *namespace;
	} both[] = { { "x1", "one" }, { "x2", "two" } };
	const pid_t pids[] = { 10, 11 };
	char name[32];

	for (int i = 0; i < n_alike; i++) {
		const int at = alike_turned ? 1 - i : i;

		about.id = both[at].id;
		about.namespace = both[at].namespace;
		fn(ctx, "redis", "/none", pids, 2);
	}
	about = (struct member_about){ .pod = "shop-1", .namespace = "prod" };

	if (n_containers == 0)
		fn(ctx, "host", "/none", pids, 2);
	about.id = comes_first;
	if (comes_first)
		fn(ctx, comes_first, "/none", pids, 2);
	for (uint32_t i = 0; i < n_containers; i++) {
		snprintf(name, sizeof(name), "web%u", i);
		about.id = name;
		fn(ctx, name, "/none", pids, 2);
	}
	about = (struct member_about){ 0 };
	fn(ctx, NULL, NULL, pids, 1);
}

static void use(struct run *r, enum profile_kind kind, const char *container, const int64_t *values)
{
	const struct label l[] = { { .key = dict_string(r->dict, "container"),
				     .str = dict_string(r->dict, container ? container : "") } };

	assert_int_equal(profile_add(r->profiles[kind], (stack_id){ 0 },
				     dict_labels(r->dict, l, container ? 1 : 0), values),
			 0);
}

static struct run *run_with_profiles(void)
{
	static const struct run_config cfg = { .all = true };
	struct run *r = bare_run(&cfg);

	for (int kind = 0; kind < N_PROFILE_KINDS; kind++)
		if (kind == PROFILE_ONCPU || kind == PROFILE_OFFCPU)
			r->profiles[kind] = profile_new(r->dict, profile_rows[kind].types,
							profile_rows[kind].n_types);
	return r;
}

static const struct metrics_group *group(const struct metrics_groups *g, const char *name)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (strcmp(g->list[i].name, name) == 0)
			return &g->list[i];
	fail_msg("no %s", name);
	return NULL;
}

static void sums_are_those_of_the_profiles_by_container(void **state)
{
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t cpu[] = { 2, 300 }, waits[] = { 1, 500, 2, 70 };

	n_containers = 2;
	use(r, PROFILE_ONCPU, "web0", cpu);
	use(r, PROFILE_OFFCPU, "web1", waits);
	use(r, PROFILE_ONCPU, NULL, cpu);
	use(r, PROFILE_ONCPU, "gone", cpu);
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(g.n, 3);
	assert_int_equal(group(&g, "web0")->sums[GROUP_SAMPLES], 2);
	assert_int_equal(group(&g, "web0")->sums[GROUP_SAMPLED_CPU_NS], 300);
	assert_int_equal(group(&g, "web0")->processes, 2);
	assert_string_equal(group(&g, "web0")->pod, "shop-1");
	assert_string_equal(group(&g, "web0")->image, "");
	assert_int_equal(group(&g, "web1")->sums[GROUP_BLOCKED_NS], 500);
	assert_int_equal(group(&g, "web1")->sums[GROUP_RUNNABLE_NS], 70);
	assert_int_equal(group(&g, "host")->sums[GROUP_SAMPLES], 2);
	assert_int_equal(g.other.sums[GROUP_SAMPLES], 2);
	assert_true(g.has[GROUP_SAMPLES] && g.has[GROUP_BLOCKED_NS] && !g.has[GROUP_TOUCHED_BYTES]);
	/* Once more: sums, not sums of sums. */
	use(r, PROFILE_ONCPU, "web0", cpu);
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(group(&g, "web0")->sums[GROUP_SAMPLES], 4);
	metrics_groups_fini(&g);
	bare_run_free(r);
}

static void one_group_alone_has_the_samples_without_a_label(void **state)
{
	static const struct run_config cfg = { .n_groups = 1 };
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t cpu[] = { 2, 300 };

	r->cfg = &cfg;
	n_containers = 1;
	use(r, PROFILE_ONCPU, NULL, cpu);
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(group(&g, "web0")->sums[GROUP_SAMPLES], 2);
	metrics_groups_fini(&g);
	bare_run_free(r);
}

static const char *futex(const struct kallsyms *k, uint64_t addr)
{
	return addr == 0x200 ? "futex_wait_queue" : NULL;
}

static void blocked_time_is_told_apart_by_what_was_waited_for(void **state)
{
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t waits[] = { 1, 500, 2, 70 };
	const struct label l = { .key = dict_string(r->dict, "container"),
				 .str = dict_string(r->dict, "web0") };
	module_id kernel = dict_module(r->dict, &(struct module){ .kind = MODULE_KERNEL });
	location_id at = dict_location(r->dict, kernel, 0x200);

	n_containers = 1;
	g.kinds = (struct wait_kinds){ .name = futex,
				       .kernel = (struct kallsyms *)&g,
				       .tried = true };
	assert_int_equal(profile_add(r->profiles[PROFILE_OFFCPU], dict_stack(r->dict, &at, 1),
				     dict_labels(r->dict, &l, 1), waits),
			 0);
	use(r, PROFILE_OFFCPU, "web0", waits);
	for (int i = 0; i < 2; i++) /* sums, not sums of sums */
		assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_true(g.has_waits);
	assert_int_equal(group(&g, "web0")->waits_ns[WAIT_LOCK], 500);
	assert_int_equal(group(&g, "web0")->waits_ns[WAIT_OTHER], 500);
	assert_int_equal(group(&g, "web0")->sums[GROUP_BLOCKED_NS], 1000);
	g.kinds.kernel = NULL;
	metrics_groups_fini(&g);
	bare_run_free(r);
}

static void those_that_are_too_many_are_counted_and_ended_ones_make_room(void **state)
{
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t cpu[] = { 2, 300 };

	n_containers = METRICS_GROUPS + 5; /* and the host */
	use(r, PROFILE_ONCPU, "web0", cpu);
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(g.n, METRICS_GROUPS);
	assert_int_equal(g.left_out, 6);
	assert_int_equal(g.left_out_processes, 6 * 2);
	assert_true(group(&g, "host")->here);
	n_containers = 1;
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(g.left_out, 0);
	assert_true(group(&g, "host")->here);
	assert_false(group(&g, "web7")->here);
	assert_int_equal(group(&g, "web0")->sums[GROUP_SAMPLES], 2);
	metrics_groups_fini(&g);
	bare_run_free(r);
}

/* Of what is in the list now; what it had before, by name. */
static int64_t gained(const struct metrics_groups *g, const struct metrics_groups *before)
{
	int64_t sum = g->other.sums[GROUP_SAMPLES] - before->other.sums[GROUP_SAMPLES];

	for (uint32_t i = 0; i < g->n; i++) {
		sum += g->list[i].sums[GROUP_SAMPLES];
		for (uint32_t k = 0; k < before->n; k++)
			if (strcmp(before->list[k].name, g->list[i].name) == 0)
				sum -= before->list[k].sums[GROUP_SAMPLES];
	}
	return sum;
}

/* Containers come and go by hundreds: each sample is in one sum, and neither the others' nor any container's falls. */
static void what_the_list_has_no_room_for_is_summed_as_other(void **state)
{
	static const uint32_t here[] = { 3, 400, 150, 398, 398, 1, 220, 300 };
	struct run *r = run_with_profiles();
	int64_t other = 0, web0 = 0;
	const int64_t cpu[] = { 2, 300 }, waits[] = { 1, 500, 2, 70 };
	static struct metrics_groups g, before;
	char name[32];

	for (size_t row = 0; row < sizeof(here) / sizeof(*here); row++) {
		n_containers = here[row];
		for (uint32_t i = 0; i < n_containers; i++) {
			snprintf(name, sizeof(name), "web%u", i);
			use(r, PROFILE_ONCPU, name, cpu);
			use(r, PROFILE_OFFCPU, name, waits);
		}
		before = g;
		assert_int_equal(metrics_groups_take(&g, r), 0);
		assert_int_equal(gained(&g, &before), 2 * (int64_t)n_containers);
		assert_true(g.other.sums[GROUP_SAMPLES] >= other);
		assert_true(group(&g, "web0")->sums[GROUP_SAMPLES] >= web0);
		other = g.other.sums[GROUP_SAMPLES];
		web0 = group(&g, "web0")->sums[GROUP_SAMPLES];
	}
	assert_true(other >= 2 * 200);
	assert_int_equal(web0, 2 * 8);
	metrics_groups_fini(&g);
	bare_run_free(r);
}

static void a_container_called_host_is_not_the_host(void **state)
{
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t cpu[] = { 2, 300 }, more[] = { 5, 700 };

	n_containers = 0;
	use(r, PROFILE_ONCPU, "host", more);
	use(r, PROFILE_ONCPU, NULL, cpu);
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(group(&g, "host_")->sums[GROUP_SAMPLES], 5);
	assert_int_equal(group(&g, "host_")->processes, 2);
	assert_int_equal(group(&g, "host")->sums[GROUP_SAMPLES], 2);
	assert_int_equal(group(&g, "host")->processes, 1);
	metrics_groups_fini(&g);
	bare_run_free(r);
}

/* Of -p there is no container: samples with whatever label, and the memory of the last row. */
static void processes_that_are_named_have_series_without_a_container(void **state)
{
	static const struct run_config cfg = { .n_pids = 1 };
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t cpu[] = { 2, 300 };

	r->cfg = &cfg;
	n_containers = 1;
	use(r, PROFILE_ONCPU, NULL, cpu);
	use(r, PROFILE_ONCPU, "web", cpu);
	r->row.memory = (struct mem_sample){
		.time_ns = 1, .processes = 3, .anonymous_kb = 5, .interval_cpu_ns = 70
	};
	for (int i = 0; i < 2; i++) /* a row counts once */
		assert_int_equal(metrics_groups_take(&g, r), 0);
	r->row.memory.time_ns = 2;
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(g.n, 0);
	assert_int_equal(g.target.sums[GROUP_SAMPLES], 4);
	assert_int_equal(g.target.processes, 3);
	assert_int_equal(g.target_cpu_ns, 140);
	metrics_groups_fini(&g);
	bare_run_free(r);
}

static void one_that_is_new_takes_the_place_of_one_that_has_gone(void **state)
{
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t cpu[] = { 2, 300 };

	n_containers = METRICS_GROUPS - 1; /* and the host: all places are taken */
	use(r, PROFILE_ONCPU, "web0", cpu);
	use(r, PROFILE_ONCPU, "web1", cpu);
	assert_int_equal(metrics_groups_take(&g, r), 0);
	assert_int_equal(g.left_out, 0);
	n_containers--;
	comes_first = "new";
	use(r, PROFILE_ONCPU, "new", cpu);
	assert_int_equal(metrics_groups_take(&g, r), 0);
	comes_first = NULL;
	assert_int_equal(g.left_out, 0);
	assert_int_equal(group(&g, "web0")->sums[GROUP_SAMPLES], 2);
	assert_int_equal(group(&g, "web1")->sums[GROUP_SAMPLES], 2);
	assert_int_equal(group(&g, "new")->sums[GROUP_SAMPLES], 2);
	assert_true(group(&g, "web1")->here && group(&g, "new")->here && group(&g, "host")->here);
	metrics_groups_fini(&g);
	bare_run_free(r);
}

static void use_one_of_two(struct run *r, const char *id)
{
	const struct label l[] = {
		{ .key = dict_string(r->dict, "container"), .str = dict_string(r->dict, "redis") },
		{ .key = dict_string(r->dict, "container_id"), .str = dict_string(r->dict, id) }
	};
	const int64_t cpu[] = { 1, 100 };

	assert_int_equal(profile_add(r->profiles[PROFILE_ONCPU], (stack_id){ 0 },
				     dict_labels(r->dict, l, 2), cpu),
			 0);
}

/* The first runs alone, then both, in either order. */
static void two_that_are_called_alike_have_series_of_their_own(void **state)
{
	struct run *r = run_with_profiles();
	static struct metrics_groups g;

	n_containers = 1;
	n_alike = 1;
	use_one_of_two(r, "x1");
	assert_int_equal(metrics_groups_take(&g, r), 0);
	n_alike = 2;
	for (int i = 0; i < 3; i++) {
		alike_turned = i % 2 == 0;
		use_one_of_two(r, "x1");
		use_one_of_two(r, "x2");
		assert_int_equal(metrics_groups_take(&g, r), 0);
		assert_string_equal(group(&g, "redis")->id, "x1");
		assert_string_equal(group(&g, "two/redis")->id, "x2");
		assert_int_equal(group(&g, "redis")->sums[GROUP_SAMPLES], 2 + i);
	}
	assert_int_equal(group(&g, "two/redis")->sums[GROUP_SAMPLES], 3);
	assert_int_equal(g.left_out, 0);
	n_alike = 0;
	alike_turned = false;
	metrics_groups_fini(&g);
	bare_run_free(r);
}

static void what_is_taken_back_is_made_up_for_and_no_sum_falls(void **state)
{
	struct run *r = run_with_profiles();
	static struct metrics_groups g;
	const int64_t waits[][4] = {
		{ 1, 500, 0, 0 }, { 0, -200, 0, 0 }, { 1, 150, 0, 0 }, { 1, 90, 0, 0 }
	};
	const int64_t sums[] = { 500, 500, 500, 540 };

	n_containers = 1;
	for (int i = 0; i < 4; i++) {
		use(r, PROFILE_OFFCPU, "web0", waits[i]);
		assert_int_equal(metrics_groups_take(&g, r), 0);
		assert_int_equal(group(&g, "web0")->sums[GROUP_BLOCKED_NS], sums[i]);
	}
	metrics_groups_fini(&g);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_the_profiles_by_container),
		cmocka_unit_test(one_group_alone_has_the_samples_without_a_label),
		cmocka_unit_test(blocked_time_is_told_apart_by_what_was_waited_for),
		cmocka_unit_test(processes_that_are_named_have_series_without_a_container),
		cmocka_unit_test(what_the_list_has_no_room_for_is_summed_as_other),
		cmocka_unit_test(a_container_called_host_is_not_the_host),
		cmocka_unit_test(those_that_are_too_many_are_counted_and_ended_ones_make_room),
		cmocka_unit_test(one_that_is_new_takes_the_place_of_one_that_has_gone),
		cmocka_unit_test(two_that_are_called_alike_have_series_of_their_own),
		cmocka_unit_test(what_is_taken_back_is_made_up_for_and_no_sum_falls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
