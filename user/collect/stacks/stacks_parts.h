/*
 * What the files of this folder share: tables.c (the tables of each process), deferred.c (stacks that are walked
 * here) and incomplete.c. All others include user_stacks.h.
 */
#ifndef MEMSCOPE_COLLECT_STACKS_STACKS_PARTS_H
#define MEMSCOPE_COLLECT_STACKS_STACKS_PARTS_H

#include "base/clock.h"
#include "base/hash.h"
#include "collect/stacks/unwind_files.h"
#include "collect/stacks/user_stacks.h"
#include "collect/wire.h"
#include "lang/lang.h"
#include "unwind/publish.h"

struct unwind;
struct langs;
struct deferred_stack;
struct chain;
struct incomplete_stacks;

struct user_stacks {
	struct user_stacks_env env;
	struct session *session;
	struct ingest *ingest;
	struct unwind *unwind; /* NULL: user stacks by frame pointer */
	struct langs *langs;   /* NULL: frames of interpreted languages are not looked for */
	struct deferred_stack *deferred;
	uint64_t deferred_bytes, unkept; /* of those that wait; that came when too many did */
	struct chain *chains; /* frames of a language of deferred stacks that have not come yet */
	uint32_t n_chains;
	uint64_t finished[N_SOURCES][N_STACK_VERDICTS];
	struct incomplete_stacks *incomplete;
};

/* --- tables.c --- */

int tables_open(struct user_stacks *st, struct err *e);
void tables_close(struct user_stacks *st);
/*
 * What walks on behalf of a process image start from, as it is mapped now, after a stack of it could
 * not be walked in place. Puts its spans and has its tables made, where that is not so; the records
 * about processes have been read. -EAGAIN: there is no room for its spans yet; -ESRCH: nothing is known of it. 0
 * does not say that all tables are there.
 */
int tables_space(struct user_stacks *st, const struct proc_id *id, struct ms_space *ret_space);
/*
 * Such a walk ended with STACK_NO_TABLE at `addr`. -EAGAIN: the table is being made, or waits for
 * room: walk again later; -ENOENT: there is none, or it will not come soon.
 */
int tables_need(struct user_stacks *st, const struct ms_space *space, uint64_t addr);
/* The same without doing anything for it; false: nothing is known of this image. */
bool tables_known(const struct user_stacks *st, const struct proc_id *id, struct ms_space *ret_space);
/* The memory that such walks read. */
const struct publish_mem *tables_mem(const struct user_stacks *st);

/* --- langs.c --- */

int langs_open(struct user_stacks *st, struct err *e);
void langs_begin(struct user_stacks *st, struct ingest *in);
void langs_close(struct user_stacks *st);
/* These are the executable mappings of a process now. */
void langs_mapped(struct user_stacks *st, const struct proc_id *id, const struct proc_mapping *maps, uint32_t n);
void langs_ended(struct user_stacks *st, pid_t pid);
void langs_tick(struct user_stacks *st);
/* The runtime of a process; NULL: none is known. */
const struct ms_lang_row *langs_row(const struct user_stacks *st, const struct proc_id *id);
/* A frame of a language that a deferred stack will have: gets its name while its code is there. */
void langs_seen(struct user_stacks *st, const struct proc_id *id, const uint64_t words[2]);
/* Such a stack has been walked. */
void langs_walked(struct user_stacks *st, bool lost, bool misplaced);
/* The processes that live with a runtime of a language. `tasks`: what is remembered of theirs. */
typedef void (*langs_each_fn)(void *ctx, const struct proc_id *id, const struct lang_runtime *rt, struct python_tasks *tasks);
void langs_each(struct user_stacks *st, enum ms_lang lang, langs_each_fn fn, void *ctx);
/* A frame of process image `id`; of one that has been replaced, or has ended, what was named before. */
location_id langs_named(struct user_stacks *st, const struct proc_id *id, const uint64_t words[2]);
/* A struct lang_memory's read(): `ctx` points to the pid. */
bool langs_read_process(void *ctx, uint64_t addr, void *buf, size_t len);

/* --- deferred.c --- */

/* A stack to be walked here: waits for user_stacks_walk(). */
enum drain_says on_deferred(void *ctx, const void *record, const void *bytes);
/* The frames of a language of the one that comes next. */
enum drain_says on_chain(void *ctx, const void *record, const void *links);
void deferred_free(struct user_stacks *st);
/* Do stacks of this process wait here? */
bool deferred_of(const struct user_stacks *st, pid_t pid);

/* --- incomplete.c --- */

/* Stacks that are not complete, from ingest: counted by the code that is to blame. */
void on_incomplete(void *ctx, const struct proc_id *id, uint32_t as_gen, enum stack_verdict verdict,
		   const uint64_t *frames, uint32_t n, uint64_t count);
void incomplete_free(struct user_stacks *st);

#endif
