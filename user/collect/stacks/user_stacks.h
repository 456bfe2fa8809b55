/*
 * Whole user stacks: the unwind tables of the targets where the kernel's walker finds them, stacks that
 * are walked here because it could not, and which code is to blame for those that are not complete.
 *
 * The caller says when records about processes have been read and what they said of a process; all functions
 * but user_stacks_prepare() do nothing of their own where no user stacks are wanted.
 */
#ifndef MEMSCOPE_COLLECT_STACKS_USER_STACKS_H
#define MEMSCOPE_COLLECT_STACKS_USER_STACKS_H

#include "base/loop.h"
#include "collect/session/bpf_session.h"
#include "collect/stream/drain.h"
#include "collect/stream/ingest.h"
#include "model/source.h"

struct user_stacks;

/* What they work with; all borrowed. */
struct user_stacks_env {
	struct dict *dict;
	struct proc_table *procs;
	struct loop *loop;
	bool wanted;             /* user stacks; else there are no tables               */
	bool all;                /* the whole host: a process gets its tables when one of its stacks needs them */
	bool lazy;               /* … and only then: a child that is gone, or another image, before records are read costs nothing */
	bool alloc;              /* allocations are traced, and need room too           */
	bool langs;              /* frames of languages, too                            */
	uint32_t only_langs;     /* … of these alone: a bit each (user_stacks_lang()); 0: all */
	bool native_frames;      /* … with the interpreter's own frames between them     */
	bool command;            /* it is started: nobody knows yet what it will map    */
	const pid_t *pids;       /* of processes asked for                              */
	uint32_t n_pids;
	uint32_t mem_mb;
	uint32_t *n_deferred;    /* kept: stacks that wait to be walked here            */
	bool *oom;               /* set when memory runs out                            */
	/* Reads the records about processes up to now. */
	void (*read_processes)(void *ctx);
	bool (*is_target)(void *ctx, pid_t pid);
	/* The command, which waits to be let go: so far it is a copy of this process. */
	bool (*is_before_exec)(void *ctx, pid_t pid);
	/* Waiting for tables is not worth it any more. */
	bool (*in_a_hurry)(void);
	void *ctx;
};

/* `env` is copied. NULL: out of memory. */
struct user_stacks *user_stacks_new(const struct user_stacks_env *env);
void user_stacks_free(struct user_stacks *st);
DEFINE_CLEANUP(struct user_stacks *, user_stacks_freep, user_stacks_free)

/* Before the session is opened: the tables of processes that were asked for are begun to be made.
 * *ret_bytes: room that tables are to have, 0: none are wanted. */
int user_stacks_prepare(struct user_stacks *st, uint64_t *ret_bytes, struct err *e);
/* `s` and `d` are borrowed. Before ingest_listen(). */
int user_stacks_open(struct user_stacks *st, struct session *s, struct drain *d, struct err *e);
/* Tables of the targets, before the gate opens; waits for them. */
int user_stacks_begin(struct user_stacks *st, struct ingest *in, struct err *e);
/* A command will map this file: what is in it of a language's runtime is read before it runs. After user_stacks_begin(). */
void user_stacks_expect(struct user_stacks *st, int fd, const char *name);
/* A command is held: tables of what it has mapped so far. */
void user_stacks_held(struct user_stacks *st);
/* The run ends: tables that stacks wait for are still made, for a while. */
void user_stacks_settle(struct user_stacks *st);

/* From the records: a process has other mappings; has another image; is new; has ended. */
void user_stacks_changed(struct user_stacks *st, pid_t pid);
void user_stacks_replaced(struct user_stacks *st, pid_t pid);
void user_stacks_forked(struct user_stacks *st, pid_t pid, pid_t parent);
void user_stacks_ended(struct user_stacks *st, pid_t pid);
/* Something is mapped over what process `pid` had there: its stacks of before `ns` are walked now. */
void user_stacks_remapping(struct user_stacks *st, pid_t pid, uint64_t ns);
/* All records of before `ns` have been read; puts what is due. */
void user_stacks_read(struct user_stacks *st, uint64_t ns);
void user_stacks_tick(struct user_stacks *st);
/* Walks those that wait, once the records about processes have been read; `all`: also those whose
 * tables are not made yet. */
