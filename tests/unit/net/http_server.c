/*
 * A server in a process of its own, and clients with plain sockets: what is sent is what stands here.
 *
 * Routes: /hello, /echo?x=, /healthz (always), /later (answered 100 ms later), /never (not answered), /large (4 MiB from a
 * file), /tree/ (all below), POST /post, /stats (counters).
 */
#include "net/http_server.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "net/http_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LARGE (4 << 20)

/* --- the server --- */

struct site {
	struct loop *loop;
	struct http_server *server;
	struct http_request *later[64];
	uint32_t n_later;
	uint64_t due_ns;
};

static void hello(void *ctx, struct http_request *q)
{
	(void)ctx;
	http_answer(q, 200, "text/plain", "hello", 5);
}

static void is_trusted(void *ctx, struct http_request *q)
{
	const char *text = http_is_trusted(q) ? "trusted" : "anybody";

	http_answer(q, 200, "text/plain", text, strlen(text));
}

static void echo(void *ctx, struct http_request *q)
{
	const char *x = http_query(q, "x");

	(void)ctx;
	http_header(q, "X-Path", http_path(q));
	http_answer(q, 200, "text/plain", x ? x : "none", strlen(x ? x : "none"));
}

static void later(void *ctx, struct http_request *q)
{
	struct site *s = ctx;

	s->later[s->n_later++] = q;
	s->due_ns = now_ns() + 100000000;
}

static void never(void *ctx, struct http_request *q)
{
	(void)ctx;
	(void)q;
}

static void end(void *ctx, struct http_request *q)
{
	const struct site *s = ctx;

	loop_end(s->loop);
	http_answer(q, 200, "text/plain", "end", 3);
}

static void large(void *ctx, struct http_request *q)
{
	int fd = memfd_create("large", MFD_CLOEXEC);

	(void)ctx;
	if (ftruncate(fd, LARGE) < 0)
		abort();
	http_answer_fd(q, 200, "application/octet-stream", fd, LARGE);
}

static void add_count(void *ctx, const char *route, unsigned status, uint64_t n)
{
	strbuf_printf(ctx, "%s=%u:%llu\n", route, status, (unsigned long long)n);
}

static void stats(void *ctx, struct http_request *q)
{
	const struct site *s = ctx;
	struct strbuf b = { 0 };
	struct http_stats st;

	http_server_stats(s->server, &st);
	strbuf_printf(
		&b,
		"open=%u accepted=%llu evicted=%llu refused=%llu request_late=%llu answer_late=%llu denied=%llu foreign=%llu\n",
		st.open, (unsigned long long)st.accepted, (unsigned long long)st.evicted,
		(unsigned long long)st.refused, (unsigned long long)st.request_late,
		(unsigned long long)st.answer_late, (unsigned long long)st.denied,
		(unsigned long long)st.foreign);
	http_server_each(s->server, add_count, &b);
	http_answer(q, 200, "text/plain", b.s, b.len);
	strbuf_free(&b);
}

static uint64_t later_due(void *ctx)
{
	const struct site *s = ctx;

	return s->n_later ? s->due_ns : LOOP_NEVER;
}

static int answer_later(void *ctx, struct err *e)
{
	struct site *s = ctx;

	while (s->n_later)
		http_answer(s->later[--s->n_later], 200, "text/plain", "later", 5);
	return 0;
}

static void on_term(void *ctx, int number)
{
	loop_end(ctx);
}

