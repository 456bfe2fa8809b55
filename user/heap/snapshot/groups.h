/*
 * The objects of a heap in groups: how many there are of each and how many bytes.
 *
 *   type       what they are
 *   module     where their type comes from: "web" of web.Session, "std" of std::vector<…>, "base:GHC.Maybe" of base:GHC.Maybe.Just; CPython's
 *              own are of builtins
 *   two-level  what they are and what they refer to: "Session → str, dict". ghc-debug's two-level census; of more than
 *              GROUPS_FIELDS_MAX different types the rest is "…"
 *   referrer   what they are and what refers to them, on the shortest chain from the best root: "str ← Session". An object
 *              that a root refers to has its kind: "dict ← (the module)"
 *   arena      which arena of which allocator has them: "glibc arena 3"
 *   site       who allocated them: "make_session (server.c:88)"; without sites (sites.h) all are one
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_GROUPS_H
#define MEMSCOPE_HEAP_SNAPSHOT_GROUPS_H

#include "heap/snapshot/snapshot.h"

/* In the order of GROUPS_CHOICES. */
enum groups_by { GROUPS_TYPE, GROUPS_MODULE, GROUPS_TWO_LEVEL, GROUPS_REFERRER, GROUPS_ARENA, GROUPS_SITE };
#define GROUPS_CHOICES "type|module|two-level|referrer|arena|site"

enum { GROUPS_FIELDS_MAX = 6 };

struct group_row {
	char *name;
	uint64_t objects, bytes;
	uint64_t length;  /* items of containers, letters, bytes: of CPython's objects */
	bool has_length;
	enum type_by by; /* how its type is known; of modules: TYPE_UNKNOWN */
};

struct groups {
	struct group_row *rows; /* most bytes first */
	uint32_t n;
};

/* -ENOMEM. */
int groups_find(const struct snapshot *s, enum groups_by by, struct groups *ret_groups);
void groups_fini(struct groups *g);

#endif
