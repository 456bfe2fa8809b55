/*
 * What processes use at one moment, as text or as JSON: a line for each process and, if asked for,
 * one for each of its mappings in the columns of `pmap -x`, with Pss, Anon and Swap between them.
 * Sizes are in kB of 1,024 bytes, as in /proc; what is not known is "-", in JSON null.
 */
#ifndef MEMSCOPE_RENDER_TABLES_MEM_TABLE_H
#define MEMSCOPE_RENDER_TABLES_MEM_TABLE_H

#include "base/sink.h"
#include "model/mem_sample.h"

#include <stdbool.h>
#include <sys/types.h>

struct mem_table;

struct mem_mapping {
	uint64_t start;
	int64_t size_kb, rss_kb, pss_kb, dirty_kb, anonymous_kb, swap_kb;
	char mode[5];      /* rwxs */
	const char *name;  /* path, [heap], or "" */
	bool deleted;
};

struct mem_table_process {
	pid_t pid, ns_pid;         /* ns_pid: in its own namespace; 0: the same, or not known  */
	const char *name;          /* command name                                             */
	const char *command;       /* the whole command line; "": it has none                  */
	int64_t of_kb;             /* what 100 % of its memory is: the machine's …             */
	bool is_limit;             /* … or the limit of its container or control group         */
	struct mem_sample use;
};

/* A container or control group; `id` and `engine` are NULL where it is no container. */
struct mem_table_group {
	const char *name, *path, *id, *engine;
	struct mem_group use;
};

/* `maps`: each process has a table of its own. -ENOMEM. */
int mem_table_open(struct sink *out, bool maps, bool json, struct mem_table **ret_table,
		   struct err *e);
void mem_table_process(struct mem_table *t, const struct mem_table_process *p);
/* Of the process before. */
void mem_table_mapping(struct mem_table *t, const struct mem_mapping *m);
/* Of all of them together. */
void mem_table_total(struct mem_table *t, const struct mem_sample *s);
/* Behind the processes. As JSON it is then an object: processes, total, groups. */
void mem_table_group(struct mem_table *t, const struct mem_table_group *g);
/* What the percentages are of; as JSON, all of it. */
int mem_table_end(struct mem_table *t, struct err *e);

void mem_table_free(struct mem_table *t);
DEFINE_CLEANUP(struct mem_table *, mem_table_freep, mem_table_free)

#endif
