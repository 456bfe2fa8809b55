#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "collect/stream/wait_objects.h"
#include "collect/wire.h"

static struct {
	drain_fn fn;
	void *ctx;
} on[N_DRAIN_KINDS];
static struct wait_object object;
static struct wait_object_event event;
static uint32_t n_seen, n_waited;

void drain_on(struct drain *d, enum drain_kind kind, drain_fn fn, void *ctx)
{
	(void)d;
	on[kind].fn = fn;
	on[kind].ctx = ctx;
}

static uint32_t seen(void *ctx, const struct wait_object *o)
{
	(void)ctx;
	object = *o;
	n_seen++;
	return 7;
}

static void waited(void *ctx, const struct wait_object_event *e)
{
	(void)ctx;
	event = *e;
	n_waited++;
}

static void waits_go_by_the_number_of_their_object(void **state)
{
	const struct wait_object_fns fns = { seen, waited, NULL };
	_cleanup_(wait_objects_freep) struct wait_objects *w = wait_objects_new(NULL, &fns);
	struct ms_object_rec rec = { .kind = MS_EV_OBJECT,
				     .fd = 3,
				     .hash = { 11, 12 },
				     .proc = { .tgid = 5 },
				     .ino = 99,
				     .dev = 8 << 20 | 1,
				     .mode = S_IFSOCK,
				     .family = MS_AF_INET,
				     .local_port = 80,
				     .remote_port = htons(5432) };
	struct ms_total_key key = { .proc = { .tgid = 5 },
				    .user = { 1, 2 },
				    .kernel = { 11, 12 },
				    .source = MS_OBJECTS,
				    .state = 1 };
	const struct ms_total total = { .count = 2, .value = 70 };
	struct ms_total_key at;

	(void)state;
	on[DRAIN_OBJECT].fn(on[DRAIN_OBJECT].ctx, &rec, NULL);
	on[DRAIN_OBJECT].fn(on[DRAIN_OBJECT].ctx, &rec, NULL);
	assert_int_equal(n_seen, 1);
	assert_true(object.kind == OBJECT_SOCKET && object.pid == 5 && object.fd == 3 &&
		    object.ino == 99);
	assert_true(object.major == 8 && object.minor == 1 && object.local_port == 80 &&
		    object.remote_port == 5432);
	assert_int_equal(on[DRAIN_TOTAL].fn(on[DRAIN_TOTAL].ctx, &total, &key), DRAIN_TAKEN);
	assert_int_equal(n_waited, 1);
	assert_true(event.object == 7 && event.count == 2 && event.ns == 70);
	at = wire_key(&event.at);
	assert_true(at.user.lo == 1 && !at.kernel.lo && at.source == MS_OFFCPU);
	key.kernel.lo = 13; /* its record did not come */
	on[DRAIN_TOTAL].fn(on[DRAIN_TOTAL].ctx, &total, &key);
	assert_int_equal(n_waited, 1);
	assert_int_equal(wait_objects_left_out(w), 2);
	key.source = MS_OFFCPU;
	assert_int_equal(on[DRAIN_TOTAL].fn(on[DRAIN_TOTAL].ctx, &total, &key), DRAIN_NEXT);
	rec.hash.lo = 21;
	rec.mode = S_IFDIR;
	on[DRAIN_OBJECT].fn(on[DRAIN_OBJECT].ctx, &rec, NULL);
	assert_int_equal(object.kind, OBJECT_DIRECTORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_go_by_the_number_of_their_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
