/*
 * Makes unwind tables beside the main thread: one of a large binary takes longer than draining can
 * wait.
 *
 * What goes in are files, in the order in which they are wanted; what comes out are finished builds,
 * with a table or a reason. Of large files one is made at a time, since it is those that take memory;
 * smaller ones that were wanted later pass the next. No build is begun while more tables are done than
 * BUILDER_DONE_BYTES and none of them is taken. Threads are started with the first file. Only the
 * main thread calls these functions; `make` is called by the others.
 */
#ifndef MEMSCOPE_UNWIND_BUILDER_H
#define MEMSCOPE_UNWIND_BUILDER_H

#include "base/cleanup.h"
#include "base/err.h"
#include "unwind/publish.h"
#include "unwind/rows.h"

/* A file of this size is large. */
#define BUILDER_LARGE_BYTES (16 << 20)
#define BUILDER_DONE_BYTES  (8 << 20)

struct builder;

/* Makes the table of an open file; borrows `fd`. 0 or -errno. Several at a time may run. */
typedef int (*builder_make_fn)(void *ctx, int fd, const char *name, struct unwind_table **ret_table,
			       struct err *e);

/* A build that is done. */
struct build {
	struct publish_key key;
	char *name;
	struct unwind_table *table; /* NULL: `error` says why */
	struct err error;
	uint64_t took_ns, cpu_ns;
	int fd;
	bool large;
	struct build *next;         /* the builder's, then the caller's */
};
void build_free(struct build *b);
DEFINE_CLEANUP(struct build *, build_freep, build_free)

int builder_new(uint32_t n_threads, builder_make_fn make, void *ctx, struct builder **ret_builder,
		struct err *e);
/* Waits for builds under way; the others are not begun. */
void builder_free(struct builder *b);
DEFINE_CLEANUP(struct builder *, builder_freep, builder_free)

/* Takes `fd`, also on failure. -ENOMEM, or what pthread_create() says. */
int builder_add(struct builder *b, int fd, const char *name, const struct publish_key *key,
		struct err *e);
/* Readable when there is something to take. */
int builder_fd(const struct builder *b);
/* One that is done, NULL: none is. */
struct build *builder_take(struct builder *b);
/* Files that were added and not taken yet. */
uint32_t builder_pending(const struct builder *b);
/* Waits until one is done, or `until_ns` (CLOCK_MONOTONIC). false: the time is over, or nothing is
 * under way. */
bool builder_wait(struct builder *b, uint64_t until_ns);

#endif