static void serve(const struct http_options *opts, int to)
{
	struct site s = { 0 };
	struct loop *l;
	struct err e = { 0 };
	sigset_t set;
	uint16_t port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (loop_new(&l, &e) < 0 || loop_signals(l, &set, on_term, l) < 0 ||
	    http_server_open(l, opts, &s.server, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		_exit(2);
	}
	s.loop = l;
	http_route(s.server, "GET", "/hello", 0, hello, &s);
	http_route(s.server, "GET", "/", 0, hello, &s);
	http_route(s.server, "GET", "/echo", 0, echo, &s);
	http_route(s.server, "GET", "/tree/", 0, echo, &s);
	http_route(s.server, "GET", "/tree/leaf", 0, hello, &s);
	http_route(s.server, "POST", "/post", 0, hello, &s);
	http_route(s.server, "GET", "/healthz", HTTP_ALWAYS, hello, &s);
	http_route(s.server, "GET", "/open", HTTP_OPEN, is_trusted, &s);
	http_route(s.server, "GET", "/later", 0, later, &s);
	http_route(s.server, "GET", "/never", 0, never, &s);
	http_route(s.server, "GET", "/end", 0, end, &s);
	http_route(s.server, "GET", "/large", 0, large, &s);
	http_route(s.server, "GET", "/stats", HTTP_ALWAYS, stats, &s);
	loop_at(l, later_due, answer_later, &s);
	port = http_server_port(s.server, 0);
	if (write(to, &port, sizeof(port)) != sizeof(port))
		_exit(3);
	if (loop_run(l, &e) < 0)
		_exit(4);
	usleep(300000); /* others may ask meanwhile */
	http_server_close(s.server);
	loop_free(l);
	_exit(0);
}

struct running {
	pid_t pid;
	uint16_t port;
};

static struct running start(struct http_options opts)
{
	static const char *const loopback[] = { "127.0.0.1:0" };
	struct running r = { 0 };
	int ends[2];

	if (!opts.n_listen) {
		opts.listen = loopback;
		opts.n_listen = 1;
	}
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	r.pid = fork();
	if (r.pid == 0)
		serve(&opts, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &r.port, sizeof(r.port)), sizeof(r.port));
	close(ends[0]);
	return r;
}

