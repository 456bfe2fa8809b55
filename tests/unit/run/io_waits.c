#include "collect/stream/wait_objects.h"
#include "proc/blocked_call.h"
#include "run_fixture.h"

#include <sys/socket.h>

static struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true } };
static struct wait_object_fns fns;

struct wait_objects *wait_objects_new(struct drain *d, const struct wait_object_fns *f)
{
	fns = *f;
	return (struct wait_objects *)1;
}

uint64_t wait_objects_left_out(const struct wait_objects *w)
{
	return 0;
}

void wait_objects_free(struct wait_objects *w)
{
}

bool ingest_place_stack(struct ingest *in, const struct event_key *key, stack_id *ret_stack)
{
	return false;
}

char *endpoint_tcp_read(pid_t pid)
{
	return strdup(
		"   0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 5 1\n");
}

static void connections_of_one_server_are_one_row_and_its_peers_by_address(void **state)
{
	const struct component *c = component_named("io_waits");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "io_waits");
	static struct run_summary s;
	struct session_opts opts = { 0 };
	struct wait_object object = { .kind = OBJECT_SOCKET,
				      .pid = 1,
				      .family = AF_INET,
				      .local_port = 80,
				      .remote_port = 4001,
				      .remote = { 10, 0, 0, 3 } };
	struct wait_object_event event = { .count = 1, .ns = 10 };
	uint32_t clients;

	(void)state;
	assert_int_equal(c->prepare(self, &opts, NULL), 0);
	assert_true(opts.objects);
	assert_int_equal(c->open(self, NULL), 0);
	event.object = clients = fns.seen(fns.ctx, &object);
	fns.waited(fns.ctx, &event);
	object.remote_port = 4002;
	assert_int_equal(fns.seen(fns.ctx, &object), clients);
	object.local_port = 5000;
	event.object = fns.seen(fns.ctx, &object);
	event.ns = 30;
	fns.waited(fns.ctx, &event);
	fns.waited(fns.ctx, &event);
	object = (struct wait_object){
		.kind = OBJECT_FILE, .pid = -1, .ino = 5, .major = 4095, .minor = 1
	};
	event.object = fns.seen(fns.ctx, &object);
	fns.waited(fns.ctx, &event);
	c->report(self, &s);
	assert_int_equal(s.io_waits.n, 3);
	assert_string_equal(s.io_waits.rows[0].kind, "peer");
	assert_string_equal(s.io_waits.rows[0].name, "10.0.0.3:4002");
	assert_int_equal(s.io_waits.rows[0].blocked_ns, 60);
	assert_string_equal(s.io_waits.rows[1].name, "[inode 5]");
	assert_string_equal(s.io_waits.rows[1].device, "4095:1");
	assert_string_equal(s.io_waits.rows[2].kind, "client");
	assert_string_equal(s.io_waits.rows[2].name, "port 80");
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_of_one_server_are_one_row_and_its_peers_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
