#include "run_fixture.h"

#include "base/clock.h"
#include "base/host_share.h"
#include "run/name_used.h"
#include "run/output/files.h"
#include "run/own_share.h"
#include "run/serve/serve_config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/memscope-unit-windows-XXXXXX";
static struct run_config cfg = { .quiet = true, .hz = 99, .interval_s = 1 };

static char listed[4096]; /* what goes with the run's files */

void output_beside(struct run_output *to, const char *file)
{
	size_t n = strlen(listed);

	snprintf(listed + n, sizeof(listed) - n, "%s ", file);
}

/* What each writer was asked for, which takes 20 ms of CPU time. */
struct named {
	uint32_t with_lines, without;
};
static struct named *named;
static bool time_is_over; /* for lines, in each that reads them */

int names_back_open(struct err *e)
{
	return -1;
}

void names_back_take(int names_fd, struct run *r)
{
}

int name_used(struct run *r, struct profile *const *profiles, uint32_t n, int64_t lines_ns,
	      int names_fd, struct err *e)
{
	struct timespec cpu = { 0 };

	__atomic_add_fetch(lines_ns > 0 ? &named->with_lines : &named->without, 1,
			   __ATOMIC_RELAXED);
	while (cfg.serve && cpu.tv_nsec < 20000000 && !cpu.tv_sec)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	return time_is_over || lines_ns <= 0;
}

static bool no_memory; /* for what a profile says of itself */
static int failures;   /* … the first so many times         */

int output_set_meta(const struct run *r, struct profile *p, struct profile_meta *meta,
		    const char *comment)
{
	return no_memory || failures-- > 0 ? -ENOMEM : profile_set_meta(p, meta);
}

int pipeline_now(struct run *r, struct profile_since *since, struct profile_now *ret_now,
		 struct err *e)
{
	location_id at = dict_location(r->dict, (module_id){ 0 }, 4096);
	const int64_t values[2] = { 1, 10 };
	struct label web = { .key = dict_string(r->dict, "container"),
			     .str = dict_string(r->dict, "web") };
	struct profile *p = profile_new(r->dict, profile_rows[PROFILE_ONCPU].types, 2);

	called("now");
	assert_int_equal(
		profile_add(p, dict_stack(r->dict, &at, 1), dict_labels(r->dict, NULL, 0), values),
		0);
	assert_int_equal(
		profile_add(p, dict_stack(r->dict, &at, 1), dict_labels(r->dict, &web, 1), values),
		0);
	*ret_now = (struct profile_now){ .time_ns = 1000000000, .duration_ns = 5 };
	ret_now->profiles[PROFILE_ONCPU] = p;
	if (!cfg.serve || r->windows.no_lines)
		loop_end(r->loop);
	return 0;
}

/* Takes them away; how many there were. */
static int files(const char *where)
{
	DIR *d = opendir(where);
	char path[512];
	int n = 0;

	for (struct dirent *f; d && (f = readdir(d));)
		if (f->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", where, f->d_name);
			n += unlink(path) == 0 ? 1 : files(path);
		}
	if (d)
		closedir(d);
	rmdir(where);
	return n;
}

/* What a signal asks for, to the end of the run. */
static struct run *asked_once(void)
{
	const struct component *c = component_named("windows");
	struct run *r;
	void *self;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	*listed = '\0';
	r = bare_run(&cfg);
	self = alone(r, "windows");
	assert_int_equal(c->ready(self, NULL), 0);
	c->asked(self, NULL);
	assert_int_equal(loop_run(r->loop, NULL), 0);
	assert_int_equal(c->write(self, NULL, NULL), 0); /* waits for who writes it */
	return r;
}

static void a_signal_asks_for_a_profile_and_the_run_goes_on(void **state)
{
	struct run *r = asked_once();

	assert_string_equal(fake.calls, "now"); /* without --every no last one */
	assert_int_equal(r->notes.n, 1);
	assert_non_null(strstr(r->notes.text[0], "SIGUSR1"));
	assert_non_null(strstr(listed, "oncpu-19")); /* 1970, or the year before it */
	assert_non_null(strstr(listed, ".pb.gz "));
	assert_true(files(dir) >= 2); /* .pb.gz and .folded at least */
	bare_run_free(r);
}