static void stop(const struct running *r)
{
	int status;

	kill(r->pid, SIGTERM);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- the client --- */

static int dial(const struct running *r)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(r->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* What comes until the end of the connection, or `ms` have gone by. */
static const char *hear(int fd, int ms)
{
	static char buf[65536];
	uint64_t until = now_ns() + (uint64_t)ms * 1000000;
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ns();
		ssize_t n;

		if (now >= until || poll(&p, 1, (int)((until - now) / 1000000) + 1) <= 0)
			break;
		n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return buf;
}

/* A whole conversation. */
static const char *ask(const struct running *r, const char *request)
{
	const char *answer;
	int fd = dial(r);

	say(fd, request);
	answer = hear(fd, 5000);
	close(fd);
	return answer;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static void has(const char *answer, const char *part)
{
	if (!strstr(answer, part))
		fail_msg("no \"%s\" in: %s", part, answer);
}

static void status_is(const char *answer, unsigned status)
{
	char line[32];

	snprintf(line, sizeof(line), "HTTP/1.1 %u ", status);
	if (strncmp(answer, line, strlen(line)) != 0)
		fail_msg("not %u: %.200s", status, answer);
}

/* Is the connection at its end within `ms`? */
static bool ends_within(int fd, int ms)
{
	char c;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && recv(fd, &c, 1, MSG_DONTWAIT) <= 0;
}

/* --- facts --- */

static void routes_answer_with_headers_and_arguments(void **state)
{
	struct running r = start((struct http_options){ 0 });
	const char *a = ask(&r, GET("/hello"));

	status_is(a, 200);
	has(a, "X-Content-Type-Options: nosniff");
	has(a, "\r\n\r\nhello");
	status_is(ask(&r, GET("/")), 200);
	status_is(ask(&r, GET("/nothing")), 404);
	has(ask(&r, GET("/echo?y=1&x=a%20b")), "\r\n\r\na b");
	has(ask(&r, GET("/echo?x")), "\r\n\r\n");
	has(ask(&r, GET("/echo")), "\r\n\r\nnone");
	has(ask(&r, GET("/tree/some/where")), "X-Path: /tree/some/where");
	has(ask(&r, GET("/tree/leaf")), "\r\n\r\nhello");
	status_is(ask(&r, GET("/treetop")), 404);
	stop(&r);
}

static void head_has_no_body_and_other_methods_are_405(void **state)
{
	struct running r = start((struct http_options){ 0 });
	const char *a =
		ask(&r, "HEAD /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

	status_is(a, 200);
	has(a, "Content-Length: 5");
	assert_null(strstr(a, "\r\n\r\nhello"));
	a = ask(&r, "DELETE /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	status_is(a, 405);
	has(a, "Allow: GET, HEAD");
	status_is(ask(&r, GET("/post")), 405);
	status_is(
		ask(&r,
		    "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"),
		200);
	stop(&r);
}

static void an_answer_may_come_later_while_others_are_answered(void **state)
{
	struct running r = start((struct http_options){ 0 });
	int fd = dial(&r), other = dial(&r);

	say(fd, GET("/later"));
	say(other, GET("/later"));
	has(ask(&r, GET("/hello")), "hello");
	has(hear(fd, 3000), "\r\n\r\nlater");
	has(hear(other, 3000), "\r\n\r\nlater");
	close(fd);
	close(other);
	stop(&r);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct running r = start((struct http_options){ 0 });
	int fd = dial(&r);
	const char *a, *first, *second, *third;

	say(fd,
	    "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n" GET(
		    "/echo?x=last"));
	a = hear(fd, 3000);
	first = strstr(a, "\r\n\r\nlater");
	second = strstr(a, "\r\n\r\nhello");
	third = strstr(a, "\r\n\r\nlast");
	assert_true(first && second && third && first < second && second < third);
	close(fd);
	stop(&r);
}

/* The library ends the process if a request still waits for its answer then. */
static void requests_that_come_as_it_ends_are_answered_too(void **state)
{
	struct running r = start((struct http_options){ 0 });
	int fd = dial(&r), ending = dial(&r);
	const char *a;

	say(fd, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
	has(hear(fd, 300), "hello");
	say(ending, GET("/end"));
	has(hear(ending, 3000), "end");
	usleep(100000);
	say(fd, "GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n");
	stop(&r);
	a = hear(fd, 3000);
	status_is(a, 503);
	has(a, "memscope is ending");
	close(fd);
	close(ending);
}

static void two_hosts_or_two_lengths_are_400(void **state)
{
	struct running r = start((struct http_options){ 0 });

	status_is(ask(&r, "GET /hello HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n\r\n"),
		  400);
	status_is(ask(&r, "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
			  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		  400);
	stop(&r);
}

static void a_client_that_closed_its_half_is_answered(void **state)
{
	struct running r = start((struct http_options){ 0 });
	int fd = dial(&r);

	say(fd, GET("/hello"));
	shutdown(fd, SHUT_WR);
	has(hear(fd, 3000), "hello");
	close(fd);
	fd = dial(&r); /* one that goes while it is worked for harms nobody */
	say(fd, GET("/later"));
	close(fd);
	usleep(200000);
	has(ask(&r, GET("/hello")), "hello");
	stop(&r);
}

static void a_large_answer_comes_whole(void **state)
{
	struct running r = start((struct http_options){ 0 });
	static char buf[65536];
	size_t all = 0;
	ssize_t n;
	int fd = dial(&r);

	say(fd, GET("/large"));
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		all += (size_t)n;
	assert_in_range(all, LARGE + 50, LARGE + 1000);
	close(fd);
	stop(&r);
}

/* The library's own time-out is of inactivity; ours is not. */
static void headers_that_trickle_end_the_connection_in_time(void **state)
{
	struct running r = start((struct http_options){ .request_ms = 500 });
	uint64_t begin = now_ns();
	int fd = dial(&r), idle = dial(&r);
	bool ended = false;

	say(fd, "GET /hello HTTP/1.1\r\n");
	while (!ended && now_ns() - begin < 3000000000ull) {
		ended = send(fd, "X: y\r\n", 6, MSG_NOSIGNAL) < 0;
		ended |= ends_within(fd, 50);
	}
	assert_true(ended);
	assert_true(now_ns() - begin > 400000000ull);
	assert_true(ends_within(idle, 2000));
	has(ask(&r, GET("/stats")), "request_late=2");
	close(fd);
	close(idle);
	stop(&r);
}

static void an_answer_that_is_not_taken_ends_the_connection(void **state)
{
	struct running r = start((struct http_options){ .answer_ms = 300, .slowest = 1 << 30 });
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(r.port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	say(fd, GET("/large"));
	has(ask(&r, GET("/hello")), "hello");
	usleep(600000);
	has(ask(&r, GET("/stats")), "answer_late=1");
	close(fd);
	stop(&r);
}

static void a_huge_header_is_431_and_a_large_body_413(void **state)
{
	struct running r = start((struct http_options){ 0 });
	struct strbuf b = { 0 };

	strbuf_puts(&b, "GET /hello HTTP/1.1\r\nHost: localhost\r\nX: ");
	for (int i = 0; i < 40000; i++)
		strbuf_putc(&b, 'x');
	strbuf_puts(&b, "\r\n\r\n");
	status_is(ask(&r, b.s), 431);
	strbuf_free(&b);
	status_is(
		ask(&r,
		    "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n"),
		413);
	has(ask(&r, GET("/hello")), "hello");
	stop(&r);
}

static void what_is_no_http_gets_400_and_harms_nobody(void **state)
{
	static const char *const bad[] = { "\r\n\r\n\r\n",
					   "GET\r\n\r\n",
					   "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
					   "GET /hello HTTP/1.1\r\n\r\n",
					   "GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
					   "GET /hello HTTP/1.1\r\nHost localhost\r\n\r\n" };
	struct running r = start((struct http_options){ .request_ms = 300 });

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ask(&r, bad[i]);
	status_is(ask(&r, "GET /hello HTTP/1.1\r\nConnection: close\r\n\r\n"), 400);
	has(ask(&r, GET("/hello")), "hello");
	stop(&r);
}

static void a_target_may_name_its_host_which_counts_then(void **state)
{
	struct running r = start((struct http_options){ 0 });

	has(ask(&r, "GET http://localhost:6060/hello HTTP/1.1\r\nHost: localhost\r\n"
		    "Connection: close\r\n\r\n"),
	    "hello");
	has(ask(&r, "GET HTTP://127.0.0.1/hello HTTP/1.1\r\nHost: evil.example\r\n"
		    "Connection: close\r\n\r\n"),
	    "hello");
	status_is(ask(&r, "GET http://evil.example/hello HTTP/1.1\r\nHost: localhost\r\n"
			  "Connection: close\r\n\r\n"),
		  403);
	status_is(ask(&r, "GET http://localhost HTTP/1.1\r\nHost: localhost\r\n"
			  "Connection: close\r\n\r\n"),
		  200); /* "/" */
	stop(&r);
}

static void a_null_byte_ends_no_path(void **state)
{
	struct running r = start((struct http_options){ 0 });

	status_is(ask(&r, GET("/hello%00")), 404);
	status_is(ask(&r, GET("/hello%00.html")), 404);
	has(ask(&r, GET("/h%65llo")), "hello");
	stop(&r);
}

static void another_host_or_site_is_refused(void **state)
{
	static const char *const own[] = { "localhost",      "LOCALHOST:6060", "127.0.0.1:1",
					   "127.0.0.2:6060", "[::1]:6060",     "[::1]" };
	static const char *const others[] = {
		"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1",
		"127.1:80",     "127.0.0.1:80x",          "localhost:80x",          ""
	};
	struct running r = start((struct http_options){ 0 });
	char request[300];

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		snprintf(request, sizeof(request),
			 "GET /hello HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", own[i]);
		status_is(ask(&r, request), 200);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		snprintf(request, sizeof(request),
			 "GET /hello HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", others[i]);
		status_is(ask(&r, request), 403);
	}
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n"),
		403);
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n\r\n"),
		200);
	has(ask(&r, GET("/stats")), "foreign=9");
	stop(&r);
}

static void make_file(char *path, const char *text, mode_t mode)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, mode);
	close(fd);
}

static void a_token_is_asked_for(void **state)
{
	char path[] = "/tmp/token-XXXXXX";
	struct running r;
	const char *a;

	make_file(path, "0123456789abcdef\n", 0600);
	r = start((struct http_options){ .token_file = path });
	a = ask(&r, GET("/hello"));
	status_is(a, 401);
	has(ask(&r, GET("/open")), "anybody");
	has(ask(&r,
		"GET /open HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\nConnection: close\r\n\r\n"),
	    "trusted");
	a = ask(&r, GET("/hello"));
	has(a, "WWW-Authenticate: Bearer");
	has(a, "WWW-Authenticate: Basic");
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdeg\r\nConnection: close\r\n\r\n"),
		401);
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcde\r\nConnection: close\r\n\r\n"),
		401);
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef0\r\nConnection: close\r\n\r\n"),
		401);
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \r\nConnection: close\r\n\r\n"),
		401);
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic !!\r\nConnection: close\r\n\r\n"),
		401);
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\nConnection: close\r\n\r\n"),
		200);
	/* me:0123456789abcdef */
	status_is(
		ask(&r,
		    "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==\r\nConnection: close\r\n\r\n"),
		200);
	stop(&r);
	unlink(path);
}

