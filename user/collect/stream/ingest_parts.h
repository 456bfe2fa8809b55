/*
 * What the files of ingest share: ingest.c (stacks, labels, totals), ingest_allocs.c (allocations
 * and mappings) and ingest_threads.c (running and waiting times). All others include ingest.h.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_INGEST_PARTS_H
#define MEMSCOPE_COLLECT_STREAM_INGEST_PARTS_H

#include "base/hash.h"
#include "collect/stream/ingest_wire.h"
#include "collect/stream/record_age.h"

/* A stack as received: words, leaf first. */
struct raw_stack {
	struct ms_hash hash;
	uint16_t n;
	uint8_t flags, verdict;
	bool placed;   /* `as_gen` is known, whatever the totals say */
	bool has_lang; /* there is a frame of a language in it     */
	uint32_t as_gen;
	struct record_age age;
	UT_hash_handle hh;
	uint64_t frames[];
};

/* A pair of raw stacks resolved in one image and generation. */
struct resolved_key {
	const struct proc *proc;
	struct ms_hash user, kernel;
	uint64_t as_gen;
};

struct resolved {
	struct resolved_key key;
	stack_id stack;
	UT_hash_handle hh;
};

struct thread_key {
	const struct proc *proc;
	uint64_t tid;
	uint64_t name; /* of threads that are shown without a number */
	uint64_t own;  /* labels of the program's own, 0: none          */
	const char *memory;
};

struct thread_labels {
	struct thread_key key;
	labels_id labels;
	UT_hash_handle hh;
};

/* A thread that has labels of its own: the n-th of its process. tid 0: how many that has, and has the process? */
struct shown_thread {
	uint64_t pid_tid;
	uint32_t n;
	bool process;
	UT_hash_handle hh;
};

/* What a process image holds, by its totals. */
struct holding {
	struct proc_id proc;
	int64_t bytes;
	UT_hash_handle hh;
};

/* A total whose stack has not come yet. */
struct waiting {
	struct ms_total_key key;
	struct ms_total total;
	uint64_t slot, since_ns;
};

struct ingest {
	uint64_t wait_min_ns, wait_max_ns; /* max 0: no bound */
	const uint64_t *end_ns;            /* ingest_listen() */
	const struct drain *drain;         /* the same */
	bool *oom;
	struct dict *dict;
	struct proc_table *procs;
	struct ingest_profiles profiles;
	struct raw_stack *raw;
	uint32_t ages; /* calls of ingest_age_stacks() */
	struct resolved *resolved;
	struct thread_labels *labels;
	struct shown_thread *shown;
	uint32_t processes_max, n_processes; /* ingest_few_processes() */
	struct holding *holdings;
	pid_t keep[1024]; /* as many as -p takes */
	uint32_t n_keep;
	struct waiting *waiting;
	uint32_t n_waiting, cap_waiting;
	bool finishing;
	uint64_t schedule_addr;
	struct kernel_function waking;
	struct kernel_function tracers[INGEST_TRACERS];
	module_id kernel;
	location_id lost, none, no_room;
	string_id key_pid, key_tid, key_comm, key_thread, key_memory;
	string_id key_container, key_container_id, key_pod, key_namespace, key_cgroup, key_ns_pid;
	struct ingest_stats stats;
	ingest_incomplete_fn on_incomplete;
	void *incomplete_ctx;
	struct ingest_langs langs;
	struct {
		ingest_alloc_fn fn;
		void *ctx;
	} on_alloc[INGEST_ALLOC_LISTENERS];
	uint32_t n_on_alloc;
	ingest_container_fn container_of_process;
	void *container_ctx;
	ingest_own_labels_fn own_labels;
	void *own_labels_ctx;
	ingest_event_fn event;
	void *event_ctx;
	uint32_t own; /* of the total that is being added */
	struct ingest_stretch stretch; /* begin_ns 0: times are not known */
	location_id scratch[2 * MS_MAX_FRAMES];
};

/* NULL: nothing is known of it. */
struct proc *ingest_proc(struct ingest *in, const struct ms_proc *p);
/* The interned stack of `key`. false: a record has not arrived (and we are not finishing). */
bool ingest_resolve(struct ingest *in, struct proc *proc, const struct ms_total_key *key,
		    stack_id *ret_stack);
/* This hash names a stack whose record has not arrived. */
bool ingest_missing(struct ingest *in, const struct ms_hash *stack);
/*
 * Has this process labels with its number? Where a run shows few: not one that has ended, or just begun, when many have
 * them. Who has them keeps them as long as it lives.
 */
bool ingest_process_shown(struct ingest *in, const struct proc *proc, const struct ms_proc *p);
/* Forgets that of processes that proc_table_retire() forgot. */
void ingest_forget_shown(struct ingest *in);
/* `tid` 0: of the process. `memory`: what kind, NULL for other sources; one of a few strings. */
labels_id ingest_labels(struct ingest *in, struct proc *proc, const struct ms_proc *p, uint32_t tid,
			uint64_t cgroup_id, const char *memory);
/*
 * Has this thread labels with its number? Not one that has ended when a good deal of its process's threads have
 * them, nor one that has just begun: a server that begins a thread for each request would fill memory with
 * samples that differ in that number only. Who has them keeps them.
 */
bool ingest_thread_shown(struct ingest *in, const struct proc *proc, const struct ms_proc *p,
			 uint32_t tid);
/*
 * The number under which a thread's allocations are kept, 0: none. What is added to a site now and at the end has
 * to have the same, so this is decided once: the first threads of a process have theirs.
 */
uint32_t ingest_site_tid(struct ingest *in, const struct ms_proc *p, uint32_t tid);
const char *ingest_memory_name(const struct ms_total_key *key);
void ingest_report_stack(struct ingest *in, const struct ms_total_key *key, uint64_t count);
/* Which slot of time a total is of, since the run began. */
uint64_t ingest_slot(const struct ingest *in, const struct ms_total_key *key);
/* The slot of a wait of `ns` that ends at `end_ns`, into its total. */
void ingest_set_slot(const struct ingest *in, uint64_t end_ns, uint64_t ns,
		     struct ms_total_key *key, struct ms_total *total);
/* profile_add(), and when: in the present stretch; what is of one slot, and of a wait that reaches into it. */
int ingest_add(struct ingest *in, struct profile *p, stack_id stack, labels_id labels,
	       const int64_t *values);
int ingest_add_total(struct ingest *in, struct profile *p, stack_id stack, labels_id labels,
		     const int64_t *values, const struct ms_total_key *key, uint64_t slot,
		     uint64_t before);
/* A total of waits as the values of the off-CPU profile. */
void ingest_wait_values(const struct ms_total_key *key, const struct ms_total *total,
			int64_t values[4]);

#endif
