/*
 * An HTTP server on the loop that everything else runs on (base/loop.h): no thread, and nothing blocks.
 *
 * libmicrohttpd speaks the protocol. What it does not do is here:
 *
 *   - Time. Its own time-out is of inactivity, so that a client that sends a byte a second stays for ever. Here a connection
 *     has so long for a request, and so long to take an answer, by its size; then its socket is shut.
 *   - Room. When all connections are taken, the one that has waited longest without a whole request makes way. Where none
 *     does, a new one may still ask for routes that are HTTP_ALWAYS (/healthz, /metrics); others are answered 503.
 *   - Who may ask. A unix socket is its owner's. On a loopback address the Host must be this host's, so that a web page whose name
 *     is made to lead here (DNS rebinding) gets nothing, and requests that a browser says another site makes are refused.
 *     Wider addresses need TLS and a token: "Authorization: Bearer TOKEN", or Basic with it as the password, for browsers.
 *     What is HTTP_OPEN answers without it: probes of whoever keeps services alive have none.
 *
 * A request is answered by its route at once or later: it is the route's until it calls http_answer() or one like it, once.
 * Methods are GET and HEAD, others where a route names them; bodies of requests are read and dropped.
 */
#ifndef MEMSCOPE_NET_HTTP_SERVER_H
#define MEMSCOPE_NET_HTTP_SERVER_H

#include "base/cleanup.h"
#include "base/err.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;
struct http_request;

enum { HTTP_LISTEN_MAX = 8, HTTP_TOKEN_MIN = 16 };

struct http_options {
	const char *const *listen; /* http_listen.h; n_listen of them, at least one       */
	uint32_t n_listen;
	const char *group;         /* whose members may use socket files; NULL: nobody but their owner */
	const char *tls_cert, *tls_key; /* PEM files, both or none: TLS on TCP addresses  */
	const char *token_file;         /* its first line: at least HTTP_TOKEN_MIN bytes; NULL: none is asked for on TCP */
	/* 0: the default. */
	uint32_t connections;     /* at a time (64)                                        */
	uint32_t per_client;      /* of one IP address (16)                                */
	uint32_t request_ms;      /* for a request, from the connection or the last answer (10 000) */
	uint32_t answer_ms;       /* to take an answer (15 000), and what it lasts at …    */
	uint32_t slowest;         /* … so many bytes a second (32 768)                     */
};

/* What came, since the server was opened. */
struct http_stats {
	uint32_t open;          /* connections now                               */
	uint64_t accepted;      /* connections                                   */
	uint64_t evicted;       /* without a request, to make way for others     */
	uint64_t refused;       /* requests: no room                             */
	uint64_t request_late;  /* connections without a whole request in time   */
	uint64_t answer_late;   /* … that did not take their answer in time      */
	uint64_t denied;        /* requests: no token, or a wrong one            */
	uint64_t foreign;       /* requests: another Host, or of another site    */
};

/* Whether addresses are understood, and wide ones have what they need: no file is read. -EINVAL with a sentence. */
int http_options_check(const struct http_options *opts, struct err *e);
/*
 * -EINVAL: a wide address without TLS and token, or a key that is none; else as bind(2) or open(2). The loop must not run
 * any more once the server is closed.
 */
int http_server_open(struct loop *l, const struct http_options *opts, struct http_server **ret_server,
		     struct err *e);
/* Requests that are not answered yet get 503. */
void http_server_close(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_closep, http_server_close)

/* Of the n-th address; 0: a unix socket. */
uint16_t http_server_port(const struct http_server *s, uint32_t n);
void http_server_stats(const struct http_server *s, struct http_stats *ret_stats);
/* Requests by route ("other": no route's) and status, in the order in which they first came. */
void http_server_each(const struct http_server *s,
		      void (*fn)(void *ctx, const char *route, unsigned status, uint64_t n), void *ctx);

/* --- routes --- */

enum { /* flags */
	HTTP_ALWAYS = 1, /* also when there is no room for others                                        */
	HTTP_OPEN = 2,   /* without a token, too: it says to such a client only what anybody may know    */
};

typedef void (*http_fn)(void *ctx, struct http_request *q);
/*
 * `path` is borrowed. One that ends with / is of all that begins so, but "/" is of itself alone; the longest counts.
 * 0 or -ENOMEM.
 */
int http_route(struct http_server *s, const char *method, const char *path, int flags, http_fn fn,
	       void *ctx);

/* --- a request: what is borrowed of it lives until it is answered --- */

const char *http_path(const struct http_request *q);
/* What stands behind NAME= in the query; "" where only the name does; NULL: it does not stand there. */
const char *http_query(const struct http_request *q, const char *name);
const char *http_request_header(const struct http_request *q, const char *name);

/* Has it shown that it may know everything? Not so: a route that is HTTP_OPEN, without the token that is asked for. */
bool http_is_trusted(const struct http_request *q);

/*
 * Has the client hung up while it is worked for? One that closed its half alone counts as gone too: the two look the same
 * until something is sent, and Go's net/http does the same. An answer that is at hand is sent to it all the same.
 */
bool http_is_gone(const struct http_request *q);

/* --- answers: each ends the request --- */

/* A header of the answer; before it. Copied. */
void http_header(struct http_request *q, const char *name, const char *value);
/* The bytes are copied. */
void http_answer(struct http_request *q, unsigned status, const char *type, const void *bytes,
		 size_t len);
/* `fd` is a regular file or a memfd, of which `len` bytes are sent from its begin; it is the answer's. */
void http_answer_fd(struct http_request *q, unsigned status, const char *type, int fd, uint64_t len);
/* A sentence as text/plain, with a newline. */
void http_error(struct http_request *q, unsigned status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
