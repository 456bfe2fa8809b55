#include "run_fixture.h"

#include "proc/blocked_call.h"

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

/* A child that waits for what `port` never answers. */
static pid_t ask_and_wait(in_port_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = port,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	pid_t pid = fork();
	char answer;
	int fd;

	if (pid)
		return pid;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		(void)!read(fd, &answer, 1);
	_exit(0);
}

static bool is_blocked_in_read(pid_t pid)
{
	struct blocked_call call;

	for (int i = 0; i < 500; i++) {
		if (blocked_call_read(pid, pid, &call) && blocked_call_fd(pid, &call) >= 0)
			return true;
		usleep(10000);
	}
	return false;
}

static void peer_that_a_thread_waits_for_is_counted_each_time_it_is_seen(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct component *c = component_named("endpoints");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "endpoints");
	struct run_summary s = { 0 };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char want[32];

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	child.pid = ask_and_wait(at.sin_port);
	if (!is_blocked_in_read(child.pid)) {
		kill(child.pid, SIGKILL);
		skip(); /* /proc/PID/task/TID/syscall cannot be read here */
	}
	assert_true(c->wanted(&cfg));
	c->tick(self, 1000000000);
	c->tick(self, 1000000001); /* too soon */
	c->tick(self, 2000000000);
	c->report(self, &s);
	assert_int_equal(s.endpoints.n, 1);
	assert_true(s.endpoints.rows[0].peer);
	assert_int_equal(s.endpoints.rows[0].seen, 2);
	snprintf(want, sizeof(want), "127.0.0.1:%d", ntohs(at.sin_port));
	assert_string_equal(s.endpoints.rows[0].name, want);
	assert_int_equal(s.endpoints.polls, 0);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	close(listener);
	bare_run_free(r);
}

static void host_is_not_asked(void **state)
{
	const struct run_config all = { .sources = { [SOURCE_OFFCPU] = true }, .all = true };

	assert_false(component_named("endpoints")->wanted(&all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_that_a_thread_waits_for_is_counted_each_time_it_is_seen),
		cmocka_unit_test(host_is_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