static void containers_have_theirs_in_folders_and_all_go_with_the_run(void **state)
{
	struct run *r;

	cfg.all = true;
	r = asked_once();
	cfg.all = false;
	assert_non_null(strstr(listed, "web/oncpu-19"));
	assert_non_null(strstr(listed, "host/oncpu-19"));
	assert_true(files(dir) >= 6); /* of all, and in two folders */
	bare_run_free(r);
}

static void a_profile_of_no_known_time_is_not_written_and_counted(void **state)
{
	struct run *r;

	no_memory = true;
	r = asked_once();
	no_memory = false;
	assert_int_equal(r->notes.n, 2);
	assert_non_null(strstr(r->notes.text[1], "1 windows could not be written"));
	assert_int_equal(files(dir), 0);
	bare_run_free(r);
}

static void one_that_fails_in_the_end_keeps_no_other_from_being_written(void **state)
{
	const struct component *c = component_named("windows");
	struct err e = { 0 };
	struct run *r;
	void *self;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	cfg.every_s = 5;
	cfg.n_when = 1;
	cfg.before_s = 6;
	cfg.mem_mb = 64;
	r = bare_run(&cfg);
	self = alone(r, "windows");
	assert_int_equal(c->ready(self, NULL), 0);
	c->asked(self, "rss_1G");
	c->asked(self, "rss_2G");
	failures = 1;
	assert_int_equal(c->write(self, NULL, &e), -ENOMEM);
	failures = 0;
	assert_string_equal(e.msg, "out of memory for a profile");
	assert_true(files(dir) >= 4); /* of the second trigger, and the window of --every */
	cfg.every_s = 0;
	cfg.n_when = 0;
	bare_run_free(r);
}

/* 0.05 % of a CPU, of which windows have a quarter: 20 ms take 160 s. */
static void a_service_reads_no_debug_info_while_windows_take_more_than_their_part(void **state)
{
	const struct serve_config serve = { 0 };
	const struct component *c = component_named("windows");
	struct run *r;
	void *self;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	cfg.serve = &serve;
	cfg.max_overhead = 0.05;
	cfg.every_s = 0.1; /* the loop ends with the first window that has no lines */
	r = bare_run(&cfg);
	self = alone(r, "windows");
	fake.start_ns = now_ns();
	assert_int_equal(c->ready(self, NULL), 0);
	named->with_lines = named->without = 0;
	assert_int_equal(loop_run(r->loop, NULL), 0);
	assert_true(named->with_lines >= 1);
	assert_int_equal(c->write(self, NULL, NULL), 0); /* waits for who writes */
	assert_true(r->windows.no_lines >= 1);
	assert_int_equal(named->without, r->windows.no_lines);
	assert_true(files(dir) >= 2);
	cfg.serve = NULL;
	cfg.every_s = 0;
	bare_run_free(r);
}

/* In 1,000 s windows could have had 125 ms of 0.05 %. The first takes 20 of them, and needed more than all. */
static void a_window_whose_debug_info_took_too_long_makes_the_next_wait_for_twice_the_time(
	void **state)
{
	const struct serve_config serve = { 0 };
	const struct component *c = component_named("windows");
	struct run *r;
	void *self;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	cfg.serve = &serve;
	cfg.max_overhead = 0.05;
	cfg.every_s = 0.1;
	time_is_over = true;
	r = bare_run(&cfg);
	self = alone(r, "windows");
	fake.start_ns = now_ns() - 1000000000000;
	assert_int_equal(c->ready(self, NULL), 0);
	named->with_lines = named->without = 0;
	assert_int_equal(loop_run(r->loop, NULL), 0);
	assert_int_equal(c->write(self, NULL, NULL), 0);
	assert_true(named->with_lines >= 1 && named->without >= 1);
	assert_int_equal(r->windows.no_lines, named->with_lines + named->without);
	assert_int_equal(r->windows.failed, 0);
	assert_true(files(dir) >= 2);
	time_is_over = false;
	cfg.serve = NULL;
	cfg.every_s = 0;
	bare_run_free(r);
}

