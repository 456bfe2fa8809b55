/* What a run is asked for. cmd/run_args.c makes it from the options; everyone else reads it. */
#ifndef MEMSCOPE_RUN_CONFIG_H
#define MEMSCOPE_RUN_CONFIG_H

#include "base/archive.h"
#include "collect/events/event_spec.h"
#include "collect/session/sources.h"
#include "run/group.h"
#include "run/trigger.h"

enum alloc_mode { ALLOC_AUTO, ALLOC_EXACT, ALLOC_SAMPLED, ALLOC_BURSTS, ALLOC_OFF };
enum waits_mode { WAITS_AUTO, WAITS_EXACT, WAITS_SAMPLED };

struct serve_config;
struct push_config;
struct trace_config;

struct run_config {
	pid_t *pids;             /* asked for; none with `all` or `command` */
	uint32_t n_pids;
	bool all;
	struct group *groups;    /* -c, -G: their members are targets; `pids` are those that are there */
	uint32_t n_groups;
	const struct cgroup_mounts *mounts; /* with `groups`                 */
	const char *awaited;     /* serve: names of groups that are not there yet, by commas; NULL: none */
	bool awaited_containers; /* … of containers, else of control groups  */
	char **command;          /* argv of -- CMD, or NULL                  */
	double duration_s;       /* 0: until a signal or the target's end    */
	double delay_s;          /* before anything is attached              */
	uint32_t hz;
	bool fine;               /* times of on-CPU samples to some ms, else to a second */
	bool sources[N_SOURCES];
	const struct event_spec *events; /* n_events of them, where SOURCE_EVENTS */
	uint32_t n_events;
	enum alloc_mode alloc;
	bool alloc_asked;        /* allocations were asked for by name       */
	uint64_t alloc_rate;     /* ALLOC_SAMPLED of a command, or injected: mean bytes between samples */
	bool inject;             /* ALLOC_SAMPLED, ALLOC_EXACT: put the library into running processes */
	bool file_scope;
	bool blocks_alone;       /* which blocks live and who allocated them is all that is wanted */
	bool python_objects;     /* ALLOC_EXACT, _BURSTS: CPython's allocator of objects as well   */
	double max_overhead;     /* % of one CPU                             */
	bool children, user_stacks, kernel_stacks;
	bool no_langs;           /* frames of languages are not looked for */
	uint32_t langs;          /* … only those of these: a bit each (user_stacks_lang()); 0: all */
	bool native_frames;      /* the interpreter's own stay between them      */
	pid_t tid;
	bool *cpus;
	uint32_t n_cpus;
	double interval_s;
	double census_s;         /* objects by type every so many seconds; 0: never */
	uint32_t mem_mb;
	bool quiet, verbose, json, no_demangle;
	bool no_source;          /* report.html goes without the text of source files */
	const char *by;          /* label at the root of stacks, NULL: none   */
	bool no_comm;            /* no process name there                    */
	const char *command_line; /* how memscope was called, for a shell; NULL: not known */
	const char *title;       /* what the run is to be known by; NULL: its target */
	const char *const *labels; /* "env=prod", n_labels of them           */
	uint32_t n_labels;
	const char *const *about; /* for the comments of profiles (about.h), NULL: none */
	const char *dir;         /* where the files go; exists; NULL: run_facts() alone */
	enum waits_mode waits;
	bool no_wakers;          /* off-CPU: who woke threads is not looked at   */
	uint64_t wait_min_ns, wait_max_ns; /* off-CPU: waits whose stacks are kept; 0: no bound */
	double every_s;          /* a window of profiles every so many seconds; 0: one of all */
	struct keep keep;        /* which of them stay                       */
	const char *const *series; /* --series: n_series of them             */
	uint32_t n_series;
	struct trigger *when;    /* n_when of them: a window when one is met */
	uint32_t n_when;
	double before_s;         /* so much of the time before is in it      */
	double rearm_s;          /* each once in that time at most           */
	const struct push_config *push;   /* of `memscope serve`: stores that windows are sent to; NULL: none */
	const struct serve_config *serve; /* of `memscope serve`; NULL in any other command */
	const struct trace_config *trace; /* of `memscope trace`: the log of system calls; NULL in any other command */
	struct archive *archive; /* with every_s: where they are made        */
	const char *stamp;       /* of trend and summary, which stay beside those of other runs; or NULL */
};

#endif
