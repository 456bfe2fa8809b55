#include "run/serve/serve_config.h"
#include "run_fixture.h"

#include "run/memory/rss_look.h"
#include "run/output/files.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/memscope-unit-container-rss-XXXXXX";
static struct run_config cfg;
static pid_t asked_for[8]; /* in which order they were looked at */
static uint32_t n_asked;
static int64_t cpu_ns;   /* that looks have taken */
static int64_t takes_ns; /* one; 0: all that it may */
static char named[256];
static bool held;      /* looks wait … */
static uint32_t looks; /* … and have begun */
static uint32_t kept_up;

/* A group "web" of two processes; "db" has this one. */
static pid_t web[2];

uint32_t cgroup_processes(const struct cgroup_mounts *m, const struct cgroup *group, pid_t *out,
			  uint32_t cap)
{
	if (strcmp(group->path, "/db") == 0) {
		out[0] = getpid();
		return 1;
	}
	memcpy(out, web, sizeof(web));
	return 2;
}

int cgroup_mounts_read(struct cgroup_mounts *ret_mounts, struct err *e)
{
	*ret_mounts = (struct cgroup_mounts){ 0 };
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, id, now);

	if (id == CLOCK_THREAD_CPUTIME_ID)
		now->tv_sec += cpu_ns / 1000000000, now->tv_nsec += cpu_ns % 1000000000;
	return rc;
}

int rss_look(const struct rss_look *at, struct ledger *ret_ledger, struct heap_census *ret_census,
	     struct err *e)
{
	struct ledger l = { .processes = 1, .rss = 1000, .pss = 600, .heap_pss = 1 };

	assert_true(at->budget_ns > 0);
	__atomic_fetch_add(&looks, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		usleep(1000);
	l.parts[LEDGER_FILE] = (struct ledger_row){ .resident = 900, .pss = 500 };
	if (n_asked < 8)
		asked_for[n_asked] = at->pid;
	n_asked++;
	cpu_ns += takes_ns ? takes_ns : at->budget_ns;
	*ret_ledger = l;
	*ret_census = (struct heap_census){ 0 };
	return 0;
}

/* The third time, what it waits for has happened. */
int pipeline_keep_up(struct run *r, struct err *e)
{
	if (++kept_up % 3 == 0)
		__atomic_store_n(&held, false, __ATOMIC_RELEASE);
	return 0;
}

/* A row, until its look is over: its time has come again. */
static void whole_row(const struct component *c, void *self, const struct run_summary *s)
{
	c->row(self, now_ns());
	for (int i = 0; i < 10000 && !s->ledger.at_ns; i++) {
		usleep(1000);
		c->tick(self, now_ns());
		c->report(self, (struct run_summary *)s);
	}
	assert_true(s->ledger.at_ns > 0);
}

void output_written(struct run_output *to, const char *name, const char *ext)
{
	strcat(strcat(strcat(named, name), ext), " ");
}

void output_in_folder(struct run_output *to, const char *name, const char *file)
{
	strcat(strcat(strcat(strcat(named, name), "/"), file), " ");
}

/* One that has touched so much memory, and waits. */
/* It does nothing any more: what it did counts as something that changed. */
static void wait_until_it_sleeps(pid_t pid)
{
	char path[64], text[512], *state = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 5000 && !(state && state[2] == 'S'); i++) {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		assert_non_null(fgets(text, sizeof(text), f));
		fclose(f);
		state = strrchr(text, ')');
		usleep(1000);
	}
}

static pid_t child(size_t bytes)
{
	int fds[2];
	char ready;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		char *p = malloc(bytes);

		memset(p, 1, bytes);
		(void)!write(fds[1], p, 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(fds[0], &ready, 1), 1);
	close(fds[0]);
	close(fds[1]);
	wait_until_it_sleeps(pid);
	return pid;
}

