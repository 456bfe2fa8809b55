#include "collect/stacks/goroutines.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true } };
static struct goroutine_use use;
static uint32_t adds, started, ticks, last_ticks;

struct goroutines *goroutines_new(struct dict *d, struct proc_table *procs)
{
	return (struct goroutines *)1;
}

void goroutines_free(struct goroutines *g)
{
}

void goroutines_begin(struct goroutines *g, struct ingest *in)
{
}

void goroutines_start(struct goroutines *g, uint64_t now_ns)
{
	started++;
}

bool goroutines_add(struct goroutines *g, pid_t pid, uint64_t now_ns)
{
	return ++adds == 3;
}

void goroutines_tick(struct goroutines *g, uint64_t now_ns, bool all)
{
	*(all ? &last_ticks : &ticks) += 1;
}

uint32_t goroutines_n_uses(const struct goroutines *g)
{
	return 1;
}

void goroutines_uses(const struct goroutines *g, struct goroutine_use *ret_uses)
{
	*ret_uses = use;
}

struct goroutines_figures goroutines_figures(const struct goroutines *g)
{
	return (struct goroutines_figures){
		.processes = 1, .version = 0x011308, .looks = 9, .now = 12, .why = ""
	};
}

static void goroutines_are_a_profile_and_rows(void **state)
{
	const struct component *c = component_named("goroutines");
	const struct profile_row *row = &profile_rows[PROFILE_GOROUTINE];
	const struct process_event event = { .kind = PROCESS_ADDED, .pid = 7, .target = true };
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "goroutines");
	static struct run_summary s;
	struct line line = { .function = dict_string(r->dict, "main.book") };
	location_id at = dict_location(r->dict, (module_id){ 0 }, 5);

	(void)state;
	dict_location_name(r->dict, at, &line, 1);
	use = (struct goroutine_use){ .stack = dict_stack(r->dict, &at, 1),
				      .reason = "sync.Mutex.Lock",
				      .peer = "",
				      .waits = true,
				      .now = 6,
				      .time_ns = 500,
				      .waits_n = 40 };
	r->profiles[PROFILE_GOROUTINE] = profile_new(r->dict, row->types, row->n_types);
	assert_int_equal(c->open(self, NULL), 0);
	assert_int_equal(c->start(self, NULL), 0);
	assert_int_equal(started, 1);
	c->process(self, &event); /* its runtime begins later */
	c->tick(self, 1);
	c->tick(self, 2);
	c->tick(self, 3);
	assert_int_equal(adds, 3);
	assert_int_equal(ticks, 3);
	/* A command that is held at its first instruction. */
	c->process(self, &(struct process_event){ .kind = PROCESS_HELD, .pid = 8, .target = true });
	assert_int_equal(adds, 4);
	c->closing(self);
	assert_int_equal(last_ticks, 1);
	assert_false(pipeline_has(r, PROFILE_GOROUTINE));
	assert_int_equal(c->finish(self, NULL), 0);
	assert_true(pipeline_has(r, PROFILE_GOROUTINE));
	assert_int_equal(profile_total(r->profiles[PROFILE_GOROUTINE], 0), 6);
	assert_int_equal(profile_total(r->profiles[PROFILE_GOROUTINE], 2), 500);
	c->report(self, &s);
	assert_string_equal(s.goroutines.version, "Go 1.19.8");
	assert_int_equal(s.goroutines.now, 12);
	assert_int_equal(s.goroutines.n_rows, 1);
	assert_int_equal(s.goroutines.rows[0].at.role, WAIT_ROLE_MUTEX);
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goroutines_are_a_profile_and_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