/* The library holds all its slots for clients that trickle: here who waits makes way. */
static void who_holds_connections_keeps_nobody_out(void **state)
{
	struct running r = start((struct http_options){ .connections = 8, .per_client = 8 });
	int held[24];

	for (int i = 0; i < 24; i++) {
		held[i] = dial(&r);
		say(held[i], "GET /hello HTTP/1.1\r\nX: ");
	}
	for (int i = 0; i < 5; i++)
		has(ask(&r, GET("/hello")), "hello");
	has(ask(&r, GET("/stats")), "refused=0");
	for (int i = 0; i < 24; i++)
		close(held[i]);
	stop(&r);
}

static void with_all_connections_at_work_health_is_answered_and_others_are_refused(void **state)
{
	struct running r = start((struct http_options){ .connections = 4, .per_client = 4 });
	int held[4];
	const char *a;

	for (int i = 0; i < 4; i++) {
		held[i] = dial(&r);
		say(held[i], GET("/never"));
	}
	usleep(100000);
	for (int i = 0; i < 12; i++)
		status_is(ask(&r, GET("/healthz")), 200);
	a = ask(&r, GET("/hello"));
	status_is(a, 503);
	has(a, "Retry-After");
	has(ask(&r, GET("/stats")), "refused=1");
	stop(&r);
	for (int i = 0; i < 4; i++) { /* what was never answered is, in the end */
		status_is(hear(held[i], 1000), 503);
		close(held[i]);
	}
}

