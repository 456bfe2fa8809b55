#include "net/http_parts.h"

#include "base/strbuf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#define BODY_MAX 65536 /* of a request */
#define ENDING   "memscope is ending"

struct header {
	struct header *next;
	char *value;
	char name[];
};

struct http_request {
	struct http_request *prev, *next; /* of those that are not answered */
	struct http_server *server;
	struct http_conn *conn;
	struct MHD_Connection *connection;
	struct http_route *route;
	char *path;
	char *host; /* that the target of the request names (RFC 9112 §3.2.2); NULL: the header Host says it */
	uint64_t body;
	struct header *headers;
	struct MHD_Response *response;
	unsigned status;
	uint64_t bytes;
	bool is_suspended, is_answered;
};

/* --- life --- */

size_t http_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
	(void)cls;
	(void)connection;
	return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/* "http://HOST/path" is a path, too, of a host that goes before the header. */
static bool take_target(struct http_request *q, const char *target)
{
	static const char *const schemes[] = { "http://", "https://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		const char *host = target + strlen(schemes[i]);
		size_t len;

		if (strncasecmp(target, schemes[i], strlen(schemes[i])) != 0)
			continue;
		len = strcspn(host, "/");
		q->host = strndup(host, len);
		q->path = strdup(host[len] ? host + len : "/");
		return q->host && q->path;
	}
	q->path = strdup(target);
	return q->path != NULL;
}

static struct http_request *request_new(struct http_server *s, struct MHD_Connection *connection,
					const char *path)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_request *q = calloc(1, sizeof(*q));

	if (!q || !info || !info->socket_context || !take_target(q, path)) {
		if (q) {
			free(q->host);
			free(q->path);
		}
		free(q);
		return NULL;
	}
	q->server = s;
	q->conn = info->socket_context;
	q->connection = connection;
	q->route = &s->other;
	q->next = s->requests;
	if (q->next)
		q->next->prev = q;
	s->requests = q;
	http_conn_phase(q->conn, HTTP_WAITING, 0);
	return q;
}

static void request_unlink(struct http_request *q)
{
	if (q->prev || q->next || q->server->requests == q)
		*(q->prev ? &q->prev->next : &q->server->requests) = q->next;
	if (q->next)
		q->next->prev = q->prev;
	q->prev = q->next = NULL;
}

static void request_free(struct http_request *q)
{
	request_unlink(q);
	for (struct header *h = q->headers, *next; h; h = next) {
		next = h->next;
		free(h->value);
		free(h);
	}
	if (q->response)
		MHD_destroy_response(q->response);
	free(q->host);
	free(q->path);
	free(q);
}

void http_on_completed(void *cls, struct MHD_Connection *connection, void **request,
		       enum MHD_RequestTerminationCode code)
{
	struct http_request *q = *request;

	(void)cls;
	(void)connection;
	(void)code;
	*request = NULL;
	if (!q)
		return;
	http_conn_phase(q->conn, HTTP_WAITING, 0);
	request_free(q);
}

void http_request_drop_all(struct http_server *s)
{
	s->ending = true;
	while (s->requests) {
		struct http_request *q = s->requests;

		if (q->is_suspended)
			http_error(q, 503, ENDING);
		else
			request_unlink(q);
	}
}

/* --- who may ask --- */

/* Takes as long whatever the first difference is. */
static bool same_secret(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	unsigned char differs = la != lb;

	for (size_t i = 0; i < la; i++)
		differs |= (unsigned char)(a[i] ^ b[i < lb ? i : 0]);
	return !differs;
}

static bool has_token(const struct http_request *q)
{
	const char *says = http_request_header(q, "Authorization");
	char *password = NULL, *user;
	bool is;

	if (says && strncasecmp(says, "Bearer ", 7) == 0)
		return same_secret(says + 7 + strspn(says + 7, " "), q->server->token);
	user = MHD_basic_auth_get_username_password(q->connection, &password);
	is = password && same_secret(password, q->server->token);
	MHD_free(user);
	MHD_free(password);
	return is;
}

