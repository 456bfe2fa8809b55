/*
 * Questions to a heap: one file each, and one row of the table in heap.c.
 *
 * A question gets a snapshot and puts its answer into an `answer` (render/tables/answer.h), which is printed as text or as
 * JSON when it is done.
 */
#ifndef MEMSCOPE_CMD_HEAP_VIEW_H
#define MEMSCOPE_CMD_HEAP_VIEW_H

#include "heap/snapshot/snapshot.h"
#include "proc/proc_table.h"
#include "render/tables/answer.h"

struct heap_args {
	uint32_t pid, top;
	const char *folder;
	bool json;
	int by;            /* enum groups_by, of a census */
};

struct heap_view {
	const struct heap_args *args;
	pid_t pid;
	struct snapshot *s;
	struct dict *dict;
	struct proc_table *procs;
	struct answer *out;
};

/* `what`: the operand behind the question, where it takes one. -EINVAL: what it says cannot be read; -ENOENT; -ENOMEM. */
int heap_allocator(const struct heap_view *v, const char *what, struct err *e);
int heap_census(const struct heap_view *v, const char *what, struct err *e);
int heap_dominators(const struct heap_view *v, const char *what, struct err *e);
int heap_fragmentation(const struct heap_view *v, const char *what, struct err *e);
int heap_leaks(const struct heap_view *v, const char *what, struct err *e);
int heap_query(const struct heap_view *v, const char *what, struct err *e);
int heap_retainers(const struct heap_view *v, const char *what, struct err *e);

/* --- for questions --- */

/* A cell: "glibc arena 3". */
void heap_put_arena(const struct heap_view *v, const struct heap_owner *owner);

static inline const char *heap_type_name(const struct heap_view *v, uint32_t node)
{
	return v->s->types.type[v->s->types.of[node]].name;
}

#endif