void user_stacks_walk(struct user_stacks *st, bool all);

/* How stacks that were walked here ended: [source][verdict]. */
void user_stacks_verdicts(const struct user_stacks *st, uint64_t ret_n[N_SOURCES][N_STACK_VERDICTS]);
/* … of those, without a table: too many waited when they came, and their first frame is all that is known. */
uint64_t user_stacks_unkept(const struct user_stacks *st);

/* Where stacks came to be not complete, the worst first, `cap` at most; returns how many. */
struct user_stacks_incomplete {
	module_id module;
	enum stack_verdict verdict;
	uint64_t events; /* of all sources */
};
uint32_t user_stacks_incomplete(struct user_stacks *st, struct user_stacks_incomplete *ret_rows,
				uint32_t cap);

/* Tables may take so much CPU time to make, since the beginning; 0: any. Beyond half of it those alone are made that walks need,
 * beyond all of it walks end at code that has none yet. */
void user_stacks_allow(struct user_stacks *st, uint64_t cpu_ns);

/* Of the tables; false: there are none. `trouble` lives as long as `st`. */
struct user_stacks_tables {
	uint32_t resident, known;      /* files                                             */
	uint64_t pool_bytes, table_bytes, span_bytes;
	uint64_t rows, spans;
	uint32_t rules, processes, lists;
	uint64_t put, put_ns;          /* lists of spans, and what that took                */
	uint64_t not_put;              /* processes that were gone, or another image, before (`lazy`) */
	uint64_t built, build_ns;      /* tables made, and what that took, of all threads   */
	uint64_t put_off;              /* walks that did without one: user_stacks_allow()   */
	uint64_t evicted, evicted_in_use, refused, without_room;
	uint32_t unreadable, no_rows;  /* files                                             */
	const char *trouble;           /* the first of those, and of tables refused; ""     */
};
bool user_stacks_tables(const struct user_stacks *st, struct user_stacks_tables *ret_tables);

/* The bit of a language in only_langs, by the name that users have for it; 0: that is none. */
uint32_t user_stacks_lang(const char *name, size_t len);
/* All such names, as a list for a sentence. */
const char *user_stacks_lang_names(void);

/* Languages; false: they are not looked for. */
struct user_stacks_langs {
	uint64_t processes;     /* in which a runtime was found; of which the first is `name`     */
	char name[32];
	bool untested;          /* one of them is of a version that was never tried           */
	uint64_t unknown;       /* processes with a runtime that cannot be read; the first: why */
	char trouble[256];
	uint64_t no_room;       /* processes that the kernel's table had no room for          */
	uint64_t named, gone, damaged; /* frames: functions and places in them, each once     */
	uint64_t native; /* events in an interpreter without a frame of its language          */
	uint64_t lost, misplaced; /* stacks that were walked here: STAT_LANG_LOST, STAT_LANG_SHORT */
};
bool user_stacks_langs(const struct user_stacks *st, struct user_stacks_langs *ret_langs);

/* Threads of Java that wait to enter a monitor at this moment, and whose it is, in every JVM that is known: `owner_tid` 0 where that is
 * not known. Numbers are those of the process's own namespace. Returns how many threads were looked at; 0: there is no JVM. */
uint32_t user_stacks_monitors(struct user_stacks *st, void (*waits)(void *ctx, pid_t pid, uint32_t tid, uint32_t owner_tid),
			      void *ctx);

/* A task of asyncio that waits: the stack of its coroutines. `at`, `waits_for`: addresses of it and of the future that wakes it. */
struct user_stacks_task {
	pid_t pid;
	uint64_t at, waits_for;
	bool of_task; /* that is another task */
	stack_id stack;
};

/* A look at all of them, in every CPython that is known and has asyncio. Sums are added to. */
struct user_stacks_tasks {
	void (*task)(void *ctx, const struct user_stacks_task *task);
	void *ctx;
	uint32_t processes;            /* with asyncio                                     */
	uint32_t seen, ready, changed; /* tasks: all, those that do not wait, those that ran meanwhile */
	bool more;                     /* than were looked at                              */
};
void user_stacks_tasks(struct user_stacks *st, struct user_stacks_tasks *to);

#endif
