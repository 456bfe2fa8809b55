/*
 * One recording. The services that its components stand on, joined:
 *
 *   targets ─► process table ─┐
 *   BPF maps ─► drain ─► ingest ─► profiles ─► symbolize ─► files, summary
 *
 * components.c says what takes part, component.h when each part is called. record.c says what is
 * wanted; whoever else wants a recording calls the same functions.
 */
#ifndef MEMSCOPE_RUN_RUN_H
#define MEMSCOPE_RUN_RUN_H

#include "analyse/summary.h"
#include "base/loop.h"
#include "collect/session/bpf_session.h"
#include "collect/stream/drain.h"
#include "collect/stream/ingest.h"
#include "collect/stream/wakers.h"
#include "model/gc_counters.h"
#include "model/mem_sample.h"
#include "model/profile.h"
#include "proc/proc_table.h"
#include "run/config.h"
#include "run/notes.h"

struct targets;
struct pipeline;
struct run_budget;
struct profile_since;
struct profile_now;
struct http_server;
struct push;
struct ledger;
struct own_cpu_state;

struct run_clock {
	int64_t start_wall_ns; /* when the gate opened                        */
	uint64_t closing_ns;   /* when the run was to end: what is read before the gate is shut comes first */
	uint64_t end_ns;       /* when it was shut, CLOCK_MONOTONIC; 0: is open */
	uint64_t next_row_ns;  /* of the memory series, CLOCK_MONOTONIC        */
};

struct run_ending {
	enum run_end why;
	char detail[128];
	bool child_ended;
	int child_status; /* as of waitpid(2) */
};

/* Windows of --every up to now. */
struct run_windows {
	uint64_t closed;  /* handed to a writer                                  */
	uint64_t failed;  /* of those: not written, or not completely            */
	uint64_t skipped; /* times one was kept open longer: all writers had work */
	uint64_t no_lines; /* without debug info, for a service's limit          */
};

typedef void (*run_block_fn)(void *ctx, const struct drain_block *block);

/*
 * How allocations are gathered, as others need to know it: the component `alloc` alone writes it.
 * Tracing: every call is counted now.
 */
struct alloc_state {
	enum alloc_tier tier;
	bool tracing;
	bool following;          /* probes or sampler sites follow what targets map */
	const char *reason;      /* why it is this tier; ""                     */
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC; to_ns 0: it goes on    */
	struct profile *sites;   /* what became of exact allocations; NULL: not traced */
	bool no_mappings;        /* exact: to trace them would cost too much, or fails   */
	bool live_known;         /* bursts: what lives was estimated, at the end */
	/* Live bytes now, MEM_UNKNOWN where that is not known. */
	int64_t (*live_bytes)(void *ctx);
	/* Allocated since the run began; NAN where that is not known. */
	double (*total_bytes)(void *ctx);
	void *live_ctx; /* of these, and of live_blocks and block_stack below */
	/* Called as estimates become known: `bytes` were allocated between two moments (CLOCK_MONOTONIC);
	 * `stack` NULL: not known. Exact calls come from ingest_on_alloc(). */
	void (*allocated)(void *ctx, const stack_id *stack, double bytes, uint64_t from_ns,
			  uint64_t to_ns);
	void *allocated_ctx;
	/* What lives, of a sampler that reports frees: as ingest_on_alloc() says it of exact calls, in samples and
	 * the bytes that these stand for. NULL: nobody wants it. */
	void (*lives)(void *ctx, const struct proc_id *proc, stack_id stack, int64_t blocks,
		      int64_t bytes, uint64_t born_ns);
	void *lives_ctx;
	/*
	 * Every call is traced: the blocks that are live at this moment; and, after run_end(), the stack that made one
	 * of them. false: not known. -ENODATA: not every call is. NULL: nothing is gathered of allocations.
	 */
	int (*live_blocks)(void *ctx, run_block_fn fn, void *fn_ctx, struct err *e);
	bool (*block_stack)(void *ctx, const struct drain_block *block, stack_id *ret_stack);
	/* In the end: allocations recorded in the processes themselves, by how their stack ended. */
	uint64_t verdicts[N_STACK_VERDICTS];
};

/* What the last row of the trend was. */
struct run_row {
	struct mem_sample memory; /* of the targets; time_ns 0: there was none         */
	struct gc_sample gc;	  /* collections of garbage up to now, for that row */
};

/* What a service has beside its profiles; NULL: there is none. */
struct run_serving {
	struct http_server *http; /* components add their routes to it in ready(), and answer in closing() what they have not */
	struct push *push; /* to stores */
	/* The RSS breakdown of a folder (folders.h) as of the last look at it; NULL: none yet. */
	const struct ledger *(*breakdown)(void *ctx, const char *folder);
	void *breakdown_ctx;
	const struct own_cpu_state *own_cpu; /* what the service itself costs; NULL: not known */
	uint32_t savings; /* so many things are left out for its limit (run/own_share.h) */
	bool new_config; /* the run that follows reads it; else it goes on with what this one had */
};

struct run_waits {
	struct wakers *wakers; /* who ended waits; NULL: not looked at */
	struct wait_sampler *sampler; /* of threads that switch often; NULL: none is at work */
};

struct run_counts {
	uint64_t paused_ns, pauses; /* censuses stopped a target for so long, so often */
	uint32_t named_early;	    /* locations that were named before the end        */
	uint32_t ranges_early;	    /* … of those, by the range of their function alone */
	uint32_t unread_early;	    /* others: named as far as can be without debug info that was left unread */
	uint32_t deferred;	    /* stacks that wait to be walked here              */
};

struct run {
	const struct run_config *cfg;
	struct loop *loop;
	struct dict *dict;
	struct proc_table *procs;
	struct session *session;
	struct own_names *own_names; /* NULL: not read */
	struct drain *drain;
	struct ingest *ingest;
	struct profile *profiles[N_PROFILE_KINDS];
	struct targets *targets;
	struct pipeline *pipeline;
	struct run_budget *budget;
	struct notes notes;
	struct run_clock clock;
	struct run_ending end;
	struct alloc_state alloc;
	struct run_windows windows;
	struct run_row row;
	struct run_serving serving;
	struct run_waits waits;
	struct run_counts counts;
	void **states;          /* of components, by their place in the table           */
	bool oom;               /* something gathered did not fit in memory             */
};

/* How long the slots of time are in which on-CPU samples are counted, ns. */
uint64_t run_oncpu_slot_ns(const struct run_config *cfg);

/* Everything from here to the end of the run. On an error, what was gathered is still in *r. */
int run_begin(struct run *r, const struct run_config *cfg, struct err *e);
int run_loop(struct run *r, struct err *e);
/* Closes the gate, takes everything out, detaches. */
int run_end(struct run *r, struct err *e);
void run_free(struct run *r);

/* A second signal has come: names and pictures that are not there yet are left out. */
bool run_in_a_hurry(void);
/* Asks for a profile now: see component.h. */
void run_ask(struct run *r, const char *why);
/* Has it ended so that another run follows in this process? */
bool serve_goes_on(const struct run *r);
/* Ends the loop. The first reason stays, but that a signal is heeded where another run would follow. */
void run_ends(struct run *r, enum run_end why, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Names and facts, and no file: calls `fn` once, whose `s` lives until it returns. */
int run_facts(struct run *r, void (*fn)(void *ctx, const struct run_summary *s), void *ctx,
	      struct err *e);

/* Names, files, summary. 0, or -errno when a file could not be written (the others are). */
int run_write(struct run *r, struct err *e);

#endif
