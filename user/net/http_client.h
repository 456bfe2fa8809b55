/*
 * An HTTP client that trusts no server: by libcurl, which is loaded when it is needed, so that nobody else has to have it.
 * HTTP and HTTPS alone, no redirect is followed, what comes back has a bound, and so has the time that all of it may take.
 * A client belongs to one thread and keeps its connection for the next request.
 */
#ifndef MEMSCOPE_NET_HTTP_CLIENT_H
#define MEMSCOPE_NET_HTTP_CLIENT_H

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_client;

struct http_client_options {
	const char *url;             /* http:// or https://                                  */
	const char *option;          /* what asked for it, for sentences: "--series"          */
	const char *ca_file;         /* certificates, as PEM, that are trusted; NULL: the system's */
	uint64_t timeout_ms;         /* from the first packet to the last                    */
	size_t answer_max;           /* bytes of a body, unpacked                            */
	bool no_proxy;               /* not even that of the environment                     */
	bool (*stop)(void *ctx);     /* asked meanwhile, about once a second; NULL: never     */
	void *ctx;
};

/* What came back; the body lives until the next request. */
struct http_answer {
	int status;                  /* 0: no answer came, and the sentence says why          */
	uint64_t retry_after_s;      /* Retry-After, a date too; 0: there is none             */
	const char *type;            /* Content-Type; ""                                      */
	struct bytes body;           /* with a 0 behind it                                    */
	bool too_long;               /* it was longer than answer_max; what fits is there     */
};

/* -EOPNOTSUPP: there is no libcurl here; -EINVAL: it cannot take this address, or the address is none. */
int http_client_new(const struct http_client_options *o, struct http_client **ret_client, struct err *e);
void http_client_free(struct http_client *c);
DEFINE_CLEANUP(struct http_client *, http_client_freep, http_client_free)

/* 0: an answer of any status came. -ECONNREFUSED …, -ETIMEDOUT, -ECANCELED (stop()), -EPROTO: none did. */
int http_client_get(struct http_client *c, struct http_answer *ret_answer, struct err *e);
/* `headers`: "Content-Type: application/proto", n of them. */
int http_client_post(struct http_client *c, const char *const *headers, uint32_t n, struct bytes body,
		     struct http_answer *ret_answer, struct err *e);

/* An address without name and password, as sentences have it. */
void http_url_shown(const char *url, char *out, size_t cap);

#endif
