/*
 * What publish.c (tables) and publish_spaces.c (processes) know of each other. Everyone else
 * includes publish.h.
 */
#ifndef MEMSCOPE_UNWIND_PUBLISH_PARTS_H
#define MEMSCOPE_UNWIND_PUBLISH_PARTS_H

#include "base/hash.h"
#include "unwind/pool.h"
#include "unwind/publish.h"
#include "unwind/shared_rules.h"

struct table {
	struct publish_key key;    /* len 0: this number has no file     */
	enum publish_state state;
	uint32_t refs;             /* spans that name it                 */
	uint32_t at;               /* units; while resident …            */
	uint32_t n_rows;
	uint32_t *rules;           /* … the places of its rules          */
	uint32_t n_rules;
	uint32_t evictions;
	uint64_t idle_ns;          /* when it was last referred to or resident, if neither now */
	UT_hash_handle hh;
};

/* Spans in the pool, of one process or of several whose spans are the same. */
struct span_list {
	uint32_t refs, n, at;      /* `at`: units */
	UT_hash_handle hh;         /* key: the spans themselves, in the pool */
};

struct process {
	struct ms_proc proc;
	struct span_list *list;
	uint32_t as_gen;
	bool entered;              /* its entry is put  */
	uint64_t end_ns;           /* it has ended; or 0 */
	UT_hash_handle hh;         /* by proc           */
	UT_hash_handle hh_pid;     /* by proc.tgid, while `entered` */
};

struct publish {
	struct publish_mem mem;
	struct space_sink sink;
	struct pool pool;
	struct shared_rules rules;
	struct table *tables;      /* by number; n_tables of mem.n_tables were ever used */
	uint32_t n_tables;
	uint32_t serial;           /* of the table published last */
	struct table *by_key;
	struct span_list *lists;
	struct process *by_proc, *by_pid;
	uint32_t stub;             /* pool word: the table of files that have none */
	struct ms_span *scratch;
	uint32_t cap_scratch;
	uint64_t next_forget_ns;
	struct publish_stats stats;
};

/*
 * Room in the pool; evicts and says -EAGAIN where there is none yet. Not `needed`: tables that
 * processes refer to stay, -ENOSPC.
 */
int publish_take(struct publish *p, enum pool_use use, uint32_t owner, uint32_t units, bool needed,
		 uint64_t now_ns, uint32_t *ret_at);
/* A span names a table, or no longer does. */
void publish_table_ref(struct publish *p, uint32_t table);
void publish_table_unref(struct publish *p, uint32_t table, uint64_t now_ns);

void publish_spaces_tick(struct publish *p, uint64_t now_ns);
void publish_spaces_fini(struct publish *p);

#endif
