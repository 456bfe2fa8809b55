#include "collect/stream/sideband.h"
#include "run_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

/* A table of its own: one that notes what it hears. */
struct ear {
	struct run *run;
};

static void process(void *self, const struct process_event *ev)
{
	static const char *const names[] = {
		[PROCESS_ADDED] = "added",   [PROCESS_MEMBER] = "member",
		[PROCESS_LISTED] = "listed", [PROCESS_REMAPPING] = "remapping",
		[PROCESS_MAPPED] = "mapped", [PROCESS_EXEC] = "exec",
		[PROCESS_FORKED] = "forked", [PROCESS_ENDED] = "ended",
		[PROCESS_LEFT] = "left",
	};

	called(names[ev->kind]);
	if (ev->child)
		called("child");
}

static const struct component ear = { .name = "ear",
				      .size = sizeof(struct ear),
				      .process = process };
const struct component *const components[] = { &ear, NULL };

static const struct sideband_record *records;
static uint32_t n_records;
static uint64_t lost;

int sideband_open(struct sideband **ret, struct err *e)
{
	return 0;
}
void sideband_close(struct sideband *s)
{
}
void sideband_rest(struct sideband *s, uint64_t rest_ns)
{
}
uint64_t sideband_lost(const struct sideband *s)
{
	return lost;
}
uint32_t sideband_read(struct sideband *s, sideband_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < n_records; i++)
		fn(ctx, &records[i]);
	n_records = 0;
	return 0;
}
int session_target(struct session *s, pid_t pid, struct err *e)
{
	return 0;
}
int session_set_gen(struct session *s, pid_t pid, uint32_t gen)
{
	return 0;
}
void session_untarget(struct session *s, pid_t pid)
{
	called("untarget");
}
bool session_is_target(const struct session *s, pid_t pid, pid_t *ns)
{
	*ns = 0;
	return true;
}
bool session_ran_out_of_memory(const struct session *s, pid_t pid)
{
	return false;
}

static pid_t pids[1];
static struct run_config cfg = { .pids = pids, .n_pids = 1, .children = true };

enum { CHILD = 0x3ffffff0, OTHER = 0x3ffffff1 };

static int make(void **state)
{
	struct run *r;

	pids[0] = getpid();
	r = bare_run(&cfg);
	alone(r, "ear");
	assert_int_equal(targets_open(r, NULL), 0);
	assert_int_equal(targets_add(r, NULL), 0);
	assert_string_equal(fake.calls, "added");
	*fake.calls = '\0';
	*state = r;
	return 0;
}

static int drop(void **state)
{
	targets_free(*state);
	bare_run_free(*state);
	return 0;
}

static void read_now(struct run *r, const struct sideband_record *rows, uint32_t n)
{
	records = rows;
	n_records = n;
	targets_read(r, now_ns());
}

static void a_child_becomes_a_target_and_is_told_to_all(void **state)
{
	const struct sideband_record rec = {
		.kind = SIDEBAND_FORK, .ns = 5, .pid = CHILD, .tid = CHILD, .ppid = getpid()
	};

	read_now(*state, &rec, 1);
	assert_string_equal(fake.calls, "added forked child");
	assert_non_null(target_of(*state, CHILD));
	assert_int_equal(targets_count(*state).children, 1);
}

static void the_child_of_somebody_else_is_not_a_target(void **state)
{
	const struct sideband_record rec = {
		.kind = SIDEBAND_FORK, .ns = 5, .pid = CHILD, .tid = CHILD, .ppid = OTHER
	};

	read_now(*state, &rec, 1);
	assert_string_equal(fake.calls, "forked");
	assert_null(target_of(*state, CHILD));
}

static struct sideband_record generated(const char *code, uint64_t len)
{
	return (struct sideband_record){ .kind = SIDEBAND_MMAP,
					 .ns = now_ns(),
					 .pid = getpid(),
					 .tid = getpid(),
					 .addr = (uint64_t)(uintptr_t)code,
					 .len = len,
					 .name = "//anon" };
}

/* V8 makes each page writable and executable again for each function: thousands of times a second. */
static void code_that_is_executable_again_is_nothing_new(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char *code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sideband_record rec = generated(code, page);

	assert_true(code != MAP_FAILED);
	read_now(*state, &rec, 1);
	assert_string_equal(fake.calls, "mapped");
	*fake.calls = '\0';
	read_now(*state, &rec, 1);
	assert_string_equal(fake.calls, "");
	munmap(code, page);
}

/* /proc has it in one range with what was known: the kernel joins neighbours. */
static void the_rest_of_generated_code_is_found_when_records_were_lost(void **state)
{
	struct run *r = *state;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char *code =
		mmap(NULL, 2 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sideband_record first = generated(code, page), whole = generated(code, 2 * page);
	const struct proc_mmap map = { .addr = whole.addr, .len = whole.len, .path = "" };

	assert_true(code != MAP_FAILED);
	read_now(r, &first, 1);
	assert_false(proc_table_knows(r->procs, getpid(), &map));
	lost++;
	read_now(r, NULL, 0);
	lost = 0;
	assert_true(proc_table_knows(r->procs, getpid(), &map));
	munmap(code, 2 * page);
}

static void a_pid_is_free_a_second_after_its_process_ended(void **state)
{
	uint64_t now = now_ns();
	const struct sideband_record rows[] = {
		{ .kind = SIDEBAND_FORK, .ns = now, .pid = CHILD, .tid = CHILD, .ppid = getpid() },
		{ .kind = SIDEBAND_EXIT, .ns = now, .pid = CHILD, .tid = CHILD },
	};

	read_now(*state, rows, 2);
	assert_string_equal(fake.calls, "added forked child ended");
	targets_drained(*state, now + 900000000);
	assert_non_null(target_of(*state, CHILD));
	targets_drained(*state, now + 1100000000);
	assert_null(target_of(*state, CHILD));
	assert_non_null(strstr(fake.calls, "untarget"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_becomes_a_target_and_is_told_to_all),
		TEST(the_child_of_somebody_else_is_not_a_target),
		TEST(code_that_is_executable_again_is_nothing_new),
		TEST(the_rest_of_generated_code_is_found_when_records_were_lost),
		TEST(a_pid_is_free_a_second_after_its_process_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
