#include "collect/stream/lock_waits.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true } };
static lock_event_fn on_event;
static void *on_event_ctx;

struct lock_waits *lock_waits_new(struct drain *d, const uint64_t *end_ns, lock_event_fn fn,
				  void *ctx)
{
	on_event = fn;
	on_event_ctx = ctx;
	return (struct lock_waits *)1;
}

void lock_waits_free(struct lock_waits *l)
{
}

static void events_of_one_lock_and_place_are_one_use(void **state)
{
	const struct component *c = component_named("locks");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "locks");
	static struct run_summary s;
	struct lock_event event = { .proc = { .pid = 5 },
				    .lock = 0x1000,
				    .kind = "mutex",
				    .tid = 6,
				    .owner = 9,
				    .count = 1,
				    .ns = 10 };

	(void)state;
	assert_int_equal(c->open(self, NULL), 0);
	on_event(on_event_ctx, &event);
	on_event(on_event_ctx, &event);
	event.owner = 8;
	on_event(on_event_ctx, &event);
	event.hold = true;
	on_event(on_event_ctx, &event);
	assert_int_equal(c->finish(self, NULL), 0);
	c->report(self, &s);
	assert_int_equal(s.locks.n, 1);
	assert_int_equal(s.locks.rows[0].waited_ns, 30);
	assert_int_equal(s.locks.rows[0].waits, 3);
	assert_int_equal(s.locks.rows[0].owner, 9);
	assert_int_equal(s.locks.rows[0].owner_ns, 20);
	assert_int_equal(s.locks.rows[0].held_ns, 10);
	assert_string_equal(s.locks.rows[0].name, "");
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_one_lock_and_place_are_one_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
