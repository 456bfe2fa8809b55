#include "net/http_parts.h"

#include "base/clock.h"
#include "base/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SPARES     8 /* connections beyond those that are allowed, for what is HTTP_ALWAYS */
#define SPARE_MS   3000
#define MEMORY     (16 * 1024) /* of a connection: its request line and headers; more is 431 */
#define SECRET_MAX 65536

/* --- connections --- */

static void conn_shut(struct http_conn *c)
{
	c->is_shut = true;
	shutdown(c->fd, SHUT_RDWR);
	c->listener->at_once = true;
}

static bool same_client(const struct http_conn *a, const struct http_conn *b)
{
	const struct sockaddr_in *a4 = (const void *)&a->client, *b4 = (const void *)&b->client;
	const struct sockaddr_in6 *a6 = (const void *)&a->client, *b6 = (const void *)&b->client;

	if (a->client.ss_family != b->client.ss_family)
		return false;
	if (a->client.ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->client.ss_family == AF_INET6 &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

/* How many there are with `c`; of its client alone, who has none on a unix socket. */
static uint32_t count_open(const struct http_conn *c, bool of_client)
{
	uint32_t n = 0;

	for (const struct http_conn *o = c->listener->server->oldest; o; o = o->next)
		n += !o->is_shut && (!of_client || same_client(o, c));
	return n;
}

bool http_conn_over(const struct http_conn *c)
{
	const struct http_options *opts = &c->listener->server->opts;

	return count_open(c, false) > opts->connections || count_open(c, true) > opts->per_client;
}

/* Who has waited longest without a request makes way for `c`, if anybody does. */
static void make_room(const struct http_conn *c, bool of_client)
{
	struct http_server *s = c->listener->server;

	for (struct http_conn *o = s->oldest; o; o = o->next) {
		if (o == c || o->is_shut || o->phase != HTTP_WAITING ||
		    (of_client && !same_client(o, c)))
			continue;
		conn_shut(o);
		s->stats.evicted++;
		return;
	}
}

void http_conn_phase(struct http_conn *c, enum http_phase phase, uint64_t answer_bytes)
{
	const struct http_options *opts = &c->listener->server->opts;
	uint64_t ms = c->spare ? SPARE_MS : opts->request_ms;

	c->phase = phase;
	if (phase == HTTP_WORKING) {
		c->deadline_ns = LOOP_NEVER;
		return;
	}
	if (phase == HTTP_SENDING)
		ms = opts->answer_ms + answer_bytes * 1000 / opts->slowest;
	c->deadline_ns = now_ns() + ms * 1000000;
}

static void conn_free(struct http_server *s, struct http_conn *c)
{
	*(c->prev ? &c->prev->next : &s->oldest) = c->next;
	*(c->next ? &c->next->prev : &s->newest) = c->prev;
	free(c);
	s->stats.open--;
}

static struct http_conn *conn_new(struct http_listener *l, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_conn *c = calloc(1, sizeof(*c));
	struct http_server *s = l->server;
	socklen_t len = sizeof(c->client);

	if (!c || !fd) {
		free(c);
		return NULL;
	}
	c->listener = l;
	c->fd = fd->connect_fd;
	if (getpeername(c->fd, (struct sockaddr *)&c->client, &len) < 0)
		c->client.ss_family = AF_UNSPEC;
	c->prev = s->newest;
	*(s->newest ? &s->newest->next : &s->oldest) = c;
	s->newest = c;
	s->stats.open++;
	s->stats.accepted++;
	return c;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_listener *l = cls;
	const struct http_options *opts = &l->server->opts;
	struct http_conn *c;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*socket_context)
			conn_free(l->server, *socket_context);
		*socket_context = NULL;
		l->at_once = true; /* only the next round listens again */
		return;
	}
	c = conn_new(l, connection);
	*socket_context = c;
	if (!c)
		return;
	if (count_open(c, true) > opts->per_client)
		make_room(c, true);
	if (count_open(c, false) > opts->connections)
		make_room(c, false);
	/* Who went may have been one too many itself. */
	c->spare = http_conn_over(c);
	http_conn_phase(c, HTTP_WAITING, 0);
}

/* --- on the loop --- */

static uint64_t due(void *ctx)
{
	const struct http_server *s = ctx;
	uint64_t ns = LOOP_NEVER;

	for (uint32_t i = 0; i < s->n_listeners; i++)
		if (s->listeners[i].at_once)
			return 0;
	for (const struct http_conn *c = s->oldest; c; c = c->next)
		if (!c->is_shut && c->deadline_ns < ns)
			ns = c->deadline_ns;
	return ns;
}

