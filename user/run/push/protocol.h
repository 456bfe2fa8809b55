/*
 * A kind of store: how a profile becomes the body of a request, and what an answer means. One row a protocol in
 * protocols.c, one file each.
 */
#ifndef MEMSCOPE_RUN_PUSH_PROTOCOL_H
#define MEMSCOPE_RUN_PUSH_PROTOCOL_H

#include "base/sink.h"
#include "collect/session/sources.h"
#include "net/http_client.h"
#include "run/push/labels.h"

/* One part of a profile (parts.h), as it is sent. */
struct push_item {
	const struct profile *profile;
	enum profile_kind kind;
	const struct push_labels *labels;
	uint8_t id[16]; /* the same whenever it is sent: a store may know by it what it has already */
};

enum push_verdict {
	PUSH_TAKEN,
	PUSH_LATER,   /* the store cannot now: it is kept            */
	PUSH_FAILED,  /* the store failed at it: kept, but a later one that is taken says that it is this one's fault */
	PUSH_REFUSED, /* not in this form, whenever: dropped         */
};

struct push_protocol {
	const char *name;             /* "pyroscope", of --push NAME=URL */
	const char *path;             /* appended to the URL             */
	const char *headers[3];
	int (*body)(const struct push_item *item, struct sink *out, struct err *e);
	/* Of an answer that came. *ret_rejected: what the store left out of what it took; `why`: a sentence's end, ""; both set. */
	enum push_verdict (*verdict)(const struct http_answer *a, uint64_t *ret_rejected, char *why, size_t cap);
};

/* Ends with a row without a name. */
extern const struct push_protocol push_protocols[];

/* What statuses say by themselves, as both have it; `why` gets the status and the begin of a body that is text. */
enum push_verdict push_status_verdict(const struct http_answer *a, char *why, size_t cap);

int push_pyroscope_body(const struct push_item *item, struct sink *out, struct err *e);
enum push_verdict push_pyroscope_verdict(const struct http_answer *a, uint64_t *ret_rejected, char *why, size_t cap);
int push_otlp_body(const struct push_item *item, struct sink *out, struct err *e);
enum push_verdict push_otlp_verdict(const struct http_answer *a, uint64_t *ret_rejected, char *why, size_t cap);

#endif
