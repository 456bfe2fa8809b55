/*
 * Questions to a heap: one file each, and one row of the table in heap.c.
 *
 * A question gets a snapshot and puts its answer into an `answer` (render/tables/answer.h), which is printed as text or as
 * JSON when it is done.
 */
#ifndef MEMSCOPE_CMD_HEAP_VIEW_H
#define MEMSCOPE_CMD_HEAP_VIEW_H

#include "base/opt.h"
#include "base/strbuf.h"
#include "heap/snapshot/snapshot.h"
#include "proc/proc_table.h"
#include "render/tables/answer.h"

struct heap_args {
	uint32_t pid, top;
	const char *folder, *container, *output;
	struct opt_list labels, anchors;
	bool json, core, twin;
	double trace_s;    /* every allocation is traced for so long before; 0: none is */
	bool inject, python_objects; /* … as `record` does with these */
	uint32_t mem_mb;   /* … and with this                                                  */
	int contents;      /* enum file_contents: of a snapshot, and what is shown */
	int by;            /* enum groups_by, of a census */
};

enum { HEAP_BEFORE_MAX = 31, HEAP_TRACE_MB = 256 };

struct heap_view {
	const struct heap_args *args;
	pid_t pid;
	struct snapshot *s;
	struct snapshot *before[HEAP_BEFORE_MAX]; /* what it is compared with, the oldest first */
	uint32_t n_before;
	struct copy *copy; /* --core: this alone */
	struct dict *dict;
	struct proc_table *procs;
	struct variable_names *variables;
	struct answer *out;
	/* Once the process is known, before it is stopped; NULL: nothing. */
	int (*before_stop)(const struct heap_view *v, struct err *e);
	char *keys[SNAPSHOT_LABELS_MAX]; /* of labels */
};

/* Takes the snapshot, or opens that of `file`; those of `before`, n of them, as well. */
int heap_view_open(struct heap_view *v, const struct heap_args *a, const char *file, char *const *before, uint32_t n,
		   struct err *e);
void heap_view_fini(struct heap_view *v);
/* What of it is said before each answer. */
void heap_put_header(const struct heap_view *v);

/* The snapshot of v->pid, at the end of --trace: with who allocated its blocks. -EPERM, -ESRCH, -ENODATA … */
int heap_trace_take(struct heap_view *v, struct snapshot_how *how, struct err *e);

/* `what`: the operand behind the question, where it takes one. -EINVAL: what it says cannot be read; -ENOENT; -ENOMEM. */
int heap_allocator(const struct heap_view *v, const char *what, struct err *e);
int heap_caches(const struct heap_view *v, const char *what, struct err *e);
int heap_census(const struct heap_view *v, const char *what, struct err *e);
int heap_diff(const struct heap_view *v, const char *what, struct err *e);
int heap_dominators(const struct heap_view *v, const char *what, struct err *e);
int heap_dups(const struct heap_view *v, const char *what, struct err *e);
int heap_fragmentation(const struct heap_view *v, const char *what, struct err *e);
int heap_leaks(const struct heap_view *v, const char *what, struct err *e);
int heap_query(const struct heap_view *v, const char *what, struct err *e);
/* As a query; a bare word is a text. */
int heap_search(const struct heap_view *v, const char *what, struct err *e);
int heap_retainers(const struct heap_view *v, const char *what, struct err *e);
int heap_refcounts(const struct heap_view *v, const char *what, struct err *e);
int heap_thunks(const struct heap_view *v, const char *what, struct err *e);
int heap_snapshot(const struct heap_view *v, const char *what, struct err *e);
/* Can its file be written at all? */
int heap_snapshot_check(const struct heap_args *a, struct err *e);
/* … and does the disk have room for it? */
int heap_snapshot_before_stop(const struct heap_view *v, struct err *e);

/* --- for questions --- */

/* Of a module, a variable, or what a runtime calls it. false: it has none. */
bool heap_root_name(const struct heap_view *v, const struct snapshot_root *root, char *name, size_t cap);
/* -ENOENT: no object is `what`. The sentence has the type that was probably meant. */
int heap_no_object(const struct heap_view *v, const char *what, struct err *e);
/* -ENODATA: it is not known who allocated what. The sentence says how to know. */
int heap_no_sites(const struct heap_view *v, struct err *e);
/* A cell: who allocated it; empty where that is not known. */
void heap_put_site(const struct heap_view *v, uint32_t node);
struct retainers;
/* A table of what keeps objects: at most `top` rows. */
void heap_put_retainers(const struct heap_view *v, const struct retainers *found, uint32_t top);
/* A cell: "glibc arena 3". */
void heap_put_arena(const struct heap_view *v, const struct heap_owner *owner);

/* "the variable sessions" */
void heap_root_text(const struct heap_view *v, const struct snapshot_root *root, struct strbuf *text);
/* A cell with that. */
void heap_put_root(const struct heap_view *v, const struct snapshot_root *root);
/* A cell: "980 of 1,024 words in use"; empty where no container is known. */
void heap_put_use(const struct heap_view *v, uint32_t node);
/* A cell: its text, or its first words; as far as --contents wants. */
void heap_put_value(const struct heap_view *v, uint32_t node);

static inline const char *heap_type_name(const struct heap_view *v, uint32_t node)
{
	return v->s->types.type[v->s->types.of[node]].name;
}

#endif