static bool is_port(const char *text)
{
	return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* All of 127.0.0.0/8 is. A page elsewhere that was made to lead here has a name. */
static bool is_loopback(const char *host)
{
	size_t len = strspn(host, "0123456789.");
	char text[INET_ADDRSTRLEN];
	struct in_addr addr;

	if (len >= sizeof(text) || !is_port(host + len))
		return false;
	memcpy(text, host, len);
	text[len] = '\0';
	return inet_pton(AF_INET, text, &addr) == 1 && ntohl(addr.s_addr) >> 24 == 127;
}

/* Is it this host, on whatever port? A tunnel has another than ours. */
static bool is_own_host(const char *host)
{
	static const char *const own[] = { "localhost", "[::1]" };

	for (size_t i = 0; host && i < sizeof(own) / sizeof(*own); i++) {
		size_t len = strlen(own[i]);

		if (strncasecmp(host, own[i], len) == 0 && is_port(host + len))
			return true;
	}
	return host && is_loopback(host);
}

bool http_is_trusted(const struct http_request *q)
{
	return q->conn->listener->at.reach == HTTP_REACH_UNIX || !q->server->token || has_token(q);
}

static enum MHD_Result count_hosts(void *cls, enum MHD_ValueKind kind, const char *key,
				   const char *value)
{
	unsigned *n = cls;

	(void)kind;
	(void)value;
	*n += strcasecmp(key, "Host") == 0;
	return MHD_YES;
}

/* Two hosts, or two lengths: who stands between may have taken the other one (RFC 9112 §3.2, §6.1). */
static bool is_ambiguous(const struct http_request *q)
{
	unsigned hosts = 0;

	MHD_get_connection_values(q->connection, MHD_HEADER_KIND, count_hosts, &hosts);
	return hosts > 1 || (http_request_header(q, "Transfer-Encoding") &&
			     http_request_header(q, "Content-Length"));
}

/* true: it is answered. */
static bool refuse(struct http_request *q)
{
	enum http_reach reach = q->conn->listener->at.reach;
	const char *site = http_request_header(q, "Sec-Fetch-Site");
	struct http_stats *stats = &q->server->stats;

	if (is_ambiguous(q)) {
		http_header(q, "Connection", "close");
		http_error(q, 400, "a request has one Host, and one length");
	} else if (reach == HTTP_REACH_LOOPBACK &&
		   !is_own_host(q->host ? q->host : http_request_header(q, "Host"))) {
		stats->foreign++;
		http_error(
			q, 403,
			"the Host of the request is not this host's: ask for localhost or its address");
	} else if (reach != HTTP_REACH_UNIX && site && strcasecmp(site, "cross-site") == 0) {
		stats->foreign++;
		http_error(q, 403, "requests that another site makes are not answered");
	} else if (!(q->route->flags & HTTP_OPEN) && !http_is_trusted(q)) {
		stats->denied++;
		http_header(q, "WWW-Authenticate", "Bearer realm=\"memscope\"");
		http_header(q, "WWW-Authenticate", "Basic realm=\"memscope\"");
		http_error(q, 401, "a token is needed: Authorization: Bearer TOKEN");
	}
	return q->is_answered;
}

/* --- routes --- */

static bool route_is_of(const struct http_route *r, const char *path)
{
	size_t len = strlen(r->path);

	return strcmp(r->path, path) == 0 ||
	       (len > 1 && r->path[len - 1] == '/' && strncmp(r->path, path, len) == 0);
}

static bool route_takes(const struct http_route *r, const char *method)
{
	return strcmp(r->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

/* The one with the longest path; of those of one path, the one that takes the method. */
static struct http_route *find_route(struct http_server *s, const char *method, const char *path)
{
	struct http_route *best = NULL;

	for (uint32_t i = 0; i < s->n_routes; i++) {
		struct http_route *r = s->routes[i];
		size_t len = strlen(r->path), best_len = best ? strlen(best->path) : 0;

		if (route_is_of(r, path) &&
		    (len > best_len || (len == best_len && route_takes(r, method))))
			best = r;
	}
	return best;
}

static void dispatch(struct http_request *q, const char *method)
{
	struct http_route *route = find_route(q->server, method, q->path);

	if (route)
		q->route = route;
	if (refuse(q))
		return;
	if (q->server->ending) {
		http_error(q, 503, ENDING);
	} else if (q->conn->spare && !(route && route->flags & HTTP_ALWAYS) &&
		   http_conn_over(q->conn)) {
		q->server->stats.refused++;
		http_header(q, "Connection", "close");
		http_header(q, "Retry-After", "5");
		http_error(q, 503, "too many connections: try again later");
	} else if (!route) {
		http_error(q, 404, "there is nothing at this path");
	} else if (!route_takes(route, method)) {
		http_header(q, "Allow",
			    strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method);
		http_error(q, 405, "%.16s is not for this path", method);
	} else {
		http_conn_phase(q->conn, HTTP_WORKING, 0);
		route->fn(route->ctx, q);
	}
}

/* --- what the library calls --- */

static enum MHD_Result send_answer(struct http_request *q)
{
	if (!q->response)
		return MHD_NO; /* out of memory: the connection ends */
	http_conn_phase(q->conn, HTTP_SENDING, q->bytes);
	return MHD_queue_response(q->connection, q->status, q->response);
}

static bool body_is_too_large(const struct http_request *q)
{
	const char *says = http_request_header(q, "Content-Length");

	return says && strtoull(says, NULL, 10) > BODY_MAX;
}

enum MHD_Result http_on_request(void *cls, struct MHD_Connection *connection, const char *url,
				const char *method, const char *version, const char *upload_data,
				size_t *upload_size, void **request)
{
	struct http_request *q = *request;

	(void)version;
	(void)upload_data;
	if (!q) {
		*request = q = request_new(cls, connection, url);
		if (!q)
			return MHD_NO;
		if (!body_is_too_large(q))
			return MHD_YES;
		http_error(q, 413, "a request may have %d bytes", BODY_MAX);
		return send_answer(q);
	}
	if (*upload_size) {
		q->body += *upload_size;
		*upload_size = 0;
		return q->body <= BODY_MAX ? MHD_YES : MHD_NO;
	}
	if (!q->is_answered)
		dispatch(q, method);
	if (q->is_answered)
		return send_answer(q);
	q->is_suspended = true;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

/* --- the request --- */

const char *http_path(const struct http_request *q)
{
	return q->path;
}

const char *http_query(const struct http_request *q, const char *name)
{
	const char *value = NULL;
	size_t len;

	if (MHD_lookup_connection_value_n(q->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name),
					  &value, &len) != MHD_YES)
		return NULL;
	return value ? value : "";
}

const char *http_request_header(const struct http_request *q, const char *name)
{
	return MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}

bool http_is_gone(const struct http_request *q)
{
	struct pollfd p = { .fd = q->conn->fd, .events = POLLRDHUP };

	return q->conn->is_shut ||
	       (poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* --- the answer --- */

void http_header(struct http_request *q, const char *name, const char *value)
{
	size_t len = strlen(name) + 1;
	struct header *h = calloc(1, sizeof(*h) + len);

	if (h)
		h->value = strdup(value);
	if (!h || !h->value) {
		free(h);
		return;
	}
	memcpy(h->name, name, len);
	h->next = q->headers;
	q->headers = h;
}

static void count(struct http_route *r, unsigned status)
{
	for (int i = 0; i < HTTP_STATUSES; i++) {
		if (r->counts[i].status && r->counts[i].status != status)
			continue;
		r->counts[i].status = status;
		r->counts[i].n++;
		return;
	}
}

static void answer(struct http_request *q, unsigned status, const char *type,
		   struct MHD_Response *response, uint64_t bytes)
{
	q->response = response;
	q->status = status;
	q->bytes = bytes;
	q->is_answered = true;
	request_unlink(q);
	count(q->route, status);
	if (response) {
		MHD_add_response_header(response, "Content-Type", type);
		MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
		MHD_add_response_header(response, "Cache-Control", "no-store");
		for (const struct header *h = q->headers; h; h = h->next)
			MHD_add_response_header(response, h->name, h->value);
	}
	if (!q->is_suspended)
		return;
	q->is_suspended = false;
	MHD_resume_connection(q->connection);
	q->conn->listener->at_once = true;
}

void http_answer(struct http_request *q, unsigned status, const char *type, const void *bytes,
		 size_t len)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		len, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);

	answer(q, status, type, response, len);
}

void http_answer_fd(struct http_request *q, unsigned status, const char *type, int fd, uint64_t len)
{
	struct MHD_Response *response = MHD_create_response_from_fd64(len, fd);

	if (!response)
		close(fd);
	answer(q, status, type, response, len);
}

void http_error(struct http_request *q, unsigned status, const char *fmt, ...)
{
	char text[600];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n > sizeof(text) - 2)
		n = (int)strlen(text);
	text[n++] = '\n';
	http_answer(q, status, "text/plain; charset=utf-8", text, (size_t)n);
}
