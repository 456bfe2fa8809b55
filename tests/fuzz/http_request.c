/*
 * What a client sends to the server, by a connection of its own, which it then shuts: whatever it is, what only somebody with the token
 * may know is sent to those alone who have it and ask this host, and what comes back begins as an answer does, or there is none.
 *
 * The server is a real one, on a loopback address; libmicrohttpd reads the protocol.
 */
#include "base/loop.h"
#include "base/strbuf.h"
#include "net/http_server.h"
#include "scratch_folder.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define TOKEN  "0123456789abcdef"
#define SECRET "what nobody else may know"

static struct loop *loop;
static struct http_server *server;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IDLE_ROUNDS = 6 };

struct client {
	int fd;
	struct strbuf answer;
	int idle; /* rounds of the loop in which nothing came */
};

static struct client *now;

static void secret(void *ctx, struct http_request *q)
{
	const char *x = http_query(q, "x");

	(void)ctx;
	if (x && strlen(x) > 1 << 16)
		abort();
	http_answer(q, 200, "text/plain", SECRET, strlen(SECRET));
}

static void hello(void *ctx, struct http_request *q)
{
	const char *text = http_is_trusted(q) ? SECRET : "hello";

	(void)ctx;
	if (*http_path(q) != '/')
		abort();
	http_answer(q, 200, "text/plain", text, strlen(text));
}

static int on_answer(void *ctx, struct err *e)
{
	struct client *c = ctx;
	char buf[4096];
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

	(void)e;
	if (n > 0) {
		strbuf_add(&c->answer, buf, (size_t)n);
		c->idle = 0;
	}
	/* That ends the loop so that it can be run again. */
	return n == 0 || (n < 0 && errno != EAGAIN) ? -ECANCELED : 0;
}

static uint64_t at_once(void *ctx)
{
	(void)ctx;
	return 0;
}

/* The server waits for more, which does not come. */
static int on_round(void *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	return now->idle++ == IDLE_ROUNDS ? -ECANCELED : 0;
}

static void open_server(void)
{
	static const char *const addresses[] = { "127.0.0.1:0" };
	static char path[160];
	struct http_options opts = { .listen = addresses, .n_listen = 1, .token_file = path };
	struct err e = { 0 };

	scratch_write("token", TOKEN "\n", strlen(TOKEN) + 1);
	snprintf(path, sizeof(path), "%s/token", scratch_folder());
	if (loop_new(&loop, &e) < 0 || http_server_open(loop, &opts, &server, &e) < 0 ||
	    loop_at(loop, at_once, on_round, NULL) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	http_route(server, "GET", "/", 0, secret, NULL);
	http_route(server, "GET", "/tree/", 0, secret, NULL);
	http_route(server, "POST", "/post", 0, secret, NULL);
	http_route(server, "GET", "/open", HTTP_OPEN, hello, NULL);
}

static int dial(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(http_server_port(server, 0)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger at_once = { 1, 0 }; /* no port waits for what may still come */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		abort();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	return fd;
}

static bool has(const uint8_t *data, size_t size, const char *word)
{
	return memmem(data, size, word, strlen(word));
}

/* "Basic " and the token in base64 would be as good; that it is the token is not asked. */
static bool may_know(const uint8_t *data, size_t size)
{
	return (has(data, size, TOKEN) || has(data, size, "asic ")) &&
	       (has(data, size, "127.0.0.1") || has(data, size, "[::1]") ||
		has(data, size, "ocalhos") || has(data, size, "OCALHOS"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client c = { .fd = -1 };
	struct err e = { 0 };

	if (!server)
		open_server();
	now = &c;
	c.fd = dial();
	if (loop_fd(loop, c.fd, on_answer, &c) < 0)
		abort();
	if (size && send(c.fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
		abort();
	shutdown(c.fd, SHUT_WR);
	if (loop_run(loop, &e) != -ECANCELED)
		abort();
	loop_fd_forget(loop, c.fd);
	close(c.fd);
	if (c.answer.len && strncmp(c.answer.s, "HTTP/1.", 7) != 0)
		abort();
	if (c.answer.len && strstr(c.answer.s, SECRET) && !may_know(data, size))
		abort();
	strbuf_free(&c.answer);
	return 0;
}
