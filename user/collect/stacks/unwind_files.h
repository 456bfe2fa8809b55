/*
 * The files that need unwind tables: which are one to us, which tables are being made, and when one
 * that was evicted may come back.
 */
#ifndef MEMSCOPE_COLLECT_STACKS_UNWIND_FILES_H
#define MEMSCOPE_COLLECT_STACKS_UNWIND_FILES_H

#include "base/hash.h"
#include "proc/proc_table.h"
#include "unwind/builder.h"
#include "unwind/publish.h"
#include "unwind/row_cache.h"
#include "unwind/walkers.h"

/* One content, whatever its paths. */
struct unwind_file {
	struct publish_key key;
	char *name; /* a path, for people                                        */
	bool building;
	bool failed;           /* it has no table                                           */
	bool crowded;          /* there is no room for it, unless a walk needs it           */
	bool needed;           /* a walk could not go on without its table                  */
	uint32_t table;        /* its number when it was last asked for                     */
	module_id module;      /* that it was opened as                                     */
	struct build *waiting; /* its table, while there is no room for it                  */
	struct unwind_file *next_waiting;
	uint64_t tried_ns; /* when its table last became resident, or found no room     */
	UT_hash_handle hh;
};

struct unwind_module {
	bool seen;
	enum code_kind code;
	struct unwind_file *file; /* CODE_ELF, CODE_VDSO */
};

struct unwind_files {
	struct dict *dict; /* borrowed, as the next three */
	struct proc_table *procs;
	struct publish *publish;
	struct builder *builder;
	struct unwind_file *by_key;
	struct unwind_module *modules; /* index: module_id.ix                                   */
	uint32_t n_modules;
	struct unwind_file *waiting;
	uint64_t allowed_ns;          /* CPU time that making them may take: beyond half of it those alone are made that
	                               * walks need, beyond all of it none; 0: not bounded     */
	uint64_t built, build_ns;     /* tables made, and what that took, of all threads       */
	uint64_t cpu_ns;              /* … of CPU time                                         */
	uint64_t put_off;             /* walks that had to do without a table, as that was over */
	uint32_t unreadable, no_rows; /* files                                                 */
	char first_trouble[512];      /* of those, and of tables that were refused: the first  */
};

void unwind_files_fini(struct unwind_files *f);

/*
 * Has the table of a file made that will be wanted, before there is anything to publish it to; what fails
 * is tried again when it is wanted. unwind_files_collect() is not called before that.
 */
void unwind_files_begin(struct unwind_files *f, module_id m);

/*
 * What `m` is; opens it the first time. For CODE_ELF and CODE_VDSO *ret_table is its number, and its
 * table is made if it is neither resident nor on its way, and allowed_ns admits it; one that was evicted, or
 * found no room, stays away for a while. -ENOSPC: there is no number for it now; -ENOMEM.
 */
int unwind_files_table(struct unwind_files *f, module_id m, uint64_t now_ns,
		       enum code_kind *ret_code, uint32_t *ret_table);

/*
 * A walk could not go on without table `table`. -EAGAIN: it is on its way; -ENOENT: it will not come
 * soon; where that is for allowed_ns, put_off counts it.
 */
int unwind_files_need(struct unwind_files *f, uint32_t table, uint64_t now_ns);

/* Publishes the tables that are done, and those that waited for room and now have it. */
void unwind_files_collect(struct unwind_files *f, uint64_t now_ns);

/* Room that the table of a file will take in the pool, about, bytes; 0 when it has none. */
uint64_t unwind_file_estimate(int fd);

/* What a builder is to do; `ctx`: a struct row_cache, or NULL. */
int unwind_file_make(void *ctx, int fd, const char *name, struct unwind_table **ret_table,
		     struct err *e);

#endif
