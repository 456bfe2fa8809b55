#include "run_fixture.h"

#include <dirent.h>
#include <unistd.h>

static char dir[] = "/tmp/memscope-unit-windows-XXXXXX";
static struct run_config cfg = { .quiet = true, .hz = 99, .interval_s = 1 };

int pipeline_now(struct run *r, struct profile_since *since, struct profile_now *ret_now,
		 struct err *e)
{
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);
	const int64_t values[2] = { 1, 10 };
	struct profile *p = profile_new(r->dict, profile_rows[PROFILE_ONCPU].types, 2);

	called("now");
	assert_int_equal(
		profile_add(p, dict_stack(r->dict, &at, 1), dict_labels(r->dict, NULL, 0), values),
		0);
	*ret_now = (struct profile_now){ .time_ns = 1000000000, .duration_ns = 5 };
	ret_now->profiles[PROFILE_ONCPU] = p;
	loop_end(r->loop);
	return 0;
}

static int files(void)
{
	DIR *d = opendir(dir);
	char path[512];
	int n = 0;

	for (struct dirent *f; (f = readdir(d));)
		if (f->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, f->d_name);
			unlink(path);
			n++;
		}
	closedir(d);
	return n;
}

static void a_signal_asks_for_a_profile_and_the_run_goes_on(void **state)
{
	const struct component *c = component_named("windows");
	struct run *r;
	void *self;

	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	r = bare_run(&cfg);
	self = alone(r, "windows");
	assert_int_equal(c->ready(self, NULL), 0);
	c->asked(self);
	assert_int_equal(loop_run(r->loop, NULL), 0);
	assert_string_equal(fake.calls, "now");
	assert_int_equal(c->write(self, NULL, NULL), 0); /* waits for who writes it */
	assert_string_equal(fake.calls, "now");          /* without --every no last one */
	assert_int_equal(r->notes.n, 1);
	assert_non_null(strstr(r->notes.text[0], "SIGUSR1"));
	assert_true(files() >= 2); /* .pb.gz and .folded at least */
	rmdir(dir);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_asks_for_a_profile_and_the_run_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
