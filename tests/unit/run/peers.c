#include "run_fixture.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true } };
static struct target child;

void targets_each(const struct run *r, void (*fn)(void *ctx, const struct target *t), void *ctx)
{
	fn(ctx, &child);
}

/* A socket that listens, and where. */
static int listen_anywhere(struct sockaddr_in *ret_at)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	*ret_at = at;
	return fd;
}

static int connect_to(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0)
		_exit(1);
	return fd;
}

/* Passes one request on to who never answers it. */
static pid_t front(int listener, const struct sockaddr_in *backend)
{
	pid_t pid = fork();
	char request[8];

	if (pid)
		return pid;
	if (read(accept(listener, NULL, NULL), request, sizeof(request)) > 0)
		(void)!write(connect_to(backend), "price?", 6);
	pause();
	_exit(0);
}

static void peer_is_seen_while_a_request_waits_for_its_answer(void **state)
{
	const struct component *c = component_named("peers");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "peers");
	struct run_summary s = { 0 };
	struct sockaddr_in at, backend_at;
	int listener = listen_anywhere(&at), backend = listen_anywhere(&backend_at), client;
	uint64_t start_ns = now_ns();
	char want[32], got[8];

	child.pid = front(listener, &backend_at);
	close(listener);
	assert_true(c->wanted(&cfg));
	assert_int_equal(c->open(self, NULL), 0);
	c->tick(self, start_ns);
	client = connect_to(&at);
	assert_int_equal(write(client, "page?", 5), 5);
	assert_true(read(accept(backend, NULL, NULL), got, sizeof(got)) > 0);
	c->tick(self, start_ns + 1000000); /* too soon */
	c->tick(self, now_ns() + 1000000000);
	c->report(self, &s);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	if (s.peers.failed)
		skip(); /* no rights to read what it has */
	assert_int_equal(s.peers.looks, 2);
	assert_int_equal(s.peers.waiting, 1);
	assert_int_equal(s.peers.held, 1);
	assert_int_equal(s.peers.port, ntohs(at.sin_port));
	assert_int_equal(s.peers.n, 1);
	snprintf(want, sizeof(want), "127.0.0.1:%d", ntohs(backend_at.sin_port));
	assert_string_equal(s.peers.rows[0].name, want);
	assert_int_equal(s.peers.rows[0].for_inbound, 1);
	close(client);
	close(backend);
	bare_run_free(r);
}

static void host_is_not_looked_at(void **state)
{
	const struct run_config all = { .sources = { [SOURCE_OFFCPU] = true }, .all = true };

	assert_false(component_named("peers")->wanted(&all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_is_seen_while_a_request_waits_for_its_answer),
		cmocka_unit_test(host_is_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
