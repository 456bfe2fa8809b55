/*
 * Events of a run (event_spec.h), attached to the programs of bpf/events.bpf.c.
 *
 * An event is what one program is attached to under one number: an item of -e, or, where that is a pattern, each tracepoint,
 * site or function that matches. Those of an item share its profile. Sites and functions are in files, and are found as
 * targets map them.
 */
#ifndef MEMSCOPE_COLLECT_EVENTS_EVENT_PROBES_H
#define MEMSCOPE_COLLECT_EVENTS_EVENT_PROBES_H

#include "collect/events/event_spec.h"
#include "collect/session/bpf_session.h"
#include "proc/proc_table.h"

struct event_probes;

/*
 * Before a session is opened: finds the tracepoints, and asks for each perf event whether it can be had. `specs` are borrowed.
 * An item that cannot be had is left out, with its reason; -ENODEV with a sentence: none of them can.
 */
int event_probes_new(const struct event_spec *specs, uint32_t n, struct event_probes **ret_probes,
		     struct err *e);
/* Begins to detach and returns; uprobes_wait() returns when it is done. */
void event_probes_free(struct event_probes *ep);
DEFINE_CLEANUP(struct event_probes *, event_probes_freep, event_probes_free)

/* Of EVENT_PERF: why the kernel refuses it here; NULL: it can be had. A sentence that stays. */
const char *event_why_not(const struct event_spec *spec);

/* What the session needs for them. */
void event_probes_opts(const struct event_probes *ep, struct session_opts *opts);

/* While the gate is shut: attaches perf events and tracepoints. An item that fails is left out, as above. */
void event_probes_attach(struct event_probes *ep, struct session *s, uint32_t hz);
/* The gate has opened: what was missed before is none of the run's. */
void event_probes_begin(struct event_probes *ep);
/*
 * Sites and functions, when events are attached: those in files that targets map. `file_scope`: a file is probed once for all
 * processes that map it, now and later; else it is probed in each target.
 */
void event_probes_in(struct event_probes *ep, struct dict *d, struct proc_table *procs,
		     bool file_scope);
/* Looks into what `pid` maps; places in it that were not probed before are. Returns how many those are, or -ENOMEM. */
int event_probes_add(struct event_probes *ep, pid_t pid);
/* Its probes have ended with the process. */
void event_probes_drop(struct event_probes *ep, pid_t pid);
/* Takes them out; events are counted no more. One item: what it cost was too much. */
void event_probes_detach(struct event_probes *ep);
void event_probes_stop(struct event_probes *ep, uint32_t spec);
/* From now on one stack in so many of this item is captured, of those that its period leaves; 0: none. */
void event_probes_thin(struct event_probes *ep, uint32_t spec, uint32_t one_in);

uint32_t event_probes_n_specs(const struct event_probes *ep);
const struct event_spec *event_probes_spec(const struct event_probes *ep, uint32_t spec);
/* NULL: it is attached; else why not. */
const char *event_probes_why(const struct event_probes *ep, uint32_t spec);
/* How many places of an item could not be probed, and why the last of them. */
uint32_t event_probes_failed(const struct event_probes *ep, uint32_t spec, const char **ret_why);
/* What an event costs beside its program, ns: the trap of a probe. 0: nothing. What one at a return does. */
double event_probes_trap_ns(const struct event_probes *ep, uint32_t number);
double event_probes_return_ns(const struct event_probes *ep);
/* Events so far; they are added and never taken away. */
uint32_t event_probes_n(const struct event_probes *ep);
struct event_probe {
	uint32_t spec;
	const char *name; /* "sched:sched_process_fork"; as long as the probes live */
	bool is_one_of;   /* its item is a pattern: others share its profile         */
};
struct event_probe event_probes_get(const struct event_probes *ep, uint32_t number);

struct event_count {
	uint64_t fired;   /* times the program ran, for whichever process, from its attachment on */
	uint64_t count;   /* events of targets while the gate was open             */
	uint64_t taken;   /* times the program ran for these                        */
	uint64_t stacks;  /* … and captured the stack                              */
	uint64_t returns; /* times it ran at a return, for whichever process   */
	uint64_t shortest_ns,
		longest_ns; /* of the calls that returned; 0: none did                        */
};
/* Of an event. */
void event_probes_count(const struct event_probes *ep, uint32_t number,
			struct event_count *ret_count);
/* Of the first `n` of them at once, some hundred for each system call; those that cannot be read have none. */
void event_probes_counts(const struct event_probes *ep, struct event_count *ret_counts, uint32_t n);
/* The calls of an event whose item is timed. */
#define CALL_PARTS 32
struct call_times {
	uint64_t returned, ns;
	uint64_t outer, outer_ns; /* of these, those not within another call of the function */
	uint64_t left; /* calls that will never return: exceptions, longjmp, threads that ended */
	uint64_t lost; /* … whose return cannot be known: no room                      */
	uint64_t open; /* have not returned                                            */
	uint64_t
		parts[CALL_PARTS]; /* part i: of 64 << i ns and more; the first also shorter ones */
};
void event_probes_times(const struct event_probes *ep, uint32_t number,
			struct call_times *ret_times);
/* Calls of threads and processes that have ended become `left`; those that have not returned are `open` after that. */
void event_probes_sweep(struct event_probes *ep, bool (*lives)(void *ctx, pid_t pid), void *ctx);
/* Why the calls of an event of such an item are not timed; NULL: they are. */
const char *event_probes_untimed(const struct event_probes *ep, uint32_t number);
/* From now on calls of an item are counted, and no longer timed. */
void event_probes_untime(struct event_probes *ep, uint32_t spec);
/*
 * Events that the programs have not seen, because they came while another program ran on the CPU: perf events of an item (of
 * all processes, after event_probes_detach()), and tracepoints of all items.
 */
uint64_t event_probes_missed(const struct event_probes *ep, uint32_t spec);
uint64_t event_probes_missed_tracepoints(const struct event_probes *ep);

#endif
