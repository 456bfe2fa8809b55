/*
 * Which objects are meant: a small language of conditions on objects and on the references between them.
 *
 *   EXPR    EXPR and EXPR     EXPR or EXPR     not EXPR     (EXPR)        `and` binds closer than `or`
 *           FIELD = VALUE     also !=, and of numbers <, <=, >, >=; of texts ~, a POSIX extended regular expression
 *           lost              nothing refers to it: no root reaches it
 *           refers_to(EXPR)   it has a reference to such an object
 *           referred_by(EXPR) such an object has a reference to it
 *           reachable(EXPR)   a chain of references leads from such an object to it, or it is one
 *           retained_by(EXPR) every chain to it leads through such an object: it would be freed with it; or it is one
 *           type:NAME         type = NAME
 *           size:BYTES        size = BYTES
 *           text:TEXT         its bytes have this text somewhere
 *           site:NAME         site = NAME
 *           stack:NAME        stack = NAME
 *           0xADDRESS         the object that has the byte at this address
 *           NAME              type = NAME
 *
 *   FIELD   type              its name; NAME also means what ends in .NAME or ::NAME
 *           size              bytes of its block
 *           retained          bytes that would be freed with it
 *           references        how many it has to others
 *           referrers         how many others have to it
 *           address
 *           arena             "glibc arena 3", as `heap allocator` has it
 *           site              who allocated it: FUNCTION, FILE or FILE:LINE; ~ is matched with "make_session (server.c:88)"
 *           stack             FUNCTION, FILE or FILE:LINE of any frame of the stack that did; ~: of one
 *           age               how long ago that was: 500ms, 10s, 5m, 2h; what was there before that was traced is older than
 *                             anything
 *
 *   VALUE   a number, also 0x…, 4K, 16M, 1G; a word; a text between "…" or '…', in which nothing is special
 *
 * A type's name may have spaces between < and >. What as a whole is a type's name is that, whatever characters it has.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_QUERY_H
#define MEMSCOPE_HEAP_SNAPSHOT_QUERY_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum query_kind {
	QUERY_AND, QUERY_OR, QUERY_NOT,                                 /* of one or both sides */
	QUERY_REFERS_TO, QUERY_REFERRED_BY, QUERY_REACHABLE, QUERY_RETAINED_BY, /* of `left`    */
	QUERY_LOST,
	QUERY_HAS_TEXT,                                                 /* `text`               */
	QUERY_CONTAINS,                                                 /* `number`, an address */
	QUERY_COMPARE
};
enum query_field { QUERY_TYPE, QUERY_SIZE, QUERY_RETAINED, QUERY_REFERENCES, QUERY_REFERRERS, QUERY_ADDRESS, QUERY_ARENA, QUERY_SITE, QUERY_STACK, QUERY_AGE, QUERY_FIELDS };
enum query_op { QUERY_EQ, QUERY_NE, QUERY_LE, QUERY_GE, QUERY_LT, QUERY_GT, QUERY_LIKE };

struct query {
	enum query_kind kind;
	struct query *left, *right;
	enum query_field field;
	enum query_op op;
	uint64_t number;
	char *text;
};

/* -EINVAL with a sentence that shows the place; -ENOMEM. */
int query_parse(const char *text, struct query **ret_query, struct err *e);
void query_free(struct query *q);
DEFINE_CLEANUP(struct query *, query_freep, query_free)

/* Is `wanted` this type's name, or how it ends behind a dot or colons? */
bool query_is_named(const char *name, const char *wanted);

struct snapshot;

/* A byte for each node, 1: it is meant. The caller's. -EINVAL: a regular expression that is none; -ENOENT: no block has the
 * address; -ENODATA: the snapshot has no contents to look for a text in, or does not know who allocated what; -ENOMEM. */
int query_objects(const struct query *q, const struct snapshot *s, uint8_t **ret_set, struct err *e);

#endif