static int end_loop(void *ctx, struct err *e)
{
	loop_end(ctx);
	return 0;
}

/* How many windows of 0.1 s are closed in 0.65 s. */
static uint64_t closed_by(uint32_t savings)
{
	const struct serve_config serve = { 0 };
	const struct component *c = component_named("windows");
	struct run *r;
	uint64_t closed;
	void *self;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	cfg.serve = &serve;
	cfg.max_overhead = 100;
	cfg.every_s = 0.1;
	r = bare_run(&cfg);
	r->serving.savings = savings;
	self = alone(r, "windows");
	fake.start_ns = now_ns();
	assert_int_equal(c->ready(self, NULL), 0);
	assert_int_equal(loop_every(r->loop, 650000000, end_loop, r->loop), 0);
	assert_int_equal(loop_run(r->loop, NULL), 0);
	closed = r->windows.closed + r->windows.skipped;
	assert_int_equal(c->write(self, NULL, NULL), 0);
	files(dir);
	cfg.serve = NULL;
	cfg.every_s = 0;
	bare_run_free(r);
	return closed;
}

/* After 0.1, 0.3 and 0.5 s, or after 0.1 and 0.5; a loop that is held up sees fewer of them. */
static void windows_of_a_service_that_saves_are_longer(void **state)
{
	assert_in_range(closed_by(SAVE_WINDOWS + 1), 1, 3);
	assert_in_range(closed_by(SAVE_WINDOWS_AGAIN + 1), 1, 2);
}

static double share;

double host_share(void)
{
	return share;
}

/* Is the first window closed 600 s after the begin, of 1,000? */
static bool is_closed(const struct serve_config *serve)
{
	const struct component *c = component_named("windows");
	struct run *r;
	void *self;
	bool closed;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	cfg.dir = dir;
	cfg.every_s = 1000;
	cfg.serve = serve;
	r = bare_run(&cfg);
	fake.start_ns -= 600000000000;
	self = alone(r, "windows");
	assert_int_equal(c->ready(self, NULL), 0);
	assert_int_equal(loop_every(r->loop, 1000000, end_loop, r->loop), 0);
	assert_int_equal(loop_run(r->loop, NULL), 0);
	closed = strcmp(fake.calls, "now") == 0;
	c->write(self, NULL, NULL);
	files(dir);
	cfg.every_s = 0;
	cfg.serve = NULL;
	bare_run_free(r);
	return closed;
}

static void the_first_window_of_a_service_is_shorter_by_the_host_s_share_of_a_half(void **state)
{
	static const struct serve_config serve;

	share = 0.9;
	assert_true(is_closed(&serve));
	assert_false(is_closed(NULL));
	share = 0.7;
	assert_false(is_closed(&serve));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_asks_for_a_profile_and_the_run_goes_on),
		cmocka_unit_test(containers_have_theirs_in_folders_and_all_go_with_the_run),
		cmocka_unit_test(a_profile_of_no_known_time_is_not_written_and_counted),
		cmocka_unit_test(
			a_service_reads_no_debug_info_while_windows_take_more_than_their_part),
		cmocka_unit_test(
			a_window_whose_debug_info_took_too_long_makes_the_next_wait_for_twice_the_time),
		cmocka_unit_test(windows_of_a_service_that_saves_are_longer),
		cmocka_unit_test(one_that_fails_in_the_end_keeps_no_other_from_being_written),
		cmocka_unit_test(
			the_first_window_of_a_service_is_shorter_by_the_host_s_share_of_a_half),
	};

	named = mmap(NULL, sizeof(*named), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_true(named != MAP_FAILED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