static int on_ready(void *ctx, struct err *e)
{
	MHD_UNSIGNED_LONG_LONG timeout;
	struct http_listener *l = ctx;

	(void)e;
	l->at_once = false;
	MHD_run(l->daemon);
	if (MHD_get_timeout(l->daemon, &timeout) == MHD_YES && timeout == 0)
		l->at_once = true;
	return 0;
}

static int on_time(void *ctx, struct err *e)
{
	struct http_server *s = ctx;
	uint64_t now = now_ns();

	for (struct http_conn *c = s->oldest; c; c = c->next) {
		if (c->is_shut || c->deadline_ns > now)
			continue;
		conn_shut(c);
		*(c->phase == HTTP_WAITING ? &s->stats.request_late : &s->stats.answer_late) += 1;
	}
	for (uint32_t i = 0; i < s->n_listeners; i++)
		if (s->listeners[i].at_once)
			on_ready(&s->listeners[i], e);
	return 0;
}

/* --- opening and closing --- */

/* A file of at most SECRET_MAX bytes, as a string. */
static int read_secret(const char *path, char **ret_text, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(freep) char *text = calloc(1, SECRET_MAX + 1);
	ssize_t n;

	if (!text)
		return err_set(e, -ENOMEM, "out of memory");
	n = fd < 0 ? -1 : read(fd, text, SECRET_MAX + 1);
	if (n < 0)
		return err_set(e, -errno, "cannot read '%s': %s", path, strerror(errno));
	if (n > SECRET_MAX)
		return err_set(e, -EFBIG, "'%s' has more than %d bytes", path, SECRET_MAX);
	*ret_text = TAKE_PTR(text);
	return 0;
}

static int read_secrets(struct http_server *s, struct err *e)
{
	const struct http_options *o = &s->opts;
	struct stat st;
	int r = 0;

	if (o->token_file)
		r = read_secret(o->token_file, &s->token, e);
	if (r == 0 && o->tls_cert)
		r = read_secret(o->tls_cert, &s->cert, e);
	if (r == 0 && o->tls_key)
		r = read_secret(o->tls_key, &s->key, e);
	if (r < 0 || !s->token)
		return r;
	s->token[strcspn(s->token, "\r\n")] = '\0';
	if (strlen(s->token) < HTTP_TOKEN_MIN)
		return err_set(
			e, -EINVAL,
			"the first line of '%s' is no token: it has %zu bytes, at least %d are needed",
			o->token_file, strlen(s->token), HTTP_TOKEN_MIN);
	if (stat(o->token_file, &st) == 0 && st.st_mode & 007)
		return err_set(e, -EINVAL, "everybody may read the token in '%s': chmod 600 it",
			       o->token_file);
	return 0;
}

static int start_daemon(struct http_listener *l, int fd, struct err *e)
{
	const struct http_server *s = l->server;
	bool tls = s->cert && l->at.reach != HTTP_REACH_UNIX;
	struct MHD_OptionItem more[] = {
		{ tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, s->cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->key },
		{ MHD_OPTION_END, 0, NULL },
	};
	const union MHD_DaemonInfo *info;

	l->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL,
		http_on_request, l->server, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_NOTIFY_COMPLETED,
		http_on_completed, l->server, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)s->opts.connections + SPARES, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_UNESCAPE_CALLBACK, http_unescape, NULL, MHD_OPTION_ARRAY, more,
		MHD_OPTION_END);
	if (!l->daemon) {
		close(fd);
		return tls ? err_set(e, -EINVAL,
				     "cannot serve with the certificate '%s' and the key '%s'",
				     s->opts.tls_cert, s->opts.tls_key)
			   : err_set(e, -ENOMEM, "cannot start an HTTP server");
	}
	info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	l->epoll_fd = info ? info->epoll_fd : -1;
	return 0;
}

static int add_listener(struct http_server *s, const char *text, struct err *e)
{
	struct http_listener *l = &s->listeners[s->n_listeners];
	int fd, r = http_address_parse(text, &l->at, e);

	if (r < 0)
		return r;
	r = http_address_listen(&l->at, &fd, e);
	if (r < 0)
		return r;
	if (s->opts.group && l->at.reach == HTTP_REACH_UNIX) {
		r = http_address_share(&l->at, s->opts.group, e);
		if (r < 0) {
			close(fd);
			return r;
		}
	}
	l->server = s;
	l->port = http_socket_port(fd);
	r = start_daemon(l, fd, e);
	if (r < 0)
		return r;
	s->n_listeners++;
	r = loop_fd(s->loop, l->epoll_fd, on_ready, l);
	return r < 0 ? err_set(e, r, "cannot wait for HTTP clients: %s", strerror(-r)) : 0;
}

static void set_default(uint32_t *value, uint32_t is)
{
	if (!*value)
		*value = is;
}