static void groups_are_summed_the_largest_process_first_within_the_time(void **state)
{
	const struct component *c = component_named("RSS breakdown of containers");
	static struct group groups[2] = { { .at = { .path = "/web" } },
					  { .at = { .path = "/db" } } };
	char path[300], line[1024];
	struct run_summary s = { 0 };
	struct run *r;
	void *self;
	FILE *f;
	int rows = 0;

	assert_non_null(mkdtemp(dir));
	cfg = (struct run_config){ .groups = groups, .n_groups = 2, .dir = dir };
	web[0] = child(64 << 20);
	web[1] = child(128 << 20);
	r = bare_run(&cfg);
	self = alone(r, "RSS breakdown of containers");
	assert_int_equal(c->ready(self, NULL), 0);
	whole_row(c, self, &s);
	/* Two halves of the time were used: by the largest, the others were not read. */
	assert_int_equal(n_asked, 2);
	assert_int_equal(asked_for[0], web[1]);
	assert_int_equal(asked_for[1], web[0]);
	c->report(self, &s);
	assert_true(s.ledger.now.by_pss);
	assert_int_equal(s.ledger.now.processes, 2);
	assert_int_equal(s.ledger.now.pss, 1200);
	assert_int_equal(ledger_unexplained(&s.ledger.now), 200);
	assert_int_equal(s.ledger.now.not_read, 1);
	assert_true(s.ledger.now.not_read_rss > 0);
	assert_int_equal(s.ledger.n_containers, 2);
	assert_string_equal(s.ledger.containers[0].name, "web");
	assert_int_equal(s.ledger.containers[0].now.pss, 1200);
	assert_int_equal(s.ledger.containers[0].now.not_read, 0);
	assert_string_equal(s.ledger.containers[1].name, "db");
	assert_int_equal(s.ledger.containers[1].now.processes, 0);
	assert_true(s.ledger.containers[1].now.by_pss); /* its file has the same columns */
	assert_int_equal(s.ledger.containers[1].now.not_read, s.ledger.now.not_read);

	c->closing(self);
	assert_int_equal(c->write(self, NULL, NULL), 0);
	assert_string_equal(named, "rss_breakdown.csv web/rss_breakdown.csv db/rss_breakdown.csv ");
	snprintf(path, sizeof(path), "%s/web/rss_breakdown.csv", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		rows++;
	fclose(f);
	assert_int_equal(rows, 3); /* the names of columns, and two looks */
	for (int i = 0; i < 2; i++) {
		kill(web[i], SIGKILL);
		waitpid(web[i], NULL, 0);
	}
	bare_run_free(r);
	snprintf(line, sizeof(line), "rm -r %s", dir);
	assert_int_equal(system(line), 0);
}

static void a_look_that_takes_long_keeps_nobody_from_emptying_maps(void **state)
{
	static struct group one = { .at = { .path = "/web" } };
	const struct component *c = component_named("RSS breakdown of containers");
	struct run_summary s = { 0 };
	struct run *r;
	void *self;

	cfg = (struct run_config){ .groups = &one, .n_groups = 1 };
	web[0] = web[1] = getpid();
	n_asked = looks = kept_up = 0;
	held = true;
	r = bare_run(&cfg);
	self = alone(r, "RSS breakdown of containers");
	assert_int_equal(c->ready(self, NULL), 0);
	c->row(self, now_ns()); /* returns */
	while (!__atomic_load_n(&looks, __ATOMIC_ACQUIRE))
		usleep(1000);
	c->tick(self, now_ns());
	c->row(self, now_ns()); /* one at a time */
	c->report(self, &s);
	assert_int_equal(s.ledger.now.processes, 0);
	/* That one is given up, and there is another, the last. */
	c->closing(self);
	assert_true(kept_up >= 3);
	c->report(self, &s);
	assert_int_equal(s.ledger.now.processes, 2);
	assert_int_equal(looks, 3);
	bare_run_free(r);
}

static void a_single_group_has_no_rows_of_containers(void **state)
{
	static struct group one = { .at = { .path = "/web" } };
	const struct component *c = component_named("RSS breakdown of containers");
	const struct run_config process = { .n_pids = 1 };
	struct run_summary s = { 0 };
	struct run *r;
	void *self;

	cfg = (struct run_config){ .groups = &one, .n_groups = 1 };
	web[0] = web[1] = getpid();
	n_asked = 0;
	r = bare_run(&cfg);
	self = alone(r, "RSS breakdown of containers");
	assert_int_equal(c->ready(self, NULL), 0);
	c->closing(self);
	c->report(self, &s);
	assert_int_equal(n_asked, 2);
	assert_int_equal(s.ledger.now.processes, 2);
	assert_int_equal(s.ledger.n_containers, 0);
	assert_true(c->wanted(&cfg));
	assert_false(c->wanted(&process));
	bare_run_free(r);
}

static void look_again(const struct component *c, void *self)
{
	uint64_t later = now_ns() + 3600000000000;

	c->row(self, later);
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		c->tick(self, later);
	}
}

static void a_service_looks_again_only_at_who_did_something_and_at_all_in_the_end(void **state)
{
	static struct serve_config serve = { .own_limit = 1 };
	static struct group one = { .at = { .path = "/web" } };
	const struct component *c = component_named("RSS breakdown of containers");
	struct run_summary s = { 0 };
	struct run *r;
	void *self;

	(void)state;
	cfg = (struct run_config){
		.groups = &one, .n_groups = 1, .serve = &serve, .max_overhead = 1
	};
	takes_ns = 1000; /* of its time: it is walked to its end */
	web[0] = child(8 << 20);
	web[1] = child(16 << 20);
	n_asked = looks = 0;
	r = bare_run(&cfg);
	self = alone(r, "RSS breakdown of containers");
	assert_int_equal(c->ready(self, NULL), 0);
	look_again(c, self);
	assert_int_equal(looks, 2);
	look_again(c, self);
	assert_int_equal(looks, 2);
	c->report(self, &s);
	assert_int_equal(s.ledger.now.processes, 2);
	assert_int_equal(s.ledger.now.pss, 1200);
	/* One that was not looked at yet. */
	kill(web[0], SIGKILL);
	waitpid(web[0], NULL, 0);
	web[0] = getpid();
	look_again(c, self);
	assert_int_equal(looks, 3);
	c->closing(self);
	assert_int_equal(looks, 5);
	kill(web[1], SIGKILL);
	waitpid(web[1], NULL, 0);
	takes_ns = 0;
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_summed_the_largest_process_first_within_the_time),
		cmocka_unit_test(a_look_that_takes_long_keeps_nobody_from_emptying_maps),
		cmocka_unit_test(a_single_group_has_no_rows_of_containers),
		cmocka_unit_test(
			a_service_looks_again_only_at_who_did_something_and_at_all_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
