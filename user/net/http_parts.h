/* What http_server.c (connections) and http_request.c (requests) share. */
#ifndef MEMSCOPE_NET_HTTP_PARTS_H
#define MEMSCOPE_NET_HTTP_PARTS_H

#include "net/http_listen.h"
#include "net/http_server.h"

#include <microhttpd.h>

enum { HTTP_STATUSES = 16 };

struct http_route {
	const char *method, *path;
	int flags;
	http_fn fn;
	void *ctx;
	struct {
		unsigned status;
		uint64_t n;
	} counts[HTTP_STATUSES]; /* status 0: free */
};

struct http_listener {
	struct http_server *server;
	struct http_address at;
	struct MHD_Daemon *daemon;
	int epoll_fd;
	uint16_t port;
	bool at_once; /* the library has something to do without an event */
};

enum http_phase { HTTP_WAITING, HTTP_WORKING, HTTP_SENDING };

struct http_conn {
	struct http_conn *prev, *next; /* oldest first */
	struct http_listener *listener;
	struct sockaddr_storage client;
	int fd;
	enum http_phase phase;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; LOOP_NEVER: it is worked for */
	bool spare;           /* there was no room for it                      */
	bool is_shut;
};

struct http_server {
	struct loop *loop;
	struct http_options opts;
	struct http_listener listeners[HTTP_LISTEN_MAX];
	uint32_t n_listeners;
	char *token, *cert, *key;
	struct http_route **routes;
	uint32_t n_routes, cap_routes;
	struct http_route other;
	struct http_conn *oldest, *newest;
	struct http_request *requests; /* that are not answered */
	bool ending;		       /* what comes now is not begun */
	struct http_stats stats;
};

/* Is there still no room for a connection that came when there was none? */
bool http_conn_over(const struct http_conn *c);
void http_conn_phase(struct http_conn *c, enum http_phase phase, uint64_t answer_bytes);

/* Callbacks of the library. */
/* What has a null byte stays as it came: nothing after it may be taken for the end. */
size_t http_unescape(void *cls, struct MHD_Connection *connection, char *text);
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *connection, const char *url,
				const char *method, const char *version, const char *upload_data,
				size_t *upload_size, void **request);
void http_on_completed(void *cls, struct MHD_Connection *connection, void **request,
		       enum MHD_RequestTerminationCode code);
void http_request_drop_all(struct http_server *s);

#endif