int http_options_check(const struct http_options *opts, struct err *e)
{
	if (!opts->tls_cert != !opts->tls_key)
		return err_set(e, -EINVAL, "--tls-cert and --tls-key go together");
	if (opts->n_listen > HTTP_LISTEN_MAX)
		return err_set(e, -EINVAL, "--listen may be given %d times", HTTP_LISTEN_MAX);
	for (uint32_t i = 0; i < opts->n_listen; i++) {
		struct http_address at;
		int r = http_address_parse(opts->listen[i], &at, e);

		if (r < 0)
			return r;
		if (at.reach == HTTP_REACH_WIDE && (!opts->token_file || !opts->tls_cert))
			return err_set(
				e, -EINVAL,
				"--listen %s is reached from other hosts: it needs --tls-cert, "
				"--tls-key and --token-file",
				opts->listen[i]);
	}
	return 0;
}

int http_server_open(struct loop *l, const struct http_options *opts,
		     struct http_server **ret_server, struct err *e)
{
	_cleanup_(http_server_closep) struct http_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->loop = l;
	s->opts = *opts;
	s->other.path = "other";
	set_default(&s->opts.connections, 64);
	set_default(&s->opts.per_client, 16);
	set_default(&s->opts.request_ms, 10000);
	set_default(&s->opts.answer_ms, 15000);
	set_default(&s->opts.slowest, 32768);
	r = http_options_check(opts, e);
	if (r == 0)
		r = read_secrets(s, e);
	for (uint32_t i = 0; r == 0 && i < opts->n_listen; i++)
		r = add_listener(s, opts->listen[i], e);
	if (r == 0 && loop_at(l, due, on_time, s) < 0)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r < 0)
		return r;
	*ret_server = TAKE_PTR(s);
	return 0;
}

void http_server_close(struct http_server *s)
{
	if (!s)
		return;
	http_request_drop_all(s);
	for (uint32_t i = 0; i < s->n_listeners; i++) {
		struct http_listener *l = &s->listeners[i];

		MHD_run(l->daemon);
		loop_fd_forget(s->loop, l->epoll_fd);
		if (l->at.reach == HTTP_REACH_UNIX)
			unlink(l->at.at.un.sun_path);
		MHD_stop_daemon(l->daemon);
	}
	for (uint32_t i = 0; i < s->n_routes; i++)
		free(s->routes[i]);
	free(s->routes);
	free(s->token);
	free(s->cert);
	free(s->key);
	free(s);
}

/* --- what others ask --- */

int http_route(struct http_server *s, const char *method, const char *path, int flags, http_fn fn,
	       void *ctx)
{
	struct http_route *route = calloc(1, sizeof(*route));

	if (!route || !GROW(s->routes, s->n_routes, s->cap_routes)) {
		free(route);
		return -ENOMEM;
	}
	*route = (struct http_route){
		.method = method, .path = path, .flags = flags, .fn = fn, .ctx = ctx
	};
	s->routes[s->n_routes++] = route;
	return 0;
}

uint16_t http_server_port(const struct http_server *s, uint32_t n)
{
	return n < s->n_listeners ? s->listeners[n].port : 0;
}

void http_server_stats(const struct http_server *s, struct http_stats *ret_stats)
{
	*ret_stats = s->stats;
}

static uint64_t count_of(const struct http_route *route, unsigned status)
{
	for (int i = 0; i < HTTP_STATUSES && route->counts[i].status; i++)
		if (route->counts[i].status == status)
			return route->counts[i].n;
	return 0;
}

/* A path may have several routes, one per method: each status of a path is reported once, as their sum. */
static void each_status(const struct http_server *s, uint32_t at,
			void (*fn)(void *ctx, const char *route, unsigned status, uint64_t n),
			void *ctx)
{
	const struct http_route *route = s->routes[at];

	for (int i = 0; i < HTTP_STATUSES && route->counts[i].status; i++) {
		unsigned status = route->counts[i].status;
		uint64_t n = 0, before = 0;

		for (uint32_t k = 0; k < s->n_routes; k++)
			if (strcmp(s->routes[k]->path, route->path) == 0) {
				n += count_of(s->routes[k], status);
				before += k < at ? count_of(s->routes[k], status) : 0;
			}
		if (!before)
			fn(ctx, route->path, status, n);
	}
}

void http_server_each(const struct http_server *s,
		      void (*fn)(void *ctx, const char *route, unsigned status, uint64_t n),
		      void *ctx)
{
	for (uint32_t i = 0; i < s->n_routes; i++)
		each_status(s, i, fn, ctx);
	for (int i = 0; i < HTTP_STATUSES && s->other.counts[i].status; i++)
		fn(ctx, s->other.path, s->other.counts[i].status, s->other.counts[i].n);
}
