#include "analyse/summary.h"
#include "run/output/files.h"
#include "run_fixture.h"

#include <stdio.h>
#include <unistd.h>

#define DAY 86400

static char path[] = "/tmp/memscope-unit-workload-XXXXXX";
static const char *given[] = { path };
static struct run_config cfg = { .hz = 99, .series = given, .n_series = 1 };

static struct run *made(void **ret_self, const char *name)
{
	struct run *r;
	struct err e = { 0 };

	given[0] = name;
	r = bare_run(&cfg);
	*ret_self = alone(r, "workload");
	if (component_named("workload")->prepare(*ret_self, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	return r;
}

static void a_row(struct run *r, void *self, int64_t s, double kb)
{
	r->row.memory = (struct mem_sample){ .time_ns = s * 1000000000, .own_kb = (int64_t)kb };
	component_named("workload")->row(self, 0);
}

static const struct workload_fit *fit_of(struct run *r, void *self, struct run_summary *s,
					 const char *name)
{
	component_named("workload")->report(self, s);
	for (uint32_t i = 0; i < s->n_workload; i++)
		if (strcmp(s->workload[i].name, name) == 0)
			return &s->workload[i].fit;
	fail_msg("there is no series %s", name);
	return NULL;
}

/* A day: a row each second, a line each minute; work by day alone; its program begins anew at noon. */
static double day_of(bool by_work, enum workload_says *ret_says)
{
	struct run_summary s = { 0 };
	double requests = 0, kb = 100000;
	const struct workload_fit *f;
	struct run *r;
	void *self;
	FILE *to = fopen(path, "w");

	r = made(&self, path);
	for (int64_t i = 0; i < DAY; i++) {
		double n = i % 7200 < 3600 ? 20 : 0;

		requests += n;
		kb += by_work ? n / 100 : 0.1;
		if (i == DAY / 2)
			requests = 0;
		if (i % 60 == 0) {
			fprintf(to, "%lld,requests_total,%.0f\n", 1000000000LL + i, requests);
			fflush(to);
		}
		a_row(r, self, 1000000000 + i, kb);
	}
	fclose(to);
	f = fit_of(r, self, &s, "requests_total");
	*ret_says = f->says;
	kb = by_work ? f->per_unit : f->idle;
	bare_run_free(r);
	return kb;
}

static void a_day_is_held_against_the_work_that_a_file_tells(void **state)
{
	enum workload_says says;
	double each = day_of(true, &says);

	assert_int_equal(says, WORKLOAD_WITH);
	assert_true(each > 9.5 && each < 11); /* 1/100 KiB a request */
	each = day_of(false, &says);
	assert_int_equal(says, WORKLOAD_IDLE);
	assert_true(each > 95 && each < 110); /* 0.1 KiB a second */
	(void)state;
}

static void a_file_that_is_cut_or_replaced_is_read_from_its_beginning(void **state)
{
	struct run_summary s = { 0 };
	FILE *to = fopen(path, "w");
	struct run *r;
	void *self;

	r = made(&self, path);
	fprintf(to, "timestamp,name,value\n1000,keys,5\n1001,ke");
	fflush(to);
	a_row(r, self, 1000, 100);
	fprintf(to, "ys,6\n1001,other,6\nno line\n"); /* the rest of a line */
	fclose(to);
	a_row(r, self, 1001, 100);
	to = fopen(path, "w");
	fprintf(to, "1002,keys,7\n");
	fclose(to);
	a_row(r, self, 1002, 100);
	component_named("workload")->report(self, &s);
	assert_int_equal(s.n_workload, 2); /* ours are too short to be named */
	assert_string_equal(s.workload[0].name, "keys");
	assert_string_equal(s.workload[1].name, "other");
	assert_int_equal(s.workload[0].fit.says, WORKLOAD_SHORT);
	assert_int_equal(r->notes.n, 1);
	assert_non_null(strstr(r->notes.text[0], "1 lines are not timestamp,name,value"));
	bare_run_free(r);
	(void)state;
}

static void names_behind_a_hash_are_those_wanted(void **state)
{
	struct run_summary s = { 0 };
	char name[64];
	FILE *to = fopen(path, "w");
	struct run *r;
	void *self;

	fprintf(to, "1000,a,1\n1000,b,1\n1000,ab,1\n1000,c,1\n");
	fclose(to);
	snprintf(name, sizeof(name), "%s#a,c", path);
	r = made(&self, name);
	a_row(r, self, 1000, 100);
	component_named("workload")->report(self, &s);
	assert_int_equal(s.n_workload, 2);
	assert_string_equal(s.workload[0].name, "a");
	assert_string_equal(s.workload[1].name, "c");
	bare_run_free(r);
	(void)state;
}

static void a_series_that_never_falls_counts_unless_its_name_is_of_a_level(void **state)
{
	struct run_summary s = { 0 };
	FILE *to = fopen(path, "w");
	struct run *r;
	void *self;

	for (int i = 0; i < 3; i++)
		fprintf(to, "%d,jobs,%d\n%d,cache_keys,%d\n%d,load,%d\n%d,x_total,%d\n", 1000 + i,
			i, 1000 + i, i, 1000 + i, 5 - i, 1000 + i, 5 - i);
	fclose(to);
	r = made(&self, path);
	a_row(r, self, 1000, 100);
	component_named("workload")->report(self, &s);
	assert_int_equal(s.n_workload, 4);
	assert_true(s.workload[0].counter);
	assert_false(s.workload[1].counter);
	assert_false(s.workload[2].counter);
	assert_true(s.workload[3].counter); /* it began anew */
	bare_run_free(r);
	(void)state;
}

static void what_is_no_file_and_no_address_is_refused(void **state)
{
	static const char *const wrong[] = { "/no/such/file", "ftp://x/y" };

	for (int i = 0; i < 2; i++) {
		struct err e = { 0 };
		struct run *r;
		void *self;

		given[0] = wrong[i];
		r = bare_run(&cfg);
		self = alone(r, "workload");
		assert_true(component_named("workload")->prepare(self, NULL, &e) < 0);
		assert_non_null(strstr(e.msg, "series"));
		bare_run_free(r);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_is_held_against_the_work_that_a_file_tells),
		cmocka_unit_test(a_file_that_is_cut_or_replaced_is_read_from_its_beginning),
		cmocka_unit_test(names_behind_a_hash_are_those_wanted),
		cmocka_unit_test(a_series_that_never_falls_counts_unless_its_name_is_of_a_level),
		cmocka_unit_test(what_is_no_file_and_no_address_is_refused),
	};
	int failed;

	close(mkstemp(path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