static void requests_are_counted_by_route_and_status(void **state)
{
	struct running r = start((struct http_options){ 0 });
	const char *a;

	ask(&r, GET("/hello"));
	ask(&r, GET("/hello"));
	ask(&r, GET("/none"));
	ask(&r, "DELETE /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	a = ask(&r, GET("/stats"));
	has(a, "/hello=200:2\n");
	has(a, "/hello=405:1\n");
	has(a, "other=404:1\n");
	stop(&r);
}

static void a_unix_socket_is_its_owners_and_needs_no_host(void **state)
{
	char dir[] = "/tmp/http-XXXXXX", path[64], text[80];
	const char *listen[] = { text };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct running r;
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(text, sizeof(text), "unix:%s", path);
	r = start((struct http_options){ .listen = listen, .n_listen = 1 });
	assert_int_equal(r.port, 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	strcpy(at.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	say(fd, "GET /hello HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n");
	status_is(hear(fd, 3000), 200);
	close(fd);
	stop(&r);
	assert_int_equal(stat(path, &st), -1);
	rmdir(dir);
}

static int opening(const struct http_options *opts, struct err *e)
{
	struct http_server *s = NULL;
	struct loop *l;
	int r;

	assert_int_equal(loop_new(&l, e), 0);
	r = http_server_open(l, opts, &s, e);
	http_server_close(s);
	loop_free(l);
	return r;
}

static void wide_addresses_need_tls_and_a_token(void **state)
{
	static const char *const wide[] = { "0.0.0.0:0" };
	char path[] = "/tmp/token-XXXXXX", shorter[] = "/tmp/token-XXXXXX",
	     open_to_all[] = "/tmp/token-XXXXXX";
	struct err e = { 0 };

	make_file(path, "0123456789abcdef\n", 0600);
	make_file(shorter, "0123456789abcde\n", 0600);
	make_file(open_to_all, "0123456789abcdef\n", 0644);
	assert_int_equal(opening(&(struct http_options){ .listen = wide, .n_listen = 1 }, &e),
			 -EINVAL);
	assert_non_null(strstr(e.msg, "--tls-cert"));
	assert_int_equal(
		opening(&(struct http_options){ .listen = wide, .n_listen = 1, .token_file = path },
			&e),
		-EINVAL);
	assert_int_equal(opening(&(struct http_options){ .tls_cert = path }, &e), -EINVAL);
	assert_int_equal(opening(&(struct http_options){ .token_file = shorter }, &e), -EINVAL);
	assert_int_equal(opening(&(struct http_options){ .token_file = open_to_all }, &e), -EINVAL);
	assert_int_equal(opening(&(struct http_options){ .token_file = "/nonexistent" }, &e),
			 -ENOENT);
	/* A file that is no certificate. */
	assert_int_equal(opening(&(struct http_options){ .listen = wide,
							 .n_listen = 1,
							 .token_file = path,
							 .tls_cert = path,
							 .tls_key = path },
				 &e),
			 -EINVAL);
	unlink(path);
	unlink(shorter);
	unlink(open_to_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_answer_with_headers_and_arguments),
		cmocka_unit_test(head_has_no_body_and_other_methods_are_405),
		cmocka_unit_test(an_answer_may_come_later_while_others_are_answered),
		cmocka_unit_test(pipelined_requests_are_answered_in_order),
		cmocka_unit_test(requests_that_come_as_it_ends_are_answered_too),
		cmocka_unit_test(two_hosts_or_two_lengths_are_400),
		cmocka_unit_test(a_client_that_closed_its_half_is_answered),
		cmocka_unit_test(a_large_answer_comes_whole),
		cmocka_unit_test(headers_that_trickle_end_the_connection_in_time),
		cmocka_unit_test(an_answer_that_is_not_taken_ends_the_connection),
		cmocka_unit_test(a_huge_header_is_431_and_a_large_body_413),
		cmocka_unit_test(what_is_no_http_gets_400_and_harms_nobody),
		cmocka_unit_test(a_target_may_name_its_host_which_counts_then),
		cmocka_unit_test(a_null_byte_ends_no_path),
		cmocka_unit_test(another_host_or_site_is_refused),
		cmocka_unit_test(a_token_is_asked_for),
		cmocka_unit_test(who_holds_connections_keeps_nobody_out),
		cmocka_unit_test(
			with_all_connections_at_work_health_is_answered_and_others_are_refused),
		cmocka_unit_test(requests_are_counted_by_route_and_status),
		cmocka_unit_test(a_unix_socket_is_its_owners_and_needs_no_host),
		cmocka_unit_test(wide_addresses_need_tls_and_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
